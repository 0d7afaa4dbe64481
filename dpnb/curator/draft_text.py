"""What a drafted table holds, as plain text for the curator alone."""

from __future__ import annotations

from pathlib import Path

from dpnb.curator.check_text import ALONE, wrapped
from dpnb.curator.draft import Draft, DraftColumn, DraftTable
from dpnb.curator.tally import MAX_LENGTH
from dpnb.errors import printable
from dpnb.render.tables import table_text
from dpnb.session.placeholders import PLACEHOLDER
from dpnb.session.table_files import format_of

HEAD = ("column", "stored as", "missing", "different values", "rows per value", "smallest", "largest")

NEVER = (
    "These values are private. Do not copy them into the declaration: bounds and categories are public and not charged "
    "to any budget. Take bounds and categories from a codebook, a law or a unit of measurement, and use these values "
    "only to recognise the columns."
)

FIRST_LINE = (
    "The column names were taken from the first line of the file. If that line is a row, delete the declaration, add "
    "a line with names to the table, and draft it again."
)


def draft_text(draft: Draft) -> str:
    """What was written, what the tables hold, and what to do next."""
    names = " ".join(f"{table.name}={table.file}" if table.name else table.file for table in draft.tables)
    return "\n".join([
        *wrapped(f"{draft.declaration} was written, with column names and storage types only."),
        *wrapped(ALONE),
        "",
        *(line for table in draft.tables for line in (*_table(table), "")),
        *wrapped(NEVER),
        "",
        "Next:",
        *wrapped(f"edit {draft.declaration}: replace every {PLACEHOLDER!r}", "1. ", "   "),
        f"2. python -m dpnb check {printable(draft.declaration)} {printable(names)}",
        f'3. in a notebook: session = dpnb.Session.from_toml("{printable(draft.declaration)}", table)',
    ])  # fmt: skip


def _table(table: DraftTable) -> list[str]:
    name = f"Table {table.name}" if table.name else "Table"
    lines = wrapped(f"{name}, {table.file}: {table.rows:,} rows")
    lines += table_text([[*map(printable, row)] for row in (HEAD, *map(_column, table.columns))], left=(0, 1))
    if format_of(Path(table.file)) == ".csv":
        lines += wrapped(FIRST_LINE)
    if table.omitted:
        lines += wrapped(f"Omitted, since their names cannot be declared: {', '.join(table.omitted)}.")
    return lines


def _column(column: DraftColumn) -> tuple[str, ...]:
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
