"""Least squares within privacy units, from noisy sums of products of deviations from the unit's means.

As in `dpnb.results.estimates.moments`, without a count, sums and an intercept: deviations have mean 0 in every unit.
"""

from __future__ import annotations

import numpy as np

from dpnb.results.estimates.least_squares import LeastSquares, Matrix, coefficients, in_own_units
from dpnb.results.estimates.noisy import Cells, IntervalArrays, NoisyArrays


class DeviationSums:
    """The noisy sums of products of some numbers, the outcome first; of each pair once, row by row.

    `reaches`, of shape (numbers,), are the half-widths of the numbers' bounds.
    """

    def __init__(self, reaches: Cells, sums: list[NoisyArrays]) -> None:
        rows, columns = self._places = np.triu_indices(len(reaches))
        scales = reaches[rows] * reaches[columns]
        self._moments = self._matrices(np.stack([noisy.single for noisy in sums], axis=1) / scales)
        each = np.stack([noisy.scale for noisy in sums], axis=1) / scales
        self._changes = np.stack([self._matrices(np.diag(scales)) for scales in each])
        self._reaches = reaches
        numbers = [(0.0, float(reach)) for reach in reaches]
        self._own_units = in_own_units(numbers[0], numbers[1:], intercept=False)

    def _matrices(self, sums: Matrix) -> Matrix:
        rows, columns = self._places
        matrices = np.zeros((len(sums), rows[-1] + 1, rows[-1] + 1))
        matrices[:, rows, columns] = matrices[:, columns, rows] = sums
        return matrices

    def least_squares(self) -> LeastSquares:
        """The moments of the regression, without groups."""
        outcome = float(self._reaches[0])
        return LeastSquares(self._moments[0], self._changes[0], *self._own_units, outcome, intercept=False)

    def slopes(self, z: Cells) -> IntervalArrays:
        """Least squares of the first number on the others, in their own units."""
        return coefficients(self._moments, self._changes, self._own_units, z, np.ones(len(z), np.bool_))
