"""Least squares within privacy units, from noisy sums of products of deviations from the unit's means.

As in `dpnb.results.estimates.moments`, without a count, sums and an intercept: deviations have mean 0 in every unit.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpnb._compile.features import ValueFeature
from dpnb.results.estimates.least_squares import LeastSquares, changes_of, in_own_units
from dpnb.results.estimates.moments import Matrix, MomentSums
from dpnb.results.estimates.noisy import Cells, IntervalArrays, NoisyArrays


class ProductMatrix(MomentSums):
    """The noisy sums of products of some numbers, the outcome first; of each pair once, row by row."""

    def __init__(self, numbers: int, features: list[ValueFeature], sums: list[NoisyArrays], z: Cells) -> None:
        self._sums = np.stack([noisy.single for noisy in sums], axis=1)
        self._scales = np.stack([noisy.scale for noisy in sums], axis=1)
        self._z, self._kept = z, None
        self._places = np.triu_indices(numbers)
        on_diagonal = np.flatnonzero(self._places[0] == self._places[1])
        self._reach = np.sqrt([features[index].high for index in on_diagonal])
        self._unit = np.maximum(np.abs(self._sums[:, on_diagonal] / self._reach**2).max(axis=1), np.finfo(float).tiny)

    @property
    def _clear(self) -> NDArray[np.bool_]:
        return np.ones(len(self._sums), np.bool_)

    def _matrices(self, sums: Matrix) -> Matrix:
        rows, columns = self._places
        matrices = np.zeros((len(sums), len(self._reach), len(self._reach)))
        scaled = sums / (self._reach[rows] * self._reach[columns]) / self._unit[:, None]
        matrices[:, rows, columns] = matrices[:, columns, rows] = scaled
        return matrices

    def products(self, reaches: Cells) -> LeastSquares:
        """The products of a regression, scaled by the half-widths of the numbers' bounds."""
        ratios = self._reach / reaches
        scale = np.outer(ratios, ratios) * self._unit[0]
        moments, changes = self._matrices(self._sums)[0] * scale, changes_of(self._shifted()) * scale
        numbers = [(0.0, float(reach)) for reach in reaches]
        own_units = in_own_units(numbers[0], numbers[1:], intercept=False)
        return LeastSquares(moments, changes, *own_units, numbers[0][1], intercept=False)

    def slopes(self) -> IntervalArrays:
        """Least squares of the first number on the others, in their own units."""

        def determinant(matrices: Matrix, replaced: int | None = None) -> Cells:
            normal = matrices[:, 1:, 1:].copy()
            if replaced is not None:
                normal[:, :, replaced] = matrices[:, 1:, 0]
            return np.asarray(np.linalg.det(normal))

        everything = (-np.inf, np.inf)
        found = [
            self._quotient(partial(determinant, replaced=index), determinant, everything).rescaled(
                float(self._reach[0] / reach)
            )
            for index, reach in enumerate(self._reach[1:])
        ]
        return IntervalArrays.side_by_side(found)
