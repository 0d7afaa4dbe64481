"""Units of a table: identified and numbered, their rows sorted, and as many kept as the curator allows.  Reads rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from dpnb._backends.contribution import (
    Integers,
    add_terms,
    first_by_hash,
    hash_of_sum,
    label_hash,
    remainder,
    starts_of,
    weighted_name,
    weights_of,
)
from dpnb._backends.memory.blocks import blocks_of, by_blocks, even_blocks
from dpnb._backends.memory.prepare.columns import UNUSUAL, DictionaryColumn, Values, objects, value_of
from dpnb._backends.memory.prepare.values import TIMES, each, time_name
from dpnb._plan.privacy_unit import UnitType, identifier_of

ShortIntegers = NDArray[np.int32]
"""Indices of units or of rows, of which there are fewer than 2**31 (see `prepared_table`); or grid steps."""

NAME_LIMIT = 2**60
"""Hashes of unit names are below this, as in `label_hash`."""

MAX_SPREAD = 4
"""Whole numbers are numbered by a lookup table of their range if it has at most this many entries per row."""

MAX_LOW_BITS = 16
"""Largest number of lower bits of a unit's number: numpy sorts integers of this width by radix sort."""

SHARE_BITS = 6
"""Higher bits of a unit's number that divide a table into shares, if the others are not too many."""

MAX_PIECES = 64
"""Largest number of pieces of a table that are divided into shares."""


def unit_labels(values: Values, unit_type: UnitType | UnsetType = UNSET) -> Values:
    """The value that identifies each row's unit, in a form that does not depend on the column's type.

    Points in time and durations have many types, and a single unusual value may change the type of the column.  So they
    all become texts; and complex numbers without an imaginary part and `longdouble` become doubles.
    """
    if isinstance(values, DictionaryColumn):
        return DictionaryColumn(values.codes, _unit_names(values.values, unit_type))
    return _unit_names(values, unit_type)


def _unit_names(values: NDArray[Any], unit_type: UnitType | UnsetType) -> NDArray[Any]:
    if unit_type is not UNSET and not (unit_type == "integer" and values.dtype.kind == "i"):
        return objects([_identifier(value, unit_type) for value in values])
    if values.dtype.kind in "Mm":
        return objects([time_name(value) for value in values])
    if values.dtype.kind == "O":
        return objects([_unit_name(value) for value in values])
    return values


def _identifier(value: Any, unit_type: UnitType) -> str | int | None:
    try:
        named = time_name(value) if isinstance(value, TIMES) else value_of(value)
        return identifier_of(named, unit_type)
    except Exception:  # noqa: BLE001  (an unusual object that cannot be converted: the row has no unit)
        return None


def _unit_name(value: Any) -> Any:
    try:
        if isinstance(value, TIMES):
            return time_name(value)
        return value_of(value) if isinstance(value, UNUSUAL) else value
    except Exception:  # noqa: BLE001  (an unusual object that cannot be converted: the row has no unit)
        return None


def assign_unit_ids(values: Values) -> tuple[ShortIntegers, Integers]:
    """The unit of each row, numbered 0, 1, ..., -1 for none; and the hash of each unit's name by `label_hash`."""
    codes, names = distinct_unit_ids(values)
    if isinstance(names, np.ndarray) and names.dtype.kind in "iu":  # `label_hash`, vectorised
        wide = names.astype(np.uint64 if names.dtype.kind == "u" else np.int64, copy=False)
        return codes, (np.abs(wide) % NAME_LIMIT).astype(np.int64, copy=False)
    return codes, np.array([*map(_name_hash, names)], np.int64)


def distinct_unit_ids(values: Values) -> tuple[ShortIntegers, Sequence[Any] | NDArray[Any]]:
    """The unit of each row, numbered 0, 1, ..., -1 for none; and the value that identifies each unit, in that order.

    Values that are not plain numbers are compared one by one, by Python's equality: libraries have several definitions
    of equal texts, and choose among them by the other values of the column.
    """
    import pandas as pd  # imported when first used

    if isinstance(values, DictionaryColumn):
        used = np.zeros(len(values.values), np.bool_)
        used[values.codes] = True
        number = np.full(len(used), -1, np.int32)
        number[used], distinct = distinct_unit_ids(values.values[used])
        return number[values.codes], distinct
    if values.dtype.kind == "i" and len(values):
        low, high = _range(values)
        if high - low <= MAX_SPREAD * len(values):
            return _ids_by_table(values, low, high)
    if values.dtype.kind in "biuf":
        codes, distinct = pd.factorize(values)
        return codes.astype(np.int32), distinct
    numbers: dict[Any, int] = {}
    return each(values, lambda value: _number(value, numbers), np.dtype(np.int32)), list(numbers)


