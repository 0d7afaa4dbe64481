"""The choice of the first rows of each unit while a table is prepared, by their hash.  Reads rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.contribution import (
    Integers,
    add_terms,
    first_by_hash,
    hash_of_sum,
    remainder,
    starts_of,
    weighted_name,
    weights_of,
)
from dpnb._backends.memory.blocks import blocks_of, by_blocks, even_blocks
from dpnb._backends.memory.prepare.unit_ids import ShortIntegers

ROWS_HASHED_AT_ONCE = 2**15
"""Rows of a block for the hash, of whose many intermediate arrays several fit a processor's cache."""


def first_rows(
    units: ShortIntegers,
    names: Integers,
    max_rows: int,
    order: ShortIntegers | None,
    hash_terms: Callable[[], list[Callable[[slice], Integers]]],
    ranks_within: Callable[[Integers, ShortIntegers], ShortIntegers],
) -> NDArray[np.bool_] | None:
    """Which rows are among the first of their unit, in the final order; None if all are.

    `units`, `names` and `order` are those of `PreparedTable` and `UnitOrder`.  `hash_terms` returns for each hashed
    column what `weighted` returns for a block of the rows after the first step of `UnitOrder`; it is called only if
    some unit has more rows.  `ranks_within` ranks some rows, which are all rows of some units, where the hash does not
    decide.
    """
    if not (units[max_rows:] == units[:-max_rows]).any():
        return None
    terms = hash_terms()
    kept, sums, name_weights = np.ones(len(units), np.bool_), _sums(len(units), terms), weights_of(1 + len(terms))[0]

    def choose(part: slice) -> None:
        sizes = np.diff(np.r_[starts_of([units[part]]), part.stop - part.start])
        large = sizes > max_rows
        places = part.start + np.flatnonzero(np.repeat(large, sizes))
        rows = places if order is None else order.take(places)
        starts = part.start + (np.cumsum(sizes) - sizes)[large]
        total = np.repeat(weighted_name(names.take(units.take(starts)), *name_weights), sizes[large])
        total += sums.take(rows)
        first, tied = first_by_hash(sizes[large], hash_of_sum(total, 1 + len(terms)), max_rows)
        kept[places] = first
        if tied.any():
            kept[places[tied]] = ranks_within(rows[tied], units.take(places[tied])) < max_rows

    by_blocks(choose, blocks_of(units, ROWS_HASHED_AT_ONCE))
    return kept


def _sums(rows: int, terms: list[Callable[[slice], Integers]]) -> NDArray[np.uint32]:
    sums = np.empty(rows, np.uint32)

    def fill(part: slice) -> None:
        total = np.zeros(part.stop - part.start, np.int64)
        add_terms(total, (term(part) for term in terms))
        sums[part] = remainder(total)

    by_blocks(fill, even_blocks(rows, size=ROWS_HASHED_AT_ONCE))
    return sums
