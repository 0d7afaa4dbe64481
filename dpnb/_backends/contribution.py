"""Which rows of a unit come first, for all backends, where it has more than are allowed.

The first `k` rows count, in the order of a fixed integer hash of the row's own columns: the unit's name, the columns in
the schema, and, for rows that are equal in all of these, a running number (equal rows are interchangeable, so the
assignment of the numbers does not matter).  The selection depends only on the unit's own rows: not on position, chance,
or other units in the table.  The order is computed once, before any filter: the curator's limits keep the first of all
the unit's rows, a query's own limits the first of those that pass its filter.

The unit's name is hashed too because a schema may have few distinct rows: without it one kind of row would come first
for every unit, and rows late in that order would hardly ever count.  With it, and with the running number, each row of
a unit is equally likely to count.

A column that is added to the schema of a ledger which has answers stays out of the hash.  It only decides which of the
rows that are equal in the first columns gets which running number, after all columns that were added before it.  So the
values of the earlier columns in the rows that count stay the same, whatever is added: old and new answers, their
refinements, and what each unit has paid, are about the same rows.  A new hash would be about others.

The hash uses only additions, products and remainders that fit 64 bits, so every engine can compute the same hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb.schema import Added, plain

Integers = NDArray[np.int64]

PRIME_BITS = 31
PRIME = 2**PRIME_BITS - 1
MULTIPLIER = 742938285
"""A primitive root of the prime with good lattice structure (Fishman and Moore 1986)."""

LIMB_BITS = 16

MAX_COMPARED = 16
"""Largest number of rows of a unit all pairs of which are compared."""

TERMS_AT_ONCE = 2**10
"""Weighted columns whose sum fits 64 bits."""


def orders_of(added: Added, table: str) -> dict[str, int]:
    """The added columns of one table, each with its place among those of all tables."""
    return {name: number for number, (of, name) in enumerate(added) if of == table}


def ranks(units: Integers, names: Integers, contents: list[Integers], finer: Sequence[NDArray[Any]] = ()) -> Integers:
    """The rank of each row among its unit's rows: 0 for the row that counts first.

    `units` numbers the unit of each row 0, 1, ... up to 2**32, in any order; `names` are the units' names, hashed by
    `label_hash`; `contents` the row's columns as non-negative integers below 2**33, in a fixed order.  The columns in
    `finer` distinguish rows with equal `contents` and are not hashed.  All have shape (rows,).
    """
    content_hash = row_hash([names, *contents])
    sorting = (units.astype(np.int64) << PRIME_BITS) + numbered_hash(content_hash)
    order = np.argsort(sorting, kind="stable")
    ordered = sorting[order]
    starts = starts_of([ordered >> PRIME_BITS])
    sizes = np.diff(np.r_[starts, len(units)])
    rank = np.empty(len(units), np.int64)
    rank[order] = np.arange(len(units)) - np.repeat(starts, sizes)
    rows = order[np.repeat(_tied(ordered, starts), sizes)]
    if len(rows):
        rank[rows] = _ranks_of_equal_rows(
            units[rows], content_hash[rows], [key[rows] for key in contents], [key[rows] for key in finer]
        )
    return rank


def first_by_hash(
    sizes: Integers, content_hash: Integers, max_rows: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows are among the first `max_rows` of their unit, and which are of a unit where this is not yet known.

    The latter are units with rows whose hashes are equal, as those of equal rows are; `ranks` compares them further.

    `sizes`, of shape (units,), are at least `max_rows`; `content_hash`, of shape (rows,), is that of `row_hash`, unit
    by unit.
    """
    hashes, units = numbered_hash(content_hash), np.repeat(np.arange(len(sizes)), sizes)
    if sizes.max(initial=0) <= MAX_COMPARED:
        smaller, tied = _compared(hashes.astype(np.int32), units.astype(np.int32), sizes)
        return smaller < max_rows, tied
    units <<= PRIME_BITS
    units += hashes
    ordered, starts = np.sort(units), np.cumsum(sizes) - sizes
    last = ordered[starts + max_rows - 1]
    return units <= np.repeat(last, sizes), np.repeat(_tied(ordered, starts), sizes)


