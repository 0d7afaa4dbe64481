"""Least squares of noisy moments: the covariance of the coefficients, the error of sampling, and the fit.

All numbers are scaled to [-1, 1].  With A the sums of x x', b those of x y and c that of y^2, beta = A^-1 b.  Each sum
has independent noise, so to first order, with g_s the change of b - A beta by one noise scale of sum s::

    noise of beta       A^-1 W A^-1,  W = sum over s of g_s g_s'
    sampling of beta    A^-1 M A^-1,  M = sum over units u of (e_u x_u) (e_u x_u)'

* Homoskedastic: where each row is a unit and the errors have one variance sigma^2, whatever the predictors are, M is
  sigma^2 A, which needs no further measurement.
* Robust: M is measured at the released coefficients (White 1980, HC0); where units have several rows, e_u x_u is the
  sum over the rows of the unit (Liang and Zeger 1986).

To the measured variance V of a coefficient through sampling, at least 0, `MARGIN` times its noise scale t is added,
since V enters with its root.  With v the variance of the coefficient's noise, t/v is about 0.3 to 1.2 mu where a fifth
of the charge is for M (one to twelve predictors: normal, skewed, binary).  At the largest, an interval of 95% covers,
whatever V is, 95.0 to 96.6% at mu 0.25, 94.8 to 97.4% at 0.5, 94.3 to 98.4% at 1 and 93.5 to 99.2% at 2 (integrals of
the normal distribution).  Without the addition these would be 94.5, 93.8, 92.5 and 90.3% at least, and with the whole t
up to 97.9, 99.0, 99.8 and 100%.

The residual sum of squares is that at the noisy coefficients, which minimise the *noisy* sum of squares: this is on
average smaller than that at the coefficients without noise by the trace of A^-1 W, which is added.  The difference is
a quadratic form of the noise q of b - A beta, q' A^-1 q, whose variance, twice the trace of (A^-1 W)^2 for normal q, is
added to that of the sums.

R-squared has more noise where it is larger: the variance is about c R + d, with d from the quadratic form, and c from
the estimate r, above which its noisy value is by the trace of A^-1 W.  The upper limit is therefore the largest R with
(R - r)^2 <= z^2 (c R + d), as for a score interval.  In simulations an interval of 95% covers 95.2 to 100%, for an
R-squared of 0.02 to 0.9; with the variance at the estimate it would be as little as 87%.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpnb.results.estimates.noisy import Cells, IntervalArrays, quotient

Matrix = NDArray[np.float64]
OwnUnits = tuple[Matrix, Cells]
"""`LeastSquares.transform` and `LeastSquares.shift`."""

MARGIN = 0.25
"""How much of its noise scale is added to a measured variance."""


@dataclass(frozen=True)
class LeastSquares:
    """The moments of one regression, in scaled numbers: the outcome first, then the predictors.

    `transform` and `shift` make coefficients in the columns' own units: ``transform @ beta + shift``.
    """

    moments: Matrix  # shape (1 + p, 1 + p)
    changes: Matrix  # shape (sums, 1 + p, 1 + p): the change of `moments` by one noise scale of each sum
    transform: Matrix  # shape (p, p)
    shift: Cells  # shape (p,)
    outcome_reach: float
    intercept: bool  # the first predictor is 1 in all rows; otherwise all numbers are deviations from means

    @property
    def count(self) -> tuple[float, Cells]:
        """The number of rows, with its change by one noise scale of each sum; only with an intercept."""
        return float(self.moments[1, 1]), self.changes[:, 1, 1]

    @property
    def total(self) -> tuple[float, Cells]:
        """The sum of squared deviations of the scaled outcome from its mean, with its changes as `count`."""
        weights = np.zeros(len(self.moments))
        weights[0] = 1.0
        if self.intercept:
            weights[1] = -self.moments[0, 1] / self.moments[1, 1]
        return float(weights @ self.moments @ weights), np.einsum("i,sij,j->s", weights, self.changes, weights)

    @property
    def information(self) -> Matrix:
        """Sums of the products of the predictors."""
        return self.moments[1:, 1:]

    @cached_property
    def is_definite(self) -> bool:
        """Whether the information is positive definite, numerically."""
        scale = np.sqrt(np.maximum(np.diag(self.information), 0.0))
        if not (np.isfinite(self.moments).all() and (scale > 0).all()):
            return False
        return bool(np.linalg.eigvalsh(self.information / np.outer(scale, scale))[0] > 1e-12)

    def clearness(self, z: float) -> float:
        """How clear the information is of its noise: where it is below about 1, the coefficients are unknown.

        The reciprocal of z noise scales of its determinant, relative to the determinant, to first order.
        """
        if not self.is_definite:
            return 0.0
        relative = np.einsum("ij,sji->s", np.linalg.inv(self.information), self.changes[:, 1:, 1:])
        return 1 / (z * math.sqrt(float((relative**2).sum())))

    @property
    def weakest(self) -> list[int]:
        """The predictors, other than the intercept, that have most weight in the combination that varies least."""
        largest = np.abs(self.information).max()
        if not (np.isfinite(largest) and largest > 0):
            return []
        weights = np.abs(np.linalg.eigh(self.information / largest)[1][:, 0])
        weights[: int(self.intercept)] = 0.0
        return [index for index in np.argsort(-weights).tolist() if weights[index] > weights.max() / 2]

    @cached_property
    def scaled(self) -> Cells:
        """The coefficients of the scaled numbers; shape (p,)."""
        return np.asarray(np.linalg.solve(self.information, self.moments[1:, 0]))

    @cached_property
    def bread(self) -> Matrix:
        """The change of the coefficients, in their own units, with the sums of x e; shape (p, p)."""
        return np.asarray(self.transform @ np.linalg.inv(self.information))

    @cached_property
    def _scores(self) -> Matrix:
        """The change of the sums of x e by one noise scale of each sum; shape (sums, p)."""
        return np.asarray(self.changes[:, 1:, 0] - self.changes[:, 1:, 1:] @ self.scaled)

    @property
    def scaled_noise(self) -> Cells:
        """Noise scales of the coefficients of the scaled numbers."""
        effects = np.linalg.solve(self.information, self._scores.T)
        return np.asarray(np.sqrt((effects**2).sum(axis=1)))

    @cached_property
    def noise(self) -> Matrix:
        """Covariance of the noise of the coefficients, in their own units."""
        effects = self._scores @ self.bread.T
        return np.asarray(effects.T @ effects)

    @property
    def coefficients(self) -> Cells:
        """The coefficients in the columns' own units."""
        return np.asarray(self.transform @ self.scaled + self.shift)

    # --- the sum of squared residuals ---------------------------------------------------------------------------

    @cached_property
    def residuals(self) -> tuple[float, Cells]:
        """The sum of squared residuals of the scaled outcome, and its change by one noise scale of each sum."""
        weights = np.concatenate([[1.0], -self.scaled])
        value = float(weights @ self.moments @ weights) + self._quadratic[0]
        return value, np.einsum("i,sij,j->s", weights, self.changes, weights)

    @cached_property
    def _quadratic(self) -> tuple[float, float]:
        """Mean and variance of what is of second order in the noise, in the sum of squared residuals."""
        form = np.linalg.solve(self.information, self._scores.T @ self._scores)
        return float(np.trace(form)), 2 * float(np.trace(form @ form))

    def rsquared(self, z: float) -> IntervalArrays:
        """R-squared."""
        (value, changes), total = self.residuals, self.total
        (mean, variance), explained = self._quadratic, (total[0] - value, total[1] - changes)
        found = _quotient(explained, total, z, (-np.inf, np.inf), variance)
        with np.errstate(all="ignore"):
            noisy = np.maximum(found.value + mean / total[0], np.finfo(float).tiny)
            constant = z**2 * variance / total[0] ** 2
            slope = np.maximum(z**2 * found.noise_scale**2 - constant, 0.0) / noisy
            high = found.value + slope / 2 + np.sqrt(np.maximum(slope * (found.value + slope / 4) + constant, 0.0))
        high = np.fmax(found.high, high)
        return IntervalArrays.of(found.value, found.low, high, found.noise_scale).clipped(0.0, 1.0)

    def residual_variance(self, z: float) -> IntervalArrays:
        """Variance of the residuals, in squared units of the outcome; only with an intercept."""
        count, changes = self.count
        degrees = count - len(self.scaled), changes
        return _quotient(self.residuals, degrees, z, (0.0, np.inf), self._quadratic[1]).rescaled(self.outcome_reach**2)

    # --- the error of sampling ----------------------------------------------------------------------------------

    def homoskedastic(self) -> Matrix:
        """Covariance of the coefficients through sampling, where rows are units and errors have one variance.

        A part of its noise scale is added to that variance, as for M.
        """
        value, changes = self.residuals
        freedom = max(self.count[0] - len(self.scaled), 1.0)
        variance = (max(value, 0.0) + MARGIN * float(np.sqrt((changes**2).sum()))) / freedom
        return np.asarray(variance * self.bread @ self.transform.T)

    def robust(self, products: Cells, scales: Cells) -> Matrix:
        """Covariance of the coefficients through sampling, from the measured M.

        `products` are the entries of M with their noise scales: of each pair of predictors once, row by row.
        """
        size = len(self.scaled)
        rows, columns = np.triu_indices(size)
        meat = np.zeros((size, size))
        meat[rows, columns] = meat[columns, rows] = products
        effects = self.bread[:, rows] * self.bread[:, columns] * np.where(rows == columns, 1.0, 2.0)
        variances = np.maximum(effects @ products, 0.0) + MARGIN * np.sqrt(effects**2 @ scales**2)
        # The correlations are those of the nearest matrix without negative variances: they are due to noise.
        values, vectors = np.linalg.eigh(meat)
        root = self.bread @ vectors * np.sqrt(np.maximum(values, 0.0))
        lengths = np.sqrt((root**2).sum(axis=1))
        root *= np.divide(np.sqrt(variances), lengths, out=np.zeros(size), where=lengths > 0)[:, None]
        covariance = root @ root.T
        covariance[np.diag_indices(size)] = variances
        return np.asarray(covariance)


