"""A table that stays in its engine: its columns as the schema describes them, without reading a row.

The values that count are the same as in memory (`dpnb._backends.memory.prepare.prepared_table`), but an engine's
columns have declared types: a column whose type cannot hold what the schema declares is refused.  No value is null in a
prepared column: a missing value is replaced by a placeholder within the column's bounds, and marked by a column of
truth values.  So the engines' different treatments of nulls, NaN and division by zero do not matter.  Columns are
prepared where a query needs them, if possible after its filter.

A lookup of public values is a join with a small table of them, which takes as long for a hundred thousand values as for
ten.  These tables are kept in the engine for later queries.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import narwhals as nw

from dpnb._backends.column_types import StorageType, refuse_absent, refuse_mismatch, storage_type_of
from dpnb._backends.lazy import arithmetic
from dpnb._backends.lazy.contribution import ranked
from dpnb._backends.lazy.engines.engine import Engine, LazyFrame
from dpnb._compile import grid
from dpnb._plan.constants import values_of
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import SchemaError
from dpnb.schema import Bounded, Categories, ColumnType, Dates, Schema, Text

# --- lookups of public values -----------------------------------------------------------------------------------------


MAX_TABLES = 32
"""Tables that are kept, the most recently used."""


class PublicTables:
    """The small tables with which the tables of an engine are joined, each made when it is first needed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tables: OrderedDict[tuple[Any, ...], LazyFrame] = OrderedDict()

    def with_values(
        self, frame: LazyFrame, column: str, keys: Sequence[Any], values: Sequence[Any], default: Any, to: str
    ) -> LazyFrame:
        """The frame with the value of each key of a column, as another column.

        The keys are distinct texts, doubles or integers, as the column contains; their values are integers or doubles.
        Anything else has the value `default`.
        """
        if not keys:
            return frame.with_columns(nw.lit(default).alias(to))
        are_codes = isinstance(keys[0], int) and isinstance(values[0], int) and default == -1
        if are_codes and [*values] == [*range(len(keys))] and all(b - a == 1 for a, b in pairwise(keys)):
            return frame.with_columns(arithmetic.code_of_consecutive(nw.col(column), keys[0], keys[-1]).alias(to))
        found = self._engine.with_matches(frame, column, self._table(frame, keys, values), to)
        return found.with_columns(nw.col(to).fill_null(default))

    def _table(self, frame: LazyFrame, keys: Sequence[Any], values: Sequence[Any]) -> LazyFrame:
        name = type(keys[0]), type(values[0]), tuple(keys), tuple(values)
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = self._engine.public_table(frame, {"key": keys, "value": values})
            while len(self._tables) > MAX_TABLES:
                self._tables.popitem(last=False)
        self._tables.move_to_end(name)
        return table


# --- a table that stays in its engine ---------------------------------------------------------------------------------


UNIT, NAME = "unit", "name"
"""Columns: the unit's name, and its portable number."""

PLACE = "place"
"""A column with the order of a unit's rows that are equal; see `dpnb._backends.lazy.within`."""

HASH_BITS = 32

MAX_DOUBLE = sys.float_info.max


