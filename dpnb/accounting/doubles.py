"""Formulas in doubles: their error margin, the range of their arguments, and the logarithm that they have in common."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dpnb.accounting.exact import Number, binary_down, binary_up, exact, shown
from dpnb.errors import InvalidValueError

MARGIN = 1 + 2.0**-45
"""A formula of some twenty double operations and elementary functions, times this, is not below its exact value.

Each is within 2 units of 2^-53 and none of them amplifies (logarithms of small numbers go through log1p and expm1), so
that together they are off by less than 2^-47.
"""
LEAST_FAILURE = Fraction(1, 10**300)
"""The smallest delta that the formulas in doubles accept."""


def failure_probability(delta: Number, *, name: str = "delta", example: str = "1e-6") -> Fraction:
    """A delta or alpha in [1e-300, 1) as an exact number."""
    number = exact(delta, name=name)
    if not LEAST_FAILURE <= number < 1:
        raise InvalidValueError(
            f"{name} must be at least 1e-300 and below 1, got {shown(delta)}; give for example {example}"
        )
    return number


def order_in_doubles(order: Number) -> Fraction:
    """A Renyi order as an exact number.

    It must be at most 1e300, and so far above 1 that doubles can show the difference.
    """
    number = exact(order, name="order")
    if not Fraction(1, 10**300) <= number - 1 <= 10**300:
        raise InvalidValueError(
            f"order must be greater than 1 and at most 1e300, got {shown(order)}; give for example 2"
        )
    return number


@lru_cache(maxsize=1024)  # each odometer has one delta
def log_inverse(delta: Fraction) -> float:
    """log(1/delta), within two units in the last place, for delta in (0, 1)."""
    # Near 1 the significant digits are in 1 - delta.
    if 2 * delta > 1:
        return -math.log1p(-binary_up(1 - delta))
    return -math.log(binary_down(delta))
