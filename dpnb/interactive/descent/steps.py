"""Gradient descent on released gradients: the next step, the current estimate, and the plateau rule.

A step takes the released sum over all units' clipped gradients at the current coefficients, with noise added once to
that sum, divides it by a public number of units and moves in the opposite direction (Feldman and Zrnic 2021, Algorithms
6 and 7, whose printed forms add noise inside the sum and divide by the number of rows: the former is n times as much
noise, the latter is private).  So everything here is post-processing of released values.

Several chains run in parallel from one start, each with independent noise.  Given the table they are independent and
identically distributed, so the spread of their ends measures the effect of the noise.  The end of a chain is its tail
average, the mean of the second half of its steps (Polyak and Juditsky 1992), around which it fluctuates.

Coefficients are rounded to 8 decimals, and all sums are added in a fixed order: the same released values lead to the
same coefficients on any machine, and so to the same query, whose recorded answer costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DECIMALS = 8


def stepped(coefficients: Floats, released: Floats, *, rate: float, size: float, limit: float) -> Floats:
    """The coefficients after one step.

    Parameters
    ----------
    coefficients : float64 array, shape (chains, width)
    released : float64 array, shape (chains, width)
        The noisy sums of gradients.
    rate : float
        Learning rate, > 0.
    size : float
        A public number of units, > 0.
    limit : float
        Maximum absolute value of a coefficient.
    """
    return rounded(np.clip(coefficients - rate * (released / size), -limit, limit))


def rounded(coefficients: Floats) -> Floats:
    """Coefficients rounded as they occur in queries."""
    return np.round(coefficients, DECIMALS) + 0.0  # no negative zero


def tail_means(iterates: Sequence[Floats]) -> Floats:
    """The mean of the second half of the steps, for each chain; shape (chains, width).

    Parameters
    ----------
    iterates : sequence of float64 arrays, shape (chains, width)
        The start, and the coefficients after each step.
    """
    return in_order(iterates[(len(iterates) + 1) // 2 :] if len(iterates) > 1 else iterates)


def mean_iterate(iterates: Sequence[Floats]) -> Floats:
    """The mean over the chains' tail averages, rounded; shape (width,)."""
    return rounded(in_order(list(tail_means(iterates))))


def in_order(arrays: Sequence[Floats]) -> Floats:
    """The mean of arrays, added in order."""
    total = np.zeros_like(arrays[0])
    for array in arrays:
        total += array
    return total / len(arrays)


def is_plateau(checks: Sequence[tuple[float, float]], patience: int) -> bool:
    """Whether `patience` consecutive checks did not improve on the best before by more than their noise.

    Parameters
    ----------
    checks : sequence of (float, float)
        Released prediction errors with their noise scales, in order; NaN counts as no improvement.
    patience : int
        Number of checks, at least 1.
    """
    best, stale = np.inf, 0
    for value, scale in checks:
        if value + scale < best:
            best, stale = value, 0
        else:
            stale += 1
    return stale >= patience
