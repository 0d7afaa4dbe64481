"""Medians and restricted means of survival curves, with intervals that hold each separately.

Between the ends of two periods a curve is taken as a straight line.  The interval of the median is the set of times at
which the curve is not clearly above or below one half (Brookmeyer and Crowley 1982, *A confidence interval for the
median survival time*).  The restricted mean is the area under the curve up to a time (Royston and Parmar 2013).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.survival.curves import CurveErrors, SurvivalCurves


def medians(curves: SurvivalCurves, ends: Cells, errors: CurveErrors, z: float) -> IntervalArrays:
    """The median of each group: NaN if the curve is not known to reach one half, with an infinite upper limit."""
    value, reach = curves.survival, z * errors.scale
    rows = [
        (
            _crossing(one, ends, known, np.nan),
            _crossing(one - width, ends, known, float(ends[known.sum()])),
            _crossing(one + width, ends, known, np.inf),
        )
        for one, width, known in zip(value, reach, curves.known, strict=True)
    ]
    middle, low, high = np.array(rows).T
    whole = (low <= ends[0]) & np.isinf(high)
    with np.errstate(invalid="ignore"):
        scale = np.where(np.isfinite(high), (high - low) / (2 * z), np.inf)
    found = IntervalArrays.of(middle, low, high, scale)
    return IntervalArrays(found.value, found.low, found.high, found.noise_scale, whole_range=whole.reshape(-1, 1))


def _crossing(curve: Cells, ends: Cells, known: NDArray[np.bool_], otherwise: float) -> float:
    """The first time at which a curve that starts at 1 is at most one half."""
    heights = np.append(1.0, np.minimum.accumulate(np.minimum(curve[known], 1.0)))
    below = np.flatnonzero(heights <= 0.5)
    if not len(below):
        return otherwise
    at = int(below[0])
    before, after = heights[at - 1], heights[at]
    return float(ends[at - 1] + (ends[at] - ends[at - 1]) * (before - 0.5) / (before - after))


def restricted_means(
    curves: SurvivalCurves, ends: Cells, errors: CurveErrors, z: float, until: float
) -> IntervalArrays:
    """The area under each curve up to a time; unknown where the curve is not known up to there."""
    weights = _weights(ends, until)
    value = weights[0] + np.where(curves.known, curves.counts.survival, 0.0) @ weights[1:]
    scale = np.sqrt(np.einsum("k,gkl,l->g", weights[1:], errors.covariance, weights[1:]))
    unknown = ~curves.known[:, : int(np.searchsorted(ends, until)) or 1].all(axis=1)
    value, scale = np.where(unknown, np.nan, value), np.where(unknown, np.inf, scale)
    reach = np.where(unknown, np.inf, z * scale)
    low, high = np.where(unknown, -np.inf, value - reach), np.where(unknown, np.inf, value + reach)
    return IntervalArrays.of(value, low, high, scale).clipped(0.0, until - float(ends[0]), value=False)


def _weights(ends: Cells, until: float) -> Cells:
    """The weights of the curve at the start and at each end in its area up to a time."""
    weights = np.zeros(len(ends))
    for at in range(len(ends) - 1):
        width = min(max(until - ends[at], 0.0), ends[at + 1] - ends[at])
        part = width / (ends[at + 1] - ends[at])  # how far the line to the next end is followed
        weights[at] += width * (1 - part / 2)
        weights[at + 1] += width * part / 2
    return weights
