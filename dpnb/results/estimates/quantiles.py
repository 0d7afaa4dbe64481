"""Quantiles of a noisy tree.

Every level of the tree counts the same rows at another resolution, with independent noise of one scale s.  The best
linear unbiased estimate of the leaves (Hay et al. 2010, *Boosting the accuracy of differentially private histograms
through consistency*, sec. 4; for normal noise it is also the maximum likelihood estimate) is computed upwards, by
combining each node with the sum of its children, and then downwards, by distributing the remainder.  A prefix of the
leaves is a linear functional of it, whose exact variance follows from the same recursion, without the data.

For the true quantile x at level q, F(x) - q N is 0 (or jumps over 0 there), so its noisy value is normal with a known
scale: the points where it is within z of these are a set that covers x with the confidence of z, and the interval is
its hull.  No density is estimated.  Errors are therefore known in rank, without the table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpnb._compile.features import BRANCHING, TreeFeature
from dpnb.results.estimates.noisy import Cells, IntervalArrays, NoisyArrays

RANK_MARGIN = 2.0
"""Extremes are taken at this many standard deviations of rank: values beyond cannot be distinguished from noise."""

STEP = BRANCHING**2
"""Every edge and every edge of so many is tested."""

FINE = 0.8
"""Share of the failure probability for the test at every edge."""

LEAST = 0.9
"""No edge is tested at less than this part of z."""


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
        children = upward[-1].reshape(len(nodes), -1, BRANCHING).sum(axis=2)
        weight = BRANCHING * variance / (1 + BRANCHING * variance)  # of the node itself
        upward.append(weight * own + (1 - weight) * children)
        variance = BRANCHING * variance / (1 + BRANCHING * variance)
    best = upward[-1]
    for below in reversed(upward[:-1]):
        left = best - below.reshape(len(nodes), -1, BRANCHING).sum(axis=2)
        best = below + np.repeat(left / BRANCHING, BRANCHING, axis=1)
    return best


def rank_scale(feature: TreeFeature, q: float) -> float:
    """The largest standard deviation of a rank, for noise of scale 1 in each node."""
    return float(prefixes(feature.levels).rank_scale(q).max())


@dataclass(frozen=True)
class Sampling:
    """What the interval of a population's quantile has to reach further than the noise, in rows of rank."""

    variance: Cells  # shape (cells, levels): of F(x) - q N, x the population's quantile, over samples; 0 or more
    z: float  # half-width of an interval in standard deviations, for sampling alone
    # Whether the reaches of noise and sampling are added, as their two failure probabilities are; for answers that are
    # refined, whose z is not that of one normal draw.
    additive: bool = False

    def widen(self, reach: Cells, index: int) -> Cells:
        """The reach of noise and sampling at the level with this index, of the noise's, shape (cells, edges)."""
        own = self.z * np.sqrt(np.maximum(self.variance[:, index : index + 1], 0.0))
        return np.asarray(reach + own if self.additive else np.hypot(reach, own))


def quantiles(
    feature: TreeFeature, nodes: NoisyArrays, levels: tuple[float, ...], z: Cells, sampling: Sampling | None = None
) -> IntervalArrays:
    """Quantiles at the given levels, one output each, with noise intervals; with `sampling`, population intervals.

    `z`, of shape (cells,), is the half-width of a noise interval in standard deviations of a normal.
    """
    leaves = consistent_leaves(nodes.value, feature.levels)
    below = np.concatenate([np.zeros((len(leaves), 1)), np.cumsum(leaves, axis=1)], axis=1)
    rising = (np.maximum.accumulate(below, axis=1) + np.minimum.accumulate(below[:, ::-1], axis=1)[:, ::-1]) / 2
    outputs = []
    for index, q in enumerate(levels):
        unit = nodes.scale[:, None] * prefixes(feature.levels).rank_scale(q)
        fine, coarse = (reach[:, None] * unit for reach in _reaches(z))
        if sampling is not None:
            fine, coarse = sampling.widen(fine, index), sampling.widen(coarse, index)
        ends = _possible(below - q * below[:, -1:], fine, coarse)
        outputs.append(_quantile(feature, below[:, -1], rising, unit.max(axis=1), q, ends, z))
    return IntervalArrays.side_by_side(outputs)


def _reaches(z: Cells) -> tuple[Cells, Cells]:
    """How many standard deviations an edge, and one of every `STEP`, has to be off to exclude the leaves beyond it."""
    from scipy.special import log_ndtr, ndtri_exp  # imported when first used

    fine, coarse = (-ndtri_exp(math.log(2 * share) + log_ndtr(-z)) for share in (FINE, 1 - FINE))
    return np.maximum(fine, LEAST * z), coarse


def _possible(gap: Cells, fine: Cells, coarse: Cells) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first and the last leaf that may contain the quantile; of `gap`, F(x) - q N at every edge."""
    last = gap.shape[1] - 2
    step = min(STEP, last + 1)
    too_low = (gap < -fine)[:, 1:] | np.repeat((gap < -coarse)[:, step::step], step, axis=1)
    too_high = (gap > fine)[:, :-1] | np.repeat((gap > coarse)[:, :-1:step], step, axis=1)
    # all leaves are excluded: the search from the other end has the same result
    first_leaf = (~too_low).argmax(axis=1)
    last_leaf = last - (~too_high)[:, ::-1].argmax(axis=1)
    told = ~too_low.all(axis=1) & ~too_high.all(axis=1) & (first_leaf <= last_leaf)
    return np.where(told, first_leaf, 0), np.where(told, last_leaf, last)


def _quantile(
    feature: TreeFeature,
    total: Cells,
    rising: Cells,
    scale: Cells,
    q: float,
    ends: tuple[NDArray[np.intp], NDArray[np.intp]],
    z: Cells,
) -> IntervalArrays:
    margin = RANK_MARGIN * scale
    is_known = total > 2 * margin
    rank = np.clip(q * total, margin, np.maximum(total - margin, margin))
    leaf = np.minimum((rising[:, 1:] < rank[:, None]).sum(axis=1), feature.leaves - 1)
    rows = np.arange(len(leaf))
    start, end = rising[rows, leaf], rising[rows, leaf + 1]
    part = np.clip((rank - start) / np.where(end > start, end - start, 1.0), 0.0, 1.0)
    value, low, high = feature.at(leaf + part), feature.at(ends[0]), feature.at(ends[1] + 1)
    if feature.whole:
        value, high = np.minimum(np.floor(value), feature.at(leaf + 1) - 1), high - 1
    # The leaves may begin before the bounds, and end after them.
    value, low, high = (np.clip(end, feature.low, feature.high) for end in (value, low, high))
    # The estimate is at a rank clear of the noise; an interval beyond it is extended to contain it.
    low, high = np.minimum(low, value), np.maximum(high, value)
    return IntervalArrays.of(np.where(is_known, value, np.nan), low, high, (high - low) / (2 * z))
