"""Selection of the rows of a unit that count, if it has more than are allowed.

The first `k` rows count, in the order of a fixed integer hash of the row's own columns: the unit's name, the columns in
the schema, and, for rows that are equal in all of these, a running number (equal rows are interchangeable, so the
assignment of the numbers does not matter).  The selection depends only on the unit's own rows: not on position, chance,
or other units in the table.  The order is computed once, before any filter: the curator's limits keep the first of all
the unit's rows, a query's own limits the first of those that pass its filter.

The unit's name is hashed too because a schema may have few distinct rows: without it one kind of row would come first
for every unit, and rows late in that order would hardly ever count.  With it, and with the running number, each row of
a unit is equally likely to count.

The hash uses only additions, products and remainders that fit 64 bits, so every engine can compute the same hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb._plan.schema import plain

Integers = NDArray[np.int64]

PRIME_BITS = 31
PRIME = 2**PRIME_BITS - 1
MULTIPLIER = 742938285
"""A primitive root of the prime with good lattice structure (Fishman and Moore 1986)."""

LIMB_BITS = 16


def ranks(units: Integers, names: Integers, contents: list[Integers], finer: Sequence[NDArray[Any]] = ()) -> Integers:
    """The rank of each row among its unit's rows: 0 for the row that counts first.

    Parameters
    ----------
    units : int64 array, shape (rows,)
        The unit of each row, numbered 0, 1, ... up to 2**32, in any order.
    names : int64 array, shape (rows,)
        The unit's name, hashed by `label_hash`.
    contents : list of int64 arrays, shape (rows,)
        The row's columns as non-negative integers below 2**33, in a fixed order.
    finer : sequence of arrays, shape (rows,), optional
        Columns that distinguish rows with equal `contents`; not hashed.
    """
    content_hash = row_hash([names, *contents])
    final_hash = row_hash([content_hash, np.zeros_like(content_hash)])  # of a row without equals
    sorting = (units.astype(np.int64) << PRIME_BITS) + final_hash
    order = np.argsort(sorting, kind="stable")
    ordered = sorting[order]
    starts = starts_of([ordered >> PRIME_BITS])
    sizes = np.diff(np.r_[starts, len(units)])
    rank = np.empty(len(units), np.int64)
    rank[order] = np.arange(len(units)) - np.repeat(starts, sizes)
    # Equal rows have equal hashes, so only units with equal hashes need further comparison.
    equal = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(equal):
        tied = np.zeros(len(starts), np.bool_)
        tied[np.searchsorted(starts, equal, "right") - 1] = True
        rows = order[np.repeat(tied, sizes)]
        rank[rows] = _ranks_of_equal_rows(
            units[rows], content_hash[rows], [key[rows] for key in contents], [key[rows] for key in finer]
        )
    return rank


def _ranks_of_equal_rows(
    units: Integers, content_hash: Integers, contents: list[Integers], finer: Sequence[NDArray[Any]]
) -> Integers:
    """Like `ranks`, where rows of a unit may be equal."""
    order = np.lexsort((*reversed(finer), *reversed(contents), content_hash, units))
    new_content = _starts(order, [units, *contents])
    final_hash = row_hash([content_hash[order], running_number(new_content)])
    new_unit = _starts(order, [units])
    # The sort is stable: rows whose final hashes tie stay in the order of their content.
    ranked = np.lexsort((final_hash, units[order]))
    rank = np.empty(len(units), np.int64)
    rank[order[ranked]] = running_number(new_unit)
    return rank


def first_groups(
    units: Integers, names: Integers, groups: Integers, contents: Integers, max_groups: int
) -> NDArray[np.bool_]:
    """Which rows are in one of the first `max_groups` groups of their unit, by the same hash; one bool for each row.

    Parameters
    ----------
    units, names : int64 arrays, shape (rows,)
        As for `ranks`.
    groups : int64 array, shape (rows,)
        The row's group; the order of two groups does not depend on other units.
    contents : int64 array, shape (rows,)
        A number for the group, to be hashed; it does not depend on other units.
    max_groups : int
        Maximum number of groups of a unit.
    """
    order = np.lexsort((groups, units))
    first = starts_of([units[order], groups[order]])
    index = order[first]
    chosen = ranks(units[index], names[index], [contents[index]]) < max_groups
    kept = np.empty(len(units), np.bool_)
    kept[order] = np.repeat(chosen, np.diff(np.r_[first, len(order)]))
    return kept


def first_in_groups(units: Integers, groups: Integers, rank: Integers, max_rows: int) -> NDArray[np.bool_]:
    """Which rows are among the first `max_rows` of their unit in their group, by `rank`; one bool for each row."""
    order = np.lexsort((rank, groups, units))
    first = np.empty(len(units), np.bool_)
    first[order] = running_number(_starts(order, [units, groups])) < max_rows
    return first


def label_hash(name: Any) -> int:
    """A unit's name as an integer from 0 to 2**60 - 1, the same on every engine.

    An integer hashes to itself (also a float without a fraction, to which pandas converts integers in a column with
    nulls); any other value to 15 hexadecimal digits of the MD5 of its text, which every engine can compute.  The hash
    need not be secret.
    """
    name = plain(name)
    if isinstance(name, int | float) and name == name // 1:
        return abs(int(name)) % 2**60
    return int(hashlib.md5(str(name).encode(), usedforsecurity=False).hexdigest()[:15], 16)


def row_hash(columns: list[Integers]) -> Integers:
    """Hash the columns of each row, non-negative integers below 2**60, to an integer below 2**31 - 1."""
    state = np.ones(len(columns[0]), np.int64)
    for column in columns:
        for limb in (column >> LIMB_BITS, column & (2**LIMB_BITS - 1)):
            # The state is below 2**32 and a limb below 2**44, so this is below 2**62; folded, below 2**32.
            state *= MULTIPLIER
            state += limb
            state += 1
            state = _folded(state)
    state = remainder(state)
    # Without a square the hash would be linear, and the choices among rows that differ in one column correlated.
    return remainder(remainder(state * state) * MULTIPLIER + state)


def remainder(numbers: Integers) -> Integers:
    """The remainder of integers from 0 to 2**62 modulo the prime."""
    numbers = _folded(_folded(numbers))
    return np.asarray(numbers - PRIME * (numbers >= PRIME))


def _folded(numbers: Integers) -> Integers:
    """Smaller integers with the same remainder: the prime is one less than a power of two, so digits add up."""
    high = numbers >> PRIME_BITS
    high += numbers & PRIME
    return high


def starts_of(keys: list[NDArray[Any]]) -> Integers:
    """Positions where a run of equal keys begins, in sorted arrays."""
    return np.flatnonzero(_run_starts(keys))


def _starts(order: Integers, keys: list[NDArray[Any]]) -> NDArray[np.bool_]:
    """Whether, along `order`, a run of equal keys begins."""
    return _run_starts([key[order] for key in keys])


def _run_starts(keys: list[NDArray[Any]]) -> NDArray[np.bool_]:
    starts = np.zeros(len(keys[0]), np.bool_)
    starts[:1] = True
    for key in keys:
        starts[1:] |= key[1:] != key[:-1]
    return starts


def running_number(starts: NDArray[np.bool_]) -> Integers:
    """0, 1, 2, ... counted from each start."""
    indices = np.arange(len(starts))
    return indices - np.maximum.accumulate(np.where(starts, indices, 0))
