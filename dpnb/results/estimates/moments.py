"""Variances, covariances, correlations and least squares from noisy second moments.

All columns are scaled to [-1, 1], and the sums measured are the count N, the z_i and the products z_i z_j, each with
independent noise of a known scale.  Every statistic is a quotient a/b of two functions of these sums: (sum of squares
about the mean)/N, covariance over the product of deviations, Cramer's determinants.  Both are evaluated with each sum
shifted by its noise scale in turn (`coefficients` has the derivatives instead); half the differences are
their sensitivities to the noises, and the sums of squares and products of these are the variances and the covariance
for Fieller's theorem (see Ratios and means).  So only the curvature of a and b is neglected, not that of the quotient.
Where the count, or the denominator, is not clearly above the noise, the interval is the whole range of the statistic.

The denominator of a correlation is the root of a product of variances, whose curvature cannot be neglected where a
variance is near 0 (a column that varies little within its bounds).  So the interval of a correlation is the whole range
unless the intervals of both variances exclude 0, and the noise of the root is that of its longer side: if the interval
of a variance v begins at r v, the root falls by ``1 - sqrt(r)`` of itself, which is ``2 / (1 + sqrt(r))`` times what
its slope says, at least 1 and less than 2 times.  Coverage is simulated in tests/statistical.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpnb._compile.features import Feature, ValueFeature
from dpnb._compile.lowering import moment_order
from dpnb.results.estimates.least_squares import LeastSquares, Matrix, OwnUnits, coefficients, in_own_units
from dpnb.results.estimates.noisy import Cells, IntervalArrays, NoisyArrays, quotient

Statistic = Callable[[Matrix], Cells]

CLEAR = 3.0
"""A count must be at least this multiple of its interval's half-width for a variance to be estimated."""


