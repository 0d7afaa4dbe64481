"""Preparation of data frames: the columns of the schema, for the rows that count.  Reads rows; reports nothing.

Row evaluation is total: a value that the schema excludes (text in a number column, an infinity, a null, an undeclared
category) and a row without a unit do not count, and never cause an error, a warning or a message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_pyarrow_table
from numpy.typing import NDArray

from dpnb._backends.column_types import refuse_absent
from dpnb._backends.contribution import Integers, label_hash, orders_of, ranks, weighted, weights_of
from dpnb._backends.memory.blocks import ROWS_AT_ONCE, blocks_of, by_blocks, even_blocks, gathered, where_true
from dpnb._backends.memory.codes import CodeArray, coarse_codes, ordered_columns
from dpnb._backends.memory.kernels import kernels_for
from dpnb._backends.memory.prepare.columns import DictionaryColumn, Values, by_value, column_of
from dpnb._backends.memory.prepare.unit_ids import (
    ShortIntegers,
    UnitOrder,
    assign_unit_ids,
    distinct_unit_ids,
    first_rows,
    order_by_unit,
    unit_labels,
)
from dpnb._backends.memory.prepare.values import Codes, codes_of, reader_of, texts
from dpnb._backends.worker_thread import isolated_numeric_settings, run_guarded
from dpnb._compile import grid
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import SchemaError
from dpnb.progress import Stage, at
from dpnb.schema import Added, Bounded, Categories, Dates, Schema, Text, plain

MAX_ROWS = 2**31 - 1
"""Largest number of rows of all tables together: row indices have 32 bits, and sums are exact; see `execute`."""

READING_FAILED = "reading the table failed; nothing was charged and nothing of the table is shown"


class StringCodes(dict[str, int]):
    """The code of each text of a text column.  Parts and joins share the cached properties."""

    @cached_property
    def hashes(self) -> Integers:
        """The hash of each text by `label_hash`, by code."""
        return np.fromiter(map(label_hash, self), np.int64, len(self))

    @cached_property
    def ordered(self) -> list[str]:
        """The texts in lexicographic order."""
        return sorted(self)

    @cached_property
    def ordered_codes(self) -> Integers:
        """The codes of the texts in that order."""
        return np.fromiter(map(self.__getitem__, self.ordered), np.int64, len(self))


@dataclass(frozen=True, repr=False)
class PreparedTable:
    """The rows that count, column by column.  A private value: it has no repr, and none of it may be shown."""

    units: ShortIntegers  # shape (rows,): the unit of each row, numbered 0, 1, ...; ascending
    names: Integers  # shape (units,): hash of each unit's name; all 0 if each row is a unit
    max_rows: int | None  # largest number of rows of a unit; None if unknown
    # bounded columns, and dates in seconds, within their bounds; NaN if missing
    numbers: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    # int8, int16 or int32: index of each value among the declared categories, or code of each text; -1 if missing
    codes: dict[str, Codes] = field(default_factory=dict)
    texts: dict[str, StringCodes] = field(default_factory=dict)  # the code of each text, for each text column
    grids: dict[str, Bounded] = field(default_factory=dict)  # the declarations of Bounded columns
    derived: frozenset[str] = frozenset()  # columns that do not decide the ranks of rows
    added: Mapping[str, int] = field(default_factory=dict)  # columns that order equal rows only, and in which order
    # for the columns of `prepare_comparisons`; see `dpnb._backends.memory.codes`
    coarse_codes: dict[str, CodeArray] = field(default_factory=dict, init=False)
    _steps: dict[str, ShortIntegers] = field(default_factory=dict, init=False)

    @property
    def rows(self) -> int:
        """Number of rows that count."""
        return len(self.units)

    @property
    def nbytes(self) -> int:
        """Memory of the columns."""
        columns: list[NDArray[Any]] = [self.units, *self.numbers.values(), *self.codes.values()]
        return sum(column.nbytes for column in columns)

    @property
    def rows_are_units(self) -> bool:
        """Whether the row with index i is the only one of unit i."""
        return self.max_rows == 1 and self.rows == len(self.names)

    def steps(self, name: str) -> ShortIntegers | None:
        """A Bounded column in grid steps, computed when a query first sums it; None for other columns."""
        if name in self.grids and name not in self._steps:
            self._steps[name] = self._grid_steps(name)
        return self._steps.get(name)

    def prepare_comparisons(self, condition: Expression | None) -> None:
        """Compute the coarse codes with which the kernels evaluate a condition.

        Not thread-safe: to be called before the blocks of a query are begun.
        """
        if kernels_for() is not None:
            for name in sorted((ordered_columns(condition) & self.grids.keys()) - self.coarse_codes.keys()):
                self.coarse_codes[name] = coarse_codes(self.numbers[name], self.grids[name])

    def _grid_steps(self, name: str) -> ShortIntegers:
        steps, numbers, column = np.empty(self.rows, np.int32), self.numbers[name], self.grids[name]

        def fill(part: slice) -> None:
            steps[part] = grid.to_grid(numbers[part], column)

        by_blocks(fill, even_blocks(self.rows))
        return steps

    @cached_property
    def ranks(self) -> ShortIntegers:
        """The rank of each row among its unit's rows."""
        blocks = blocks_of(self.units, ROWS_AT_ONCE)

        def within(part: slice) -> ShortIntegers:
            return self.ranks_within(np.arange(part.start, part.stop), self.units[part])

        return np.concatenate(by_blocks(within, blocks))

    def ranks_within(self, rows: Integers, units: ShortIntegers) -> ShortIntegers:
        """The ranks of some rows, which are all rows of these units."""
        return ranks(units.astype(np.int64), self.names.take(units), *self.contents(rows)).astype(np.int32)

    def contents(self, rows: Integers) -> tuple[list[Integers], list[NDArray[Any]]]:
        """The contents of some rows, column by column: integers, and what these do not distinguish."""
        contents = [self._content(name, rows) for name in self.hashed]
        # The values themselves distinguish numbers within one grid step, and times within one second.
        finer: list[NDArray[Any]] = [self._number(name, rows) for name in self.hashed if name in self.numbers]
        for name in sorted(self.added, key=self.added.__getitem__):
            finer += [self._content(name, rows), *([self._number(name, rows)] if name in self.numbers else [])]
        return contents, finer

    def _number(self, name: str, rows: Integers) -> NDArray[np.float64]:
        return np.nan_to_num(self.numbers[name].take(rows))

    @property
    def hashed(self) -> list[str]:
        """The columns that are hashed beside the unit's name, in this order."""
        return sorted({*self.numbers, *self.codes} - self.derived - self.added.keys())

    def hash_terms(self) -> list[Callable[[slice], Integers]]:
        """For each hashed column what `weighted` returns for a block of rows."""
        weights = dict(zip(self.hashed, weights_of(1 + len(self.hashed))[1:], strict=True))

        def of_codes(name: str) -> Callable[[slice], Integers]:
            by_code = weighted(self.values_by_code(name), *weights[name])  # once for each category and text
            return lambda part: by_code.take(self.codes[name][part])

        def of_numbers(name: str) -> Callable[[slice], Integers]:
            return lambda part: weighted(self.steps_or_times(name, self.numbers[name][part]), *weights[name])

        return [of_codes(name) if name in self.codes else of_numbers(name) for name in self.hashed]

    @cached_property
    def complete(self) -> frozenset[str]:
        """Columns of numbers without missing values."""

        def is_complete(values: NDArray[np.float64]) -> bool:
            return all(by_blocks(lambda part: not np.isnan(values[part]).any(), even_blocks(self.rows)))

        return frozenset(name for name, values in self.numbers.items() if is_complete(values))

    def blocks_for(self, numbers: int, rows: int | None = None) -> list[slice]:
        """Blocks of whole units, for a query whose answer has this many numbers; by default of `ROWS_AT_ONCE` rows."""
        return blocks_of(self.units, max(numbers, ROWS_AT_ONCE if rows is None else rows))

    def _content(self, name: str, rows: Integers) -> Integers:
        """A column as non-negative integers that do not depend on other units, 0 if missing; for texts their hashes."""
        if name in self.codes:
            return self.values_by_code(name).take(self.codes[name].take(rows))
        return self.steps_or_times(name, self.numbers[name].take(rows))

    def values_by_code(self, name: str) -> Integers:
        """The integer of each code, and at the end, where -1 finds it, that of a missing value."""
        if name in self.texts:
            return np.append(self.texts[name].hashes % 2**32 + 1, 0)
        return np.append(np.arange(1, 1 + int(self.codes[name].max(initial=-1)) + 1), 0)

    def steps_or_times(self, name: str, values: NDArray[np.float64]) -> Integers:
        """The integers of some values of a column of numbers, 0 if missing."""
        if name in self.grids:
            steps = grid.to_grid(values, self.grids[name]).astype(np.int64)
            steps += 2**grid.BITS + 1
            steps[np.isnan(values)] = 0
            return steps
        return np.where(np.isnan(values), 0, np.floor(np.nan_to_num(values)).astype(np.int64) % 2**32 + 1)

    def counts(self, units: int) -> Integers:
        """The number of rows of each of the `units` units."""
        return np.bincount(self.units, minlength=units)

    def of_units(self, units: slice) -> PreparedTable:
        """The rows of some units."""
        start, stop = np.searchsorted(self.units, np.array([units.start, units.stop], self.units.dtype)).tolist()
        return self.taken(slice(start, stop))

    def taken(self, rows: Integers | slice) -> PreparedTable:
        """Some of the rows, in the given order; a row may occur several times."""
        numbers = {name: values[rows] for name, values in self.numbers.items()}
        codes = {name: values[rows] for name, values in self.codes.items()}
        return replace(self, units=self.units[rows], numbers=numbers, codes=codes)


