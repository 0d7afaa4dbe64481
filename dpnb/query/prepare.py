"""A data frame becomes columns that the schema describes.  Reads rows; says nothing about them.

Row evaluation is total: what the schema cannot use (text in a number column, infinities, nulls, undeclared
categories, rows without a unit) does not count, and is never an error, a warning or a message.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpnb.errors import SchemaError
from dpnb.query import grid
from dpnb.query.contribution import first_rows, name_number
from dpnb.query.guard import guarded
from dpnb.query.schema import Bounded, Categories, ColumnType, PrivacyUnit, Schema

READING_FAILED = "reading the table failed; nothing was charged and nothing of the table is shown"


@dataclass(frozen=True, repr=False)
class Prepared:
    """The rows that count, column by column.  A private value: it has no repr, and none of it may be shown.

    Parameters
    ----------
    rows : int
        Number of rows that count.
    numbers : dict of str to float64 array
        Bounded columns, clamped; NaN where there is nothing.
    steps : dict of str to int64 array
        The same columns in grid steps.
    codes : dict of str to int32 array
        Categories columns; position in the declared list, or -1.
    units : int64 array
        Whose row it is, 0, 1, ...
    """

    rows: int
    numbers: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    steps: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    codes: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    units: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


def prepare(table: Any, schema: Schema, unit: PrivacyUnit) -> Prepared:
    """Copy what the schema describes out of a data frame.

    Parameters
    ----------
    table : data frame
        pandas; anything narwhals can read column by column works too.  It is copied: later changes change nothing.
    schema : dict
    unit : PrivacyUnit

    Raises
    ------
    SchemaError
        Not a data frame, or a column of the schema or the privacy unit is missing or there twice.
    ExecutionError
        Anything else, with one constant text.
    """
    if not hasattr(table, "columns") or not hasattr(table, "__len__"):
        raise SchemaError(f"table: must be a pandas DataFrame; got {type(table).__name__}; pass the frame itself")
    columns = _columns(table, [*schema, *([unit.column] if unit.column else [])])
    return guarded(lambda: _prepare(columns, schema, unit), READING_FAILED)


def _columns(table: Any, wanted: list[str]) -> dict[str, NDArray[Any]]:
    names = [name for name in getattr(table, "columns", ()) if isinstance(name, str)]
    for name in wanted:
        if names.count(name) != 1:
            # The table's other names are not listed: in a pivoted table a column's name is data.
            fault = "is in the table more than once" if name in names else "is not in the table"
            raise SchemaError(f"column {name!r}: {fault}; schema and privacy_unit name columns of the table")
    frame = guarded(lambda: nw.from_native(table, eager_only=True, pass_through=True), READING_FAILED)
    return guarded(lambda: {name: frame.get_column(name).to_numpy() for name in wanted}, READING_FAILED)


def _prepare(columns: dict[str, NDArray[Any]], schema: Schema, unit: PrivacyUnit) -> Prepared:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        length = len(next(iter(columns.values())))
        units, names = _units(columns[unit.column]) if unit.column else (np.arange(length), np.empty(0, np.int64))
        read = {name: _read(columns[name], column) for name, column in schema.items()}
        kept = np.flatnonzero(units >= 0)
        if unit.column:
            contents = [_integers(read[name], schema[name])[kept] for name in sorted(schema)]
            kept = kept[first_rows(units[kept], names[kept], contents, unit.max_rows)]
        numbers, steps, codes = {}, {}, {}
        for name, column in schema.items():
            values = read[name][kept]
            if isinstance(column, Bounded):
                numbers[name], steps[name] = values, grid.to_grid(values, column)
            else:
                codes[name] = values
        return Prepared(len(kept), numbers, steps, codes, units[kept])


def _read(values: NDArray[Any], column: ColumnType) -> NDArray[Any]:
    """A column as the schema sees it: clamped float64 with NaN for nothing, or int32 codes with -1 for nothing."""
    if isinstance(column, Bounded):
        return np.clip(_floats(values), column.low, column.high)
    return _codes(values, column)


def _integers(values: NDArray[Any], column: ColumnType) -> NDArray[np.int64]:
    """A read column as non-negative integers, 0 for nothing: what a row is, for choosing among a unit's rows."""
    if isinstance(column, Bounded):
        return np.where(np.isnan(values), 0, grid.to_grid(values, column) + 2**grid.BITS + 1)
    return values.astype(np.int64) + 1


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
        return float(value)
    except Exception:  # noqa: BLE001  (row evaluation is total: whatever it is, it does not count)
        return math.nan


def _codes(values: NDArray[Any], column: Categories) -> NDArray[np.int32]:
    code_of = {key: code for code, key in enumerate(column.values)}
    if values.dtype.kind in "biuf":
        positions, distinct = pd.factorize(values)
        table = np.array([_code(value, code_of) for value in distinct.tolist()] + [-1], np.int32)
        codes: NDArray[np.int32] = table[positions]
        return codes
    values = values.astype(object)
    return np.fromiter((_code(value, code_of) for value in values), np.int32, len(values))


def _code(value: Any, code_of: dict[Any, int]) -> int:
    try:
        return code_of.get(value, -1)
    except Exception:  # noqa: BLE001  (not hashable, or an odd object: no category)
        return -1


def _units(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number each row's unit 0, 1, ..., -1 where there is none, and give the unit's name as a portable integer."""
    try:
        codes, distinct = pd.factorize(values)
        names = [name_number(name) for name in distinct.tolist()]
    except Exception:  # noqa: BLE001  (something in the column cannot be compared; take the values one by one)
        numbers: dict[Any, int] = {}
        codes = np.fromiter((_number(value, numbers) for value in values), np.int64, len(values))
        names = [_name_number(name) for name in numbers]
    return codes.astype(np.int64), np.array([*names, 0], np.int64)[codes]


def _number(value: Any, numbers: dict[Any, int]) -> int:
    try:
        return -1 if pd.isna(value) is True else numbers.setdefault(value, len(numbers))
    except Exception:  # noqa: BLE001  (not hashable: it names nobody)
        return -1


def _name_number(name: Any) -> int:
    try:
        return name_number(name)
    except Exception:  # noqa: BLE001  (an odd object without a text)
        return 0
