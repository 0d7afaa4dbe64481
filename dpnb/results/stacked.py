"""The observations of many answers of one form, combined at once.

Each answer has the same numbers as when it is read alone: everything is computed number by number, or answer by answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpnb.accounting.intervals import combine
from dpnb.results.observations import Floats, radius_of


@dataclass(frozen=True)
class StackedObservations:
    """The observations of several answers; see `CombinedObservations`."""

    values: Floats  # shape (answers, observations, numbers): the measured values of all cells, cell by cell; finite
    sigmas: Sequence[tuple[float, ...]]  # the noise scales of each answer's observations
    taus: Sequence[float | None]  # the parameter of each answer's confidence sequence; None in all of them, or in none
    count: int = 1  # number of cells of one answer

    @property
    def is_refined(self) -> bool:
        """Whether each answer has several observations."""
        return len(self.sigmas[0]) > 1

    @property
    def is_final(self) -> bool:
        """Whether the first observations were requested as final."""
        return self.taus[0] is None

    @property
    def first(self) -> StackedObservations:
        """The first observation of each answer only."""
        return StackedObservations(self.values[:, :1], [one[:1] for one in self.sigmas], self.taus, self.count)

    def combined(self) -> tuple[Floats, Floats]:
        """The means and noise scales of all cells of all answers, as of `CombinedObservations`."""
        means, scales = self.values[:, 0].copy(), np.array([sigmas[0] for sigmas in self.sigmas])
        if self.is_refined:
            for sigmas, answers in self._with_equal_scales():
                means[answers], scales[answers] = combine(self.values[answers].swapaxes(0, 1), list(sigmas))
        cells = len(means) * self.count
        return means.reshape(cells, means.size // cells), np.repeat(scales, self.count)

    def _with_equal_scales(self) -> list[tuple[tuple[float, ...], list[int]]]:
        """The indices of the answers by their noise scales.

        Of more than two observations, one answer at a time: the last digit of a sum of several products may depend on
        how many are computed at once.
        """
        if len(self.sigmas[0]) > 2:
            return [(sigmas, [index]) for index, sigmas in enumerate(self.sigmas)]
        found: dict[tuple[float, ...], list[int]] = {}
        for index, sigmas in enumerate(self.sigmas):
            found.setdefault(sigmas, []).append(index)
        return list(found.items())

    def radius(self, alpha: Fraction) -> Floats:
        """Half-widths of the intervals of one sum in each cell of each answer."""
        final = self.is_final

        @lru_cache(maxsize=1024)
        def of_one(sigmas: tuple[float, ...], tau: float | None) -> float:
            return radius_of(list(sigmas), alpha, tau, final=final)

        return np.repeat(np.array(list(map(of_one, self.sigmas, self.taus))), self.count)
