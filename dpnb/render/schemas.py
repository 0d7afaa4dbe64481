"""The declared columns of a session's tables, and explanations, as text and as HTML."""

from __future__ import annotations

from html import escape

from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import printable
from dpnb.render.page import FAINT, box_html, title_html, with_notice
from dpnb.render.tables import LEFT, WIDTH, Shown, facts_part, shown_as, table_text
from dpnb.results.display import Explanation, to_html, to_text
from dpnb.results.schema import TableSchema, TablesSchema
from dpnb.schema import Bounded, Categories, ColumnType, Dates, Key, Text
from dpnb.times import END_OF_DAY

# --- explanations as text and as HTML ---------------------------------------------------------------------------------


@shown_as(Explanation)
def _explanation(explanation: Explanation) -> Shown:
    column = max((len(name) for name, _ in explanation.facts), default=0) + 4
    return Shown(explanation.notice, explanation.words, "", [facts_part(explanation.facts, column, WIDTH)])


# --- the declared columns of a session's tables as text and as HTML ---------------------------------------------------


HEAD = ("column", "type", "values", "outside the bounds", "counts as missing")

MAX_LISTED = 60
"""Characters of a list of categories that are shown; the type itself has all of them."""

MISSING = "A row with a missing value in a column counts in every query that does not use the column."

COUNTS = {"clamp": "counts as the nearer bound", "drop": "counts as missing"}


def _of_tables(schema: TableSchema | TablesSchema) -> tuple[str | None, list[TableSchema]]:
    tables = [schema] if isinstance(schema, TableSchema) else [*schema.values()]
    return next((table.notice for table in tables), None), tables


def _text(schema: TableSchema | TablesSchema) -> str:
    notice, tables = _of_tables(schema)
    return with_notice(notice, ["\n\n".join("\n".join(_schema_lines(table)) for table in tables)])


def _html(schema: TableSchema | TablesSchema) -> str:
    notice, tables = _of_tables(schema)
    return box_html(notice, "", *(part for table in tables for part in _parts(table)))


for kind in (TableSchema, TablesSchema):
    to_text.register(kind, _text)
    to_html.register(kind, _html)


def _schema_lines(schema: TableSchema) -> list[str]:
    rows = [[*map(printable, row)] for row in (HEAD, *_rows(schema))]
    facts = [f"  {printable(fact)}" for fact in _facts(schema)]
    return [printable(_title(schema)), *table_text(rows, left=range(len(HEAD)), indent="  "), *facts]


def _parts(schema: TableSchema) -> tuple[str, str, str]:
    heads = "".join(f'<th style="{LEFT}">{escape(name)}</th>' for name in HEAD)
    body = "".join(
        "<tr>" + "".join(f'<td style="{LEFT};vertical-align:top">{escape(cell)}</td>' for cell in row) + "</tr>"
        for row in _rows(schema)
    )
    table = f'<table style="margin:4px 0"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
    facts = "".join(f"<div>{escape(fact)}</div>" for fact in _facts(schema))
    return title_html(_title(schema)), table, f'<div style="{FAINT}">{facts}</div>'


def _title(schema: TableSchema) -> str:
    return f"schema of {schema.name}" if schema.name else "schema"


def _rows(schema: TableSchema) -> list[tuple[str, ...]]:
    return [(name, *column_words(column, schema.missing)) for name, column in schema.items()]


def _facts(schema: TableSchema) -> list[str]:
    facts = [f"privacy unit: {unit_words(schema.unit)}"]
    for what, number in (("units", schema.public_size), ("rows", schema.public_rows)):
        if number is not None:
            facts.append(f"public number of {what}: {number:,}")
    if schema.sampled == "census":
        facts.append("the units are the whole population (a census)")
    elif schema.sampled != "population":
        facts.append(f"the units are a random sample of a fraction {schema.sampled} of the population")
    return [*facts, MISSING]


def unit_words(unit: PrivacyUnit) -> str:
    """The privacy unit, its limits, and the declared type of its identifiers."""
    return unit.words + {"text": ", named by a text", "integer": ", named by a whole number"}.get(str(unit.type), "")


def column_words(column: ColumnType, missing: tuple[str, ...] = ()) -> tuple[str, str, str, str]:
    """Type, values, what is done outside the bounds, and what counts as missing, with what is read as a null."""
    texts = f"null, {', '.join(map(repr, missing))} in its source" if missing else "null"
    match column:
        case Bounded():
            kind = "whole numbers" if column.integer else "numbers"
            values = f"{_number(column.low)} to {_number(column.high)}"
            return kind, values, COUNTS[column.outside], f"{texts}, NaN, infinity, anything but a number"
        case Dates():
            values = f"{column.first} to {column.last.removesuffix(END_OF_DAY)}"
            return (
                f"dates in {column.zone}",
                values,
                COUNTS[column.outside],
                f"{texts}, anything but a date",
            )
        case Categories():
            return "categories", _listed(column.values), "", f"{texts}, any other value"
        case Text():
            lengths = "" if column.max_length is None else f"; lengths up to {column.max_length:,}"
            return "text", f"not public{lengths}", "", f"{texts}, anything but a text or number"


def _number(number: float) -> str:
    return f"{int(number):,}" if number.is_integer() and abs(number) < 1e15 else repr(number)


def _listed(values: tuple[Key, ...]) -> str:
    text, shown = "", 0
    for value in values:
        longer = f"{text}, {value!r}" if text else repr(value)
        if shown and len(longer) > MAX_LISTED:
            break
        text, shown = longer, shown + 1
    return text if shown == len(values) else f"{text}, ... ({len(values):,} in all)"
