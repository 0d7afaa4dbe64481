"""Checks of the caller's arguments: arrays with one entry for each unit, and public numbers.

An error about an array, or about the number of units, has a constant message and no cause, so it shows nothing about
any unit.  Public numbers are quoted as in all other errors.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnb.accounting.exact import Number, binary_down, binary_up, exact, non_negative, positive, shown
from dpnb.accounting.individual.rounding import Floats
from dpnb.errors import InvalidValueError

_Scalar = TypeVar("_Scalar", bound=np.generic)

# A loss is capped at the largest double; budgets below this bound refuse a capped loss as they would the true one.
_BUDGET_LIMIT = Fraction(2) ** 1000
_EXACT_INTEGERS = 2.0**53
MAX_DOUBLE = np.finfo(np.float64).max
UnitIndices = NDArray[np.int64] | NDArray[np.int32]


def per_unit(values: ArrayLike, name: str, units: int | None = None) -> Floats:
    """An array with one finite entry >= 0 for each unit, as doubles; numbers between doubles are rounded up.

    The message of a refusal is constant, because the entries may be private.
    """
    try:
        array = _doubles_up(values)
    except (TypeError, ValueError, OverflowError):
        array = None
    # Raised outside the handler, because the caught error may quote an entry.
    if array is None:
        raise InvalidValueError(f"{name} must be numbers, one for each unit; check the values")
    if array.ndim != 1 or (units is not None and len(array) != units):
        raise InvalidValueError(f"{name} must have one entry for each unit; give an array of that shape")
    if not (array.min(initial=0.0) >= 0 and array.max(initial=0.0) < np.inf):  # false for NaN
        raise InvalidValueError(f"{name} must be finite and not negative in every entry; check the values")
    return array


def unit_count(units: object) -> int:
    """The number of units, >= 0; the message of a refusal is constant, because the number may be private."""
    if isinstance(units, bool) or not isinstance(units, (int, np.integer)) or units < 0:
        raise InvalidValueError("units must be a whole number of at least 0; give an int")
    return int(units)


def budget_as_double(budget: Number, *, name: str) -> float:
    """The largest double within the budget: a double is at most this if and only if it is at most the budget.

    The budget must be less than 2^1000.
    """
    number = non_negative(budget, name=name)
    if number >= _BUDGET_LIMIT:
        raise InvalidValueError(f"{name} must be below 2**1000, got {shown(budget)}; give a smaller one")
    return binary_down(number)


def positive_literal(value: Number, *, name: str) -> Fraction:
    """A noise scale or clip, > 0: a float is its binary value, from which noise is generated, not its decimal."""
    positive(value, name=name)
    return _literal(value)


def read_only(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """The same array, set to read-only."""
    array.setflags(write=False)
    return array


def indices_of(indices: UnitIndices | None, units: int) -> UnitIndices | slice:
    """An index for the given units: a full slice for None, or if the given units are all units."""
    return slice(None) if indices is None or len(indices) == units else indices


def changed(array: NDArray[_Scalar], indices: UnitIndices | slice, values: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """A read-only copy with other values at some indices; for all indices the values themselves."""
    if isinstance(indices, slice):
        return read_only(values)
    copied = array.copy()
    copied[indices] = values
    return read_only(copied)


def _literal(value: Number) -> Fraction:
    if isinstance(value, (float, np.floating)):
        return Fraction(*value.as_integer_ratio())
    return exact(value)


def _doubles_up(values: ArrayLike) -> Floats:
    with np.errstate(all="ignore"):
        array = np.asarray(values)
        if isinstance(values, np.ndarray) and array.dtype == np.float64:
            return array
        if np.can_cast(array.dtype, np.float64):
            doubles = array.astype(np.float64)
            # A whole number beyond 2^53 may have been rounded down, also by numpy in a list with floats.
            return np.where(doubles >= _EXACT_INTEGERS, np.nextafter(doubles, np.inf), doubles)
    # Fractions, decimals, texts and wider floats, one by one.
    return np.array([binary_up(_literal(entry)) for entry in array.ravel().tolist()]).reshape(array.shape)