def _compared(
    hashes: NDArray[np.int32], units: NDArray[np.int32], sizes: Integers
) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """For each row the number of its unit's rows with a smaller hash, and whether its unit has equal hashes.

    Compares all pairs of a unit's rows: if units are small, this is many times as fast as sorting.
    """
    smaller, equal = np.zeros(len(units), np.int8), np.zeros(len(units), np.bool_)
    for lag in range(1, int(sizes.max(initial=0))):
        one, other = hashes[:-lag], hashes[lag:]
        same = units[:-lag] == units[lag:]
        before = one < other
        before &= same
        smaller[lag:] += before.view(np.int8)
        equal[lag:] |= same & (one == other)
        before ^= same
        smaller[:-lag] += before.view(np.int8)
    tied = np.zeros(len(sizes), np.bool_)
    tied[units[equal]] = True
    return smaller, np.repeat(tied, sizes)


def _tied(ordered: Integers, starts: Integers) -> NDArray[np.bool_]:
    """Whether a unit has rows with equal hashes; these are sorted, and the units begin at `starts`."""
    equal = np.flatnonzero(ordered[1:] == ordered[:-1])
    tied = np.zeros(len(starts), np.bool_)
    tied[np.searchsorted(starts, equal, "right") - 1] = True
    return tied


def _ranks_of_equal_rows(
    units: Integers, content_hash: Integers, contents: list[Integers], finer: Sequence[NDArray[Any]]
) -> Integers:
    """Like `ranks`, where rows of a unit may be equal."""
    order = np.lexsort((*reversed(finer), *reversed(contents), content_hash, units))
    new_content = _starts(order, [units, *contents])
    final_hash = numbered_hash(content_hash[order], running_number(new_content))
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

    `units` and `names` are as for `ranks`.  Neither the order of two `groups` nor the hashed `contents`, a number for
    the group, depends on other units.
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
    """Hash the columns of each row to an integer below 2**31 - 1.

    The columns are non-negative integers; the first below 2**60, the others below 2**33.
    """
    name, *contents = columns
    weights = weights_of(len(columns))
    total = weighted_name(name, *weights[0])
    add_terms(total, (weighted(column, *pair) for column, pair in zip(contents, weights[1:], strict=True)))
    return hash_of_sum(total, len(columns))


def numbered_hash(content_hash: Integers, number: Integers | None = None) -> Integers:
    """Hash a row's content hash and its running number among equal rows; without numbers, for 0."""
    first, second = weights_of(2)
    total = weighted(content_hash, *first)
    return hash_of_sum(total if number is None else total + weighted(number, *second), 2)


# The hash is defined limb by limb: starting with 1, a state is multiplied, and the limb and 1 are added, for the higher
# and the lower limb of each column.  So before the last step it is a weighted sum of the limbs, and a constant.


@cache
def weights_of(columns: int) -> list[tuple[int, int]]:
    """The weights of the higher and the lower limb of each of some columns."""
    powers = [pow(MULTIPLIER, 2 * columns - 1 - limb, PRIME) for limb in range(2 * columns)]
    return list(zip(powers[::2], powers[1::2], strict=True))


def weighted(column: Integers, high: int, low: int) -> Integers:
    """The weighted sum of the limbs of integers below 2**33; below 2**49, so that the sum of many does not overflow."""
    total = column >> LIMB_BITS
    total *= high
    total += (column & (2**LIMB_BITS - 1)) * low
    return total


def add_terms(total: Integers, terms: Iterable[Integers]) -> None:
    """Add what `weighted` returned to a sum below 2**61, which stays below it, modulo the prime."""
    for number, term in enumerate(terms, 1):
        total += term
        if number % TERMS_AT_ONCE == 0:
            total[:] = remainder(total)


def weighted_name(names: Integers, high: int, low: int) -> Integers:
    """The same modulo the prime, for integers below 2**60; below 2**31."""
    return remainder(remainder(names >> LIMB_BITS) * high + (names & (2**LIMB_BITS - 1)) * low)


def hash_of_sum(total: Integers, columns: int) -> Integers:
    """The hash of the rows whose weighted sum over all columns is `total`, which is modified; below 2**62."""
    total += sum(pow(MULTIPLIER, limb, PRIME) for limb in range(2 * columns + 1)) % PRIME
    state = _folded(_folded(total))
    # Without a square the hash would be linear, and the choices among rows that differ in one column correlated.
    square = _folded(state * state)
    square *= MULTIPLIER
    square += state
    return remainder(square)


def remainder(numbers: Integers) -> Integers:
    """The remainder of integers from 0 to 2**63 - 1 modulo the prime."""
    numbers = _folded(_folded(numbers))
    numbers -= PRIME * (numbers >= PRIME)
    return numbers


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
