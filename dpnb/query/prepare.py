"""A data frame becomes columns that the schema describes.  Reads rows; says nothing about them.

Row evaluation is total: what the schema cannot use (text in a number column, infinities, nulls, undeclared
categories, rows without a unit) does not count, and is never an error, a warning or a message.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_pyarrow_table
from numpy.typing import NDArray

from dpnb.errors import SchemaError
from dpnb.query import grid
from dpnb.query.blocks import ROWS_AT_ONCE, blocks_of, by_blocks, even_blocks
from dpnb.query.contribution import Integers, name_number, ranks
from dpnb.query.guard import guarded
from dpnb.query.schema import Bounded, Categories, Dates, Schema, Text, plain
from dpnb.query.unit import PrivacyUnit
from dpnb.query.values import (
    Codes,
    array_of,
    codes_of,
    distinct_units,
    floats,
    number_units,
    seconds,
    texts,
    unit_names,
)
from dpnb.stages import Stage, at

Steps = NDArray[np.int32]

DIGIT_BITS = 16

READING_FAILED = "reading the table failed; nothing was charged and nothing of the table is shown"


@dataclass(frozen=True, repr=False)
class Prepared:
    """The rows that count, column by column.  A private value: it has no repr, and none of it may be shown.

    Parameters
    ----------
    units : int64 array, shape (rows,)
        Whose row it is, 0, 1, ..., ascending.
    names : int64 array, shape (rows,)
        The unit's name as a portable integer; all 0 where each row is a unit.
    most : int or None
        No unit has more rows than this.
    numbers : dict of str to float64 array
        Bounded columns, clamped, and dates in seconds, clamped; NaN where there is nothing.
    steps : dict of str to int32 array
        Bounded columns in grid steps.
    codes : dict of str to int8, int16 or int32 array
        Categories columns: position in the declared list; text columns: position in the table's list; -1 for nothing.
    texts : dict of str to dict
        The table's list of each text column: position by text.
    """

    units: Integers
    names: Integers
    most: int | None
    numbers: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    steps: dict[str, Steps] = field(default_factory=dict)
    codes: dict[str, Codes] = field(default_factory=dict)
    texts: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Number of rows that count."""
        return len(self.units)

    @cached_property
    def ranks(self) -> Integers:
        """The place of each row among its unit's rows."""
        return np.concatenate(by_blocks(self._ranks, blocks_of(self.units, ROWS_AT_ONCE)))

    def _ranks(self, part: slice) -> Integers:
        contents = [self._content(name, part) for name in sorted({*self.numbers, *self.codes})]
        # Numbers within one step of the grid, and moments within a second, are told apart by themselves.
        finer = [np.nan_to_num(self.numbers[name][part]) for name in sorted(self.numbers)]
        return ranks(self.units[part], self.names[part], contents, finer)

    @cached_property
    def complete(self) -> frozenset[str]:
        """Columns of numbers in which no row lacks one."""
        return frozenset(name for name, values in self.numbers.items() if not np.isnan(values).any())

    def blocks_for(self, numbers: int) -> list[slice]:
        """Blocks of whole units, for a question of so many numbers."""
        return blocks_of(self.units, max(numbers, ROWS_AT_ONCE))

    def _content(self, name: str, part: slice) -> Integers:
        """A column as non-negative integers, 0 for nothing; of texts what does not depend on other units."""
        if name in self.texts:
            numbers = self._text_numbers[name]
            return np.asarray(numbers[self.codes[name][part]])
        if name in self.codes:
            return self.codes[name][part].astype(np.int64) + 1
        if name in self.steps:
            return np.where(
                np.isnan(self.numbers[name][part]), 0, self.steps[name][part].astype(np.int64) + 2**grid.BITS + 1
            )
        seconds = self.numbers[name][part]
        return np.where(np.isnan(seconds), 0, np.floor(np.nan_to_num(seconds)).astype(np.int64) % 2**32 + 1)

    @cached_property
    def _text_numbers(self) -> dict[str, Integers]:
        return {
            name: np.array([*(name_number(text) % 2**32 + 1 for text in texts), 0], np.int64)
            for name, texts in self.texts.items()
        }

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
    # pyarrow's `columns` are the values.  Names of pandas' may be there twice, which narwhals refuses to read.
    listed = table.column_names if is_pyarrow_table(table) else getattr(table, "columns", ())
    names = [name for name in listed if isinstance(name, str)]
    for name in wanted:
        if names.count(name) != 1:
            # The table's other names are not listed: in a pivoted table a column's name is data.
            which = f"the table {of!r}" if of else "the table"
            fault = f"is in {which} more than once" if name in names else f"is not in {which}"
            raise SchemaError(f"column {name!r}: {fault}; schema and privacy_unit name columns of the table")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = guarded(lambda: nw.from_native(table, eager_only=True, pass_through=True), READING_FAILED)
        return guarded(lambda: {name: array_of(frame.get_column(name)) for name in wanted}, READING_FAILED)