def prepare(table: Any, schema: Schema, unit: PrivacyUnit) -> PreparedTable:
    """Copy the columns of the schema from one data frame; see `prepare_all`."""
    return prepare_all({"": table}, {"": schema}, {"": unit})[""]


def prepare_all(
    tables: Mapping[str, Any], schemas: Mapping[str, Schema], units: Mapping[str, PrivacyUnit], added: Added = ()
) -> dict[str, PreparedTable]:
    """Copy the columns of the schemas from data frames that share a privacy unit.

    The frames are those of pandas, or of any library that narwhals can read column by column; later changes of them
    have no effect.  Raises `SchemaError` if one is not a data frame, or a column is missing or occurs twice; any other
    error is an `ExecutionError` with one constant text.
    """
    columns = {}
    for name, table in tables.items():
        if not hasattr(table, "columns") or not hasattr(table, "__len__"):
            which = f"table {name!r}" if name else "table"
            raise SchemaError(f"{which}: must be a data frame; got {type(table).__name__}; pass the frame itself")
        unit = units[name].column
        columns[name] = columns_of(table, name, [*schemas[name], *([unit] if unit else [])])
    return run_guarded(lambda: _prepare_all(columns, schemas, units, added), READING_FAILED)


def columns_of(table: Any, table_name: str, wanted: list[str]) -> dict[str, Values]:
    """Columns of a data frame by their names; see `prepare_all` for the errors."""
    # The `columns` of pyarrow are the values.  pandas allows duplicate names, with which narwhals cannot read a frame.
    labels = table.column_names if is_pyarrow_table(table) else getattr(table, "columns", ())
    names = [name for name in labels if isinstance(name, str)]
    for name in wanted:
        if names.count(name) != 1:
            which = f"the table {table_name!r}" if table_name else "the table"
            if name in names:
                raise SchemaError(f"column {name!r}: is in {which} more than once; rename or drop the others")
            refuse_absent(name, names, which, table)
    if len(set(names)) < len(names):  # narwhals reads no frame with columns of one name, declared or not
        table = table.select(wanted) if is_pyarrow_table(table) else table[wanted]
    with isolated_numeric_settings():
        frame = run_guarded(lambda: nw.from_native(table, eager_only=True, pass_through=True), READING_FAILED)
        return run_guarded(lambda: {name: column_of(frame.get_column(name)) for name in wanted}, READING_FAILED)