def _quotient(
    top: tuple[float, Cells], bottom: tuple[float, Cells], z: float, bounds: tuple[float, float], more: float
) -> IntervalArrays:
    """The quotient, with its interval; `more` is variance of the numerator besides that of its changes."""
    a, b, deviations = np.array([top[0]]), np.array([bottom[0]]), np.array([z])
    variances = np.array([(top[1] ** 2).sum() + more]), np.array([(bottom[1] ** 2).sum()])
    return quotient(a, b, variances, float((top[1] * bottom[1]).sum()), deviations, bounds)


def in_own_units(
    outcome: tuple[float, float], predictors: Sequence[tuple[float, float]], *, intercept: bool
) -> OwnUnits:
    """`LeastSquares.transform` and `shift`, from middle and half-width of the outcome's and the predictors' bounds.

    With an intercept, it is the first predictor, which is 1 in all rows.
    """
    middle, reach = outcome
    ratios = np.array([reach / own for _, own in predictors])
    if not intercept:
        return np.diag(ratios), np.zeros(len(ratios))
    transform = np.diag(np.concatenate([[reach], ratios]))
    middles = np.array([own for own, _ in predictors])
    transform[0, 1:] = -ratios * middles
    return transform, np.concatenate([[middle], np.zeros(len(ratios))])


