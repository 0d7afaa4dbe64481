"""Quantiles, such as the median, of a noisy tree.

Every level of the tree counts the same rows at another resolution, with independent noise of one scale s.  The best
linear unbiased estimate of the leaves (Hay et al. 2010, *Boosting the accuracy of differentially private histograms
through consistency*, sec. 4; for normal noise it is also the maximum likelihood estimate) is computed upwards, by
combining each node with the sum of its children, and then downwards, by distributing the remainder.  A prefix of the
leaves is a linear functional of it, whose exact variance follows from the same recursion, without the data.

For the true quantile x at level q, F - q N is at most 0 at every edge before the leaf of x and at least 0 at every edge
after it, and its noisy value is normal with a known scale.  Where it is clearly negative, x is not before that edge,
and where it is clearly positive, not after it.  For each leaf and direction two edges are tested: the nearest one, and
the nearest of every 16th (`STEP`), whose noise is less since fewer levels contribute to it.  The interval goes from the
first leaf that is not excluded from below to the last that is not from above.  No density is estimated.  Errors are
therefore known in rank, without the table.

**Coverage.** Let alpha = 2 Phi(-z).  The nearest edge excludes a leaf beyond max(f, 0.92 z) standard deviations, with
Phi(-f) = 0.8 alpha, and the other beyond c, with Phi(-c) = 0.2 alpha.  The leaf of x is excluded from below only if
one of two edges after it, whose true values are at least 0, is seen that far below 0: with probability alpha at most,
whatever the data (union bound).  The same holds from above.  So the interval covers with the confidence of z unless
the quantile may be missed at both ends, that is, unless the true values before *and* after its leaf are within reach
of 0.  Then only 1 - 2 alpha is proved.  But an interval begins after that leaf only if the leaves before it are
excluded too, hence if the noise of several edges is large at once.  This case is simulated, not proved: over 1,100
courses of F (flat parts and steps of all lengths and heights between jumps; 4 to 256 leaves; q from 0.01 to 0.95) the
largest shares of misses were 27.1, 11.9, 9.1, 4.8, 1.0 and 0.19% at z = 1, 1.5, 1.645, 1.96, 2.576 and 3.09, where
alpha is 31.7, 13.4, 10, 5, 1 and 0.2%.  These are for 0.9 z in place of
0.92 z; with 4,096 leaves, a leaf between two steps is missed in 4.7% at z = 1.96.  The bound is needed for it: without,
the largest is 14.9% at z = 1.5.

Simulated even data are covered in 97% or more at 95%.  Against two-sided tests at z of every edge alone, intervals are
5 to 10% narrower where the noise of a rank spans up to 3 leaves, 13 to 16% at 10 leaves and 23 to 34% from 30 to 300.
Where few leaves matter, single edges decide, and at most 16% could be gained: if the rank is that of all rows before a
gap, the interval fails by the noise of the first edge in it, which has to be tested at 1.645 standard deviations.

**Populations.** For the quantile x of a population from which the rows are a sample, the mean of F - q N over samples
is at most 0 before the leaf of x and at least 0 after it, and its variance is given.  F does not decrease, so if
sampling makes it too small at some edge after x, it is too small at the first one: sampling fails once at each end,
not once for each edge, and its part of the reach has z for both tests.  If reaches are added, an interval fails only
if noise or sampling alone exceeds its own.  In quadrature it is simulated: at alpha 5%, with normal, skewed, heaped
and even data of 200 to 50,000 rows, noise of 0.02 to 11 times the sampling error, and jumps at the quantile itself, at
least 95% of samples are covered, within the error of the simulation; mostly 96 to 98%, and more where a leaf holds
more rows than the reach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpnb._compile.features import BRANCHING, TreeFeature
from dpnb.results.estimates.noisy import Cells, IntervalArrays, NoisyArrays

Flags = NDArray[np.bool_]

RANK_MARGIN = 2.0
"""Extremes are taken at this many standard deviations of rank: values beyond cannot be distinguished from noise."""

STEP = BRANCHING**2
"""Besides every edge, the edges this many leaves apart are tested."""

FINE = 0.8
"""Share of the failure probability for the test at every edge."""

POINT = 1e-9
"""A leaf that is a smaller part of the range is a single number: its end nearest to zero."""

DIGITS = 2e-5
"""The half of the narrowest interval before it was clipped, as a part of the range: more digits would mean nothing."""

LEAST = 0.92
"""No edge is tested at less than this part of z."""

BLOCK = 1 << 18
"""Leaves computed at a time, of all cells together: what is computed of them fits in the cache of a processor."""


@dataclass(frozen=True)
class PrefixSums:
    """The joint noise of all prefixes of the leaves and of their total, for noise of scale 1; shapes (leaves + 1,)."""

    variance: Cells
    with_total: Cells
    total: float

    def rank_scale(self, q: float) -> Cells:
        """Standard deviation of F(x) - q N at every edge between leaves."""
        variance = self.variance - 2 * q * self.with_total + q * q * self.total
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


@lru_cache
def prefixes(levels: int) -> PrefixSums:
    """By the recursion over levels: a prefix is some whole children and a prefix of the next.

    Given the observations of the subtrees below, the children's totals are independent with one variance; observing the
    node itself conditions all of them on their sum plus noise of variance 1 (the update of a Kalman filter).  The root
    itself is not observed.
    """
    prefix, with_total, total = (
        np.array([0.0, 1.0]),
        np.array([0.0, 1.0]),
        1.0,
    )  # the prefixes of one leaf: empty, or the leaf
    for level in range(levels - 1, -1, -1):
        whole = np.repeat(np.arange(BRANCHING), len(prefix) - 1) * total
        prefix = np.append(whole + np.tile(prefix[:-1], BRANCHING), BRANCHING * total)
        with_total = np.append(whole + np.tile(with_total[:-1], BRANCHING), BRANCHING * total)
        total = BRANCHING * total
        if level:
            gain = with_total / (total + 1)
            prefix, with_total = prefix - gain * with_total, with_total - gain * total
            total = total / (total + 1)
    return PrefixSums(prefix, with_total, total)


def consistent_leaves(nodes: Cells, levels: int) -> Cells:
    """Best estimates of the leaves, shape (cells, leaves), of the nodes of all levels, shape (cells, nodes)."""
    ends = np.cumsum([0, *(BRANCHING**level for level in range(1, levels + 1))])
    observed = [nodes[:, start:end] for start, end in pairwise(ends)]
    upward, variance = [observed[-1]], 1.0
    for own in reversed(observed[:-1]):
        children = _of_children(upward[-1])
        weight = BRANCHING * variance / (1 + BRANCHING * variance)  # of the node itself
        upward.append(weight * own + (1 - weight) * children)
        variance = BRANCHING * variance / (1 + BRANCHING * variance)
    best = upward[-1]
    for below in reversed(upward[:-1]):
        left = (best - _of_children(below)) / BRANCHING
        best = (below.reshape(*left.shape, BRANCHING) + left[:, :, None]).reshape(below.shape)
    return best


def _of_children(below: Cells) -> Cells:
    """The sums of the children of each node; NumPy takes three times as long for sums over so short an axis."""
    total = below[:, ::BRANCHING].copy()
    for child in range(1, BRANCHING):
        total += below[:, child::BRANCHING]
    return total


def rank_scale(feature: TreeFeature, q: float) -> float:
    """The largest standard deviation of a rank, for noise of scale 1 in each node.

    Where leaves are finer, an interval of even data ends at z times this many rows on average, or up to a fifth nearer.
    """
    return float(prefixes(feature.levels).rank_scale(q).max())


@dataclass(frozen=True)
class Sampling:
    """What the interval of a population's quantile has to reach further than the noise, in rows of rank."""

    variance: Cells  # shape (cells, levels): of F(x) - q N, x the population's quantile, over samples; 0 or more
    z: float  # half-width of an interval in standard deviations, for sampling alone
    # Whether the reaches of noise and sampling are added, as their two failure probabilities are; for answers that are
    # refined, whose z is not that of one normal draw.
    additive: bool = False

    def widen(self, reach: Cells, cells: slice, index: int) -> Cells:
        """The reach of noise and sampling at the level with this index, of the noise's, shape (cells or 1, edges)."""
        own = self.z * np.sqrt(np.maximum(self.variance[cells, index : index + 1], 0.0))
        return np.asarray(reach + own if self.additive else np.hypot(reach, own))


