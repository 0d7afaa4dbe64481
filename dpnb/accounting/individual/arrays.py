"""Arrays with one entry for each unit: checks, and arithmetic with directed rounding.

An error about an array, or about the number of units, has a constant message and no cause, so it shows nothing about
any unit.  Public numbers are quoted as in all other errors.

Arithmetic leaves exact results unchanged.  Each operation is done to the nearest double; an error-free transformation
(Knuth's for sums, Dekker's for products) then gives the exact error, whose sign decides whether to move to the
neighbour.  All entries are finite and >= 0.  Overflow gives infinity.  No function warns, whatever the caller's numpy
settings are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnb.accounting.exact import Number, binary_down, binary_up, exact, non_negative, positive, shown
from dpnb.errors import InvalidValueError

Floats = NDArray[np.float64]
_DOWN = np.float64(-np.inf)
_BLOCK = 2**14
_MODERATE = 400
_SPLIT = 134217729.0  # 2^27 + 1 (Veltkamp): cuts a double into two halves of 26 bits

# A loss is capped at the largest double; budgets below this bound refuse a capped loss as they would the true one.
_BUDGET_LIMIT = Fraction(2) ** 1000
MAX_DOUBLE = np.finfo(np.float64).max
EXACT = 2**53
"""Doubles represent every integer up to this one exactly."""

UnitIndices = NDArray[np.int64] | NDArray[np.int32]
_Scalar = TypeVar("_Scalar", bound=np.generic)


def _in_blocks(work: Callable[..., Floats]) -> Callable[..., Floats]:
    """The same function of arrays, applied block by block, so that intermediate results stay in the cache."""

    @functools.wraps(work)
    @np.errstate(all="ignore")
    def blockwise(*arguments: Any) -> Floats:
        size = max(len(argument) for argument in arguments if isinstance(argument, np.ndarray))
        if size <= _BLOCK:
            return work(*arguments)
        result = np.empty(size)
        for start in range(0, size, _BLOCK):
            block = slice(start, start + _BLOCK)
            result[block] = work(*(array[block] if isinstance(array, np.ndarray) else array for array in arguments))
        return result

    return blockwise


@_in_blocks
def plus_up(a: Floats, b: Floats) -> Floats:
    """The sums a + b, rounded up."""
    return _plus_up(a, b)


@np.errstate(all="ignore")
def plus_up_within(
    limit: float, a: Floats, b: Floats, otherwise: float, allowed: NDArray[np.bool_] | None = None
) -> tuple[Floats, NDArray[np.bool_]]:
    """The sums a + b, rounded up, where they are at most the limit, and a mask of these; elsewhere max(a, otherwise).

    The mask is false where `allowed` is.
    """
    sums, within = np.empty(len(a)), np.empty(len(a), np.bool_)
    for start in range(0, len(a), _BLOCK):
        block = slice(start, start + _BLOCK)
        total, other, mask = _plus_up(a[block], b[block]), a[block], within[block]
        np.less_equal(total, limit, out=mask)
        if allowed is not None:
            mask &= allowed[block]
        if otherwise:
            other = np.maximum(other, otherwise)
        # `numpy.where` takes five times as long where the mask is hard to predict.
        bits, other_bits = total.view(np.int64), other.view(np.int64)
        bits -= other_bits  # may wrap around, and back
        bits *= mask
        np.add(bits, other_bits, out=sums[block].view(np.int64))
    return sums, within


@_in_blocks
def minus_down(limit: float, b: Floats) -> Floats:
    """The differences max(0, limit - b), rounded down."""
    total, error = _sum(np.full_like(b, limit), -b)
    # As in `_next_up`; a total of 0 or less becomes 0.
    lower: Floats = (total.view(np.int64) - ((error < 0) & (total > 0))).view(np.float64)
    return np.maximum(lower, 0.0)


@np.errstate(all="ignore")
def distances_up(a: Floats, b: Floats) -> Floats:
    """The distances |a - b| of numbers of either sign, rounded up; `a` is repeated for each row of `b`."""
    total, error = _sum(b, -np.broadcast_to(a, b.shape))
    # Beyond the range of doubles the error is not a number, and the distance is infinite already.
    return _next_up(np.abs(total), np.where(total < 0, -error, error) > 0)


@_in_blocks
def squares_up(values: Floats, factor: Fraction = Fraction(1)) -> Floats:
    """The numbers factor v^2, rounded up, a few units of the last place at most.

    Mantissas and exponents are handled separately until the end, so that no intermediate result over- or underflows.
    """
    parts, exponents = np.frexp(values)
    return _scaled_up(_times_up(parts, parts), 2 * exponents, factor)


@_in_blocks
def times_up(values: Floats, factor: Fraction) -> Floats:
    """The numbers factor v, rounded up, a few units of the last place at most."""
    mantissa, shift = taken_apart(factor)
    if abs(shift) < _MODERATE and _moderate(values):  # nothing can over- or underflow, and the result is the same
        return np.asarray(_times_up(values, np.full_like(values, mantissa)) * 2.0**shift)
    return _scaled_up(*np.frexp(values), factor)


def times_up_roughly(values: Floats, factor: Fraction) -> Floats:
    """The numbers factor v, rounded up by a few units of the last place, even where the product is exact."""
    mantissa, shift = taken_apart(factor)
    if abs(shift) < _MODERATE and _moderate(values):
        # The relative error of the product of two doubles is at most 2^-53, and so is that of the factor here.
        return np.asarray(values * (mantissa * (1 + 2.0**-51) * 2.0**shift))
    return times_up(values, factor)


@_in_blocks
def root_down(values: Floats) -> Floats:
    """The square roots, rounded down."""
    parts, exponents = np.frexp(values)
    odd = exponents & 1
    parts = np.ldexp(parts, odd)
    root = np.sqrt(parts)
    square, error = _product(root, root)
    above = (square > parts) | ((square == parts) & (error > 0))
    roots: Floats = np.ldexp(np.where(above, np.nextafter(root, _DOWN), root), (exponents - odd) // 2)
    return roots


def _scaled_up(parts: Floats, exponents: NDArray[np.int32], factor: Fraction) -> Floats:
    """The numbers factor parts 2^exponents, rounded up; mantissas and exponents are separate to avoid overflow."""
    mantissa, shift = taken_apart(factor)
    # Beyond 10^6 every double has already overflowed or underflowed.
    exponents = exponents + np.int32(max(-(10**6), min(10**6, shift)))
    return _shifted_up(_times_up(parts, np.full_like(parts, mantissa)), exponents)


@functools.lru_cache(maxsize=64)
def taken_apart(factor: Fraction) -> tuple[float, int]:
    """A mantissa in (1/2, 2], rounded up, and a power of two whose product is the number."""
    shift = factor.numerator.bit_length() - factor.denominator.bit_length()
    return binary_up(factor / Fraction(2) ** shift), shift


def _moderate(values: Floats) -> bool:
    """Whether every entry is 0 or of a size at which products can be computed without handling exponents."""
    return bool((((values >= 2.0**-_MODERATE) & (values <= 2.0**_MODERATE)) | (values == 0)).all())


def _sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The sum to nearest, and its exact error (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The product to nearest, and its exact error (Dekker), for entries in [1/16, 4] or 0: no half underflows."""
    split_a, split_b = _SPLIT * a, _SPLIT * b
    high_a, high_b = split_a - (split_a - a), split_b - (split_b - b)
    low_a, low_b = a - high_a, b - high_b
    product = a * b
    return product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


