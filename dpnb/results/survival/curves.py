"""Survival curves from noisy cumulative counts, with bands for the noise alone and for noise and sampling.

The curves are those of the nearest cumulative counts that do not fall (`consistent`).  Their errors are simulated: the
known noise is added to these counts, and for the population also the sampling of the units, by which the number of rows
in a cell varies with a variance of this number and `HALF` (times k, the most rows of a unit: the inequality of Cauchy
and Schwarz; times the part of the population that was not drawn).  For rows without noise the variance is that of
Greenwood.  The simulated counts are used as they are: their errors are a little larger than those of counts that do not
fall.  The band around a curve S is ``S - c s`` to ``S + c s`` with s the standard deviation of the simulated curves and
c the quantile of the largest ``|error|/s`` over all periods and groups, so the bands of all groups hold at once (Hall
and Wellner 1980; Nair 1984, *Confidence bands for survival functions with censored data*, with the noise).  As no true
curve rises, the band is tightened to limits that do not.

Where the number at risk at the start of a period is not `CLEAR` times its noise, or was not in an earlier period, the
curve is unknown: all that is known is that it does not rise.

Everything is computed from released and public numbers, by random numbers whose seed are the released ones: the same
answer always has the same band.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.survival.counts import PeriodCounts, at_risk_scales, consistent, noise_of_totals

DRAWS = 1000
"""Simulated tables."""

HALF = 0.5
"""What is added to the variance of the number of rows in a cell: no cell is known to be empty."""

CLEAR = 2.5
"""How many standard deviations of its noise a number at risk is, at least, where the curve is known."""


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
