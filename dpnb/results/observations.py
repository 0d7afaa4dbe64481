"""Repeated observations of one linear query: each is charged only for the information that it adds.

Fresh noise each time on the same exact sums gives y_j = S + N(0, s_j^2 I).  The likelihood of (y_1, ..., y_k) depends
on S only through the inverse-variance mean, whose variance is 1/I with I = sum 1/s_j^2.  So all observations together
are exactly as private as one observation with that variance: mu^2 = C^2 I = sum mu_j^2, and going from mu_a to mu_b
costs mu_b^2 - mu_a^2, also when the s_j were chosen from earlier answers (Smith and Thakurta 2022, Theorem 1).

An observation may include only some of the groups.  The information about a cell is then that of the observations which
include it, and an observation of some cells costs mu^2 = C'^2/s^2 with C' the sensitivity of *those* cells.

The analyst decides from the answers whether to refine, and a fixed-design interval is then wrong (it can miss nine
times in ten).  So the error alpha is split: the first observation has the fixed-design interval at 0.8 alpha, and from
the second on a normal-mixture confidence sequence at 0.2 alpha holds for all observations at once (Howard et al. 2021;
proof: E exp(t S_n - t^2 I_n / 2) = 1 for S_n = sum (y_j - q)/s_j^2, mix t over N(0, 1/tau), Ville).  Together they miss
with probability at most alpha, so the intersection of both is an interval at level alpha too, and a refinement never
widens it.  tau is fixed by the scale of the first observation, before any value is seen.  A first observation that was
requested as final has the whole alpha and no tau: it is never refined.

Any linear functional of the sums has the same property with its own scale, so intervals of all kinds of answers use the
half-width in multiples of the noise scale.

As an interactive mechanism it is charged step by step through the session's filter, and nothing is reserved.  Its state
is the released observations, which are in the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dpnb.accounting.intervals import combine, confidence_sequence_radius, fixed_radius, tuned_tau
from dpnb.accounting.losses import GDP
from dpnb.mechanisms.measurement import Measurement

Floats = NDArray[np.float64]

FIRST_OBSERVATION_ALPHA = Fraction(4, 5)
"""Fraction of alpha for the interval of the first observation; the rest is for all later observations."""

NOTHING = GDP(0)

TUNED_FOR = 4.0
"""The confidence sequence is tightest at this multiple of the information of the first observation."""


@dataclass(frozen=True)
class EstimatedSums:
    """Estimates of the sums of a query that a batch made, with one noise scale; see `Measurement`."""

    values: Floats  # shape (numbers,), cell by cell
    sigma: float  # noise scale of each estimate

    def to_floats(self) -> Floats:
        """The estimates."""
        return self.values


@dataclass(frozen=True)
class Observation:
    """One released measurement and what it cost."""

    loss: GDP  # for an estimate of a batch, the loss of one measurement that is as precise
    measurement: Measurement | EstimatedSums
    sensitivity_squared: int = 1  # square of the sensitivity C of the measured cells
    cells: tuple[int, ...] | None = None  # indices of the observed cells, ascending; None for all

    @property
    def information(self) -> Fraction:
        """The information that was charged, as 1/s^2 of one sum; the noise scale is at least this s."""
        return self.loss.mu_squared / self.sensitivity_squared


@dataclass(frozen=True)
class CombinedObservations:
    """All observations of one linear query, combined."""

    observations: tuple[Observation, ...] = ()  # in the order in which they were made; the first one includes all cells
    # Parameter of the confidence sequence, stored with the first observation; None before it, and after a final one.
    tau: float | None = None
    count: int = 1  # number of cells

    @property
    def first(self) -> CombinedObservations:
        """The first observation only."""
        return CombinedObservations(self.observations[:1], self.tau, self.count)

    @cached_property
    def differs_by_cell(self) -> bool:
        """Whether some cells have more observations than others."""
        return bool([one for one in self.observations if one.cells is not None])

    @property
    def is_refined(self) -> bool:
        """Whether there are several observations."""
        return len(self.observations) > 1

    @property
    def is_final(self) -> bool:
        """Whether the first observation was requested as final."""
        return bool(self.observations) and self.tau is None

    def known_loss(self, sensitivity_squared: int, cells: Sequence[int] | None = None) -> GDP:
        """The loss of one observation of some cells that is as informative as what is known of the least known cell.

        `sensitivity_squared` is the square of the sensitivity of these cells, by default all.
        """
        if not self.observations:
            return NOTHING
        by_cell = (
            [self.observations]
            if not self.differs_by_cell
            else [observations for observations, _ in self._by_pattern(cells)]
        )
        least = min(sum((one.information for one in observations), Fraction(0)) for observations in by_cell)
        return GDP.from_mu_squared(least * sensitivity_squared)

    @cached_property
    def combined(self) -> tuple[Floats, Floats]:
        """Inverse-variance means of the observations, shape (cells, slots), and their noise scales, shape (cells,)."""
        if not self.observations:
            raise ValueError("there is no observation to combine")
        if len(self.observations) == 1 and self.observations[0].cells is None:  # most answers: nothing to combine
            values = self._rows(self.observations[0], np.arange(self.count))
            if np.isfinite(values).all():
                return values, np.full(self.count, self.observations[0].measurement.sigma)
        scales = np.empty(self.count)
        parts = []
        for observations, at in self._by_pattern(None):
            mean, scales[at] = combine(
                np.stack([self._rows(one, at) for one in observations]), [one.measurement.sigma for one in observations]
            )
            parts.append((at, mean))
        values = np.empty((self.count, parts[0][1].shape[1]))
        for at, mean in parts:
            values[at] = mean
        return values, scales

    def radius(self, alpha: Fraction) -> Floats:
        """Half-widths of the intervals of one sum, missed with probability at most `alpha` overall; shape (cells,)."""
        if not self.differs_by_cell:
            return np.full(self.count, self._radius(self.observations, alpha))
        radii = np.empty(self.count)
        for observations, at in self._by_pattern(None):
            radii[at] = self._radius(observations, alpha)
        return radii

    def _radius(self, observations: tuple[Observation, ...], alpha: Fraction) -> float:
        sigmas = tuple([one.measurement.sigma for one in observations])
        return radius_of(sigmas, alpha, self.tau, final=self.is_final)

    def radius_at(self, sigma: float, alpha: Fraction, *, final: bool = False) -> float:
        """Half-width of the interval of one sum once one further observation has reduced its noise scale to `sigma`.

        A confidence sequence depends on the observations only through their combined scale.
        """
        if final or self.is_final:
            return fixed_radius([sigma], alpha=alpha)
        sigmas = (sigma * math.sqrt(2),) * 2 if self.observations else (sigma,)
        return radius_of(sigmas, alpha, self.tau, final=False)

    def anytime_radius(self, alpha: Fraction) -> Floats:
        """Half-widths that hold for all observations at once, also for cells with one so far; shape (cells,)."""
        if self.tau is None:
            return self.radius(alpha)
        radii = np.empty(self.count)
        for observations, at in self._by_pattern(None):
            sigmas = [one.measurement.sigma for one in observations]
            radii[at] = confidence_sequence_radius(sigmas, tau=self.tau, alpha=(1 - FIRST_OBSERVATION_ALPHA) * alpha)
        return radii

    def _by_pattern(self, cells: Sequence[int] | None) -> list[tuple[tuple[Observation, ...], NDArray[np.int64]]]:
        """The cells, grouped by the observations that include them."""
        wanted = np.arange(self.count) if cells is None else np.asarray(cells, np.int64)
        inside = np.ones((len(self.observations), self.count), np.bool_)
        for index, one in enumerate(self.observations):
            if one.cells is not None:
                inside[index] = np.isin(np.arange(self.count), one.cells)
        if inside.all():
            return [(self.observations, wanted)]
        patterns, at = np.unique(inside[:, wanted], axis=1, return_inverse=True)
        return [
            (
                tuple(one for one, included in zip(self.observations, pattern, strict=True) if included),
                wanted[at.ravel() == index],
            )
            for index, pattern in enumerate(patterns.T)
        ]

    def _rows(self, observation: Observation, at: NDArray[np.int64]) -> Floats:
        """The measured values of some cells of an observation, shape (cells, slots)."""
        cells = self.count if observation.cells is None else len(observation.cells)
        values = observation.measurement.to_floats()
        table = values.reshape(cells, len(values) // cells if cells else 1)
        return table[at if observation.cells is None else np.searchsorted(observation.cells, at)]


@lru_cache(maxsize=1024)  # queries that differ in their rows only have the same noise scales
def radius_of(sigmas: tuple[float, ...], alpha: Fraction, tau: float | None, *, final: bool) -> float:
    """Half-width of the interval of one sum that was observed with these noise scales."""
    if final:
        return fixed_radius(sigmas, alpha=alpha)
    if len(sigmas) == 1 or tau is None:
        return fixed_radius(sigmas, alpha=FIRST_OBSERVATION_ALPHA * alpha)
    return confidence_sequence_radius(sigmas, tau=tau, alpha=(1 - FIRST_OBSERVATION_ALPHA) * alpha)


@lru_cache(maxsize=1024)
def first_tau(sigma: float, alpha: Fraction) -> float:
    """The parameter tau to store with a first observation of noise scale `sigma`: public, since the scale is."""
    return tuned_tau(TUNED_FOR / sigma**2, alpha=(1 - FIRST_OBSERVATION_ALPHA) * alpha)
