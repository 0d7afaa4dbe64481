"""A first declaration of a table, for its curator to complete.

The file has column names and storage types only (`draft_toml`); of a file that states none, types that most values
look like.  What the rows hold goes to the curator's terminal (`draft_text`): it helps to recognise a column, and
must not become its bounds or categories.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpnb._backends.column_types import declared_type, zone_of_column
from dpnb._backends.memory.prepare.values import floats, seconds
from dpnb._backends.reading import USUAL, Reading, Wanted
from dpnb._backends.source_table import SourceTable, TextTable
from dpnb._sources.formats import read_tables
from dpnb._sources.source import DataSource, named_source
from dpnb._sources.text_file import iso_dates, probable_reading, with_point
from dpnb.curator.check import FROM_ROWS
from dpnb.curator.draft_toml import ColumnKind, ProbableType, can_declare, draft_toml, is_probable
from dpnb.curator.kernel import refuse_in_kernel
from dpnb.errors import CheckError, SchemaError


@dataclass(frozen=True, repr=False)
class DraftColumn:
    """One column, with what its rows hold.  For the curator alone."""

    name: str
    kind: ColumnKind  # None if neither the file states one, nor most values have one
    missing: int  # nulls
    distinct: int | None  # number of different values; None if the values cannot be compared
    most_rows: int | None  # largest number of rows that have the same value
    low: object  # smallest value; None if they have no order
    high: object  # largest value, likewise


@dataclass(frozen=True, repr=False)
class DraftTable:
    """One table.  For the curator alone."""

    name: str  # empty for a single table
    file: str
    given: str  # as the curator wrote it
    is_text: bool  # whether its lines are read as texts
    rows: int
    columns: tuple[DraftColumn, ...]  # those that can be declared
    omitted: tuple[str, ...]  # names of the others, as Python writes them


@dataclass(frozen=True, repr=False)
class Draft:
    """A draft that was written.  For the curator alone: it has no repr."""

    declaration: str  # path
    tables: tuple[DraftTable, ...]  # with what their rows hold; nothing of this is in the file, but probable types

    @property
    def probable(self) -> bool:
        """Whether the file has types that most values look like."""
        return any(is_probable(column.kind) for table in self.tables for column in table.columns)


def draft(tables: Sequence[str], output: str | None = None) -> Draft:
    """Write the declaration of some tables, to be completed by the curator.

    Each table is ``FILE``, or ``NAME=FILE`` if there are several.  The declaration must not exist; by default it has
    the name of the first table with ``.toml``, in the working directory.  A notebook kernel is refused.
    """
    refuse_in_kernel("draft", FROM_ROWS, CheckError)
    sources = _sources(tables)
    name = _session_name(next(iter(sources.values())))
    path = Path(output if output is not None else f"{name}.toml")
    if path.exists():
        raise _refused(path, "exists already")
    reading = _reading(sources.values())
    frames = read_tables(sources, "table", {table: Wanted(reading=reading) for table in sources})
    declared = {
        table: {
            column: declared_type(frame, column) or probable_type(frame, column)
            for column in frame.columns
            if can_declare(column)
        }
        for table, frame in frames.items()
    }
    zones = {table: _zones(frame) for table, frame in frames.items()}
    text = draft_toml(name, path.name, declared, {table: _short(one) for table, one in sources.items()}, zones, reading)
    summaries = tuple(
        DraftTable(
            table,
            sources[table].words,
            sources[table].written,
            isinstance(frame, TextTable),
            len(frame),
            tuple(_column(frame, column, kind) for column, kind in declared[table].items()),
            tuple(repr(column) for column in frame.columns if not can_declare(column)),
        )
        for table, frame in frames.items()
    )
    _write(path, text)
    return Draft(str(path), summaries)


MOST = Fraction(19, 20)
"""Share of the values that have the type that is proposed: a few odd values decide it only at the threshold."""

ALL_BUT_ODD = Fraction(999, 1000)
"""Share of the numbers that are whole if whole numbers are proposed, which rounds all others."""

CODE = re.compile("0[0-9]+")
"""A text of digits that is no number: without its first zero it would be another code."""

FEW_NUMBERS, FEW_TEXTS = 12, 50
"""Largest numbers of different values of which categories are proposed."""


def probable_type(table: SourceTable, name: str) -> ProbableType | None:
    """The type that most values of a column without a type look like; None if it has no values."""
    if [*table.columns].count(name) != 1:
        return None
    found = Counter(table[name].dropna())
    if not found:
        return None
    values, counts = [*found], np.array([*found.values()])
    reading = table.reading if isinstance(table, TextTable) else USUAL
    numbers = floats(np.array(_with_points(values, reading), object))
    times = seconds(np.array([*map(iso_dates(reading.date_format), map(str, values))], object))
    there = ~np.isnan(numbers) & [CODE.fullmatch(str(value)) is None for value in values]
    if _share(there, counts) >= MOST:
        if _share(numbers[there] % 1 == 0, counts[there]) < ALL_BUT_ODD:
            return "bounded"
        return "categories" if len(set(numbers[there])) <= FEW_NUMBERS else "integer"
    if _share(~np.isnan(times), counts) >= MOST:
        return "dates"
    return "categories" if len(values) <= FEW_TEXTS and 2 * len(values) <= counts.sum() else "text"


def _with_points(values: Iterable[Any], reading: Reading) -> list[Any]:
    """Values, of which those that are texts of numbers have a decimal point."""
    return [*values] if reading.decimal == USUAL.decimal else [*map(with_point, values)]


def _reading(sources: Iterable[DataSource]) -> Reading:
    """How the first of the CSV files is probably to be read."""
    files = [one.path for one in sources if not one.scheme and one.path.is_file()]
    first = next((file for file in files if ".csv" in map(str.lower, file.suffixes)), None)
    return USUAL if first is None else probable_reading(first)


def _share(chosen: NDArray[np.bool_], counts: NDArray[np.int64]) -> Fraction:
    return Fraction(int(counts[chosen].sum()), int(counts.sum()))


def _sources(arguments: Sequence[str]) -> dict[str, DataSource]:
    """The source of each table, by name; the name of a single table is empty."""
    if len(arguments) == 1 and (not named_source(arguments[0])[0] or Path(arguments[0]).exists()):
        return {"": DataSource.parse(arguments[0], argument="table")}
    sources: dict[str, DataSource] = {}
    for argument in arguments:
        name, source = named_source(argument)
        if not name or name in sources:
            raise SchemaError(
                f"table: each of several tables must be NAME=FILE, with different names; got {argument!r}; write for "
                "example visits=visits.parquet"
            )
        sources[name] = DataSource.parse(source, argument="table")
    return sources


def _short(source: DataSource) -> str:
    """A source without the folder of a file, nor what a query asks for."""
    return (
        f"{source.words}{'#SELECT ...' if source.query else ''}"
        if source.scheme
        else replace(source, location=source.path.name).words
    )


def _zones(frame: Any) -> dict[str, str]:
    """The zones that the types of columns of times state."""
    columns = (column for column in frame.columns if isinstance(column, str))
    return {column: zone for column in columns if (zone := zone_of_column(frame, column)) is not None}


def _session_name(source: DataSource) -> str:
    stem = source.table or source.path.resolve().name.split(".")[0]
    return re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-") or "table"


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:  # never overwrites
            file.write(text)
    except OSError as error:
        is_there = isinstance(error, FileExistsError)
        raise _refused(path, "exists already" if is_there else f"cannot be written ({error.strerror})") from None


def _refused(path: Path, fault: str) -> SchemaError:
    return SchemaError(f"--output: {str(path)!r} {fault}; give another file with --output FILE, or remove this one")


def _column(frame: Any, name: str, kind: ColumnKind) -> DraftColumn:
    try:
        series = nw.from_native(frame, eager_only=True).get_column(name)
    except Exception:  # noqa: BLE001  (the name occurs twice, for example)
        return DraftColumn(name, kind, 0, None, None, None, None)
    present = series.drop_nulls()
    if is_probable(kind) and pd.api.types.infer_dtype(present.to_native()) == "string":
        present = _readable(present, frame.reading if isinstance(frame, TextTable) else USUAL)
    counts = _tried(lambda: present.value_counts(name="rows of a value").get_column("rows of a value"))
    low, high = _tried(lambda: (present.min(), present.max())) or (None, None)
    return DraftColumn(
        name=name,
        kind=kind,
        missing=len(series) - len(present),
        distinct=None if counts is None else len(counts),
        most_rows=None if counts is None or not len(counts) else int(counts.max()),
        low=low,
        high=high,
    )


def _readable(texts: Any, reading: Reading) -> Any:
    """Texts as numbers or dates in ISO 8601, if all are, so that the smallest and the largest are those of these."""
    plain = texts.to_native()
    written = pd.Series(_with_points(plain, reading), dtype=object)
    numbers = _tried(lambda: nw.from_native(pd.to_numeric(written), series_only=True))
    return nw.from_native(plain.map(iso_dates(reading.date_format)), series_only=True) if numbers is None else numbers


def _tried(compute: Any) -> Any:
    """A figure, or None for values that cannot be compared."""
    try:
        return compute()
    except Exception:  # noqa: BLE001  (libraries raise many types)
        return None
