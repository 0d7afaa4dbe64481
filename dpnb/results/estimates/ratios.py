"""Quotients of two noisy sums, by Fieller's theorem: exact for normal noise, not linearised.

For the true quotient phi = A/B, a - phi b is normal with mean 0 and variance v_a - 2 phi c + phi^2 v_b, so the set of
all phi for which ``|a - phi b|`` is at most z times its standard deviation has exactly the coverage of z.  Where the
denominator is clear of 0 (``|b| > z sqrt(v_b)``) the set is an interval between the roots of a quadratic; elsewhere it
is not bounded, and the whole range of the quantity is returned.
"""

from __future__ import annotations

import numpy as np

from dpnb.results.estimates.noisy import Cells, IntervalArrays


def totals(cells: Cells, size: int) -> Cells:
    """For each cell, the sum over its `size` consecutive cells; over all cells if `size` is 0."""
    blocks = cells.reshape(-1, size or len(cells) or 1)
    return np.repeat(blocks.sum(axis=1), blocks.shape[1])


def quotient(
    a: Cells,
    b: Cells,
    variances: tuple[Cells, Cells],
    covariance: Cells | float,
    z: Cells,
    bounds: tuple[float, float],
    *,
    positive: bool = True,
) -> IntervalArrays:
    """The quotient a/b, within its range `bounds`, with its interval; all arrays have shape (cells,).

    `variances` and `covariance` are those of the noise of numerator and denominator, and `z` is the half-width of an
    interval in standard deviations.  `positive` says that the denominator is known to be at least 0.
    """
    va, vb = variances
    with np.errstate(all="ignore"):
        clear = (b if positive else np.abs(b)) > z * np.sqrt(vb)
        square = b**2 - z**2 * vb
        mixed = a * b - z**2 * covariance
        root = np.sqrt(np.maximum(mixed**2 - square * (a**2 - z**2 * va), 0.0))
        low = np.where(clear, (mixed - root) / square, -np.inf)
        high = np.where(clear, (mixed + root) / square, np.inf)
        value = np.where(b > 0 if positive else b != 0, a / b, np.nan)
        spread = np.sqrt(np.maximum(va - 2 * value * covariance + value**2 * vb, 0.0)) / np.abs(b)
        scale = np.where(clear, spread, np.nan)
    return IntervalArrays.of(value, low, high, scale).clipped(*bounds)
