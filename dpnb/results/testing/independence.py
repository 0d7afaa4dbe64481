"""The test of independence of rows and columns of a table of noisy counts.

With y the noisy counts, R and C their sums by row and by column, and N their total, the residuals are ``r_ij = y_ij -
R_i C_j / N``.  Their covariance is ``J (V + W) J'``: W the known variances of the noise, V the variances of the counts
through sampling, and J the Jacobian of the residuals, ``(I - p 1') (x) (I - q 1')`` with p = R/N and q = C/N.  The
statistic ``r' (J (V + W) J')^- r`` has (R - 1)(C - 1) degrees of freedom (Gaboardi, Lim, Rogers and Vadhan 2016,
*Differentially private chi-squared hypothesis testing*; Kifer and Rogers 2017, *A new class of private chi-square
hypothesis tests*, theorem 4.2).  The residuals of each row and column add up to 0, so those without the last row and
column have all of it, and an ordinary inverse.

For a fixed number of units the covariance of the counts is multinomial, ``V - t t' / n`` with t the expected counts.
Independent t have residuals 0, and the residuals are homogeneous of degree 1 in the counts, so J t = 0: the term
vanishes, and the diagonal V is enough.  Where each row is a unit, V are the expected counts; where a unit has several
rows in one cell, the sums of their squares, or what bounds them.
"""

from __future__ import annotations

import math

import numpy as np

from dpnb.results.estimates.noisy import Cells
from dpnb.results.testing.hypothesis import TestStatistic

MAX_CELLS = 1_000
"""The most cells of a table: the covariance has their square."""

CLEAR = 3.0
"""A total of a row or column is clear of its noise if it is this many times its noise scale."""


def independence(counts: Cells, noise: Cells, sampling: Cells, ratio: float | None) -> TestStatistic:
    """The test that rows and columns are independent; all tables have shape (rows, columns).

    `noise` and `sampling` are variances.  Where `ratio` is given, that through sampling is this multiple of the
    expected count instead.
    """
    rows, columns = counts.shape
    unknown = TestStatistic(math.nan, (rows - 1) * (columns - 1))
    with np.errstate(all="ignore"):
        clear = [
            bool((counts.sum(axis=axis) > CLEAR * np.sqrt(noise.sum(axis=axis))).all()) for axis in (0, 1)
        ]  # false for NaN
        if not all(clear):
            return unknown
        total = counts.sum()
        of_row, of_column = counts.sum(axis=1) / total, counts.sum(axis=0) / total
        expected = total * np.outer(of_row, of_column)
        variance = noise + (sampling if ratio is None else ratio * expected)
        by_row = (np.eye(rows) - of_row[:, None])[:-1]
        by_column = (np.eye(columns) - of_column[:, None])[:-1]
        jacobian = np.kron(by_row, by_column)
        covariance = (jacobian * variance.ravel()) @ jacobian.T
        residuals = (counts - expected)[:-1, :-1].ravel()
        if not (np.isfinite(covariance).all() and np.isfinite(residuals).all()):
            return unknown
        return unknown._replace(value=quadratic_form(residuals, covariance))


def quadratic_form(values: Cells, covariance: Cells) -> float:
    """``values' covariance^-1 values``; NaN unless the covariance is clearly positive definite."""
    with np.errstate(all="ignore"):
        scale = np.sqrt(np.diag(covariance))
        correlation = covariance / scale[:, None] / scale
        standard = values / scale
    if not (np.isfinite(correlation).all() and np.isfinite(standard).all()):
        return math.nan
    roots, vectors = np.linalg.eigh((correlation + correlation.T) / 2)
    if roots[0] <= SINGULAR * roots[-1]:
        return math.nan
    with np.errstate(all="ignore"):
        found = float(((vectors.T @ standard) ** 2 / roots).sum())
    return found if math.isfinite(found) else math.nan


SINGULAR = 1e-10
"""A smaller ratio of the eigenvalues of a correlation matrix is that of a singular one."""
