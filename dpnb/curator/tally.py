"""What the rows of a table count as, in figures for its curator alone.

The figures are computed from rows without noise: they are for the curator's own terminal only.  What a value counts as
is not decided here: as in a session, the modules of `dpnb._backends.memory.prepare` read and prepare values, and this
module only counts the results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpnb._backends.column_types import StorageType
from dpnb._backends.memory.prepare.columns import DictionaryColumn, Values, by_value
from dpnb._backends.memory.prepare.prepared_table import PreparedTable, columns_of, prepare, prepare_all
from dpnb._backends.memory.prepare.values import TIMES, codes_of, is_duration, reader_of
from dpnb._backends.worker_thread import isolated_numeric_settings
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.schema import Bounded, Categories, ColumnType, Dates, Schema, Text, plain, text_of

RowIndices = NDArray[np.bool_]

MAX_EXAMPLES = 3
"""Number of examples of values that do not count: the most frequent ones."""

SEEN = 1000
"""How many values are examined for their type, if all of them count."""

MAX_LENGTH = 40
"""How many characters of a value are shown."""


@dataclass(frozen=True, repr=False)
class ColumnSummary:
    """What the values of one column count as.  For the curator alone: it has no repr."""

    rows: int
    counts: int  # values that count, including those that are clamped
    below: int  # numbers or times below the bounds
    above: int  # those above the bounds, and texts longer than their `max_length`
    dropped: int  # values outside the bounds that do not count
    missing: int  # nulls, NaN and the like
    unusable: int  # others that do not count: no number, date, text or declared category, as the column requires
    kind: StorageType | None  # of most unusable values, or of most values if all of them count
    examples: tuple[tuple[str, int], ...]  # most frequent unusable values as Python writes them, with their counts
    absent: tuple[Any, ...]  # categories that no row has

    @property
    def present(self) -> int:
        """Values that are not missing."""
        return self.rows - self.missing

    @property
    def outside(self) -> int:
        """Numbers or times outside the bounds."""
        return self.below + self.above


@dataclass(frozen=True, repr=False)
class UnitSummary:
    """The privacy units of one table.  For the curator alone: it has no repr."""

    rows: int
    units: int  # that have a row
    rows_without_unit: int  # whose unit is missing; they do not count
    beyond: int  # rows beyond `max_rows_per_unit`; they do not count


def summarize_column(table: Any, name: str, column: ColumnType) -> ColumnSummary:
    """What the values of one column count as, over all rows of a table; raises what `prepare_all` raises."""
    with isolated_numeric_settings():
        prepared = prepare(table, {name: column}, PrivacyUnit())  # each row is a unit, which preserves the order
        values = columns_of(table, "", [name])[name]
        counts, missing = _counting(prepared, name), by_value(lambda own: np.asarray(pd.isna(own), np.bool_), values)
        below, above = _outside(values, column)
        unusable = ~(counts | missing | below | above)
        examined = _some(values, np.flatnonzero(unusable) if unusable.any() else np.flatnonzero(~missing)[:SEEN])
        return ColumnSummary(
            rows=prepared.rows,
            counts=_number(counts),
            below=_number(below),
            above=_number(above),
            dropped=_number((below | above) & ~counts),
            missing=_number(missing),
            unusable=_number(unusable),
            kind=_kind(examined),
            examples=_frequent(examined) if unusable.any() else (),
            absent=_absent(prepared, name, column),
        )


def values_that_count(table: Any, name: str, column: Categories) -> int:
    """The number of values that would count if these categories were declared; raises what `prepare_all` raises."""
    return _number(codes_of(columns_of(table, "", [name])[name], column) >= 0)


def summarize_units(
    tables: Mapping[str, Any], schemas: Mapping[str, Schema], units: Mapping[str, PrivacyUnit]
) -> dict[str, UnitSummary]:
    """The privacy units of each table; raises what `prepare_all` raises."""
    unbounded = {name: msgspec.structs.replace(unit, max_rows=None) for name, unit in units.items()}
    unlimited, limited = (prepare_all(tables, schemas, bound) for bound in (unbounded, units))
    return {
        name: UnitSummary(
            rows=len(table),
            units=len(np.unique(unlimited[name].units)),
            rows_without_unit=len(table) - unlimited[name].rows,
            beyond=unlimited[name].rows - limited[name].rows,
        )
        for name, table in tables.items()
    }


def _number(rows: RowIndices) -> int:
    return int(np.count_nonzero(rows))


def _counting(table: PreparedTable, name: str) -> RowIndices:
    if name in table.codes:
        return np.asarray(table.codes[name] >= 0)
    return ~np.isnan(table.numbers[name])


def _outside(values: Values, column: ColumnType) -> tuple[RowIndices, RowIndices]:
    if isinstance(column, Text) and column.max_length is not None:
        longest = column.max_length
        above = by_value(
            lambda own: np.array([len(text_of(plain(one)) or "") > longest for one in own], np.bool_), values
        )
        return np.zeros(len(values), np.bool_), above
    if not isinstance(column, Bounded | Dates):
        nothing = np.zeros(len(values), np.bool_)
        return nothing, nothing
    read = by_value(reader_of(column), values)
    return read < column.low, read > column.high


def _absent(table: PreparedTable, name: str, column: ColumnType) -> tuple[Any, ...]:
    if not isinstance(column, Categories):
        return ()
    codes = set(np.unique(table.codes[name]).tolist())
    return tuple(key for code, key in enumerate(column.values) if code not in codes)


def _some(values: Values, indices: NDArray[np.intp]) -> list[Any]:
    return [*(values.values[values.codes[indices]] if isinstance(values, DictionaryColumn) else values[indices])]


def _kind(values: list[Any]) -> StorageType | None:
    kinds = Counter(map(_kind_of_value, values))
    return max(kinds, key=kinds.__getitem__) if kinds else None


KINDS: tuple[tuple[tuple[type, ...], StorageType], ...] = (
    ((str,), "texts"),
    ((bool,), "truth values"),
    ((int,), "whole numbers"),
    ((float,), "numbers"),
    ((Decimal,), "decimal numbers"),
    ((bytes,), "bytes"),
    ((list, tuple, dict, set, np.ndarray), "lists"),
)


def _kind_of_value(value: Any) -> StorageType | None:
    if isinstance(value, TIMES):
        return "durations" if is_duration(value) else "dates or times"
    value = plain(value)
    return next((kind for types, kind in KINDS if isinstance(value, types)), None)


def _frequent(values: list[Any]) -> tuple[tuple[str, int], ...]:
    """The most frequent values as Python writes them, so that none of them moves a terminal's cursor."""
    return tuple(Counter(map(_written, values)).most_common(MAX_EXAMPLES))


def _written(value: Any) -> str:
    try:
        text = str(value) if isinstance(value, TIMES) else repr(plain(value))
    except Exception:  # noqa: BLE001  (the repr of an arbitrary object)
        text = f"<{type(value).__name__}>"
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}..."