class MomentSums:
    """The noisy moments of some columns, and of the indicators of some categories.

    The features are in the order of `moment_order`; `middle` and `reach`, the middles and half-widths of the columns'
    bounds, scale the columns to [-1, 1]; `sizes` are the numbers of indicators of the categorical columns; `z`, of
    shape (cells,), is the half-width of an interval in standard deviations.
    """

    def __init__(
        self, features: list[Feature], sums: list[NoisyArrays], middle: Cells, reach: Cells, sizes: list[int], z: Cells
    ) -> None:
        self._features, self._noisy, self._numbers = features, sums, (middle, reach)
        self._sums = np.concatenate([noisy.value for noisy in sums], axis=1)
        self._scales = np.concatenate([np.repeat(noisy.scale[:, None], noisy.value.shape[1], 1) for noisy in sums], 1)
        self._middle, self._reach = (
            np.concatenate([part, end]) for part, end in ((middle, np.zeros(sum(sizes))), (reach, np.ones(sum(sizes))))
        )
        self._columns, self._sizes, self._z = len(middle), sizes, z
        self._starts = [int(start) for start in self._columns + np.cumsum([0, *sizes])]
        self._indices: dict[tuple[str, int, int], int] = {}

    def of_columns(self, *columns: int) -> MomentSums:
        """The moments of some columns alone, ascending: their variances and covariances depend on no other sum."""
        order = moment_order(self._columns, len(self._sizes))
        at = self._indices = self._indices or {moment: index for index, moment in enumerate(order)}
        chosen = [
            at[kind, columns[a], columns[b]] if kind != "count" else 0 for kind, a, b in moment_order(len(columns), 0)
        ]
        features, sums = [self._features[index] for index in chosen], [self._noisy[index] for index in chosen]
        middle, reach = (part[list(columns)] for part in self._numbers)
        return MomentSums(features, sums, middle, reach, [], self._z)

    @property
    def _clear(self) -> NDArray[np.bool_]:
        return np.asarray(self._sums[:, 0] > CLEAR * self._z * self._scales[:, 0])

    def _rows_of(self, index: int) -> list[int]:
        """The rows of the matrix that belong to a column or category."""
        if index < self._columns:
            return [index + 1]
        category = index - self._columns
        return list(range(self._starts[category] + 1, self._starts[category + 1] + 1))

    def _entries(self, sums: Matrix) -> Matrix:
        """Sums of products of (1, z_1, ..., indicators), shape (rows, rows, cells); with the centring undone."""
        size = self._starts[-1] + 1
        entries = np.zeros((size, size, len(sums)))
        at = 0
        counts: dict[int, Matrix] = {}
        for feature, (kind, a, b) in zip(self._features, moment_order(self._columns, len(self._sizes)), strict=True):
            part = sums[:, at : at + feature.slots].T
            at += feature.slots
            left = self._rows_of(self._columns + a) if kind.startswith("indicators") else [a + 1]
            match kind:
                case "count":
                    entries[0, 0] = part[0]
                case "number":
                    entries[0, a + 1] = entries[a + 1, 0] = part[0] + sums[:, 0] * _middle(feature)
                case "product":
                    product = part[0] + sums[:, 0] * _middle(feature)
                    entries[a + 1, b + 1] = entries[b + 1, a + 1] = product
                case "indicators":
                    counts[a] = part
                    entries[0, left] = entries[left, 0] = entries[left, left] = part
                case "number by indicators":
                    right = self._rows_of(self._columns + b)
                    total = part + counts[b] * _middle(feature)
                    entries[a + 1, right] = entries[right, a + 1] = total
                case _:
                    right = self._rows_of(self._columns + b)
                    table = part.reshape(len(left), len(right), len(sums))
                    entries[np.ix_(left, right)] = table
                    entries[np.ix_(right, left)] = table.transpose(1, 0, 2)
        return entries

    def _matrices(self, sums: Matrix) -> Matrix:
        """The same entries as matrices, shape (cells, rows, rows)."""
        return np.ascontiguousarray(np.moveaxis(self._entries(sums), -1, 0))

    @cached_property
    def _shifted(self) -> Matrix:
        """The entries, then those with each sum shifted by its noise scale, shape (rows, rows, shifts, cells)."""
        shifted = np.repeat(self._sums[None], 1 + 2 * self._sums.shape[1], axis=0)
        for slot in range(self._sums.shape[1]):
            shifted[2 * slot + 1, :, slot] += self._scales[:, slot]
            shifted[2 * slot + 2, :, slot] -= self._scales[:, slot]
        entries = self._entries(shifted.reshape(-1, self._sums.shape[1]))
        return entries.reshape(*entries.shape[:2], *shifted.shape[:2])

    def _quotient(
        self, a: Statistic, b: Statistic, bounds: tuple[float, float], *, clear: NDArray[np.bool_] | bool = True
    ) -> IntervalArrays:
        """The quotient of two functions of the entries; the whole range if not `clear`."""
        with np.errstate(all="ignore"):
            tops, bottoms = a(self._shifted), b(self._shifted)
            top, bottom = tops[0], bottoms[0]
            va, vb, covariance = np.zeros_like(top), np.zeros_like(top), np.zeros_like(top)
            for up in range(1, len(tops), 2):
                da, db = (tops[up] - tops[up + 1]) / 2, (bottoms[up] - bottoms[up + 1]) / 2
                va, vb, covariance = va + da**2, vb + db**2, covariance + da * db
        known = self._clear & clear & np.isfinite(top + bottom + va + vb)
        # Where the statistic is unknown, a quotient of 0 by 0.
        parts = (np.where(known, part, other) for part, other in ((top, 0.0), (bottom, 0.0), (va, 1.0), (vb, 1.0)))
        top, bottom, va, vb = parts
        return quotient(top, bottom, (va, vb), np.where(known, covariance, 0.0), self._z, bounds)

    def count(self) -> IntervalArrays:
        """Number of rows."""
        value, scale = self._sums[:, 0], self._scales[:, 0]
        reach = self._z * scale
        return IntervalArrays.of(value, value - reach, value + reach, scale).clipped(0.0, np.inf, value=False)

    def mean(self, column: int) -> IntervalArrays:
        """Mean of a column."""
        off = _middle(self._features[1 + column])
        variances = self._scales[:, 1 + column] ** 2, self._scales[:, 0] ** 2
        z = quotient(self._sums[:, 1 + column], self._sums[:, 0], variances, 0.0, self._z, (-1 - off, 1 - off))
        return z.rescaled(self._reach[column], self._middle[column] + off * self._reach[column])

    def var(self, column: int, *, ddof: int = 0, root: bool = False) -> IntervalArrays:
        """Variance of a column, or its square root: the sum of squares about the mean over the count less `ddof`.

        The variance of numbers in [-1, 1] is at most 1; over the count less 1 it is at most 2, which two rows reach.
        """
        variance = self._quotient(lambda entries: _about_means(entries, column, column), _less(ddof), (0.0, 1.0 + ddof))
        return root_of(variance).rescaled(self._reach[column]) if root else variance.rescaled(self._reach[column] ** 2)

    def cov(self, i: int, j: int, *, ddof: int = 0) -> IntervalArrays:
        """Covariance of two columns, with the divisor and the limits of `var`."""
        covariance = self._quotient(lambda entries: _about_means(entries, i, j), _less(ddof), (-1.0 - ddof, 1.0 + ddof))
        return covariance.rescaled(self._reach[i] * self._reach[j])

    def corr(self, i: int, j: int) -> IntervalArrays:
        """Correlation of two columns."""

        def deviations(entries: Matrix) -> Cells:
            one, other = _about_means(entries, i, i), _about_means(entries, j, j)
            return np.sqrt(np.where((one > 0) & (other > 0), one * other, 0.0))

        with np.errstate(all="ignore"):
            remaining = np.minimum(self._remaining(i), self._remaining(j))
            centre, longer = deviations(self._shifted)[0], 2 / (1 + np.sqrt(remaining))

        def on_longer_side(entries: Matrix) -> Cells:
            return np.asarray(centre + longer * (deviations(entries) - centre))

        return self._quotient(
            lambda entries: _about_means(entries, i, j), on_longer_side, (-1.0, 1.0), clear=remaining > 0
        )

    def _remaining(self, column: int) -> Cells:
        """The lower limit of a column's variance as a share of its estimate; 0 if the limit is not above 0."""
        value, low, _ = (end[:, 0] for end in self.var(column).unclipped)
        return np.where(low > 0, low / value, 0.0)

    def _normal_equations(self, outcome: int, predictors: Sequence[int]) -> tuple[Matrix, Matrix, OwnUnits]:
        """Moments and changes of a regression, for each cell, and its own units."""
        rows = [outcome + 1, 0, *(row for index in predictors for row in self._rows_of(index))]
        chosen = np.ix_(rows, rows)
        moments = self._matrices(self._sums)[:, chosen[0], chosen[1]]
        # The matrices are linear in the sums: no difference is needed, and all cells share the changes of a scale of 1.
        of_one = self._matrices(np.eye(self._scales.shape[1]))[:, chosen[0], chosen[1]]
        changes = self._scales[:, :, None, None] * of_one
        numbers = [(float(self._middle[row - 1]), float(self._reach[row - 1])) for row in rows if row]
        return moments, changes, in_own_units(numbers[0], numbers[1:], intercept=True)

    def least_squares(self, outcome: int, *predictors: int) -> LeastSquares:
        """The moments of a regression, without groups."""
        moments, changes, own_units = self._normal_equations(outcome, predictors)
        return LeastSquares(moments[0], changes[0], *own_units, float(self._reach[outcome]), intercept=True)

    def regression(self, outcome: int, *predictors: int) -> IntervalArrays:
        """Least squares of one column on others: intercept, then slopes, in the columns' own units."""
        return coefficients(*self._normal_equations(outcome, predictors), self._z, self._clear)