def quantiles(
    feature: TreeFeature, nodes: NoisyArrays, levels: tuple[float, ...], z: Cells, sampling: Sampling | None = None
) -> IntervalArrays:
    """Quantiles at the given levels, one output each, with noise intervals; with `sampling`, population intervals.

    `z`, of shape (cells,), is the half-width of a noise interval in standard deviations of a normal.  The noise scales
    are half the widths over z: with `sampling`, they are not of the noise alone.
    """
    size = max(BLOCK // feature.leaves, 1)
    starts = range(0, len(z), size)
    blocks = [_of_cells(slice(start, start + size), feature, nodes, levels, z, sampling) for start in starts]
    return IntervalArrays.side_by_side(blocks, axis=0)


def _of_cells(
    cells: slice,
    feature: TreeFeature,
    nodes: NoisyArrays,
    levels: tuple[float, ...],
    z: Cells,
    sampling: Sampling | None,
) -> IntervalArrays:
    """The same for some of the cells; the other arguments are those of all."""
    scale, z = nodes.scale[cells], z[cells]
    leaves = consistent_leaves(nodes.value[cells], feature.levels)
    below = np.zeros((len(leaves), feature.leaves + 1))
    np.cumsum(leaves, axis=1, out=below[:, 1:])
    rising = (np.maximum.accumulate(below, axis=1) + np.minimum.accumulate(below[:, ::-1], axis=1)[:, ::-1]) / 2
    is_same = bool((scale == scale[:1]).all() and (z == z[:1]).all())
    different = slice(0, 1 if is_same else None)  # one cell is enough where the noise of all is the same
    step = min(STEP, feature.leaves)
    outputs = []
    reaches = _reaches(z[different])
    for index, q in enumerate(levels):
        gap, scales = below - q * below[:, -1:], prefixes(feature.levels).rank_scale(q)
        tests = []
        for every, reach in zip((1, step), reaches, strict=True):
            some = scale[different, None] * scales[::every]
            some *= reach[:, None]
            some = some if sampling is None else sampling.widen(some, cells, index)
            edges = gap[:, ::every]
            may_be_last = edges[:, :-1] <= some[:, :-1]
            tests.append((edges[:, 1:] >= np.negative(some, out=some)[:, 1:], may_be_last))
        outputs.append(_quantile(feature, below[:, -1], rising, scale * scales.max(), q, _possible(*tests), z))
    return IntervalArrays.side_by_side(outputs)


def _reaches(z: Cells) -> tuple[Cells, Cells]:
    """At how many standard deviations the nearest edge, and the nearest of those `STEP` apart, exclude a leaf."""
    from scipy.special import log_ndtr, ndtri_exp  # imported when first used

    fine, coarse = (-ndtri_exp(math.log(2 * share) + log_ndtr(-z)) for share in (FINE, 1 - FINE))
    return np.maximum(fine, LEAST * z), coarse


def _possible(fine: tuple[Flags, Flags], coarse: tuple[Flags, Flags]) -> tuple[Cells, Cells]:
    """The first and the last leaf that may contain the quantile.

    Of the test at every edge, and of that at edges further apart, between which edges the rank is not clearly too low
    at the later one, and not clearly too high at the earlier one.
    """
    may_be_first, may_be_last = fine
    leaves = may_be_first.shape[1]
    for finer, coarser in zip(fine, coarse, strict=True):
        finer.reshape(*coarser.shape, -1)[:] &= coarser[:, :, None]
    first_leaf = may_be_first.argmax(axis=1)
    last_leaf = leaves - 1 - may_be_last[:, ::-1].argmax(axis=1)
    meet = first_leaf <= last_leaf  # else the noise contradicts itself, and any leaf is possible
    return np.where(meet, first_leaf, 0.0), np.where(meet, last_leaf, leaves - 1.0)


def _quantile(
    feature: TreeFeature,
    total: Cells,
    rising: Cells,
    scale: Cells,
    q: float,
    ends: tuple[Cells, Cells],
    z: Cells,
) -> IntervalArrays:
    margin = RANK_MARGIN * scale
    is_known = total > 2 * margin
    rank = np.clip(q * total, margin, np.maximum(total - margin, margin))
    reached = rising[:, 1:] >= rank[:, None]
    reached[:, -1] = True
    leaf = reached.argmax(axis=1)
    rows = np.arange(len(leaf))
    start, end = rising[rows, leaf], rising[rows, leaf + 1]
    part = np.clip((rank - start) / np.where(end > start, end - start, 1.0), 0.0, 1.0)
    first, last = feature.at(leaf), feature.at(leaf + 1)
    # Beside zero leaves are as narrow as a double allows: a number inside would have digits that mean nothing.
    is_point = last - first < POINT * (feature.high - feature.low)
    value = np.where(is_point, np.where(np.abs(first) < np.abs(last), first, last), feature.at(leaf + part))
    low, high = feature.at(ends[0]), feature.at(ends[1] + 1)
    if feature.whole:
        value, high = np.minimum(np.floor(value), feature.at(leaf + 1) - 1), high - 1
    # The leaves may begin before the bounds, and end after them.
    value, low, high = (np.clip(end, feature.low, feature.high) for end in (value, low, high))
    # The estimate is at a rank clear of the noise; an interval beyond it is extended to contain it.
    low, high = np.minimum(low, value), np.maximum(high, value)
    found = IntervalArrays.of(np.where(is_known, value, np.nan), low, high, (high - low) / (2 * z))
    if feature.whole:
        return found
    least = DIGITS * (feature.high - feature.low)
    wide = np.fmin(found.low, found.value - least), np.fmax(found.high, found.value + least)
    return replace(found, raw=(found.value, *wide))