@at(Stage.PREPARING)
@isolated_numeric_settings()
def _prepare_all(
    columns: dict[str, dict[str, Values]],
    schemas: Mapping[str, Schema],
    units: Mapping[str, PrivacyUnit],
    added: Added,
) -> dict[str, PreparedTable]:
    if sum(_rows(values) for values in columns.values()) > MAX_ROWS:
        raise OverflowError
    numbered = _numbered({name: _unit_values(columns[name], units[name]) for name in columns})
    tables = {}
    # What a step no longer needs is released before the next: two copies of a column, or three of the order, may not
    # fit the memory.
    for name in list(columns):
        order, names = numbered.pop(name)
        table = _table(columns.pop(name), schemas[name], order, names, orders_of(added, name))
        fine = order.fine
        del order
        kept = _first_rows(table, units[name], fine)
        if kept is not None:
            table = replace(table, units=where_true(table.units, kept))
            fine = np.flatnonzero(kept).astype(np.int32) if fine is None else where_true(fine, kept)
            del kept
        if fine is not None:
            _reorder(table, fine)
        tables[name] = replace(table, max_rows=units[name].max_rows)
    return tables


def _table(
    columns: dict[str, Values], schema: Schema, order: UnitOrder, names: Integers, added: Mapping[str, int]
) -> PreparedTable:
    """All rows that have a unit; `units` in their final order, the columns after the first step towards it."""
    table = PreparedTable(order.units, names, None, added=added)

    def ordered(codes: Codes) -> Codes:
        return codes if order.coarse is None else gathered(codes, order.coarse)

    for name, column in schema.items():
        values = columns.pop(name)
        if isinstance(column, Categories):
            table.codes[name] = ordered(codes_of(values, column))
        elif isinstance(column, Text):
            codes, code_of = texts(values)
            table.codes[name], table.texts[name] = ordered(codes), StringCodes(code_of)
        else:
            table.numbers[name] = _clamped(values, column, order.coarse)
            if isinstance(column, Bounded):
                table.grids[name] = column
    return table


