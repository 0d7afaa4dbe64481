"""Variances, covariances, correlations and least squares from noisy second moments.

All columns are brought to -1 to 1 (see `dpnb.query.linear.features`), and the sums measured are the count N, the z_i
and the products z_i z_j, each with independent noise of a known scale.  A statistic f of these sums is shifted by one
scale of each noise in turn; half the differences of f are its sensitivities to the noises, and their root sum of
squares is its scale (the delta method with secants instead of tangents).  Where the count, or for least squares the
smallest eigenvalue of the matrix, does not stand clear of the noise, nothing is said: the interval is all that the
statistic can be.  Coverage is simulated in tests/statistical.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpnb.answer.estimates.noisy import Cells, Estimate, Noisy
from dpnb.answer.estimates.ratios import quotient
from dpnb.query.linear.features import Feature, Value, moment_order

Matrix = NDArray[np.float64]

CLEAR = 2.0
"""A count must exceed its interval's half-width this many times before a variance is told."""


class MomentSums:
    """The noisy moments of some columns, and of the indicators of some categories.

    Parameters
    ----------
    features : list of Feature
        In the order of `moment_order`.
    sums : list of Noisy
        Theirs.
    middle, reach : float64 array, shape (columns,)
        What brings the columns to -1 to 1.
    sizes : list of int
        Indicators of each category.
    z : float64 array, shape (cells,)
        Half-width of an interval in standard deviations.
    """

    def __init__(
        self, features: list[Feature], sums: list[Noisy], middle: Cells, reach: Cells, sizes: list[int], z: Cells
    ) -> None:
        self._features = features
        self._sums = np.concatenate([noisy.value for noisy in sums], axis=1)
        self._scales = np.concatenate([np.repeat(noisy.scale[:, None], noisy.value.shape[1], 1) for noisy in sums], 1)
        self._middle, self._reach = (
            np.concatenate([part, end]) for part, end in ((middle, np.zeros(sum(sizes))), (reach, np.ones(sum(sizes))))
        )
        self._columns, self._sizes, self._z = len(middle), sizes, z
        self._starts = [int(start) for start in self._columns + np.cumsum([0, *sizes])]

    @property
    def _clear(self) -> NDArray[np.bool_]:
        return np.asarray(self._sums[:, 0] > CLEAR * self._z * self._scales[:, 0])

    def _rows_of(self, place: int) -> list[int]:
        """Rows of the matrix that a column or category has."""
        if place < self._columns:
            return [place + 1]
        category = place - self._columns
        return list(range(self._starts[category] + 1, self._starts[category + 1] + 1))

    def _matrices(self, sums: Matrix) -> Matrix:
        """Sums of products of (1, z_1, ..., indicators), shape (cells, rows, rows); what was taken off is put back."""
        size = self._starts[-1] + 1
        matrices = np.zeros((len(sums), size, size))
        at = 0
        counts: dict[int, Matrix] = {}
        for feature, (kind, a, b) in zip(self._features, moment_order(self._columns, len(self._sizes)), strict=True):
            part = sums[:, at : at + feature.slots]
            at += feature.slots
            left = self._rows_of(self._columns + a) if kind.startswith("indicators") else [a + 1]
            match kind:
                case "count":
                    matrices[:, 0, 0] = part[:, 0]
                case "number":
                    matrices[:, 0, a + 1] = matrices[:, a + 1, 0] = part[:, 0] + sums[:, 0] * _middle(feature)
                case "product":
                    product = part[:, 0] + sums[:, 0] * _middle(feature)
                    matrices[:, a + 1, b + 1] = matrices[:, b + 1, a + 1] = product
                case "indicators":
                    counts[a] = part
                    matrices[:, 0, left] = matrices[:, left, 0] = matrices[:, left, left] = part
                case "number by indicators":
                    right = self._rows_of(self._columns + b)
                    total = part + counts[b] * _middle(feature)
                    matrices[:, a + 1, right] = matrices[:, right, a + 1] = total
                case _:
                    right = self._rows_of(self._columns + b)
                    table = part.reshape(len(sums), len(left), len(right))
                    matrices[np.ix_(range(len(sums)), left, right)] = table
                    matrices[np.ix_(range(len(sums)), right, left)] = table.transpose(0, 2, 1)
        return matrices

    def _spread(self, statistic: Callable[[Matrix], Matrix]) -> tuple[Matrix, Matrix]:
        """A statistic of the matrices, shape (cells, outputs), and its scale; NaN where the count is not clear."""
        with np.errstate(all="ignore"):
            value = statistic(self._matrices(self._sums))
            variance = np.zeros_like(value)
            for place in range(self._sums.shape[1]):
                step = np.zeros_like(self._sums)
                step[:, place] = self._scales[:, place]
                up, down = (statistic(self._matrices(self._sums + sign * step)) for sign in (1, -1))
                variance += ((up - down) / 2) ** 2
        fine = self._clear[:, None] & np.isfinite(variance) & np.isfinite(value)
        return np.where(fine, value, np.nan), np.where(fine, np.sqrt(variance), np.nan)

    def count(self) -> Estimate:
        """Rows."""
        value, scale = self._sums[:, 0], self._scales[:, 0]
        return Estimate.of(value, np.maximum(value - self._z * scale, 0), np.maximum(value + self._z * scale, 0), scale)

    def mean(self, column: int) -> Estimate:
        """Mean of a column, by Fieller's theorem."""
        place = 1 + column
        variances = self._scales[:, place] ** 2, self._scales[:, 0] ** 2
        off = _middle(self._features[place])
        bounds = -1 - off, 1 - off
        z = quotient(self._sums[:, place], self._sums[:, 0], variances, 0.0, self._z, bounds)
        middle, reach = self._middle[column] + off * self._reach[column], self._reach[column]
        value, low, high = (middle + end * reach for end in (z.value, z.low, z.high))
        return Estimate(value, low, high, z.noise_scale * reach)

    def var(self, column: int, *, root: bool = False) -> Estimate:
        """Variance of a column, or its root."""

        def statistic(matrices: Matrix) -> Matrix:
            return _covariances(matrices)[:, column : column + 1, column]

        value, scale = self._spread(statistic)
        reach = self._reach[column]
        # The variance of numbers between -1 and 1 is at most 1.
        low, high = self._interval(value, scale, (0.0, 1.0))
        value = np.clip(value, 0.0, 1.0)
        if not root:
            return Estimate(value * reach**2, low * reach**2, high * reach**2, scale * reach**2)
        with np.errstate(all="ignore"):
            root_scale = scale / (2 * np.sqrt(value)) * reach
        return Estimate(np.sqrt(value) * reach, np.sqrt(low) * reach, np.sqrt(high) * reach, root_scale)

    def cov(self, i: int, j: int) -> Estimate:
        """Covariance of two columns."""
        value, scale = self._spread(lambda matrices: _covariances(matrices)[:, i : i + 1, j])
        low, high = self._interval(value, scale, (-1.0, 1.0))
        reach = self._reach[i] * self._reach[j]
        return Estimate(np.clip(value, -1.0, 1.0) * reach, low * reach, high * reach, scale * reach)

    def corr(self, i: int, j: int) -> Estimate:
        """Correlation of two columns; its interval is made on Fisher's scale, where its error is nearly normal."""

        def statistic(matrices: Matrix) -> Matrix:
            covariances = _covariances(matrices)
            product = covariances[:, i, i] * covariances[:, j, j]
            good = (covariances[:, i, i] > 0) & (covariances[:, j, j] > 0)
            correlation = np.where(good, covariances[:, i, j] / np.sqrt(np.where(good, product, 1.0)), np.nan)
            return np.asarray(np.arctanh(np.clip(correlation, -0.999999, 0.999999)))[:, None]

        value, scale = self._spread(statistic)
        low, high = self._interval(value, scale, (-np.inf, np.inf))
        return Estimate(np.tanh(value), np.tanh(low), np.tanh(high), scale * (1 - np.tanh(value) ** 2))

    def regression(self, outcome: int, *predictors: int) -> Estimate:
        """Least squares of one column on others: intercept, then slopes, in the columns' own units."""
        terms = [row for place in predictors for row in self._rows_of(place)]
        rows, others = [0, *terms], [row - 1 for row in terms]

        def statistic(matrices: Matrix) -> Matrix:
            normal = matrices[:, rows][:, :, rows]
            right = matrices[:, rows, outcome + 1]
            solvable = np.abs(np.linalg.det(normal)) > 0
            normal = np.where(solvable[:, None, None], normal, np.eye(len(rows)))
            beta = np.linalg.solve(normal, right[:, :, None])[:, :, 0]
            beta = np.where(solvable[:, None], beta, np.nan)
            slopes = beta[:, 1:] * self._reach[outcome] / self._reach[others]
            start = self._middle[outcome] + self._reach[outcome] * beta[:, 0] - slopes @ self._middle[others]
            return np.concatenate([start[:, None], slopes], axis=1)

        value, scale = self._spread(statistic)
        matrices = self._matrices(self._sums)[:, rows][:, :, rows]
        noise = self._scales.max(axis=1) * np.sqrt(len(rows))  # about the norm of the noise's matrix
        clear = np.linalg.eigvalsh(matrices)[:, 0] > CLEAR * noise
        value, scale = (np.where(clear[:, None], array, np.nan) for array in (value, scale))
        low, high = self._interval(value, scale, (-np.inf, np.inf))
        return Estimate(value, low, high, scale)

    def _interval(self, value: Matrix, scale: Matrix, bounds: tuple[float, float]) -> tuple[Matrix, Matrix]:
        reach = self._z[:, None] * scale
        low = np.where(np.isnan(scale), bounds[0], np.clip(value - reach, *bounds))
        high = np.where(np.isnan(scale), bounds[1], np.clip(value + reach, *bounds))
        return low, high


def _middle(feature: Feature) -> float:
    """What was taken off each row."""
    return feature.middle if isinstance(feature, Value) else 0.0


def _covariances(matrices: Matrix) -> Matrix:
    """Covariances (divided by the count) of the columns, shape (cells, columns, columns)."""
    means = matrices[:, 0, 1:] / matrices[:, 0, 0][:, None]
    return np.asarray(matrices[:, 1:, 1:] / matrices[:, 0, 0][:, None, None] - means[:, :, None] * means[:, None, :])
