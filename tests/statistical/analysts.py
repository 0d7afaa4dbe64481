"""Analysts who know the truth and go on until an interval misses it: the worst stopping rule there is."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP
from dpnb.mechanisms.measurement import Measurement
from dpnb.results.observations import CombinedObservations, Observation, first_tau
from statistical.noisy_sums import ALPHA

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
LOOKS = 12
GRID = -20

Misses = Callable[[CombinedObservations], Mask]
"""Which cells' intervals miss the truth."""


class Analysts:
    """Many analysts at once, each with cells of their own, who take looks at the cells of their choice.

    Parameters
    ----------
    truth : float64 array, shape (cells, slots)
    seed : int
    sigma : float
        Of the first look; every further one has the precision of all before it, so that the information doubles.
    """

    def __init__(self, truth: Array, seed: int, sigma: float = 1.0, *, final: bool = False) -> None:
        self._truth, self._chance, self._sigma = truth, np.random.default_rng(seed), sigma
        self.known = CombinedObservations((), None if final else first_tau(sigma, ALPHA), len(truth))
        self.look(np.ones(len(truth), np.bool_), sigma)

    def look(self, cells: Mask, sigma: float) -> None:
        """Take a look at some cells."""
        noisy = self._truth[cells] + self._chance.normal(0, sigma, self._truth[cells].shape)
        values = tuple(round(value * 2.0**-GRID) for value in noisy.ravel())
        at = None if cells.all() else tuple(int(cell) for cell in np.flatnonzero(cells))
        look = Observation(GDP(1), Measurement(values, GRID, sigma), 1, at)
        self.known = CombinedObservations((*self.known.observations, look), self.known.tau, self.known.count)

    def until(self, stopped: Misses) -> None:
        """Refine each cell until it is stopped."""
        for further in range(LOOKS - 1):
            go_on = ~stopped(self.known)
            if not go_on.any():
                return
            self.look(go_on, self._sigma * 2 ** (-further / 2))


def missed(truth: Array, alpha: Fraction = ALPHA) -> Misses:
    """By the interval of a sum itself."""

    def misses(known: CombinedObservations) -> Mask:
        return np.asarray(np.abs(known.combined[0] - truth).max(axis=1) > known.radius(alpha))

    return misses


def missed_by_fixed_design(truth: Array) -> Misses:
    """The control: as if the looks had been fixed beforehand."""

    def misses(known: CombinedObservations) -> Mask:
        values, scales = known.combined
        return np.asarray(np.abs(values - truth).max(axis=1) > fixed_radius([1.0], alpha=ALPHA) * scales)

    return misses
