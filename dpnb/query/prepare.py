"""A data frame becomes columns that the schema describes.  Reads rows; says nothing about them.

Row evaluation is total: what the schema cannot use (text in a number column, infinities, nulls, undeclared
categories, rows without a unit) does not count, and is never an error, a warning or a message.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpnb.errors import SchemaError
from dpnb.query import grid
from dpnb.query.contribution import name_number, ranks
from dpnb.query.guard import guarded
from dpnb.query.schema import Bounded, Categories, Dates, Schema, iso_time, plain, seconds_of, text_of
from dpnb.query.unit import PrivacyUnit

Integers = NDArray[np.int64]

READING_FAILED = "reading the table failed; nothing was charged and nothing of the table is shown"


@dataclass(frozen=True, repr=False)
class Prepared:
    """The rows that count, column by column.  A private value: it has no repr, and none of it may be shown.

    Parameters
    ----------
    units : int64 array, shape (rows,)
        Whose row it is, 0, 1, ...
    names : int64 array, shape (rows,)
        The unit's name as a portable integer; all 0 where each row is a unit.
    most : int or None
        No unit has more rows than this.
    numbers : dict of str to float64 array
        Bounded columns, clamped, and dates in seconds, clamped; NaN where there is nothing.
    steps : dict of str to int64 array
        Bounded columns in grid steps.
    codes : dict of str to int32 array
        Categories columns: position in the declared list; text columns: position in the table's list; -1 for nothing.
    texts : dict of str to dict
        The table's list of each text column: position by text.
    """

    units: Integers
    names: Integers
    most: int | None
    numbers: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    steps: dict[str, Integers] = field(default_factory=dict)
    codes: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    texts: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Number of rows that count."""
        return len(self.units)

    @cached_property
    def ranks(self) -> Integers:
        """The place of each row among its unit's rows."""
        contents = [self._content(name) for name in sorted({*self.numbers, *self.codes})]
        # Numbers within one step of the grid, and moments within a second, are told apart by themselves.
        finer = [np.nan_to_num(self.numbers[name]) for name in sorted(self.numbers)]
        return ranks(self.units, self.names, contents, finer)

    def _content(self, name: str) -> Integers:
        """A column as non-negative integers, 0 for nothing; of texts what does not depend on other units."""
        if name in self.texts:
            numbers = np.array([*(name_number(text) % 2**32 + 1 for text in self.texts[name]), 0], np.int64)
            return np.asarray(numbers[self.codes[name]])
        if name in self.codes:
            return self.codes[name].astype(np.int64) + 1
        if name in self.steps:
            return np.where(np.isnan(self.numbers[name]), 0, self.steps[name] + 2**grid.BITS + 1)
        seconds = self.numbers[name]
        return np.where(np.isnan(seconds), 0, np.floor(np.nan_to_num(seconds)).astype(np.int64) % 2**32 + 1)

    def taken(self, rows: Integers) -> Prepared:
        """Some of the rows, in the given order; a row may be taken several times."""
        return Prepared(
            self.units[rows],
            self.names[rows],
            self.most,
            {name: values[rows] for name, values in self.numbers.items()},
            {name: values[rows] for name, values in self.steps.items()},
            {name: values[rows] for name, values in self.codes.items()},
            self.texts,
        )


def prepare(table: Any, schema: Schema, unit: PrivacyUnit) -> Prepared:
    """Copy what the schema describes out of one data frame; see `prepare_all`."""
    return prepare_all({"": table}, {"": schema}, {"": unit})[""]


def prepare_all(
    tables: Mapping[str, Any], schemas: Mapping[str, Schema], units: Mapping[str, PrivacyUnit]
) -> dict[str, Prepared]:
    """Copy what the schemas describe out of data frames that share a privacy unit.

    Parameters
    ----------
    tables : mapping of str to data frame
        pandas; anything narwhals can read column by column works too.  Copied: later changes change nothing.
    schemas : mapping of str to dict
    units : mapping of str to PrivacyUnit

    Raises
    ------
    SchemaError
        Not a data frame, or a column of the schema or the privacy unit is missing or there twice.
    ExecutionError
        Anything else, with one constant text.
    """
    columns = {}
    for name, table in tables.items():
        if not hasattr(table, "columns") or not hasattr(table, "__len__"):
            of = f"table {name!r}" if name else "table"
            raise SchemaError(f"{of}: must be a pandas DataFrame; got {type(table).__name__}; pass the frame itself")
        unit = units[name].column
        columns[name] = _columns(table, name, [*schemas[name], *([unit] if unit else [])])
    return guarded(lambda: _prepare_all(columns, schemas, units), READING_FAILED)