@dataclass(frozen=True, repr=False)
class LazyTable:
    """The rows that count, in their engine.  A private value: it has no repr, and none of it may be shown."""

    engine: Engine
    # For each column of the schema ``<stem>``: the number, the seconds, the text or the value of a category, as it is
    # in the table.  ``unit`` and ``name`` unless each row is a unit.
    frame: LazyFrame
    stems: dict[str, str]  # of each column of the schema
    codes: dict[str, dict[Any, int]]  # of the declared values that a column with categories can contain, by its stem
    public: PublicTables
    schema: Schema
    has_units: bool  # False if each row is a unit
    max_rows: int | None  # largest number of rows of a unit; None if unknown
    is_prepared: bool = False  # the frame has all columns as queries use them, and no others
    derived: frozenset[str] = frozenset()  # columns that do not decide the ranks of rows
    added: Mapping[str, int] = field(default_factory=dict)  # columns that order equal rows only, and in which order
    is_numbered: bool = False  # has column `PLACE`
    kept_bytes: int = 0  # memory of the rows, if they are values within units that are kept in the engine

    @property
    def unit_kind(self) -> StorageType | None:
        """The kind of the identifiers of units; None if each row is a unit."""
        return storage_type_of(self.frame.collect_schema()[UNIT]) if self.has_units else None

    def prepared(self, frame: LazyFrame, name: str) -> LazyFrame:
        """A frame with a column as queries use it.

        For numbers and times ``<stem>_value`` within the bounds, and ``<stem>_present``; likewise for texts; for
        categories ``<stem>_code``, -1 if the value is not declared.
        """
        column, stem = self.schema[name], self.stems[name]
        if self.is_prepared:
            return frame
        if isinstance(column, Categories):
            codes = self.codes[stem]
            return self.public.with_values(frame, stem, list(codes), list(codes.values()), -1, f"{stem}_code")
        if isinstance(column, Text):
            frame, present = self.engine.well_formed(frame, [stem]), ~nw.col(stem).is_null()
            text = nw.when(present).then(nw.col(stem)).otherwise(nw.lit(""))
            return frame.with_columns(**{f"{stem}_value": text, f"{stem}_present": present})
        return frame.with_columns(**_within(stem, column, self.engine))

    def present(self, name: str) -> nw.Expr:
        """Where a column that is not one of categories has a value that counts."""
        column, stem = self.schema[name], self.stems[name]
        # From the table's own column, so that an engine can leave out the other rows before it computes anything.
        is_raw = isinstance(column, Bounded | Dates) and not self.is_prepared
        return _present(stem, column) if is_raw else nw.col(f"{stem}_present")  # type: ignore[arg-type]

    def prepared_columns(self) -> list[str]:
        """The names of all columns as queries use them."""
        names = [*([UNIT, NAME] if self.has_units else []), *([PLACE] if self.is_numbered else [])]
        for name, stem in self.stems.items():
            column = self.schema[name]
            parts = ["code"] if isinstance(column, Categories) else ["value", "present"]
            names += [f"{stem}_{part}" for part in [*parts, *(["hash"] if isinstance(column, Text) else [])]]
        return names

    def all_prepared(self) -> LazyTable:
        """The table with only its prepared columns."""
        if self.is_prepared:
            return self
        return replace(self, frame=self.with_contents()[0].select(*self.prepared_columns()), is_prepared=True)

    def unclamped(self, name: str, constant: float) -> tuple[nw.Expr, float, float] | None:
        """A column as it is in the table, if that is above a constant wherever the column is, and below it likewise.

        Clamping to bounds on both sides of the constant moves no number past it.  With the least and the greatest
        number that counts.  None for other columns.
        """
        column = self.schema[name]
        if self.is_prepared or not isinstance(column, Bounded) or column.integer:
            return None
        return (nw.col(self.stems[name]), *_counting(column)) if column.low < constant < column.high else None

    def with_contents(self) -> tuple[LazyFrame, dict[str, nw.Expr], dict[str, nw.Expr]]:
        """The frame with all columns prepared and a unit's rows together, and a row's columns for `ranked`."""
        # If the number of rows of a unit is bounded, choosing its rows has already brought them together.
        frame = self.engine.by_unit(self.frame) if self.has_units and self.max_rows is None else self.frame
        for name in self.stems:
            frame = self.prepared(frame, name)
        texts = [self.stems[name] for name, column in self.schema.items() if isinstance(column, Text)]
        if texts and not self.is_prepared:
            frame = self.engine.hashed(frame, {f"{stem}_value": f"{stem}_hash" for stem in texts})
        return frame, *self.contents()

    def contents(self) -> tuple[dict[str, nw.Expr], dict[str, nw.Expr]]:
        """A row's columns as integers below 2**33, 0 for missing, and what these do not distinguish; as in memory."""
        contents, finer = self._contents(sorted(self.stems.keys() - self.derived - self.added.keys()))
        for name in sorted(self.added, key=self.added.__getitem__):
            finer |= {key: value for part in self._contents([name]) for key, value in part.items()}
        return contents, finer | ({f"f_{PLACE}": nw.col(PLACE)} if self.is_numbered else {})

    def _contents(self, names: Sequence[str]) -> tuple[dict[str, nw.Expr], dict[str, nw.Expr]]:
        """Some columns as integers, and the unrounded numbers."""
        contents: dict[str, nw.Expr] = {}
        finer: dict[str, nw.Expr] = {}
        for name in names:
            column, stem = self.schema[name], self.stems[name]
            value, present = nw.col(f"{stem}_value"), nw.col(f"{stem}_present")
            if isinstance(column, Categories):
                contents[f"c_{stem}"] = nw.col(f"{stem}_code") + 1
                continue
            if isinstance(column, Text):
                content = nw.col(f"{stem}_hash") % 2**HASH_BITS + 1
            else:
                finer[f"f_{stem}"] = nw.when(present).then(value).otherwise(nw.lit(0.0))
                if isinstance(column, Bounded):
                    content = arithmetic.to_grid(value, column) + (2**grid.BITS + 1)
                else:
                    whole = value.floor()
                    quotient = (whole * 2.0**-HASH_BITS).floor()
                    content = (whole - quotient * 2.0**HASH_BITS).cast(nw.Int64) + 1
            contents[f"c_{stem}"] = nw.when(present).then(content).otherwise(nw.lit(0))
        return contents, finer

    def with_ranks(self) -> LazyTable:
        """The table with the rank of each row among its unit's rows, from 1, as column ``rank``."""
        kept = self.frame.collect_schema().names()
        return replace(self, frame=ranked(self.engine, *self.with_contents()).select(*kept, "rank"))


