"""Real numbers become integers here, once; from here on sums, norms and sensitivities are exact.

The grid of a column depends on its declared bounds alone: ``2**exponent`` with the smallest exponent for which no
bound exceeds ``2**31`` steps.  Values are clamped, then rounded toward zero, so rounding never makes a contribution
larger.  With 31 bits a square fits 64 bits and 2**32 rows add up without overflow in any engine's 64-bit integers.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

BITS = 31


class BoundedRange(Protocol):
    """What has bounds."""

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
    """Clamped values in whole grid steps, toward zero; what is not a number becomes 0 (the caller masks it)."""
    clamped = np.clip(values, column.low, column.high)
    missing = np.isnan(clamped)
    if missing.any():
        clamped[missing] = 0.0
    clamped *= 2.0 ** -exponent(column)
    return clamped.astype(np.int32)  # toward zero