def _columns(table: Any, of: str, wanted: list[str]) -> dict[str, NDArray[Any]]:
    names = [name for name in getattr(table, "columns", ()) if isinstance(name, str)]
    for name in wanted:
        if names.count(name) != 1:
            # The table's other names are not listed: in a pivoted table a column's name is data.
            which = f"the table {of!r}" if of else "the table"
            fault = f"is in {which} more than once" if name in names else f"is not in {which}"
            raise SchemaError(f"column {name!r}: {fault}; schema and privacy_unit name columns of the table")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = guarded(lambda: nw.from_native(table, eager_only=True, pass_through=True), READING_FAILED)
        return guarded(lambda: {name: _array(frame.get_column(name)) for name in wanted}, READING_FAILED)


def _array(series: nw.Series[Any]) -> NDArray[Any]:
    """A column as an array that does not depend on what else is in it.

    Whole numbers beside a null would become doubles, which cannot tell large ones apart, also where they are categories
    of pandas' own type: they become objects.
    """
    kind = series.dtype
    # Objects stay as they are, unasked: an odd one may raise when a library looks for nulls.
    plainly = kind.is_float() or kind.is_temporal() or kind == nw.Object or not series.null_count()
    return series.to_numpy() if plainly else _objects(series.to_list())


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(values), object)
    for place, value in enumerate(values):  # one by one: numpy looks into what it is given as a list
        array[place] = value
    return array


def _prepare_all(
    columns: dict[str, dict[str, NDArray[Any]]], schemas: Mapping[str, Schema], units: Mapping[str, PrivacyUnit]
) -> dict[str, Prepared]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        numbered = _numbered({name: _unit_values(columns[name], units[name]) for name in columns})
        return {name: _prepare(columns[name], schemas[name], units[name].max_rows, *numbered[name]) for name in columns}


def _prepare(
    columns: dict[str, NDArray[Any]], schema: Schema, most: int | None, units: Integers, names: Integers
) -> Prepared:
    table = Prepared(units, names, None)
    for name, column in schema.items():
        values = columns[name]
        if isinstance(column, Bounded):
            numbers = np.clip(_floats(values), column.low, column.high)
            numbers = np.round(numbers) if column.whole else numbers
            table.numbers[name], table.steps[name] = numbers, grid.to_grid(numbers, column)
        elif isinstance(column, Dates):
            table.numbers[name] = np.clip(_seconds(values), column.low, column.high)
        elif isinstance(column, Categories):
            table.codes[name] = _codes(values, column)
        else:
            table.codes[name], table.texts[name] = _texts(values)
    table = table.taken(np.flatnonzero(units >= 0))
    if most is not None:
        crowded = np.flatnonzero((np.bincount(table.units) > most)[table.units]) if table.rows else table.units[:0]
        kept = np.ones(table.rows, np.bool_)
        kept[crowded] = table.taken(crowded).ranks < most
        table = replace(table if kept.all() else table.taken(np.flatnonzero(kept)), most=most)
    return table


