"""Partition selection: releases the groups whose noisy number of units reaches a threshold.

N(0, sigma^2) is added to the number of units of each group that has any; a group is released, with its noisy number,
if that reaches T; nothing is released about the others.

Privacy (approximate GDP; add or remove one unit u, which counts in at most G groups). Let D' be D with u. Of the
groups of D', at most G are u's alone; they have one unit each and are not in D. Let E be the event that none of them
reaches T. The noises of different groups are independent, so given E the other groups' results have their
unconditioned distribution, and that is mu-GDP against D's with mu = sqrt(G)/sigma: at most G counts differ, by one
each, and thresholding is post-processing. P(not E) <= 1 - Phi((T - 1)/sigma)^G = delta. So the output on D' is a
mixture with weight 1 - delta of a part that is mu-GDP against D's output, and the output on D is trivially such a
mixture with the same weight.

For estimates and intervals of a noisy number, given that its group was released, see
`dpnb.results.estimates.discovered_groups`.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpnb.accounting.exact import binary_down
from dpnb.errors import InvalidValueError
from dpnb.mechanisms.gaussian import measure
from dpnb.mechanisms.measurement import Measurement
from dpnb.mechanisms.randomness import NoiseSource

_MARGIN = 1 + 1e-12
"""Far above the error of `ndtri`, which tests/test_assumptions.py measures, and the rounding errors here."""


def threshold_for(sigma: float, groups: int, delta: Fraction) -> float:
    """The noisy number of units from which a group is released; rounded up.

    One unit counts in at most `groups` groups; `delta` bounds the probability that any group that only one unit has is
    released.  The literal binary value is used.

    >>> round(threshold_for(4.0, 2, Fraction(1, 10**6)), 3)
    20.567
    """
    from scipy.special import ndtri  # imported when first used

    if not 0 < delta < 1 or binary_down(delta) < 1e-300:
        raise InvalidValueError(f"delta: must lie between 0 and 1; got {float(delta)!r}; give for example 1e-8")
    each = -math.expm1(math.log1p(-binary_down(delta)) / groups) / _MARGIN
    return (1 + sigma * max(-float(ndtri(each)), 0.0)) * _MARGIN


def least_named(sigma: float, groups: int, delta: Fraction, exponent: int) -> int:
    """The smallest multiple of the output grid, of spacing ``2**exponent``, at which a group is released.

    >>> least_named(4.0, 2, Fraction(1, 10**6), -18) * 2.0**-18 > 20
    True
    """
    # Rounding to the output grid may raise a value by half a step.
    return math.ceil(Fraction(threshold_for(sigma, groups, delta)) / Fraction(2) ** exponent) + 1


def named(
    counts: NDArray[np.int64], *, sigma: float, groups: int, delta: Fraction, source: NoiseSource
) -> tuple[list[int], Measurement]:
    """The groups that are released, by their ascending indices, and their noisy numbers of units.

    `counts` are those of each group that has any, so at least 1; intervals assume that.

    >>> from dpnb.mechanisms import SystemNoiseSource
    >>> counts = np.array([1, 5000])
    >>> released, noisy = named(counts, sigma=4.0, groups=1, delta=Fraction(1, 10**20), source=SystemNoiseSource())
    >>> released, len(noisy.values)
    ([1], 1)
    """
    noisy = measure(counts, sigma=sigma, source=source)
    least = least_named(sigma, groups, delta, noisy.exponent)
    released = [index for index, value in enumerate(noisy.values) if value >= least]
    return released, Measurement(tuple(noisy.values[index] for index in released), noisy.exponent, noisy.sigma)
