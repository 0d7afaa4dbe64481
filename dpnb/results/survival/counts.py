"""Numbers of events and of rows at risk by period, from cumulative counts of a group's cells.

The cells of a group are in the order of `dpnb.results.survival.layout`: events by period, rows at risk after the last
period, and censored rows from the last period to the first.  So the rows at risk in period k are those from the cell of
its events to that of its censored rows.

Survival within a period
------------------------
Let a and b be the numbers at risk at the start of a period and of the next one, and d its events.  The curve is that of
Kaplan and Meier, with the hazard of a period estimated as d/L, where L is the logarithmic mean ``(a - b)/ln(a/b)``: the
mean number at risk, if events and censorings have constant rates within the period.  Without censored rows inside of
the period the curve falls by exactly b/a, as in Kaplan and Meier; with them it is the estimator of constant rates
(Chiang 1968, *Introduction to stochastic processes in biostatistics*, chapter 12), where the actuarial
``1 - d/(a - c/2)`` for c censored rows is biased.  Where all rows that are censored in a period are censored at its
end, b is the number before they leave.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpnb.accounting.prefix_sums import COEFFICIENT_BITS, prefix_sum_weights
from dpnb.results.estimates.noisy import Cells

LEAST = 1.0
"""Fewer rows at risk count as this many: a hazard of less than one row means nothing."""

LEAST_HAZARD = -0.7
"""A smaller hazard, of negative numbers of events, counts as this: it makes the curve 2."""

RATIO = 1e-6
"""The smallest ratio b/a, whose logarithm is finite."""


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