def root_of(variance: IntervalArrays) -> IntervalArrays:
    """The square root of a number that is at least 0."""
    with np.errstate(all="ignore"):
        value, low, high = (np.sqrt(end) for end in (variance.value, variance.low, variance.high))
        scale = variance.noise_scale / (2 * value)
        first, second, third = (np.sqrt(np.maximum(end, 0.0)) for end in variance.unclipped)
        # The root is far from linear there: arithmetic must combine ranges, not distances from the estimate.
        second = np.where(second > 0, second, -np.inf)
    return IntervalArrays(value, low, high, scale, (first, second, third), variance.has_whole_range)


def _middle(feature: Feature) -> float:
    """The constant that was subtracted from each row's value."""
    return feature.middle if isinstance(feature, ValueFeature) else 0.0


def _less(ddof: int) -> Statistic:
    """The count less `ddof`: a known number is subtracted, so the noise is that of the count."""
    return lambda entries: np.asarray(entries[0, 0] - ddof)


def _about_means(entries: Matrix, i: int, j: int) -> Cells:
    """Sum of the products of two columns' deviations from their means."""
    means = entries[0, i + 1] * entries[0, j + 1] / entries[0, 0]
    return np.asarray(entries[i + 1, j + 1] - means)


class DeviationSums:
    """The noisy sums of products of deviations from the means of privacy units, without a count, sums and an intercept.

    The numbers are the outcome, then the others; `sums` has each pair once, row by row.  `reaches`, of shape
    (numbers,), are the half-widths of the numbers' bounds.
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
