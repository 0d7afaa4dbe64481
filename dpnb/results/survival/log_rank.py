"""The log-rank test of survival curves, with noise.

With d_gk the events of group g in period k, d_k those of all groups, and w_gk the group's share of the mean number at
risk (`PeriodCounts.exposure`), the statistic compares ``U_g``, the sum over the periods of ``d_gk - d_k w_gk``, with
its covariance through sampling, the sum of ``d_k (w_gk [g = h] - w_gk w_hk)`` (Mantel 1966; Peto and Peto 1972), and
through the noise, which is simulated.  Under the null hypothesis U'V^- U has the chi-square distribution, with one
degree of freedom less than there are groups.  Only periods count that are known in all groups.

The shares are exact where the rates of events and of censoring are constant within a period.  Where groups decline at
different rates the hazard must not be taken as constant, since the group that declines faster is observed earlier in
the period: with a hazard that changes by the share s of itself over a period, taken from its neighbours, and a group
that declines by the factor r, the mean number at risk is weighted by ``1 + s ln(r)/12``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpnb.results.estimates.noisy import Cells
from dpnb.results.survival.counts import PeriodCounts, consistent
from dpnb.results.survival.curves import SurvivalCurves
from dpnb.results.testing.hypothesis import UNKNOWN, TestStatistic

MOST = 6.0
"""The largest decline in logarithms that counts: half of the mean number at risk."""


def log_rank(curves: SurvivalCurves, ends: Cells) -> tuple[TestStatistic, int]:
    """The statistic of the test that all curves are the same, and the number of periods that count."""
    used = np.asarray(curves.known.all(axis=0))
    count = int(used.sum())
    if not count:
        return UNKNOWN, 0
    weights = _shares(curves.counts, ends)
    released = curves.counts_of(curves.totals).events
    differences = _differences(released, weights)[:, used].sum(axis=1)
    covariance: Cells = _noise(curves, ends, used) + _sampling(curves.counts.events, weights, used) * curves.rows.factor
    value = float(differences[:-1] @ np.linalg.pinv(covariance[:-1, :-1], hermitian=True) @ differences[:-1])
    return (TestStatistic(value, curves.groups - 1) if np.isfinite(value) else UNKNOWN), count


def _shares(counts: PeriodCounts, ends: Cells) -> Cells:
    """The share of each group in the rows that could have an event in a period."""
    exposure = counts.exposure
    if len(ends) > 2:
        hazard = counts.events.sum(axis=-2) / exposure.sum(axis=-2) / np.diff(ends)
        slope = np.gradient(hazard, (ends[1:] + ends[:-1]) / 2, axis=-1) * np.diff(ends)
        slope = np.divide(slope, hazard, out=np.zeros_like(slope), where=hazard > 0)
        decline = np.log(counts.decline)
        exposure = exposure * (1 + np.clip(slope, -1.0, 1.0)[..., None, :] * np.maximum(decline, -MOST) / 12)
    return np.asarray(exposure / exposure.sum(axis=-2, keepdims=True))


def _differences(events: Cells, weights: Cells) -> Cells:
    return np.asarray(events - events.sum(axis=-2, keepdims=True) * weights)


def _noise(curves: SurvivalCurves, ends: Cells, used: NDArray[np.bool_]) -> Cells:
    """The covariance through the noise."""
    noisy = curves.fitted + curves.simulated_noise()
    weights = _shares(curves.counts_of(consistent(noisy)), ends)
    simulated = _differences(curves.counts_of(noisy).events, weights)[..., used].sum(axis=-1)
    return np.asarray(np.atleast_2d(np.cov(simulated.T)))


def _sampling(events: Cells, weights: Cells, used: NDArray[np.bool_]) -> Cells:
    """The covariance through sampling, for one row of each unit."""
    own, total = weights[:, used], events.sum(axis=0)[used]
    return np.asarray(np.diag(own @ total) - np.einsum("k,gk,hk->gh", total, own, own))