def coefficients(
    moments: Matrix, changes: Matrix, own_units: OwnUnits, z: Cells, clear: NDArray[np.bool_]
) -> IntervalArrays:
    """The coefficients of several regressions in their own units, with noise intervals; shape (cells, p).

    `moments` and `changes` are those of a `LeastSquares` for each cell, `z` and `clear` have shape (cells,).  The
    coefficients are quotients of Cramer's determinants, ``det A_k`` by ``det A``, with intervals by Fieller's theorem:
    the whole range unless the cell and the denominator are clear.  Both are divided by ``det A``, whose change is then
    the trace of A^-1 dA, and that of ``det A_k`` is beta_k times this plus the change of beta_k.
    """
    transform, shift = own_units
    cells, p = len(moments), len(shift)
    information = moments[:, 1:, 1:]
    known = clear & np.isfinite(moments).all(axis=(1, 2))
    known[known] = np.linalg.slogdet(information[known])[0] > 0
    top, variances, covariances = np.zeros((cells, p)), np.ones((cells, p)), np.zeros((cells, p))
    bottom_variances = np.ones(cells)
    inverse, some = np.linalg.inv(information[known]), changes[known]
    scaled = (inverse @ moments[known, 1:, :1])[:, :, 0]
    relative = np.einsum("cij,csji->cs", inverse, some[:, :, 1:, 1:])
    scores = some[:, :, 1:, 0] - np.einsum("csij,cj->csi", some[:, :, 1:, 1:], scaled)
    top[known] = scaled @ transform.T
    effects = scores @ (transform @ inverse).transpose(0, 2, 1) + relative[:, :, None] * top[known][:, None]
    variances[known], bottom_variances[known] = (effects**2).sum(axis=1), (relative**2).sum(axis=1)
    covariances[known] = np.einsum("cs,csi->ci", relative, effects)
    everything = (-np.inf, np.inf)
    return IntervalArrays.side_by_side(
        [
            quotient(
                top[:, index],
                known.astype(float),
                (variances[:, index], bottom_variances),
                covariances[:, index],
                z,
                everything,
            ).rescaled(shift=float(shift[index]))
            for index in range(p)
        ]
    )
