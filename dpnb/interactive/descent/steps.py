"""Gradient descent on released gradients: the next step, the current estimate, and the plateau rule.

A step takes the released sum over all units' clipped gradients at the current coefficients, with noise added once to
that sum, divides it by a public number of units and moves in the opposite direction (Feldman and Zrnic 2021, Algorithms
6 and 7, whose printed forms add noise inside the sum and divide by the number of rows: the former is n times as much
noise, the latter is private).  So everything here is post-processing of released values.

Several chains run in parallel from one start, each with independent noise.  The end of a chain is its tail average, the
mean of the second half of its steps (Polyak and Juditsky 1992), around which it fluctuates.

A descent has not converged where a step without noise would still move it further than the noise does.  The gradient
without noise is private, but the released ones average it: over the tail of m steps, the mean over the chains moves by
m noise-free steps and by noise of variance m v in each component, where v follows from the charge.  If the gradients
without noise were 0, the squared length of the movement over m v would be chi-squared with one degree of freedom for
each coefficient; around an optimum it is smaller, since the gradients bring each chain back.  So a tail that moves
further than the quantile `STILL` of this distribution has not converged, wrongly with probability at most 1 - `STILL`;
and one whose noise-free steps are as long as the noise of a step is found out almost certainly from a tail of ten.  A
descent whose steps are drowned by the noise, or too short to be noticed, is not: the rule never shows that a descent
has converged.

Coefficients are rounded to 8 decimals, and all sums are added in a fixed order: the same released values lead to the
same coefficients on any machine, and so to the same query, whose recorded answer costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DECIMALS = 8

STILL = 0.99
"""Probability with which a descent that only the noise moves is not said to move."""


def stepped(coefficients: Floats, released: Floats, *, rate: float, size: float, limit: float) -> Floats:
    """The coefficients after one step; shape (chains, width), as `released`, the noisy sums of gradients.

    `rate` is the learning rate, `size` a public number of units (both > 0), `limit` the maximum absolute value of a
    coefficient.
    """
    return rounded(np.clip(coefficients - rate * (released / size), -limit, limit))


def rounded(coefficients: Floats) -> Floats:
    """Coefficients rounded as they occur in queries."""
    return np.round(coefficients, DECIMALS) + 0.0  # no negative zero


def tail_means(iterates: Sequence[Floats]) -> Floats:
    """The mean of the second half of the steps, for each chain; shape (chains, width).

    `iterates` are the start, and the coefficients after each step, each of this shape.
    """
    return in_order(iterates[(len(iterates) + 1) // 2 :] if len(iterates) > 1 else iterates)


def tail_length(steps: int) -> int:
    """The number of the last steps whose movement is compared with the noise."""
    return (steps + 1) // 2


def is_moving(iterates: Sequence[Floats], variances: Sequence[float], *, rate: float, size: float) -> bool:
    """Whether the tail of a descent moved further than the noise explains.

    `iterates` are those of `tail_means`, `rate` and `size` as in `stepped`.  `variances` has for each step the variance
    of the noise in each component of a chain's released sum of gradients.
    """
    from scipy.special import chdtri  # imported when first used

    length = tail_length(len(variances))
    if not length:
        return False
    start, end = iterates[-1 - length], iterates[-1]
    chains, width = end.shape
    noise = sum(variances[-length:]) * (rate / size) ** 2 / chains
    moved = float(((end - start).mean(axis=0) ** 2).sum())
    return bool(moved > noise * float(chdtri(width, 1 - STILL)))


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

    `checks` are released prediction errors with their noise scales, in order; NaN counts as no improvement.
    """
    best, stale = np.inf, 0
    for value, scale in checks:
        if value + scale < best:
            best, stale = value, 0
        else:
            stale += 1
    return stale >= patience
