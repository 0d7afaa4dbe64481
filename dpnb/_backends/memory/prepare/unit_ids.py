"""The unit of each row: units are identified and numbered, and rows are sorted by unit.  Reads rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpnb._backends.contribution import Integers, label_hash
from dpnb._backends.memory.blocks import by_blocks, even_blocks
from dpnb._backends.memory.prepare.columns import UNUSUAL, DictionaryColumn, Values, objects, value_of
from dpnb._backends.memory.prepare.times import TIMES, time_name
from dpnb._backends.memory.prepare.values import each

ShortIntegers = NDArray[np.int32]
"""Indices of units or of rows, of which there are fewer than 2**31 (see `prepared_table`); or grid steps."""

NAME_LIMIT = 2**60
"""Hashes of unit names are below this, as in `label_hash`."""

MAX_SPREAD = 4
"""Whole numbers are numbered by a lookup table of their range if it has at most this many entries per row."""

HALF_BITS = 16
"""Bits of half of a unit's number: numpy sorts integers of this width by radix sort."""

MAX_PIECES = 64
"""Largest number of blocks in which units are sorted by their higher half."""


def unit_labels(values: Values) -> Values:
    """The value that identifies each row's unit, in a form that does not depend on the column's type.

    Points in time and durations have many types, and a single unusual value may change the type of the column.  So they
    all become texts; and complex numbers without an imaginary part and `longdouble` become doubles.
    """
    if isinstance(values, DictionaryColumn):
        return DictionaryColumn(values.codes, _unit_names(values.values))
    return _unit_names(values)


def _unit_names(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind in "Mm":
        return objects([time_name(value) for value in values])
    if values.dtype.kind == "O":
        return objects([_unit_name(value) for value in values])
    return values


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
    if isinstance(values, DictionaryColumn):
        used = np.zeros(len(values.values), np.bool_)
        used[values.codes] = True
        number = np.full(len(used), -1, np.int32)
        number[used], distinct = distinct_unit_ids(values.values[used])
        return number[values.codes], distinct
    if values.dtype.kind == "i" and len(values) and int(values.max()) - int(values.min()) <= MAX_SPREAD * len(values):
        return _ids_by_table(values)
    if values.dtype.kind in "biuf":
        codes, distinct = pd.factorize(values)
        return codes.astype(np.int32), distinct
    numbers: dict[Any, int] = {}
    return each(values, lambda value: _number(value, numbers), np.dtype(np.int32)), list(numbers)


def _ids_by_table(values: NDArray[Any]) -> tuple[ShortIntegers, Integers]:
    """`distinct_unit_ids` for whole numbers in a small range, by a lookup table of the range."""
    low, high = int(values.min()), int(values.max())
    present = np.zeros(high - low + 1, np.bool_)
    codes = np.empty(len(values), np.int32)

    def indices(part: slice) -> Integers:
        return values[part].astype(np.int64, copy=False) - low

    def mark(part: slice) -> None:
        present[indices(part)] = True

    by_blocks(mark, even_blocks(len(values)))
    numbers = np.cumsum(present, dtype=np.int32) - 1

    def look_up(part: slice) -> None:
        codes[part] = numbers[indices(part)]

    by_blocks(look_up, even_blocks(len(values)))
    return codes, np.flatnonzero(present) + low


def _number(value: Any, numbers: dict[Any, int]) -> int:
    try:
        number = numbers.get(value)
        if number is None:
            number = -1 if pd.isna(value) is True else numbers.setdefault(value, len(numbers))
        return number
    except Exception:  # noqa: BLE001  (not hashable: the row has no unit)
        return -1


def _name_hash(name: Any) -> int:
    try:
        return label_hash(name)
    except Exception:  # noqa: BLE001  (an unusual object whose `str` raises)
        return 0


def group_by_unit(units: ShortIntegers) -> tuple[ShortIntegers, ShortIntegers | None]:
    """The units in ascending order, and the original index of each row that has a unit; None if nothing moved."""
    known = None if units.min(initial=0) >= 0 else np.flatnonzero(units >= 0).astype(np.int32)
    units = units if known is None else units[known]
    if (units[1:] >= units[:-1]).all():
        return units, known
    halves = range((int(units.max()) >> HALF_BITS) + 1)

    def by_high(part: slice) -> tuple[ShortIntegers, list[int]]:
        high = (units[part] >> HALF_BITS).astype(np.uint16)
        order = np.argsort(high, kind="stable")
        return part.start + order.astype(np.int32), np.searchsorted(high[order], [*halves, len(halves)]).tolist()

    pieces = by_blocks(by_high, even_blocks(len(units), at_most=MAX_PIECES))
    order, ordered = np.empty_like(units), np.empty_like(units)
    ends = np.cumsum([0, *(sum(ends[half + 1] - ends[half] for _, ends in pieces) for half in halves)]).tolist()

    def by_low(half: int) -> None:
        rows = np.concatenate([rows[ends[half] : ends[half + 1]] for rows, ends in pieces])
        own = units.take(rows)
        order_in_half = np.argsort(own.astype(np.uint16), kind="stable")
        part = slice(ends[half], ends[half + 1])
        order[part], ordered[part] = rows.take(order_in_half), own.take(order_in_half)

    by_blocks(by_low, halves)
    return ordered, order if known is None else known[order]
