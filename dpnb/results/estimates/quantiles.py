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

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dpnb._compile.features import BRANCHING, TreeFeature
from dpnb.results.estimates.noisy import Cells, IntervalArrays, NoisyArrays

RANK_MARGIN = 2.0
"""Extremes are taken at this many standard deviations of rank: values beyond cannot be distinguished from noise."""


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


@dataclass(frozen=True)
class Sampling:
    variance: Cells
    z: float
    additive: bool


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


def quantiles(
    feature: TreeFeature, nodes: NoisyArrays, levels: tuple[float, ...], z: Cells, sampling: Sampling | None = None
) -> IntervalArrays:
    """Quantiles at the given levels, one output each."""
    leaves = consistent_leaves(nodes.value, feature.levels)
    below = np.concatenate([np.zeros((len(leaves), 1)), np.cumsum(leaves, axis=1)], axis=1)
    rising = (np.maximum.accumulate(below, axis=1) + np.minimum.accumulate(below[:, ::-1], axis=1)[:, ::-1]) / 2
    return IntervalArrays.side_by_side(
        [
            _quantile(
                feature,
                below,
                rising,
                nodes.scale,
                q,
                z,
                0.0 if sampling is None else sampling.z * np.sqrt(sampling.variance[:, i]),
                sampling is not None and sampling.additive,
            )
            for i, q in enumerate(levels)
        ]
    )


def _quantile(
    feature: TreeFeature, below: Cells, rising: Cells, scale: Cells, q: float, z: Cells, more, additive
) -> IntervalArrays:
    total = below[:, -1]
    unit = prefixes(feature.levels).rank_scale(q)
    margin = RANK_MARGIN * unit.max() * scale
    is_known = total > 2 * margin
    rank = np.clip(q * total, margin, np.maximum(total - margin, margin))
    # A leaf is excluded if its upper edge is clearly below the rank, or its lower edge clearly above.
    gap = below - q * total[:, None]
    reach = z[:, None] * scale[:, None] * unit
    reach = (np.add if additive else np.hypot)(reach, np.asarray(more).reshape(-1, 1))
    possible = (gap[:, 1:] >= -reach[:, 1:]) & (gap[:, :-1] <= reach[:, :-1])
    some = possible.any(axis=1)
    last = feature.leaves - 1
    first_leaf = np.where(some, possible.argmax(axis=1), 0)
    last_leaf = np.where(some, last - possible[:, ::-1].argmax(axis=1), last)
    leaf = np.minimum((rising[:, 1:] < rank[:, None]).sum(axis=1), last)
    rows = np.arange(len(leaf))
    start, end = rising[rows, leaf], rising[rows, leaf + 1]
    part = np.clip((rank - start) / np.where(end > start, end - start, 1.0), 0.0, 1.0)
    value, low, high = feature.at(leaf + part), feature.at(first_leaf), feature.at(last_leaf + 1)
    if feature.whole:
        value, high = np.minimum(np.floor(value), feature.at(leaf + 1) - 1), high - 1
    # The leaves may begin before the bounds, and end after them.
    value, low, high = (np.clip(end, feature.low, feature.high) for end in (value, low, high))
    # The estimate is at a rank clear of the noise; an interval beyond it is extended to contain it.
    low, high = np.minimum(low, value), np.maximum(high, value)
    return IntervalArrays.of(np.where(is_known, value, np.nan), low, high, (high - low) / (2 * z))
