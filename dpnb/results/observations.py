"""One linear query, measured again and again: each look pays only for what it adds.

Fresh noise each time on the same exact sums gives y_j = S + N(0, s_j^2 I).  The likelihood of (y_1, ..., y_k) depends
on S only through the inverse-variance mean, whose variance is 1/I with I = sum 1/s_j^2.  So all looks together are
exactly as private as one look with that variance: mu^2 = C^2 I = sum mu_j^2, and going from mu_a to mu_b costs
mu_b^2 - mu_a^2, also when the s_j were chosen from earlier answers (Smith and Thakurta 2022, Theorem 1).

A look may be at some of the groups only.  A cell's information is then that of the looks which it is in, and a look at
some cells costs mu^2 = C'^2/s^2 with C' the most that one unit can change *those* cells by.

The analyst decides from the answers whether to look again, and a fixed-design interval is then wrong (it can miss
nine times in ten).  So the error alpha is split: the first look has the fixed-design interval at 0.8 alpha, and from
the second look on a normal-mixture confidence sequence at 0.2 alpha holds for all looks at once (Howard et al.  2021;
proof: E exp(t S_n - t^2 I_n / 2) = 1 for S_n = sum (y_j - q)/s_j^2, mix t over N(0, 1/tau), Ville).  Together they
miss with probability at most alpha, so what is in both is an interval at level alpha too, and a refinement never
widens one.  tau is fixed by the first look's scale, before anything is seen.  A first look that was asked for as
final has the whole alpha and no tau: it is never refined.

Any linear functional of the sums has the same property with its own scale, so intervals of all kinds of answers use the
half-width in multiples of the noise scale.

As an interactive mechanism: charged step by step through the session's filter, nothing reserved, state = its released
looks, which are in the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpnb.accounting.intervals import combine, confidence_sequence_radius, fixed_radius, tuned_tau
from dpnb.accounting.losses import GDP
from dpnb.mechanisms.measurement import Measurement

Floats = NDArray[np.float64]

FIRST_OBSERVATION_ALPHA = Fraction(4, 5)
"""Share of the error that the first look's interval has; the rest is for all later looks."""

TUNED_FOR = 4.0
"""The confidence sequence is tightest at this multiple of the first look's information."""


@dataclass(frozen=True)
class Observation:
    """One released measurement and what it cost.

    Parameters
    ----------
    loss : GDP
    measurement : Measurement
    sensitivity_squared : int
        C squared of what was measured.
    cells : tuple of int or None
        Which cells, ascending; None for all.
    """

    loss: GDP
    measurement: Measurement
    sensitivity_squared: int = 1
    cells: tuple[int, ...] | None = None

    @property
    def information(self) -> Fraction:
        """What was paid for, as 1/s^2 of one sum; the noise has at least this scale s."""
        return self.loss.mu_squared / self.sensitivity_squared


