"""What a curator should do about a column that does not match its declaration."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import Any

import narwhals as nw

from dpnb._backends.column_types import SHOWN, StorageType, matches, remedy
from dpnb._backends.reading import USUAL
from dpnb._backends.source_table import TextTable
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb._sources.source import DataSource
from dpnb._sources.text_file import probable_reading
from dpnb.curator.tally import ColumnSummary, UnitSummary, values_that_count
from dpnb.errors import SchemaError
from dpnb.schema import Bounded, Categories, ColumnType, Dates, Key, Text
from dpnb.session.backup import was_served
from dpnb.session.declaration import Declaration
from dpnb.times import END_OF_DAY, UTC_ZONE, is_utc

MANY = Fraction(1, 20)
"""If more than this share of the values does not count, the advice is to fix them, otherwise only to know of them."""

MANY_OUTSIDE = Fraction(1, 5)
"""The same for values outside the bounds, which are often intended: narrow bounds make answers less noisy."""

TRUTH = {"yes": True, "no": False, "y": True, "n": False, "true": True, "false": False, "t": True, "f": False}
"""Words for truth values, in lower case."""

WRITTEN = (("yes", "no"), ("y", "n"), ("t", "f"))
"""Other words for truth values in texts; also capitalized and in upper case."""


@dataclass(frozen=True, repr=False)
class CheckAdvice:
    """One thing to fix or to know.  For the curator alone."""

    location: str  # file and line of the declaration
    text: str
    to_fix: bool  # False for information only


def about_absent(location: str, name: str, columns: Sequence[object]) -> CheckAdvice:
    """Advice about a declared column that is missing from the table, or occurs more than once."""
    if list(columns).count(name) > 1:
        return CheckAdvice(location, f"column {name!r}: is in the table more than once; rename the others", to_fix=True)
    names = {one.strip().casefold(): one for one in columns if isinstance(one, str)}
    near = get_close_matches(name.strip().casefold(), names, 1)
    hint = f"; did you mean {names[near[0]]!r}? Spell it as in the table" if near else "; correct the name"
    return CheckAdvice(location, f"column {name!r}: is declared but not in the table{hint}", to_fix=True)


def about_column(location: str, frame: Any, name: str, column: ColumnType, summary: ColumnSummary) -> list[CheckAdvice]:
    """Advice about a column that is in the table."""
    if not summary.present:
        problem = "the table has no rows" if not summary.rows else f"all of its {summary.rows:,} values are missing"
        return [CheckAdvice(location, f"column {name!r}: {problem}; is it the right file?", to_fix=True)]
    if isinstance(column, Categories):
        advice = [*_categories(frame, name, column, summary)]
    else:
        as_text = () if isinstance(frame, TextTable) else _as_text(column, summary)
        zone = _zone(frame, name, column) if isinstance(column, Dates) else ()
        advice = [*_unusable(column, summary), *_outside(column, summary), *zone, *as_text, *_lengths(column)]
    return [CheckAdvice(location, f"column {name!r}: {text}", to_fix) for text, to_fix in advice]


def about_separator(location: str, source: DataSource, frame: Any) -> list[CheckAdvice]:
    """Advice about a text file whose lines are not divided into fields: no column is found then."""
    if not isinstance(frame, TextTable) or len(frame.header) != 1:
        return []
    probable = probable_reading(source.path).separator
    if probable not in frame.header[0]:
        return []
    text = f"its fields are separated by {probable!r}; {_write(separator=probable)}"
    return [CheckAdvice(location, f"{source.words}: {text}", to_fix=True)]


def about_file(location: str, source: DataSource, frame: Any, unusable: Mapping[type, int]) -> list[CheckAdvice]:
    """Advice about lines and values of a text file that could not be read.

    `unusable` has the numbers of values that do not count, by the type of their columns.
    """
    if not isinstance(frame, TextTable):
        return []
    unreadable, declared, probable = frame.unreadable, frame.reading, probable_reading(source.path)
    encoding = "convert the file to UTF-8"
    if probable.encoding != USUAL.encoding:
        encoding = _write(encoding=probable.encoding)
    faults = (
        (
            unreadable.quotes,
            "lines have an open or misplaced quotation mark and are dropped; a record is one line, so if texts hold "
            "line breaks, convert the table to Parquet: the lines of such a text may count as rows of other units",
        ),
        (unreadable.fields, "lines do not have as many fields as the first line and are dropped; correct them"),
        (unreadable.values, f"lines have values that are not {declared.encoding.upper()} and are missing; {encoding}"),
    )
    advice = [
        (f"{_share(count, unreadable.lines)} {text}", count > MANY * unreadable.lines)
        for count, text in faults
        if count
    ]
    if "\N{REPLACEMENT CHARACTER}" in "".join(frame.header):
        advice.append((f"its first line is not {declared.encoding.upper()}; {encoding}", True))
    if unusable.get(Bounded) and probable.decimal != declared.decimal:
        advice.append((f"its decimal mark is {probable.decimal!r}; {_write(decimal=probable.decimal)}", True))
    if unusable.get(Dates) and probable.date_format not in (declared.date_format, USUAL.date_format):
        words = f"its dates are written as {probable.date_format}"
        advice.append((f"{words}; {_write(date_format=probable.date_format)}", True))
    return [CheckAdvice(location, f"{source.words}: {text}", to_fix) for text, to_fix in advice]


def _write(**key: str) -> str:
    ((name, value),) = key.items()
    return f"write {name} = {_toml(value)} below the name of the declaration"


def about_units(stated: Declaration, name: str, unit: PrivacyUnit, summary: UnitSummary) -> list[CheckAdvice]:
    """Advice about rows that do not count because of their unit."""
    of = f" of table {name!r}" if name else ""
    advice = []
    if summary.rows_without_unit:
        text = (
            f"privacy_unit {unit.column!r}: is missing in {_share(summary.rows_without_unit, summary.rows)} rows{of}, "
            "which do not count; fill it in, or remove these rows"
        )
        to_fix = summary.rows_without_unit > MANY * summary.rows
        advice.append(CheckAdvice(stated.locate("privacy_unit"), text, to_fix))
    if summary.beyond:
        text = (
            f"max_rows_per_unit: {_share(summary.beyond, summary.rows)} rows{of} exceed {unit.max_rows:,} per unit and "
            "do not count; a larger limit counts more of them and makes every answer noisier"
        )
        advice.append(CheckAdvice(stated.locate("max_rows_per_unit", name), text, to_fix=False))
    return advice


def about_snapshot(stated: Declaration, ledger: str) -> list[CheckAdvice]:
    """Advice about a database whose version a service has read already: the rows that are checked are others."""
    version = str(stated.arguments().get("version", "1"))
    if not was_served(ledger, version):
        return []
    text = (
        f"version: {version!r} was served before, and a service goes on with what it read then, not with these rows; "
        "python -m dpnb refresh reads the database under a new version"
    )
    return [CheckAdvice(stated.locate("version"), text, to_fix=False)]


def _unusable(column: ColumnType, summary: ColumnSummary) -> Iterator[tuple[str, bool]]:
    if not summary.unusable:
        return
    what = {Bounded: "finite numbers", Dates: "dates"}.get(type(column), "texts")
    problem = (
        f"{_share(summary.unusable, summary.present)} values are not {what} and do not count: {_examples(summary)}"
    )
    if isinstance(column, Dates) and summary.kind == "texts":
        fix = (
            "write them as 1974-11-01 or 1974-11-01T08:30, for example with pandas.to_datetime(column, format=...), or "
            "declare how a CSV file writes them, as in date_format = 'DD.MM.YYYY'"
        )
    elif summary.kind is not None and not summary.counts and not matches(column, summary.kind):
        fix = remedy(column, summary.kind)
    else:
        fix = f"convert them to {what} in the table, or list in missing = what means a missing value"
    yield f"{problem}; {fix}", summary.unusable > MANY * summary.present


def _outside(column: ColumnType, summary: ColumnSummary) -> Iterator[tuple[str, bool]]:
    if isinstance(column, Dates) and summary.above and not summary.dropped and summary.above <= MANY * summary.present:
        last = column.last.removesuffix(END_OF_DAY)
        text = (
            f"{_share(summary.above, summary.present)} dates are after {last} and count as if they were on that day; a "
            "new version= may have a later last ="
        )
        yield text, False
    if isinstance(column, Bounded | Dates) and summary.outside > MANY * summary.present:
        become = "do not count" if summary.dropped else "count as the nearer bound"
        text = (
            f"{_share(summary.outside, summary.present)} values are outside {describe_bounds_of_column(column)} "
            f"({summary.below:,} below, {summary.above:,} above) and {become}; if the bounds are wrong (another scale, "
            "a placeholder like 9999), correct them from public knowledge, not from these rows"
        )
        yield text, summary.outside > MANY_OUTSIDE * summary.present


def _zone(frame: Any, name: str, column: Dates) -> Iterator[tuple[str, bool]]:
    """In which zone times without one are read, and in which the hours of others are, if the table has another one."""
    dtype = "texts" if isinstance(frame, TextTable) else nw.from_native(frame, eager_only=True).get_column(name).dtype
    stored = dtype.time_zone if isinstance(dtype, nw.Datetime) else None
    if column.zone == UTC_ZONE and stored and not is_utc(stored):
        text = (
            f"its times are stored in {stored}, and hours and days are in UTC; add zone = {_toml(stored)} if they "
            f"should be those of {stored}"
        )
        yield text, True
    elif column.zone != UTC_ZONE and not stored:
        text = (
            f"times that state no distance from UTC are read as local times of {column.zone}; if they are in UTC, say "
            "so in the table, for example with pandas.to_datetime(column, utc=True)"
        )
        yield text, False


def describe_bounds_of_column(column: Bounded | Dates) -> str:
    """The bounds in words; an upper bound at the end of a day is written as that day."""
    if isinstance(column, Bounded):
        return f"{column.low:g} to {column.high:g}"
    return f"{column.first} to {column.last.removesuffix(END_OF_DAY)}"


def _as_text(column: ColumnType, summary: ColumnSummary) -> Iterator[tuple[str, bool]]:
    if isinstance(column, Bounded) and not summary.unusable and summary.kind == "texts":
        text = (
            "its numbers are written as texts; they count, but a session refuses them if the container declares texts "
            "(Parquet, polars, DuckDB, Spark); convert them to numbers in the table"
        )
        yield text, False


def _lengths(column: ColumnType) -> Iterator[tuple[str, bool]]:
    if isinstance(column, Text) and column.max_length is None:
        text = (
            "has no max_length, so queries of the lengths of its texts are refused; if analysts need lengths, add a "
            "line such as max_length = 200, from knowledge outside the table (the width of a form or database field)"
        )
        yield text, False


# --- categories ------------------------------------------------------------------------------------------------------


def _categories(frame: Any, name: str, column: Categories, summary: ColumnSummary) -> Iterator[tuple[str, bool]]:
    if summary.unusable:
        undeclared = f"{_share(summary.unusable, summary.present)} values match none of the categories"
        other = _better(frame, name, column, summary)
        text = f"{undeclared}: {_examples(summary)}; {other or _hint(column, summary)}"
        yield text, other is not None or summary.unusable > MANY * summary.present
    if summary.absent and summary.counts:
        yield f"no row has {_listed(summary.absent)}; check the spelling, unless that is expected", False


def _better(frame: Any, name: str, column: Categories, summary: ColumnSummary) -> str | None:
    """Advice to declare the categories as values of another type, if more values would then count."""
    best, fix = summary.counts, None
    for words, keys in _as_other_types(column.values):
        try:
            count = values_that_count(frame, name, Categories(keys))
        except SchemaError:  # two categories become equal, or a number cannot be a category
            continue
        if count > best:
            best, then = count, _share(count, summary.present)
            fix = f"write the categories as {words}, values = [{_listed(keys)}]: then {then} count"
    return fix


def _as_other_types(keys: Sequence[Key]) -> list[tuple[StorageType, tuple[Key, ...]]]:
    """The categories as values of each type that they could have."""
    choices: list[tuple[StorageType, tuple[Key, ...]]] = []
    if all(key in (0, 1) for key in keys):
        for pair in WRITTEN:
            for write in (str, str.capitalize, str.upper):
                choices.append(("texts", tuple(write(pair[key == 0]) for key in keys)))
    texts = [str(key).strip().casefold() for key in keys]
    if all(text in TRUTH for text in texts):
        choices.append(("truth values", tuple(TRUTH[text] for text in texts)))
    return choices


def _hint(column: Categories, summary: ColumnSummary) -> str:
    """What to do about values that match no category under any type."""
    declared = {str(key).strip().casefold(): key for key in column.values}
    for text, _ in summary.examples:
        near = get_close_matches(text.strip("'\"").strip().casefold(), declared, 1, 0.8)
        if near:
            return f"{text} is not {_toml(declared[near[0]])}: use one spelling"
    if summary.kind is not None and not summary.counts and not matches(column, summary.kind):
        return remedy(column, summary.kind)
    return "declare them if they are publicly known to occur; otherwise leave them undeclared"


def _toml(key: Key) -> str:
    return json.dumps(key, ensure_ascii=False)


def _listed(keys: Sequence[Key]) -> str:
    return ", ".join(map(_toml, keys[:SHOWN])) + (", ..." if len(keys) > SHOWN else "")


# --- words -----------------------------------------------------------------------------------------------------------


def _share(some: int, of: int) -> str:
    return f"{some:,} of {of:,}"


def _examples(summary: ColumnSummary) -> str:
    return ", ".join(f"{text} ({count:,})" for text, count in summary.examples)
