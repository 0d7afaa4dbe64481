"""Whose each row is: units are told apart and numbered, and rows put in their order.  Reads rows."""

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
"""Numbers of units or of rows, of which there are fewer than 2**31 (see `prepared_table`); or grid steps."""

NAMES = 2**60
"""Portable integers that name units are below this."""

ROOM = 4
"""Whole numbers that name units are told apart by a table of all numbers between, if it is not much longer."""

HALF = 16
"""Bits of a half of a unit's number: numpy sorts numbers of this size without comparing them."""

MOST_PIECES = 64
"""In which units are sorted by their higher half: for each piece and half there is a number."""


def unit_labels(values: Values) -> Values:
    """What names each row's unit.

    Moments and spans of time have many types, of which a table has another one as soon as one value is odd.  So they
    all become the same text; and complex numbers without an imaginary part, and wide floats, are doubles.
    """
    if isinstance(values, DictionaryColumn):
        return DictionaryColumn(values.places, _unit_names(values.values))
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
    except Exception:  # noqa: BLE001  (an odd object that does not say what it is: it names nobody)
        return None


def assign_unit_ids(values: Values) -> tuple[ShortIntegers, Integers]:
    """Number each row's unit 0, 1, ..., -1 where there is none; and each unit's name as a portable integer."""
    codes, names = distinct_unit_ids(values)
    if isinstance(names, np.ndarray) and names.dtype.kind in "iu":  # as `label_hash` does, all at once
        wide = names.astype(np.uint64 if names.dtype.kind == "u" else np.int64, copy=False)
        return codes, (np.abs(wide) % NAMES).astype(np.int64, copy=False)
    return codes, np.array([*map(_name_number, names)], np.int64)


def distinct_unit_ids(values: Values) -> tuple[ShortIntegers, Sequence[Any] | NDArray[Any]]:
    """Number each row's unit 0, 1, ..., -1 where there is none, and list the values that name them, in that order.

    Names that are no plain numbers are told apart by Python's own equality, one by one: libraries have several notions
    of equal texts, and choose among them by what else is in the column.
    """
    if isinstance(values, DictionaryColumn):
        there = np.zeros(len(values.values), np.bool_)
        there[values.places] = True
        number = np.full(len(there), -1, np.int32)  # also of values that no row has
        number[there], distinct = distinct_unit_ids(values.values[there])
        return number[values.places], distinct
    if values.dtype.kind == "i" and len(values) and int(values.max()) - int(values.min()) <= ROOM * len(values):
        return _near_units(values)
    if values.dtype.kind in "biuf":
        codes, distinct = pd.factorize(values)
        return codes.astype(np.int32), distinct
    numbers: dict[Any, int] = {}
    return each(values, lambda value: _number(value, numbers), np.dtype(np.int32)), list(numbers)


def _near_units(values: NDArray[Any]) -> tuple[ShortIntegers, Integers]:
    """The same for whole numbers that are near each other."""
    low, high = int(values.min()), int(values.max())
    there = np.zeros(high - low + 1, np.bool_)
    codes = np.empty(len(values), np.int32)

    def places(part: slice) -> Integers:
        return values[part].astype(np.int64, copy=False) - low

    def note(part: slice) -> None:
        there[places(part)] = True

    by_blocks(note, even_blocks(len(values)))
    numbered = np.cumsum(there, dtype=np.int32) - 1

    def number(part: slice) -> None:
        codes[part] = numbered[places(part)]

    by_blocks(number, even_blocks(len(values)))
    return codes, np.flatnonzero(there) + low


def _number(value: Any, numbers: dict[Any, int]) -> int:
    try:
        number = numbers.get(value)
        if number is None:
            number = -1 if pd.isna(value) is True else numbers.setdefault(value, len(numbers))
        return number
    except Exception:  # noqa: BLE001  (not hashable: it names nobody)
        return -1


def _name_number(name: Any) -> int:
    try:
        return label_hash(name)
    except Exception:  # noqa: BLE001  (an odd object without a text)
        return 0


def group_by_unit(units: ShortIntegers) -> tuple[ShortIntegers, ShortIntegers | None]:
    """Units ascending, and where these rows stood that have one; None if all rows stand so already."""
    known = None if units.min(initial=0) >= 0 else np.flatnonzero(units >= 0).astype(np.int32)
    units = units if known is None else units[known]
    if (units[1:] >= units[:-1]).all():
        return units, known
    halves = range((int(units.max()) >> HALF) + 1)

    def by_high(part: slice) -> tuple[ShortIntegers, list[int]]:
        high = (units[part] >> HALF).astype(np.uint16)
        places = np.argsort(high, kind="stable")
        return part.start + places.astype(np.int32), np.searchsorted(high[places], [*halves, len(halves)]).tolist()

    pieces = by_blocks(by_high, even_blocks(len(units), at_most=MOST_PIECES))
    order, ordered = np.empty_like(units), np.empty_like(units)
    ends = np.cumsum([0, *(sum(ends[half + 1] - ends[half] for _, ends in pieces) for half in halves)]).tolist()

    def by_low(half: int) -> None:
        rows = np.concatenate([rows[ends[half] : ends[half + 1]] for rows, ends in pieces])
        own = units.take(rows)
        places = np.argsort(own.astype(np.uint16), kind="stable")
        part = slice(ends[half], ends[half + 1])
        order[part], ordered[part] = rows.take(places), own.take(places)

    by_blocks(by_low, halves)
    return ordered, order if known is None else known[order]