@at(Stage.PREPARING)
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
    # Rows in the order of their units, which makes what is done unit by unit quick; nothing depends on positions.
    order = _order(units)
    if order is not None:
        units, names = units[order], names[order]
    table = Prepared(units, names, None)
    for name, column in schema.items():
        values = columns[name]
        if isinstance(column, Categories):
            codes = codes_of(values, column)
            table.codes[name] = codes if order is None else codes[order]
        elif isinstance(column, Text):
            codes, table.texts[name] = texts(values)
            table.codes[name] = codes if order is None else codes[order]
        else:
            numbers = seconds(values) if isinstance(column, Dates) else floats(values)
            table.numbers[name] = numbers if order is None else numbers[order]
            table.numbers[name], steps = _bounded(table.numbers[name], column)
            if steps is not None:
                table.steps[name] = steps
    if most is not None:
        crowded = np.flatnonzero((np.bincount(table.units) > most)[table.units]) if table.rows else table.units[:0]
        kept = np.ones(table.rows, np.bool_)
        kept[crowded] = table.taken(crowded).ranks < most
        table = replace(table if kept.all() else table.taken(np.flatnonzero(kept)), most=most)
    return table


def _order(units: Integers) -> Integers | None:
    """Where the rows stand that have a unit, unit by unit; None if all rows stand so already."""
    known = None if units.min(initial=0) >= 0 else np.flatnonzero(units >= 0)
    units = units if known is None else units[known]
    if (units[1:] >= units[:-1]).all():
        return known
    # By the last digit first: numpy sorts numbers of 16 bits without comparing them.
    order = np.argsort(units.astype(np.uint16), kind="stable")
    for bits in range(DIGIT_BITS, int(units.max()).bit_length(), DIGIT_BITS):
        order = order[np.argsort((units[order] >> bits).astype(np.uint16), kind="stable")]
    return order if known is None else known[order]


def _bounded(values: NDArray[np.float64], column: Bounded | Dates) -> tuple[NDArray[np.float64], Steps | None]:
    """Numbers, clamped, and in grid steps if the column has them."""
    numbers = np.empty(len(values))
    steps = np.empty(len(values), np.int32) if isinstance(column, Bounded) else None

    def fill(part: slice) -> None:
        numbers[part] = np.clip(values[part], column.low, column.high)
        if isinstance(column, Bounded):
            if column.whole:
                np.round(numbers[part], out=numbers[part])
            if steps is not None:
                steps[part] = grid.to_grid(numbers[part], column)

    by_blocks(fill, even_blocks(len(values)))
    return numbers, steps


def units_named(tables: Mapping[str, Any], units: Mapping[str, PrivacyUnit], named: Callable[[Any], bool]) -> list[int]:
    """The units of some name, by the numbers that `prepare_all` gives them in the same tables, in the same order.

    Parameters
    ----------
    tables : mapping of str to data frame
    units : mapping of str to PrivacyUnit
        With a column each.
    named : callable
        Of the value that tells a unit from the others, as `unit_names` gives it: whether it is the name.

    Raises
    ------
    SchemaError, ExecutionError
        As `prepare_all`.
    """
    values: dict[str, NDArray[Any]] = {}
    for name, table in tables.items():
        column = units[name].column
        if column is not None:
            values[name] = unit_names(_columns(table, name, [column])[column])
    distinct = guarded(lambda: distinct_units(np.concatenate(_together(values)))[1], READING_FAILED)
    return [number for number, value in enumerate(distinct) if named(plain(value))]


def _unit_values(columns: dict[str, NDArray[Any]], unit: PrivacyUnit) -> NDArray[Any] | int:
    """What names each row's unit; the number of rows where each row is one."""
    return len(next(iter(columns.values()))) if unit.column is None else unit_names(columns[unit.column])


def _numbered(values: dict[str, NDArray[Any] | int]) -> dict[str, tuple[Integers, Integers]]:
    """Number the units of all tables 0, 1, ..., -1 where there is none, and give their names as portable integers."""
    numbered = {
        name: (np.arange(rows), np.broadcast_to(np.int64(0), (rows,)))
        for name, rows in values.items()
        if isinstance(rows, int)
    }
    named = {name: column for name, column in values.items() if not isinstance(column, int)}
    if named:
        together = _together(named)
        codes, names = number_units(np.concatenate(together))
        ends = np.cumsum([len(column) for column in together])
        for name, end, column in zip(named, ends, together, strict=True):
            part = slice(end - len(column), end)
            numbered[name] = codes[part], names[part]
    return numbered


def _together(named: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """Columns whose values are to be told apart across tables; of one type, so that no value changes on the way."""
    kinds = {column.dtype.kind for column in named.values()}
    return [column if len(kinds) == 1 else column.astype(object) for column in named.values()]