def _plus_up(a: Floats, b: Floats) -> Floats:
    total = a + b
    # The larger summand is subtracted without an error (Dekker), so what is left is compared with the smaller exactly.
    return _next_up(total, np.minimum(a, b) > total - np.maximum(a, b))


def _times_up(a: Floats, b: Floats) -> Floats:
    product, error = _product(a, b)
    return _next_up(product, error > 0)


def _shifted_up(parts: Floats, exponents: NDArray[np.int32]) -> Floats:
    """The numbers parts 2^exponents, rounded up where they fall among the subnormal numbers."""
    shifted = np.ldexp(parts, exponents)
    lost = np.ldexp(shifted, -exponents) < parts
    return _next_up(shifted, lost)


def _next_up(values: Floats, where: NDArray[np.bool_]) -> Floats:
    """The values, not negative, with the next larger double where told.

    As integers such doubles are in the same order, without gaps; `numpy.nextafter` takes ten times as long.
    """
    return (values.view(np.int64) + where).view(np.float64)


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
            return np.where(doubles >= EXACT, np.nextafter(doubles, np.inf), doubles)
    # Fractions, decimals, texts and wider floats, one by one.
    return np.array([binary_up(_literal(entry)) for entry in array.ravel().tolist()]).reshape(array.shape)