Share = tuple[int, int]
"""Index and number of shares of the units; a unit's share is the remainder of its portable number."""


def engine_table(
    engine: Engine, native: Any, schema: Schema, unit: PrivacyUnit, added: Mapping[str, int], share: Share | None = None
) -> LazyTable:
    """The columns in the schema as expressions of an engine, for all units or a share of them; reads no row.

    All rows of a unit: those that count are chosen by `dpnb._backends.lazy.units`.  Raises `SchemaError` if a
    column is missing, or has a type that cannot hold what the schema declares.
    """
    if len(schema) > engine.most_columns:
        raise SchemaError(
            f"schema: must have at most {engine.most_columns} columns of a table in {engine.label}; got {len(schema)}; "
            "declare those that are asked about"
        )
    frame = engine.opened(native)
    types = frame.collect_schema()
    for name in [*schema, *([unit.column] if unit.column else [])]:
        if name not in types:
            refuse_absent(name, [*types])
    stems = {name: f"c{index}" for index, name in enumerate(sorted(schema))}
    for name, column in schema.items():
        _refuse_type(name, column, types[name], engine)
    if unit.column is not None:
        _refuse_unit(unit, types[unit.column], engine)
    # Only the required columns, renamed to avoid names that the engine or this module might use.
    selected = {f"r{stem}": nw.col(name) for name, stem in stems.items()}
    if unit.column is not None:
        selected["runit"] = nw.col(unit.column)
    frame = frame.select(**selected)
    dated = {f"r{stems[name]}": f"m{stems[name]}" for name, column in schema.items() if isinstance(column, Dates)}
    frame = engine.microseconds(frame, dated) if dated else frame
    if unit.column is not None:
        if types[unit.column] == nw.String:
            frame = engine.well_formed(frame, ["runit"])
        frame = frame.filter(~nw.col("runit").is_null())
    columns: dict[str, nw.Expr] = {}
    codes: dict[str, dict[Any, int]] = {}
    for name, column in schema.items():
        stem = stems[name]
        raw = nw.col(f"r{stem}")
        if isinstance(column, Categories):
            columns[stem], codes[stem] = _categories(raw, column, types[name])
        elif isinstance(column, Text):
            columns[stem] = raw.cast(nw.String)
        elif isinstance(column, Dates):
            micros = nw.col(f"m{stem}")
            if column.clock is not None and not getattr(types[name], "time_zone", None):
                micros = arithmetic.to_instants(micros, column.clock)
            columns[stem] = engine.divided(micros.cast(nw.Float64), 1e6)
        else:
            columns[stem] = raw.cast(nw.Float64)
    if unit.column is not None:
        columns[UNIT] = nw.col("runit").cast(nw.String if _is_text(types[unit.column]) else nw.Int64)
    frame = engine.exact(frame.with_columns(**columns).select(*columns))
    if unit.column is not None and types[unit.column].is_integer():
        frame = frame.with_columns(**{NAME: _number_of_integer(nw.col(UNIT))})
    elif unit.column is not None:
        frame = engine.hashed(frame, {UNIT: NAME})
    if share is not None:
        frame = frame.filter(nw.col(NAME) % share[1] == share[0])
    table = LazyTable(
        engine, frame, stems, codes, PublicTables(engine), schema, unit.column is not None, None, added=added
    )
    return replace(table, max_rows=1) if unit.column is None else table


# --- types and values of columns --------------------------------------------------------------------------------------


UNSIGNED = "unsigned 64-bit integers are not offered"
NUMBERS = f"numbers of up to 64 bits ({UNSIGNED})"
"""Said whatever the type of the column is: it may have been inferred from rows."""

_REMEDY = "cast it in the engine first, and check the values that cannot be cast"


