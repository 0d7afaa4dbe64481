"""Survival curves from noisy cumulative counts, with bands for the noise alone and for noise and sampling.

The curves are those of the nearest cumulative counts that do not fall (`consistent`).  Their errors are simulated: the
known noise is added to these counts, and for the population also the sampling of the units, by which the number of rows
in a cell varies with a variance of this number (times k, the most rows of a unit: the inequality of Cauchy and Schwarz;
times the part of the population that was not drawn).  For rows without noise the variance is that of Greenwood.  From
each simulated table the curves are computed in the same way.  The band around a curve S is ``S - c s`` to ``S + c s``
with s the standard deviation of the simulated curves and c the quantile of the largest ``|error|/s`` over all periods
and groups, so the bands of all groups hold at once (Hall and Wellner 1980; Nair 1984, *Confidence bands for survival
functions with censored data*, with the noise).  As no true curve rises, the band is tightened to limits that do not.

Where the number at risk at the start of a period is not `CLEAR` times its noise, or was not in an earlier period, the
curve is unknown: all that is known is that it does not rise.

Everything is computed from released and public numbers, by random numbers whose seed are the released ones: the same
answer always has the same band.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.survival.counts import PeriodCounts, at_risk_scales, consistent, noise_of_totals

DRAWS = 1000
"""Simulated tables."""

CLEAR = 2.5
"""How many standard deviations of its noise a number at risk is, at least, where the curve is known."""

Kind = Literal["noise", "population"]


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
    fitted: Cells  # the nearest ones that do not fall
    scale: float  # the standard deviation of the noise of the first one
    groups: int
    rows: SampledRows
    known: NDArray[np.bool_]  # shape (groups, periods)
    noise: CurveErrors
    population: CurveErrors | None  # None for a census

    @classmethod
    def of(cls, totals: Cells, scale: float, groups: int, rows: SampledRows, alpha: float) -> SurvivalCurves:
        """The curves of released cumulative counts, with bands that miss with probability `alpha`."""
        random, fitted = _random(totals), consistent(totals)
        noise = _noise(random, totals, scale)
        released = PeriodCounts.of(totals, groups).at_risk[..., :-1]
        clear = released > CLEAR * scale * at_risk_scales(groups, released.shape[1])
        known = np.logical_and.accumulate(clear, axis=-1)
        counts = PeriodCounts.of(fitted, groups)

        def errors(added: Cells) -> CurveErrors:
            simulated = PeriodCounts.of(consistent(fitted + added), groups).survival - counts.survival
            covariance = np.einsum("dgk,dgl->gkl", simulated, simulated) / DRAWS
            spread = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
            ratio = np.divide(np.abs(simulated), spread, out=np.zeros_like(simulated), where=known & (spread > 0))
            return CurveErrors(covariance, float(np.quantile(ratio.max(axis=(1, 2)), 1 - alpha)))

        sampling = np.sqrt(rows.factor * np.maximum(np.diff(fitted, prepend=0.0), 0.0))
        sampled = noise + (sampling * random.standard_normal(noise.shape)).cumsum(axis=1)
        population = errors(sampled) if rows.remaining else None
        return cls(totals, fitted, scale, groups, rows, known, errors(noise), population)

    @cached_property
    def counts(self) -> PeriodCounts:
        """Events and rows at risk, of the cumulative counts that do not fall."""
        return PeriodCounts.of(self.fitted, self.groups)

    def simulated_noise(self) -> Cells:
        """The noise of cumulative counts in simulated tables, shape (draws, cells)."""
        return _noise(_random(self.totals), self.totals, self.scale)

    def errors(self, kind: Kind) -> CurveErrors | None:
        """The errors of a kind; None if there are none."""
        return self.noise if kind == "noise" else self.population

    @property
    def survival(self) -> Cells:
        """The curves, NaN where they are unknown; shape (groups, periods)."""
        return np.where(self.known, np.minimum(self.counts.survival, 1.0), np.nan)

    def band(self, kind: Kind) -> IntervalArrays | None:
        """The curves with their band; where they are unknown it reaches from 0 to its last limit."""
        errors = self.errors(kind)
        if errors is None:
            return None
        value = self.survival
        reach = errors.factor * errors.scale
        raw = value, np.where(self.known, value - reach, -np.inf), np.where(self.known, value + reach, np.inf)
        high = np.minimum.accumulate(np.minimum(raw[2], 1.0), axis=1)
        low = np.maximum.accumulate(np.maximum(raw[1], 0.0)[:, ::-1], axis=1)[:, ::-1]
        return IntervalArrays(value, low, high, self.noise.scale, raw, ~self.known)


def _random(totals: Cells) -> np.random.Generator:
    """Random numbers that follow from released ones; no noise of an answer is drawn from them."""
    digest = hashlib.sha256(np.ascontiguousarray(totals, "<f8").tobytes()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))


def _noise(random: np.random.Generator, totals: Cells, scale: float) -> Cells:
    return scale * noise_of_totals(random.standard_normal((DRAWS, len(totals))))
