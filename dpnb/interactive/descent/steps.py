"""Gradient descent on released gradients: where it goes next, where it is, and when it no longer gets better.

A step takes what was released of the sum over all units' clipped gradients at the present coefficients, noise added
once to that sum, divides it by a public number of units and goes against it (Feldman and Zrnic 2021, Algorithms 6 and
7, whose printed forms add noise inside the sum and divide by the number of rows: the one is n times as much noise, the
other is private).  So everything here is post-processing of released values.

Several chains go side by side from one start, each on noise of its own.  Each ends where the noise led it, and how far
apart they end says how far noise leads: given the table they are independent and alike.  A chain's end is its tail
average, the mean of the second half of its steps (Polyak and Juditsky 1992), about which it wanders.

Coefficients are rounded to `DECIMALS`, and all sums are made in a written order: the same released values lead
to the same coefficients anywhere, and so to the same question, which is found again and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DECIMALS = 8


def stepped(coefficients: Floats, released: Floats, *, rate: float, size: float, most: float) -> Floats:
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
    most : float
        Largest size of a coefficient.
    """
    return rounded(np.clip(coefficients - rate * (released / size), -most, most))


def rounded(coefficients: Floats) -> Floats:
    """Coefficients as a question may name them."""
    return np.round(coefficients, DECIMALS) + 0.0  # no negative zero


def tail_means(iterates: Sequence[Floats]) -> Floats:
    """The mean of the second half of the steps, of each chain; shape (chains, width).

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
    """The mean of some arrays, added up one after the other."""
    total = np.zeros_like(arrays[0])
    for array in arrays:
        total += array
    return total / len(arrays)


def is_plateau(checks: Sequence[tuple[float, float]], patience: int) -> bool:
    """Whether so many checks in a row did not improve on the best before by more than their noise.

    Parameters
    ----------
    checks : sequence of (float, float)
        Released misfits with their noise scales, in order; NaN says nothing, and is no improvement.
    patience : int
        >= 1.
    """
    best, waited = np.inf, 0
    for value, scale in checks:
        if value + scale < best:
            best, waited = value, 0
        else:
            waited += 1
    return waited >= patience