def _refuse_type(name: str, column: ColumnType, dtype: Any, engine: Engine) -> None:
    """Refuse a type that cannot match on any backend, or that this engine cannot read as a table in memory would."""
    refuse_mismatch(name, column, storage_type_of(dtype))
    if isinstance(column, Bounded):
        fits, needed = (dtype.is_numeric() and not _too_wide(dtype)) or dtype == nw.Boolean, NUMBERS
    elif isinstance(column, Dates):
        naive = isinstance(dtype, nw.Datetime) and dtype.time_zone is None and engine.name == "pyspark"
        fits, needed = dtype.is_temporal() and dtype in (nw.Date, nw.Datetime) and not naive, "dates or timestamps"
        needed = "dates or timestamps with a time zone" if engine.name == "pyspark" else needed
    elif isinstance(column, Text):
        fits, needed = (
            _is_text(dtype) or (dtype.is_integer() and not _too_wide(dtype)),
            f"texts or whole numbers ({UNSIGNED})",
        )
    else:
        number = dtype.is_float() or (dtype.is_integer() and not _too_wide(dtype)) or dtype == nw.Boolean
        fits, needed = number or _is_text(dtype), f"{NUMBERS}, truth values or texts"
    if not fits:
        kind = type(column).__name__
        # The type is not named: it may have been inferred from rows, and may list its values.
        raise SchemaError(f"column {name!r}: {kind} needs a column of {needed} in {engine.name}; {_REMEDY}")


def _refuse_unit(unit: PrivacyUnit, dtype: Any, engine: Engine) -> None:
    is_text, is_integer = _is_text(dtype), dtype.is_integer() and not _too_wide(dtype)
    if not (is_integer and unit.type != "text") and not (is_text and unit.type != "integer"):
        words = {"text": "texts", "integer": f"whole {NUMBERS}"}
        needed = words.get(str(unit.type), f"texts, or of whole {NUMBERS},")
        raise SchemaError(f"privacy_unit {unit.column!r}: must be a column of {needed} in {engine.name}; {_REMEDY}")


def _too_wide(dtype: Any) -> bool:
    return dtype in (nw.UInt64, nw.Int128, nw.UInt128)


def _is_text(dtype: Any) -> bool:
    return dtype in (nw.String, nw.Categorical) or isinstance(dtype, nw.Enum)


def _within(stem: str, column: Bounded | Dates, engine: Engine) -> dict[str, nw.Expr]:
    """Values and where they are present, by a column's bounds and its `outside`."""
    number, low, high = nw.col(stem), nw.lit(float(column.low)), nw.lit(float(column.high))
    at_least_low = nw.when(number >= column.low).then(number).otherwise(low)
    value = nw.when(number > column.high).then(high).otherwise(at_least_low)
    if isinstance(column, Bounded) and column.integer:
        value = arithmetic.rounded(value, 0, engine)
    return {f"{stem}_value": value, f"{stem}_present": _present(stem, column)}


def _present(stem: str, column: Bounded | Dates) -> nw.Expr:
    """Where a number counts: comparisons alone, which engines do while they read.  To them NaN is above all others."""
    least, most = _counting(column)
    return ~nw.col(stem).is_null() & (nw.col(stem) >= least) & (nw.col(stem) <= most)


def _counting(column: Bounded | Dates) -> tuple[float, float]:
    """The least and the greatest number that counts."""
    drops = column.outside == "drop"
    return (float(column.low), float(column.high)) if drops else (-MAX_DOUBLE, MAX_DOUBLE)


def _categories(raw: nw.Expr, column: Categories, dtype: Any) -> tuple[nw.Expr, dict[Any, int]]:
    """A column of values, and the codes of those that it can contain and that count."""
    known = values_of(column.values)
    if _is_text(dtype):
        return raw.cast(nw.String), dict(known.texts)
    if dtype.is_float():
        return raw.cast(nw.Float64), {float(key): code for key, code in known.numbers.items() if float(key) == key}
    integers = {int(key): code for key, code in known.numbers.items() if key == int(key)}
    return raw.cast(nw.Int64), {key: code for key, code in integers.items() if -(2**63) <= key < 2**63}


def _number_of_integer(unit: nw.Expr) -> nw.Expr:
    """The absolute value modulo 2**60, for every 64-bit integer."""
    below = -(unit + 1)  # for negative integers; never overflows
    return (
        nw.when(unit < 0)
        .then((nw.when(unit < 0).then(below).otherwise(nw.lit(0)) % 2**60 + 1) % 2**60)
        .otherwise(nw.when(unit < 0).then(nw.lit(0)).otherwise(unit) % 2**60)
    )