def _floats(values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind in "biuf":
        floats = values.astype(np.float64)
    elif values.dtype.kind == "O":
        floats = np.fromiter((_float(value) for value in values), np.float64, len(values))
    elif values.dtype.kind in "US":
        return _floats(values.astype(object))
    else:  # dates, durations, complex numbers, records: not numbers
        floats = np.full(len(values), np.nan)
    return np.where(np.isfinite(floats), floats, np.nan)


def _float(value: Any) -> float:
    try:
        return math.nan if isinstance(value, complex) else float(value)
    except Exception:  # noqa: BLE001  (row evaluation is total: whatever it is, it does not count)
        return math.nan


def _seconds(values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind == "M":
        seconds = values.astype("datetime64[us]").astype(np.int64) / 1e6
        return np.where(np.isnat(values), np.nan, seconds)
    if values.dtype.kind in "OUS":
        return np.fromiter((_second(value) for value in values), np.float64, len(values))
    return np.full(len(values), np.nan)


def _second(value: Any) -> float:
    try:
        if isinstance(value, str):
            return seconds_of(iso_time(value, ""))
        microseconds = None if not isinstance(value, TIMES) or _is_span(value) else _microseconds(value)
        return math.nan if microseconds is None else microseconds / 1e6
    except Exception:  # noqa: BLE001  (row evaluation is total: whatever it is, it does not count)
        return math.nan


def _texts(values: NDArray[Any]) -> tuple[NDArray[np.int32], dict[str, int]]:
    texts: dict[str, int] = {}
    if values.dtype.kind in "Mm":
        return np.full(len(values), -1, np.int32), texts
    codes = np.fromiter((_text(value, texts) for value in values.astype(object)), np.int32, len(values))
    return codes, texts


def _text(value: Any, texts: dict[str, int]) -> int:
    try:
        text = None if isinstance(value, TIMES) else text_of(plain(value))
        # Half of a surrogate pair cannot be written to a ledger, so it is no text.
        return -1 if text is None or text.encode() is None else texts.setdefault(text, len(texts))
    except Exception:  # noqa: BLE001  (an odd object: no text)
        return -1


def _codes(values: NDArray[Any], column: Categories) -> NDArray[np.int32]:
    code_of = {key: code for code, key in enumerate(column.values)}
    if values.dtype.kind in "biuf":
        positions, distinct = pd.factorize(values)
        table = np.array([_code(value, code_of) for value in distinct.tolist()] + [-1], np.int32)
        codes: NDArray[np.int32] = table[positions]
        return codes
    if values.dtype.kind in "Mm":
        return np.full(len(values), -1, np.int32)
    values = values.astype(object)
    return np.fromiter((_code(value, code_of) for value in values), np.int32, len(values))


def _code(value: Any, code_of: dict[Any, int]) -> int:
    try:
        return code_of.get(value, -1)
    except Exception:  # noqa: BLE001  (not hashable, or an odd object: no category)
        return -1


def _unit_values(columns: dict[str, NDArray[Any]], unit: PrivacyUnit) -> NDArray[Any] | int:
    """What names each row's unit; the number of rows where each row is one.

    Moments and spans of time have many types, of which a table has another one as soon as one value is odd.  So they
    all become the same text.
    """
    if unit.column is None:
        return len(next(iter(columns.values())))
    values = columns[unit.column]
    if values.dtype.kind in "Mm":
        return _objects([_time_name(value) for value in values])
    if values.dtype.kind == "O":
        return _objects([_time_name(value) if isinstance(value, TIMES) else value for value in values])
    return values


TIMES = (np.datetime64, np.timedelta64, date, timedelta)
"""pandas' own kinds are dates and spans too."""


def _time_name(value: Any) -> str | None:
    try:
        microseconds = _microseconds(value)
        return None if microseconds is None else f"{'span' if _is_span(value) else 'moment'} {microseconds}"
    except Exception:  # noqa: BLE001  (an odd date: it names nobody)
        return None


def _is_span(value: Any) -> bool:
    return isinstance(value, np.timedelta64 | timedelta)


def _microseconds(value: Any) -> int | None:
    """A moment (since 1970, in UTC) or a span in microseconds; None for none."""
    if _is_span(value):
        span = np.timedelta64(value).astype("timedelta64[us]") if isinstance(value, np.timedelta64) else value
        whole = span.astype(np.int64) if isinstance(span, np.timedelta64) else span // timedelta(microseconds=1)
        return None if pd.isna(value) else int(whole)
    if pd.isna(value):
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    moment = value.to_datetime64() if isinstance(value, pd.Timestamp) else np.datetime64(value)
    return int(moment.astype("datetime64[us]").astype(np.int64))


def _numbered(values: dict[str, NDArray[Any] | int]) -> dict[str, tuple[Integers, Integers]]:
    """Number the units of all tables 0, 1, ..., -1 where there is none, and give their names as portable integers."""
    numbered = {
        name: (np.arange(rows), np.zeros(rows, np.int64)) for name, rows in values.items() if isinstance(rows, int)
    }
    named = {name: column for name, column in values.items() if not isinstance(column, int)}
    if named:
        kinds = {column.dtype.kind for column in named.values()}
        together = [column if len(kinds) == 1 else column.astype(object) for column in named.values()]
        codes, names = _units(np.concatenate(together))
        ends = np.cumsum([len(column) for column in together])
        for name, end, column in zip(named, ends, together, strict=True):
            part = slice(end - len(column), end)
            numbered[name] = codes[part], names[part]
    return numbered


def _units(values: NDArray[Any]) -> tuple[Integers, Integers]:
    """Number each row's unit 0, 1, ..., -1 where there is none, and give the unit's name as a portable integer.

    Names that are no plain numbers are told apart by Python's own equality, one by one: libraries have several notions
    of equal texts, and choose among them by what else is in the column.
    """
    if values.dtype.kind in "biuf":
        codes, distinct = pd.factorize(values)
        names = distinct.tolist()
    else:
        numbers: dict[Any, int] = {}
        codes = np.fromiter((_number(value, numbers) for value in values.astype(object)), np.int64, len(values))
        names = list(numbers)
    return codes.astype(np.int64), np.array([*map(_name_number, names), 0], np.int64)[codes]


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
        return name_number(name)
    except Exception:  # noqa: BLE001  (an odd object without a text)
        return 0
