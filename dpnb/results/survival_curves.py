"""Survival curves from noisy cumulative counts with bands, their medians, restricted means and log-rank test.

The cells of a group are in this order: events by period, rows at risk after the last period, and censored rows from
the last period to the first.  So the rows at risk in period k are those from the cell of its events to that of its
censored rows.

Survival within a period
------------------------
Let a and b be the numbers at risk at the start of a period and of the next one, and d its events.  The curve is that of
Kaplan and Meier, with the hazard of a period estimated as d/L, where L is the logarithmic mean ``(a - b)/ln(a/b)``: the
mean number at risk, if events and censorings have constant rates within the period.  Without censored rows inside of
the period the curve falls by exactly b/a, as in Kaplan and Meier; with them it is the estimator of constant rates
(Chiang 1968, *Introduction to stochastic processes in biostatistics*, chapter 12), where the actuarial
``1 - d/(a - c/2)`` for c censored rows is biased.  Where all rows that are censored in a period are censored at its
end, b is the number before they leave.

Curves and bands
----------------
There are bands for the noise alone, and for noise and sampling.  The curves are those of the nearest cumulative counts
that do not fall (`consistent`).  Their errors are simulated: the known noise is added to these counts, and for the
population also the sampling of the units, by which the number of rows in a cell varies with a variance of this number
and `HALF` (times k, the most rows of a unit: the inequality of Cauchy and Schwarz; times the part of the population
that was not drawn).  For rows without noise the variance is that of Greenwood.  The simulated counts are used as they
are: their errors are a little larger than those of counts that do not fall.  The band around a curve S is ``S - c s``
to ``S + c s`` with s the standard deviation of the simulated curves and c the quantile of the largest ``|error|/s``
over all periods and groups, so the bands of all groups hold at once (Hall and Wellner 1980; Nair 1984, *Confidence
bands for survival functions with censored data*, with the noise).  As no true curve rises, the band is tightened to
limits that do not.

Where the number at risk at the start of a period is not `CLEAR` times its noise, or was not in an earlier period, the
curve is unknown: all that is known is that it does not rise.

Everything is computed from released and public numbers, by random numbers whose seed are the released ones: the same
answer always has the same band.

Log-rank test
-------------
With d_gk the events of group g in period k, d_k those of all groups, and w_gk the group's share of the mean number at
risk (`PeriodCounts.exposure`), the statistic compares ``U_g``, the sum over the periods of ``d_gk - d_k w_gk``, with
its covariance through sampling, the sum of ``d_k (w_gk [g = h] - w_gk w_hk)`` (Mantel 1966; Peto and Peto 1972), and
through the noise, which is simulated.  Under the null hypothesis U'V^- U has the chi-square distribution, with one
degree of freedom less than there are groups.  Only periods count that are known in all groups.

The shares are exact where the rates of events and of censoring are constant within a period.  Where groups decline at
different rates the hazard must not be taken as constant, since the group that declines faster is observed earlier in
the period: with a hazard that changes by the share s of itself over a period, taken from its neighbours, and a group
that declines by the factor r, the mean number at risk is weighted by ``1 + s ln(r)/12``.

Medians and restricted means
----------------------------
Their intervals hold each separately.  Between the ends of two periods a curve is taken as a straight line.  The
interval of the median is the set of times at which the curve is not clearly above or below one half (Brookmeyer and
Crowley 1982, *A confidence interval for the median survival time*).  The restricted mean is the area under the curve up
to a time (Royston and Parmar 2013).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpnb.accounting.prefix_sums import COEFFICIENT_BITS, prefix_sum_weights
from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.testing import UNKNOWN, ReferredStatistic

LEAST = 1.0
"""Fewer rows at risk count as this many: a hazard of less than one row means nothing."""

LEAST_HAZARD = -0.7
"""A smaller hazard, of negative numbers of events, counts as this: it makes the curve 2."""

RATIO = 1e-6
"""The smallest ratio b/a, whose logarithm is finite."""

DRAWS = 1000
"""Simulated tables."""

HALF = 0.5
"""What is added to the variance of the number of rows in a cell: no cell is known to be empty."""

CLEAR = 2.5
"""How many standard deviations of its noise a number at risk is, at least, where the curve is known."""

MOST = 6.0
"""The largest decline in logarithms that counts: half of the mean number at risk."""


@dataclass(frozen=True)
class PeriodCounts:
    """Events in each period, and rows at risk at the start of each and after the last one."""

    events: Cells  # shape (..., groups, periods)
    at_risk: Cells  # shape (..., groups, periods + 1)
    whole: bool  # whether the censored rows of a period leave after its events

    @classmethod
    def of(cls, totals: Cells, groups: int, *, whole: bool = False) -> PeriodCounts:
        """From cumulative counts of all cells, of shape (..., cells)."""
        cells = np.diff(totals, axis=-1, prepend=0.0).reshape(*totals.shape[:-1], groups, -1)
        periods = cells.shape[-1] // 2
        events, after, censored = np.split(cells, (periods, periods + 1), axis=-1)
        leaving = (events[..., ::-1] + censored).cumsum(axis=-1)[..., ::-1]
        return cls(events, np.concatenate([leaving + after, after], axis=-1), whole)

    @property
    def decline(self) -> Cells:
        """The numbers at risk at the end of each period as shares of those at its start."""
        start = np.maximum(self.at_risk[..., :-1], LEAST)
        end = start - self.events if self.whole else self.at_risk[..., 1:]
        return np.clip(end / start, RATIO, 1.0)

    @property
    def exposure(self) -> Cells:
        """The mean number at risk in each period."""
        start, ratio = np.maximum(self.at_risk[..., :-1], LEAST), self.decline
        near = ratio > 1 - RATIO  # where the quotient is 0/0
        logarithm = np.log(np.where(near, 1 - RATIO, ratio))
        return np.asarray(start * np.where(near, 1.0, (ratio - 1) / logarithm))

    @property
    def survival(self) -> Cells:
        """The curve at the end of each period; above 1 only where numbers of events are negative."""
        hazard = np.cumsum(self.events / self.exposure, axis=-1)
        return np.asarray(np.exp(-np.maximum(hazard, LEAST_HAZARD)))


def consistent(totals: Cells) -> Cells:
    """The nearest cumulative counts that do not fall; shape (..., cells)."""
    from scipy.optimize import isotonic_regression  # imported when first used

    rows = totals.reshape(-1, totals.shape[-1])
    return np.maximum([isotonic_regression(row).x for row in rows], 0.0).reshape(totals.shape)


def noise_of_totals(normal: Cells) -> Cells:
    """Noise of cumulative counts, whose first one has a standard deviation of 1, from independent normal numbers."""
    steps = normal.shape[-1]
    weights = prefix_sum_weights(steps) * 2.0**COEFFICIENT_BITS
    parts = np.fft.rfft(normal, 2 * steps) * np.fft.rfft(weights, 2 * steps)
    return np.fft.irfft(parts, 2 * steps)[..., :steps]


def at_risk_scales(groups: int, periods: int) -> Cells:
    """The standard deviations of the noise of numbers at risk at the start of each period, shape (groups, periods).

    That of the first cumulative count is 1.
    """
    cells = 2 * periods + 1
    weights = prefix_sum_weights(groups * cells) * 2.0**COEFFICIENT_BITS
    scales = np.empty((groups, periods))
    for group, period in np.ndindex(scales.shape):
        between, before = cells - 2 * period, group * cells + period  # cells of these rows, and in front of them
        difference = weights[: before + between].copy()
        difference[between:] -= weights[:before]
        scales[group, period] = np.sqrt(difference @ difference)
    return scales


@dataclass(frozen=True)
class SampledRows:
    """How the rows of a table were drawn, as declared."""

    max_rows: int  # of a unit
    remaining: float  # 1 - F: the part of the population that was not drawn

    @property
    def factor(self) -> float:
        """The variance of the number of rows in a cell, as a multiple of this number."""
        return self.max_rows * self.remaining


@dataclass(frozen=True)
class CurveErrors:
    """The errors of curves of one kind: standard deviations and covariances by group, and the factor of the band."""

    covariance: Cells  # shape (groups, periods, periods)
    factor: float

    @property
    def scale(self) -> Cells:
        """Standard deviations, shape (groups, periods)."""
        return np.sqrt(np.diagonal(self.covariance, axis1=1, axis2=2))


@dataclass(frozen=True, eq=False)
class SurvivalCurves:
    """Survival curves of groups at the ends of periods, and their errors."""

    totals: Cells  # the released cumulative counts, shape (cells,)
    scale: float  # the standard deviation of the noise of the first one
    groups: int
    rows: SampledRows
    alpha: float  # with which a band misses
    whole: bool = False  # as in `SurvivalLayout`

    @cached_property
    def fitted(self) -> Cells:
        """The nearest cumulative counts that do not fall."""
        return consistent(self.totals)

    @cached_property
    def counts(self) -> PeriodCounts:
        """Events and rows at risk, of the cumulative counts that do not fall."""
        return self.counts_of(self.fitted)

    def counts_of(self, totals: Cells) -> PeriodCounts:
        """Events and rows at risk, of any cumulative counts."""
        return PeriodCounts.of(totals, self.groups, whole=self.whole)

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Where the curves are known, shape (groups, periods)."""
        released = self.counts_of(self.totals).at_risk[..., :-1]
        clear = released > CLEAR * self.scale * at_risk_scales(self.groups, released.shape[1])
        return np.logical_and.accumulate(clear, axis=-1)

    @property
    def survival(self) -> Cells:
        """The curves, NaN where they are unknown; shape (groups, periods)."""
        return np.where(self.known, self.counts.survival, np.nan)

    # --- simulated errors --------------------------------------------------------------------------------------------

    def simulated_noise(self, random: np.random.Generator | None = None) -> Cells:
        """The noise of cumulative counts in simulated tables, shape (draws, cells)."""
        normal = (random or self._random()).standard_normal((DRAWS, len(self.totals)))
        return self.scale * noise_of_totals(normal)

    @cached_property
    def noise(self) -> CurveErrors:
        """The errors through the noise."""
        return self._errors(self.simulated_noise())

    @cached_property
    def population(self) -> CurveErrors | None:
        """The errors through noise and sampling; None for a census."""
        if not self.rows.factor:
            return None
        random = self._random()
        noise = self.simulated_noise(random)
        spread = np.sqrt(self.rows.factor * (np.maximum(np.diff(self.fitted, prepend=0.0), 0.0) + HALF))
        return self._errors(noise + (spread * random.standard_normal(noise.shape)).cumsum(axis=1))

    def _errors(self, added: Cells) -> CurveErrors:
        """The errors of curves, from those of cumulative counts in simulated tables."""
        simulated = self.counts_of(self.fitted + added).survival - self.counts.survival
        covariance = np.matmul(simulated.transpose(1, 2, 0), simulated.transpose(1, 0, 2)) / DRAWS
        spread = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        ratio = np.divide(np.abs(simulated), spread, out=np.zeros_like(simulated), where=self.known & (spread > 0))
        return CurveErrors(covariance, float(np.quantile(ratio.max(axis=(1, 2)), 1 - self.alpha)))

    def _random(self) -> np.random.Generator:
        """Random numbers that follow from released ones; no noise of an answer is drawn from them."""
        digest = hashlib.sha256(np.ascontiguousarray(self.totals, "<f8").tobytes()).digest()
        return np.random.default_rng(int.from_bytes(digest[:16], "little"))

    # --- bands -------------------------------------------------------------------------------------------------------

    def band(self, errors: CurveErrors) -> IntervalArrays:
        """The curves with a band; where they are unknown it reaches from 0 to its last limit."""
        value, reach = self.survival, errors.factor * errors.scale
        raw = value, np.where(self.known, value - reach, -np.inf), np.where(self.known, value + reach, np.inf)
        high = np.minimum.accumulate(np.minimum(raw[2], 1.0), axis=1)
        low = np.maximum.accumulate(np.maximum(raw[1], 0.0)[:, ::-1], axis=1)[:, ::-1]
        return IntervalArrays(value, low, high, self.noise.scale, raw, ~self.known)


def log_rank(curves: SurvivalCurves, ends: Cells) -> tuple[ReferredStatistic, int]:
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
    return (ReferredStatistic(value, curves.groups - 1) if np.isfinite(value) else UNKNOWN), count


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
