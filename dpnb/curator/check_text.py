"""A check of a table, and a drafted declaration, as plain text, for the curator alone."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from shlex import quote

from dpnb._plan.privacy_unit import ContributionBounds
from dpnb.curator.check import Check, CheckedColumn, CheckedTable
from dpnb.curator.check_advice import describe_bounds_of_column
from dpnb.curator.draft import Draft, DraftColumn, DraftTable
from dpnb.curator.draft_toml import arguments_of, given_tables
from dpnb.curator.tally import MAX_LENGTH
from dpnb.errors import printable
from dpnb.render.tables import table_text
from dpnb.schema import Bounded, Categories, ColumnType, Dates
from dpnb.session.declaration import PLACEHOLDER

WIDTH = 100
CheckRow = tuple[str, ...]

ALONE = (
    "COMPUTED FROM THE ROWS, without noise: for the curator alone. Do not show it to the analyst, and keep it out of "
    "notebooks, logs and shared folders."
)
PRIVATE = "These counts are private: correct mistakes by them, but tune no bound, category or limit to them."

CHECK_HEAD = ("column", "declared as", "count", "clamped", "dropped", "missing", "do not count")


def check_text(check: Check) -> str:
    """The whole check; characters from the table or the file that would move a terminal's cursor are escaped."""
    lines = [*wrapped(f"Check of {check.declaration}"), *wrapped(ALONE), ""]
    for table in check.tables:
        lines += [*_table(table, _units(table), CHECK_HEAD, map(_checked_column, table.columns)), ""]
    lines += [*wrapped(PRIVATE), ""]
    if check.changes is not None and check.changes.sentences:
        said = [line for one in check.changes.sentences for line in wrapped(one, "", "  " * one.startswith("- "))]
        lines += [*wrapped(f"What it would change in the ledger {check.changes.path}:"), *said, ""]
    for title, to_fix in (("To fix", True), ("To know", False)):
        chosen = [one for one in check.advice if one.to_fix is to_fix]
        if chosen:
            lines += [
                f"{title}:",
                *(line for one in chosen for line in wrapped(f"{one.location}: {one.text}", "- ", "  ")),
                "",
            ]
    end = ["Nothing has to be fixed."] if check.fine else []
    return "\n".join([*lines, *end, *wrapped(ALONE)])


def _table(table: CheckedTable | DraftTable, what: str, head: CheckRow, rows: Iterable[CheckRow]) -> list[str]:
    name = f"Table {table.name}" if table.name else "Table"
    cells = [[*map(printable, row)] for row in (head, *rows)]
    return [*wrapped(f"{name}, {table.file}: {what}"), *table_text(cells, left=(0, 1))]


def _units(table: CheckedTable) -> str:
    summary, column = table.units, table.unit.column
    if summary is None:
        return "the units of its rows cannot be identified"
    rows = f"{summary.rows:,} rows"
    if column is None:
        return f"{rows}, each of them a unit"
    text = f"{rows} of {summary.units:,} units ({column}); {summary.rows_without_unit:,} rows without a unit"
    if table.unit.max_rows is not None:
        text += f", {summary.beyond:,} beyond {table.unit.max_rows:,} rows per unit"
    if table.unit.contribution_bounds != ContributionBounds():
        text += "; what its other limits exclude depends on the query and is not counted here"
    return text


def _checked_column(column: CheckedColumn) -> CheckRow:
    tally = column.tally
    if tally is None:
        return (column.name, _declared(column.column), *("-",) * 5)
    figures = tally.counts, tally.outside - tally.dropped, tally.dropped, tally.missing, tally.unusable
    return (column.name, _declared(column.column), *(f"{figure:,}" for figure in figures))


def _declared(column: ColumnType) -> str:
    if isinstance(column, Bounded):
        return f"{'whole ' if column.integer else ''}numbers {describe_bounds_of_column(column)}"
    if isinstance(column, Dates):
        return f"dates in {column.zone}, {describe_bounds_of_column(column)}"
    if isinstance(column, Categories):
        return f"{len(column.values)} categories"
    return "text" if column.max_length is None else f"text, lengths up to {column.max_length:,}"


def wrapped(text: str, first: str = "", others: str = "") -> list[str]:
    """Lines of a paragraph."""
    wrapper = textwrap.TextWrapper(WIDTH, first, others, break_long_words=False, break_on_hyphens=False)
    return wrapper.wrap(printable(text))


# --- a drafted declaration --------------------------------------------------------------------------------------------


DRAFT_HEAD = ("column", "stored as", "missing", "different values", "rows per value", "smallest", "largest")

NEVER = (
    "These values are private. Do not copy them into the declaration: bounds and categories are public and not charged "
    "to any budget. Take bounds and categories from a codebook, a law or a unit of measurement, and use these values "
    "only to recognise the columns."
)

TYPES = {
    False: "storage types only",
    True: "the types that most values look like, which the file marks: confirm each from the table's documentation",
}

FIRST_LINE = (
    "The column names were taken from the first line of the file. If that line is a row, delete the declaration, add "
    "a line with names to the table, and draft it again."
)


SERVE = "https://github.com/dpnb/dpnb/blob/main/docs/how-to/serve.md"


def draft_text(draft: Draft) -> str:
    """What was written, what the tables hold, and what to do next."""
    given = {table.name: table.given for table in draft.tables}
    return "\n".join([
        *wrapped(f"{draft.declaration} was written, with column names and {TYPES[draft.probable]}."),
        *wrapped(ALONE),
        "",
        *(line for table in draft.tables for line in (*_drafted_table(table), "")),
        *wrapped(NEVER),
        "",
        "Next:",
        *wrapped(f"edit {draft.declaration}: replace every {PLACEHOLDER!r}", "1. ", "   "),
        f"2. python -m dpnb check {quote(printable(draft.declaration))} {printable(arguments_of(given))}",
        f'3. in a notebook: session = dpnb.Session.from_toml("{printable(draft.declaration)}", {given_tables(given)})',
        f"   or behind a service, with the same place as data = in curator.toml: {SERVE}",
    ])  # fmt: skip


def _drafted_table(table: DraftTable) -> list[str]:
    lines = _table(table, f"{table.rows:,} rows", DRAFT_HEAD, map(_drafted_column, table.columns))
    if table.is_text:
        lines += wrapped(FIRST_LINE)
    if table.omitted:
        lines += wrapped(f"Omitted, since their names cannot be declared: {', '.join(table.omitted)}.")
    return lines


def _drafted_column(column: DraftColumn) -> CheckRow:
    return (
        column.name,
        column.kind or "not stated",
        f"{column.missing:,}",
        "-" if column.distinct is None else f"{column.distinct:,}",
        "-" if column.most_rows is None else f"at most {column.most_rows:,}",
        _value(column.low),
        _value(column.high),
    )


def _value(value: object) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}..."