def _range(values: NDArray[Any]) -> tuple[int, int]:
    parts = even_blocks(len(values))
    ranges = by_blocks(lambda part: (int(values[part].min()), int(values[part].max())), parts)
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _ids_by_table(values: NDArray[Any], low: int, high: int) -> tuple[ShortIntegers, Integers]:
    """`distinct_unit_ids` for whole numbers from `low` to `high`, by a lookup table of this range."""
    present = np.zeros(high - low + 1, np.bool_)
    codes = np.empty(len(values), np.int32)

    def indices(part: slice) -> Integers:
        return values[part].astype(np.int64, copy=False) - low

    def mark(part: slice) -> None:
        present[indices(part)] = True

    by_blocks(mark, even_blocks(len(values)))
    numbers = None if present.all() else np.cumsum(present, dtype=np.int32) - 1

    def look_up(part: slice) -> None:
        codes[part] = indices(part) if numbers is None else numbers.take(indices(part))

    by_blocks(look_up, even_blocks(len(values)))
    return codes, np.flatnonzero(present) + low


def _number(value: Any, numbers: dict[Any, int]) -> int:
    try:
        number = numbers.get(value)
        if number is None:
            import pandas as pd  # imported when first used

            number = -1 if pd.isna(value) is True else numbers.setdefault(value, len(numbers))
        return number
    except Exception:  # noqa: BLE001  (not hashable: the row has no unit)
        return -1


def _name_hash(name: Any) -> int:
    try:
        return label_hash(name)
    except Exception:  # noqa: BLE001  (an unusual object whose `str` raises)
        return 0


@dataclass(frozen=True, repr=False)
class UnitOrder:
    """The order in which the rows of a unit are adjacent.  A private value.

    Rows move in two steps, each within a processor's cache; one step across a large table would wait for the memory at
    every row.
    """

    units: ShortIntegers  # of the rows that have one, in ascending order
    # the original index of each row after the first step, which drops rows without a unit; None if nothing moves
    coarse: ShortIntegers | None
    # the index after the first step of each row after the second step; None if nothing moves
    fine: ShortIntegers | None


def order_by_unit(units: ShortIntegers) -> UnitOrder:
    """The order of the rows that have a unit by their units; rows of one unit keep their order."""
    known = None if units.min(initial=0) >= 0 else np.flatnonzero(units >= 0).astype(np.int32)
    units = units if known is None else units[known]
    if (units[1:] >= units[:-1]).all():
        return UnitOrder(units, known, None)
    # The higher bits of a unit's number divide the table, at first within each piece of it.
    bits = int(units.max()).bit_length()
    shift = min(max(bits - SHARE_BITS, 0), MAX_LOW_BITS)
    shares = (int(units.max()) >> shift) + 1
    high_type = np.min_scalar_type(shares - 1)
    coarse, moved = np.empty_like(units), np.empty_like(units)

    def by_high(part: slice) -> list[int]:
        high = (units[part] >> shift).astype(high_type)
        order = np.argsort(high, kind="stable")
        moved[part] = units[part].take(order)
        coarse[part] = order
        coarse[part] += part.start
        return [part.start, *(part.start + np.cumsum(np.bincount(high, minlength=shares))).tolist()]

    starts = by_blocks(by_high, even_blocks(len(units), at_most=MAX_PIECES))
    sizes = [sum(piece[share + 1] - piece[share] for piece in starts) for share in range(shares)]
    ends = np.cumsum([0, *sizes]).tolist()
    ordered, fine = np.empty_like(units), np.empty_like(units)

    def by_low(share: int) -> None:
        slices = [(piece[share], piece[share + 1]) for piece in starts]
        own = np.concatenate([moved[start:end] for start, end in slices])
        rows = np.concatenate([np.arange(start, end, dtype=np.int32) for start, end in slices])
        order = np.argsort(own.astype(np.uint16), kind="stable")
        part = slice(ends[share], ends[share + 1])
        fine[part], ordered[part] = rows.take(order), own.take(order)

    by_blocks(by_low, range(shares))
    return UnitOrder(ordered, coarse if known is None else known[coarse], fine)


# --- the choice of the first rows of each unit while a table is prepared ----------------------------------------------


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

    `units` and `names` are those of `PreparedTable`, and `order` is `UnitOrder.fine`.  `hash_terms` returns for each
    hashed column what `dpnb._backends.contribution.weighted` returns for a block of the rows after the first step of
    `UnitOrder`; it is called only if some unit has more rows.  `ranks_within` ranks some rows, which are all rows of
    some units, where the hash does not decide.
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
