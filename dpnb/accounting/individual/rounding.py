"""Arithmetic on arrays of doubles that rounds the way it says, and only if the result is not exact.

Each operation is done to the nearest double; an error-free transformation (Knuth's for sums, Dekker's for products)
then gives the exact error, whose sign tells whether to move to the neighbour.  All entries are finite and >= 0.
Overflow gives infinity.  Nothing here warns, whatever the caller's numpy settings are.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpnb.accounting.exact import binary_up

__all__ = ["Floats", "minus_down", "plus_up", "root_down", "root_up", "squares_up", "times_up"]

Floats = NDArray[np.float64]
_UP, _DOWN = np.float64(np.inf), np.float64(-np.inf)
_SPLIT = 134217729.0  # 2^27 + 1 (Veltkamp): cuts a double into two halves of 26 bits


@np.errstate(all="ignore")
def plus_up(a: Floats, b: Floats) -> Floats:
    """The sums a + b, rounded up."""
    total, error = _sum(a, b)
    return np.where(error > 0, np.nextafter(total, _UP), total)


@np.errstate(all="ignore")
def minus_down(limit: float, b: Floats) -> Floats:
    """The differences max(0, limit - b), rounded down."""
    total, error = _sum(np.full_like(b, limit), -b)
    return np.maximum(np.where(error < 0, np.nextafter(total, _DOWN), total), 0.0)


@np.errstate(all="ignore")
def squares_up(values: Floats, factor: Fraction = Fraction(1)) -> Floats:
    """The numbers factor v^2, rounded up, a few units of the last place at most.

    Mantissas and exponents are kept apart until the end, so that nothing overflows or vanishes on the way.
    """
    parts, exponents = np.frexp(values)
    return _scaled_up(_times_up(parts, parts), 2 * exponents, factor)


@np.errstate(all="ignore")
def times_up(values: Floats, factor: Fraction) -> Floats:
    """The numbers factor v, rounded up, a few units of the last place at most."""
    return _scaled_up(*np.frexp(values), factor)


@np.errstate(all="ignore")
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


@np.errstate(all="ignore")
def root_up(values: Floats) -> Floats:
    """The square roots, rounded up, a unit of the last place at most."""
    root = root_down(values)
    return np.where(squares_up(root) < values, np.nextafter(root, _UP), root)


def _scaled_up(parts: Floats, exponents: NDArray[np.int32], factor: Fraction) -> Floats:
    """The numbers factor parts 2^exponents, rounded up; mantissas and exponents apart, so that nothing overflows."""
    shift = factor.numerator.bit_length() - factor.denominator.bit_length()
    mantissa = np.full_like(parts, binary_up(factor / Fraction(2) ** shift))  # in (1/2, 2]
    # Beyond 10^6 every double has overflowed or vanished already.
    return _shifted_up(_times_up(parts, mantissa), exponents + np.int32(max(-(10**6), min(10**6, shift))))


def _sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The sum to nearest, and its exact error (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The product to nearest, and its exact error (Dekker), for entries in [1/16, 4] or 0: no half of it vanishes."""
    split_a, split_b = _SPLIT * a, _SPLIT * b
    high_a, high_b = split_a - (split_a - a), split_b - (split_b - b)
    low_a, low_b = a - high_a, b - high_b
    product = a * b
    return product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


def _times_up(a: Floats, b: Floats) -> Floats:
    product, error = _product(a, b)
    return np.where(error > 0, np.nextafter(product, _UP), product)


def _shifted_up(parts: Floats, exponents: NDArray[np.int32]) -> Floats:
    """The numbers parts 2^exponents, rounded up where they fall among the subnormal numbers."""
    shifted = np.ldexp(parts, exponents)
    lost = np.ldexp(shifted, -exponents) < parts
    return np.where(lost, np.nextafter(shifted, _UP), shifted)
