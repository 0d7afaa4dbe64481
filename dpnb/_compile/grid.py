"""The grids of real numbers: that of a column, for its conversion to integers, and the leaves of a quantile tree.

Real numbers are converted to integers once, so that all sums, norms and sensitivities are exact.  The grid of a column
depends on its declared bounds alone: ``2**exponent`` with the smallest exponent for which no bound reaches ``2**31``
steps.  Values are clamped, then rounded toward zero, so rounding never increases a contribution.  With 31 bits a square
fits 64 bits, and 2**32 rows are summed without overflow in the 64-bit integers of any engine.

Quantiles commute with monotone maps, so the leaves of a tree may have any public widths.  With equal leaves between
wide bounds almost all rows can be in one leaf.  Here, unless equal leaves are as fine, a leaf is a power of two wide:
far from 0 all leaves have one width w; nearer than `STEPS` w the width is halved with each halving of the distance from
0, so that a leaf is at most 1/`STEPS` of the numbers in it; and nearest to 0 the leaves are equal again.  This is a
symmetric logarithm in straight pieces, and it loses at most a factor of three far from 0 against equal leaves.  The
bins of a bounds finder (`dpnb._plan.constants`) are read by people, so these are decimal and few.

All edges are doubles, and every engine finds the same leaf, without a logarithm.  In a piece that begins, on the side
of 0, at s, a number x is in leaf ``floor((x - s) / width)``.  There s and x are multiples of the last digit of x, for s
is a multiple of the width, which is more than that digit; and x - s is no longer than x: the subtraction is exact, and
so is the division by a power of two, but for numbers below 1e-300, of which the sign is compared.  Outside the piece it
only matters that the number is before or after it, which rounding preserves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

# --- the public grid of a quantile tree -------------------------------------------------------------------------------


STEPS = 64
"""Leaves in each doubling of the distance from 0."""

LEAST_DOUBLINGS = 12
"""Doublings for which there is room at least; leaves that are left over are used for more of them."""

FINEST = 2.0**-400
"""The smallest width of a leaf: that of bounds of 1e-100, halved some fifty times."""


@dataclass(frozen=True)
class Piece:
    """Leaves of one width, on one side of 0."""

    start: float  # the edge nearest to 0, a multiple of the width
    width: float  # a power of two
    count: int  # number of leaves; negative if they are below `start`


def pieces_of(low: float, high: float, leaves: int, *, whole: bool) -> tuple[Piece, ...]:
    """The pieces between two bounds, ascending; empty if equal leaves are as fine.

    There are at most `leaves` leaves; with `whole`, none is narrower than 1.
    """
    if min(abs(low), abs(high)) * STEPS >= high - low and low * high > 0:
        return ()  # equal leaves are at most 1/STEPS of the numbers in them
    width = 2.0 ** math.ceil(math.log2(max(abs(low), abs(high)) / leaves) - 1)
    finest = 1.0 if whole else FINEST
    width = max(width, finest)

    def pieces(doublings: int) -> tuple[Piece, ...]:
        below = [Piece(-one.start, one.width, -one.count) for one in _side(-high, -low, width, doublings)]
        return (*reversed(below), *_side(low, high, width, doublings))

    def fits(doublings: int) -> bool:
        return width / 2.0**doublings >= finest and sum(abs(one.count) for one in pieces(doublings)) <= leaves

    while not fits(min(LEAST_DOUBLINGS, int(math.log2(width / finest)))):
        width *= 2
    doublings = min(LEAST_DOUBLINGS, int(math.log2(width / finest)))
    while fits(doublings + 1) and pieces(doublings + 1) != pieces(doublings):
        doublings += 1
    return pieces(doublings)


def _side(low: float, high: float, width: float, doublings: int) -> Iterator[Piece]:
    """The pieces of the numbers above 0, ascending."""
    if high <= 0:
        return
    low, end = max(low, 0.0), STEPS * width
    starts = [0.0] + [end / 2.0**index for index in range(doublings, -1, -1)]
    for index, start in enumerate(starts):
        of, stop = width / 2.0 ** (doublings - max(index - 1, 0)), [*starts, math.inf][index + 1]
        first = max(start, math.floor(low / of) * of)
        last = min(stop, math.ceil(high / of) * of)
        if first < last:
            yield Piece(first, of, round((last - first) / of))


def edges_of(pieces: tuple[Piece, ...]) -> NDArray[np.float64]:
    """The edges between all leaves, ascending."""
    edges: list[float] = []
    for one in pieces:
        steps = range(one.count + 1) if one.count > 0 else range(one.count, 1)
        edges += [one.start + step * one.width for step in steps]
    return np.array(sorted(set(edges)))


# --- conversion of real numbers to integers ---------------------------------------------------------------------------


BITS = 31


class WithBounds(Protocol):
    """A number with bounds."""

    @property
    def low(self) -> float:
        """The lower bound."""

    @property
    def high(self) -> float:
        """The upper bound."""

    @property
    def magnitude(self) -> float:
        """Largest absolute value."""


def exponent(column: WithBounds) -> int:
    """Binary exponent of the column's grid step."""
    return math.frexp(column.magnitude)[1] - BITS


def steps(value: float, column: WithBounds) -> int:
    """A number within the bounds, in whole grid steps, toward zero."""
    return math.trunc(math.ldexp(value, -exponent(column)))


def to_grid(values: NDArray[np.float64], column: WithBounds) -> NDArray[np.int32]:
    """Clamped values in whole grid steps, rounded toward zero; NaN becomes 0 (the caller masks it)."""
    clamped = np.clip(values, column.low, column.high)
    missing = np.isnan(clamped)
    if missing.any():
        clamped[missing] = 0.0
    clamped *= 2.0 ** -exponent(column)
    return clamped.astype(np.int32)  # toward zero
