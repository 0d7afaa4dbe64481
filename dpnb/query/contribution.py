"""Which rows of a unit count, when it has more than are allowed.

The `k` smallest by a fixed integer hash of the row's own content, ties broken by the content itself, so that rows
that still tie are the same row.  The choice depends on nothing but the unit's own rows: not on position, not on
chance, not on who else is in the table, and not on the question, since it is made once, before any filter.

The hash uses only additions, products and remainders that fit 64 bits, so every engine can compute the same one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PRIME = 2**31 - 1
MULTIPLIER = 742938285
"""A primitive root of the prime with good lattice structure (Fishman and Moore 1986)."""

LIMB = 2**16


def first_rows(units: NDArray[np.int64], contents: list[NDArray[np.int64]], most: int) -> NDArray[np.int64]:
    """Positions of the rows that count, in ascending order.

    Parameters
    ----------
    units : int64 array, shape (rows,)
        Whose row it is.
    contents : list of int64 arrays, shape (rows,)
        The row's columns as non-negative integers below 2**33, in a fixed order.
    most : int
        Rows of one unit that count.
    """
    if len(units) == 0:
        return np.empty(0, np.int64)
    hashed = row_hash(contents, len(units))
    order = np.lexsort((hashed, units))
    if _undecided(order, units, hashed):
        order = np.lexsort((*reversed(contents), hashed, units))
    ordered = units[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    place = np.arange(len(units)) - np.repeat(starts, np.diff(np.r_[starts, len(units)]))
    return np.sort(order[place < most])


def row_hash(contents: list[NDArray[np.int64]], rows: int) -> NDArray[np.int64]:
    """Hash each row's content to an integer below 2**31 - 1."""
    state = np.ones(rows, np.int64)
    for column in contents:
        for limb in (column // LIMB, column % LIMB):
            state = (state * MULTIPLIER + limb + 1) % PRIME
    # Without a square the hash would be linear, and a unit's rows that differ in one column would be picked in step.
    return (state * state % PRIME * MULTIPLIER + state) % PRIME


def _undecided(order: NDArray[np.int64], units: NDArray[np.int64], hashed: NDArray[np.int64]) -> bool:
    """Whether two rows of a unit have the same hash, so that their content must decide."""
    same_unit = units[order][1:] == units[order][:-1]
    return bool(np.any(same_unit & (hashed[order][1:] == hashed[order][:-1])))
