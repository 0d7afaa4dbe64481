"""Conversion of real numbers to integers, done once, so that all sums, norms and sensitivities are exact.

The grid of a column depends on its declared bounds alone: ``2**exponent`` with the smallest exponent for which no
bound exceeds ``2**31`` steps.  Values are clamped, then rounded toward zero, so rounding never increases a
contribution.  With 31 bits a square fits 64 bits, and 2**32 rows are summed without overflow in the 64-bit integers of
any engine.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

BITS = 31


class BoundedRange(Protocol):
    """A number with bounds."""

    @property
    def low(self) -> float:
        """The lower bound."""
        ...

    @property
    def high(self) -> float:
        """The upper bound."""
        ...

    @property
    def magnitude(self) -> float:
        """Largest absolute value."""
        ...


def exponent(column: BoundedRange) -> int:
    """Binary exponent of the column's grid step."""
    return math.frexp(column.magnitude)[1] - BITS


def steps(value: float, column: BoundedRange) -> int:
    """A number within the bounds, in whole grid steps, toward zero."""
    return math.trunc(math.ldexp(value, -exponent(column)))


def to_grid(values: NDArray[np.float64], column: BoundedRange) -> NDArray[np.int32]:
    """Clamped values in whole grid steps, rounded toward zero; NaN becomes 0 (the caller masks it)."""
    clamped = np.clip(values, column.low, column.high)
    missing = np.isnan(clamped)
    if missing.any():
        clamped[missing] = 0.0
    clamped *= 2.0 ** -exponent(column)
    return clamped.astype(np.int32)  # toward zero