@dataclass(frozen=True)
class CombinedObservations:
    """What is known of one linear query.

    Parameters
    ----------
    observations : tuple of Look
        In the order in which they were taken; the first one is at all cells.
    tau : float, optional
        Of the confidence sequence, as stored with the first look; None before it, and after a final one.
    count : int
        Number of cells.
    """

    observations: tuple[Observation, ...] = ()
    tau: float | None = None
    count: int = 1

    @property
    def first(self) -> CombinedObservations:
        """What was known after the first look."""
        return CombinedObservations(self.observations[:1], self.tau, self.count)

    @property
    def differs_by_cell(self) -> bool:
        """Whether some cells were looked at more often than others."""
        return any(look.cells is not None for look in self.observations)

    @property
    def is_final(self) -> bool:
        """Whether the first look was asked for as the last."""
        return bool(self.observations) and self.tau is None

    def known_loss(self, sensitivity_squared: int, cells: Sequence[int] | None = None) -> GDP:
        """How well the worst known of some cells is known, as the loss of one look at them.

        Parameters
        ----------
        sensitivity_squared : int
            C squared of these cells.
        cells : sequence of int, optional
            All of them if left out.
        """
        if not self.observations:
            return GDP(0)
        looks_at = (
            [self.observations] if not self.differs_by_cell else [looks for looks, _ in self._looks_of_cells(cells)]
        )
        least = min(sum((look.information for look in looks), Fraction(0)) for looks in looks_at)
        return GDP.from_mu_squared(least * sensitivity_squared)

    def missing_loss(self, target: GDP, sensitivity_squared: int, cells: Sequence[int] | None = None) -> GDP:
        """What a look at some cells must cost so that they are known at least as well as by one look at `target`."""
        known = self.known_loss(sensitivity_squared, cells)
        return GDP.from_mu_squared(max(target.mu_squared - known.mu_squared, Fraction(0)))

    def combined(self) -> tuple[Floats, Floats]:
        """Inverse-variance means of the looks, shape (cells, slots), and their noise scales, shape (cells,)."""
        if not self.observations:
            raise ValueError("no look was taken")
        scales = np.empty(self.count)
        parts = []
        for looks, at in self._looks_of_cells(None):
            mean, scales[at] = combine(
                np.stack([self._rows(look, at) for look in looks]), [_sigma(look) for look in looks]
            )
            parts.append((at, mean))
        values = np.empty((self.count, parts[0][1].shape[1]))
        for at, mean in parts:
            values[at] = mean
        return values, scales

    def radius(self, alpha: Fraction, further: float | None = None, cells: Sequence[int] | None = None) -> Floats:
        """Half-widths of the intervals of one sum, missed with probability at most `alpha` overall; shape (cells,).

        Parameters
        ----------
        alpha : Fraction
        further : float, optional
            Scale of one more look that is about to be taken.
        cells : sequence of int, optional
            The cells of that look; all if left out.
        """
        radii = np.empty(self.count)
        touched = np.zeros(self.count, np.bool_)
        touched[slice(None) if cells is None else list(cells)] = further is not None
        for looks, at in self._looks_of_cells(None):
            for more in (False, True):
                here = at[touched[at] == more]
                if len(here):
                    sigmas = [_sigma(look) for look in looks]
                    extra = [further] if more and further is not None else []
                    radii[here] = self._radius([*sigmas, *extra], alpha)
        return radii

    def _radius(self, sigmas: list[float], alpha: Fraction) -> float:
        if self.is_final:
            return fixed_radius(sigmas, alpha=alpha)
        if len(sigmas) == 1 or self.tau is None:
            return fixed_radius(sigmas, alpha=FIRST_OBSERVATION_ALPHA * alpha)
        return confidence_sequence_radius(sigmas, tau=self.tau, alpha=(1 - FIRST_OBSERVATION_ALPHA) * alpha)

    def radius_at(self, sigma: float, alpha: Fraction, *, final: bool = False) -> float:
        """Half-width of the interval of one sum once it is known with scale `sigma`, by one more look.

        A confidence sequence depends on the looks through their combined scale alone.
        """
        if final or self.is_final:
            return fixed_radius([sigma], alpha=alpha)
        return self._radius([sigma] if not self.observations else [sigma * math.sqrt(2)] * 2, alpha)

    def anytime_radius(self, alpha: Fraction) -> Floats:
        """Half-widths that hold for all looks at once, also for cells with one look so far; shape (cells,)."""
        if self.tau is None:
            return self.radius(alpha)
        radii = np.empty(self.count)
        for looks, at in self._looks_of_cells(None):
            sigmas = [_sigma(look) for look in looks]
            radii[at] = confidence_sequence_radius(sigmas, tau=self.tau, alpha=(1 - FIRST_OBSERVATION_ALPHA) * alpha)
        return radii

    def _looks_of_cells(self, cells: Sequence[int] | None) -> list[tuple[tuple[Observation, ...], NDArray[np.int64]]]:
        """Which cells are in which looks."""
        wanted = np.arange(self.count) if cells is None else np.asarray(cells, np.int64)
        inside = np.ones((len(self.observations), self.count), np.bool_)
        for place, look in enumerate(self.observations):
            if look.cells is not None:
                inside[place] = np.isin(np.arange(self.count), look.cells)
        if inside.all():
            return [(self.observations, wanted)]
        patterns, at = np.unique(inside[:, wanted], axis=1, return_inverse=True)
        return [
            (
                tuple(look for look, there in zip(self.observations, pattern, strict=True) if there),
                wanted[at.ravel() == place],
            )
            for place, pattern in enumerate(patterns.T)
        ]

    def _rows(self, look: Observation, at: NDArray[np.int64]) -> Floats:
        """What a look says of some of its cells, shape (cells, slots)."""
        cells = self.count if look.cells is None else len(look.cells)
        values = look.measurement.to_floats()
        table = values.reshape(cells, len(values) // cells if cells else 1)
        return table[at if look.cells is None else np.searchsorted(look.cells, at)]


def _sigma(look: Observation) -> float:
    return look.measurement.sigma


def first_tau(sigma: float, alpha: Fraction) -> float:
    """The parameter to store with a first look of scale `sigma`: public, since the scale is."""
    return tuned_tau(TUNED_FOR / sigma**2, alpha=(1 - FIRST_OBSERVATION_ALPHA) * alpha)