def _first_rows(table: PreparedTable, unit: PrivacyUnit, order: ShortIntegers | None) -> NDArray[np.bool_] | None:
    """Which rows of what `_table` returned count, in the final order, to which `order` leads; None if all do."""
    if unit.column is None or unit.max_rows is None:
        return None
    return first_rows(table.units, table.names, unit.max_rows, order, table.hash_terms, table.ranks_within)


def _reorder(table: PreparedTable, order: ShortIntegers) -> None:
    """Replace the columns of a table, but not its units, by their values at some indices, one column after another."""
    for name in table.numbers:
        table.numbers[name] = gathered(table.numbers[name], order)
    for name in table.codes:
        table.codes[name] = gathered(table.codes[name], order)


def _clamped(values: Values, column: Bounded | Dates, order: ShortIntegers | None) -> NDArray[np.float64]:
    """Numbers, or times in seconds, within the declared bounds, in the order of the rows; NaN if missing."""
    read = reader_of(column)
    if isinstance(values, DictionaryColumn):
        values, read = by_value(read, values), np.asarray  # already converted; `seconds` of doubles would be missing
    single, numbers = values, np.empty(len(values) if order is None else len(order))

    def fill(part: slice) -> None:
        own = numbers[part]
        values = read(single[part] if order is None else single.take(order[part]))
        np.clip(values, column.low, column.high, out=own)
        if column.outside == "drop":
            own[own != values] = np.nan
        if isinstance(column, Bounded) and column.integer:
            np.round(own, out=own)

    by_blocks(fill, even_blocks(len(numbers)))
    return numbers


def units_named(
    tables: Mapping[str, Any], units: Mapping[str, PrivacyUnit], is_name: Callable[[Any], bool]
) -> list[int]:
    """The units with some name, as numbered by `prepare_all` for the same tables in the same order.

    `is_name` is called with values that `unit_labels` returned.  Raises as `prepare_all`.
    """
    values: dict[str, Values] = {}
    for name, table in tables.items():
        column = units[name].column
        if column is not None:
            values[name] = unit_labels(columns_of(table, name, [column])[column], units[name].type)
    distinct = run_guarded(lambda: distinct_unit_ids(_concatenated(values))[1], READING_FAILED)
    return [number for number, value in enumerate(distinct) if is_name(plain(value))]


def _unit_values(columns: dict[str, Values], unit: PrivacyUnit) -> Values | int:
    """The value that identifies each row's unit; the number of rows if each row is a unit."""
    return _rows(columns) if unit.column is None else unit_labels(columns[unit.column], unit.type)


def _rows(columns: dict[str, Values]) -> int:
    return len(next(iter(columns.values())))


def _numbered(values: dict[str, Values | int]) -> dict[str, tuple[UnitOrder, Integers]]:
    """For each table the order of its rows by their units, numbered over all tables; and the hashes of the names."""
    numbered: dict[str, tuple[UnitOrder, Integers]] = {
        name: (UnitOrder(np.arange(rows, dtype=np.int32), None, None), np.broadcast_to(np.int64(0), (rows,)))
        for name, rows in values.items()
        if isinstance(rows, int)
    }
    named = {name: column for name, column in values.items() if not isinstance(column, int)}
    if named:
        codes, names = assign_unit_ids(_concatenated(named))
        ends = np.cumsum([len(column) for column in named.values()]).tolist()
        for name, (start, end) in zip(named, pairwise([0, *ends]), strict=True):
            numbered[name] = order_by_unit(codes[start:end]), names
    return numbered


def _concatenated(named: Mapping[str, Values]) -> Values:
    """The unit columns of all tables as one; as objects if their types differ, so that no value changes."""
    columns = list(named.values())
    if len(columns) == 1:
        return columns[0]
    single = [column.values[column.codes] if isinstance(column, DictionaryColumn) else column for column in columns]
    kinds = {column.dtype.kind for column in single}
    return np.concatenate(single if len(kinds) == 1 else [column.astype(object) for column in single])
