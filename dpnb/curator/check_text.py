"""A check of a table as plain text, for the curator alone."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from dpnb._plan.privacy_unit import ContributionBounds
from dpnb._plan.schema import Bounded, Categories, ColumnType, Dates
from dpnb.curator.check import Check, CheckedColumn, CheckedTable
from dpnb.curator.check_advice import describe_bounds_of_column
from dpnb.errors import printable
from dpnb.render.tables import table_text

WIDTH = 100

ALONE = (
    "COMPUTED FROM THE ROWS, without noise: for the curator alone. Do not show it to the analyst, and keep it out of "
    "notebooks, logs and shared folders."
)
PUBLIC = (
    "Bounds and categories are public: correct mistakes, but do not fit them to these figures, which are not charged "
    "to any budget."
)

HEAD = ("column", "declared as", "count", "clamped", "dropped", "missing", "do not count")


def check_text(check: Check) -> str:
    """The whole check; characters from the table or the file that would move a terminal's cursor are escaped."""
    lines = [*wrapped(f"Check of {check.declaration}"), *wrapped(ALONE), ""]
    for table in check.tables:
        lines += [*_table(table), ""]
    for title, to_fix in (("To fix", True), ("To know", False)):
        chosen = [one for one in check.advice if one.to_fix is to_fix]
        if chosen:
            lines += [
                f"{title}:",
                *(line for one in chosen for line in wrapped(f"{one.location}: {one.text}", "- ", "  ")),
                "",
            ]
    end = "Nothing has to be fixed." if check.fine else PUBLIC
    return "\n".join([*lines, *wrapped(end), *wrapped(ALONE)])


def _table(table: CheckedTable) -> list[str]:
    name = f"Table {table.name}" if table.name else "Table"
    return [*wrapped(f"{name}, {table.file}: {_units(table)}"), *_columns(table.columns)]


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


def _columns(columns: Sequence[CheckedColumn]) -> list[str]:
    return table_text([[*map(printable, row)] for row in (HEAD, *map(_column, columns))], left=(0, 1))


def _column(column: CheckedColumn) -> tuple[str, ...]:
    tally = column.tally
    if tally is None:
        return (column.name, _declared(column.column), *("-",) * 5)
    figures = tally.counts, tally.outside - tally.dropped, tally.dropped, tally.missing, tally.unusable
    return (column.name, _declared(column.column), *(f"{figure:,}" for figure in figures))


def _declared(column: ColumnType) -> str:
    if isinstance(column, Bounded):
        return f"{'whole ' if column.integer else ''}numbers {describe_bounds_of_column(column)}"
    if isinstance(column, Dates):
        return f"dates {describe_bounds_of_column(column)}"
    if isinstance(column, Categories):
        return f"{len(column.values)} categories"
    return "text" if column.max_length is None else f"text, lengths up to {column.max_length:,}"


def wrapped(text: str, first: str = "", others: str = "") -> list[str]:
    """Lines of a paragraph."""
    wrapper = textwrap.TextWrapper(WIDTH, first, others, break_long_words=False, break_on_hyphens=False)
    return wrapper.wrap(printable(text))
