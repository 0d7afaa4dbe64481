"""A session's state, connection and declared columns, as text and as HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from dpnb._browser.snapshot import ConnectionSnapshot, Gauge, SessionSnapshot
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.accounting.odometers import OdometerKind
from dpnb.errors import printable
from dpnb.render.page import (
    FAINT,
    LOUD,
    STYLE,
    as_of_now,
    box_html,
    explained_html,
    notice_html,
    title_html,
    with_notice,
    with_timestamp,
)
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


# --- the connection ---------------------------------------------------------------------------------------------------


LAST_KNOWN = "All figures here are the last known."
"""Follows the state of a connection that is not current; the sentence is true of every output."""

DIMMED = "filter:grayscale(1);opacity:.75"
"""Style of figures that are out of date: without colour, and still readable."""


def connection_lines(connection: ConnectionSnapshot | None) -> list[str]:
    """Where the table is, and its state; nothing for a local session."""
    if connection is None:
        return []
    where = f"table {connection.where}"
    if connection.is_current:
        return [f"{where}; {connection.text}"]
    text = connection.text
    return [where, f"{text[:1].upper()}{text[1:].rstrip('.')}. {LAST_KNOWN}"]


def connection_html(connection: ConnectionSnapshot | None) -> str:
    """The lines as HTML; a state that is not current stands out."""
    if connection is None:
        return ""
    where, *state = connection_lines(connection)
    loud = "".join(f'<div role="status" style="{LOUD}">{escape(line)}</div>' for line in state)
    return f'<div style="{FAINT}">{escape(where)}</div>{loud}'


# --- static rendering of a session's state ----------------------------------------------------------------------------


DETAILS = "Accounting details"
MECHANISMS = "Interactive mechanisms"
METER_WIDTH = 240
TEXT_WIDTH = 110
ODOMETER_NOTES: dict[OdometerKind, str] = {
    "time-uniform": "valid at every moment, and therefore larger than the filter's guarantee; choose one in advance",
    "accumulator": "the answers are within every budget of at least this bound that was fixed in advance",
}

NO_FILTER_NOTE = "valid at every moment; choose one in advance"
"""Of time-uniform odometers without a budget, where no filter guarantees anything."""


def render_text(state: SessionSnapshot) -> str:
    """A session's state for a terminal; control characters from the ledger are escaped."""
    return "\n".join(map(printable, _lines(state)))


def _lines(state: SessionSnapshot) -> list[str]:
    lines = [f"dpnb session {state.name}: {state.guarantee}"]
    if state.notice:
        lines.insert(0, state.notice)
    for line in connection_lines(state.connection):
        lines += textwrap.wrap(line, TEXT_WIDTH, initial_indent="  ", subsequent_indent="    ")
    lines.append(f"  {'Table':<18}in {state.engine}")
    shown, in_details, spent = _gauges(state)
    lines += [f"  {gauge.label:<18}{_bar(gauge)}{gauge.text}" for gauge in shown]
    if state.participation:
        lines += textwrap.wrap(state.participation, TEXT_WIDTH, initial_indent="  ", subsequent_indent="  ")
    if state.next_steps:
        width = max(len(step.code) for step in state.next_steps)
        steps = [f"    {step.code:<{width}}  # {step.text}" for step in state.next_steps]
        return [*lines, "  No query has been released yet.  What to do next:", *steps]
    if state.mechanisms:
        lines += [f"  {MECHANISMS}:", *(f"    {name:<22} {words}" for name, words in _mechanisms(state))]
    count = state.n_requests
    lines.append(f"  {state.spent}; {count} request{'s' if count != 1 else ''} in {state.ledger}")
    lines.append(f"  {DETAILS}:")
    lines += [f"    {gauge.label:<22} {_bar(gauge)}{gauge.text}" for gauge in in_details]
    lines += [f"    {'Spent':<22} {spent}"] if spent else []
    for title, note, rows in _sections(state):
        lines.append(f"    {title}: {note}".rstrip())
        lines += [f"      {name:<22} {words}" for name, words in rows]
    return lines


def _gauges(state: SessionSnapshot) -> tuple[list[Gauge], list[Gauge], str]:
    """The gauges that are shown, those in the details, and what is spent in the filter's measure.

    Without a budget the odometer is all that there is, and is shown.
    """
    if any(gauge.kind == "no-budget" for gauge in state.gauges):
        return state.gauges, [], ""
    in_details = [gauge for gauge in state.gauges if gauge.kind == "loss"]
    shown = [gauge for gauge in state.gauges if gauge.kind != "loss"]
    return shown, in_details, f"{state.spent_loss}; a budget is rounded down, a guarantee up"


def _bar(gauge: Gauge) -> str:
    """The gauge as twenty characters; nothing without a scale."""
    filled = 0 if gauge.value is None else round(gauge.value * 20)
    return "" if gauge.value is None else f"[{'#' * filled}{'.' * (20 - filled)}] "


def render_html(state: SessionSnapshot) -> str:
    """A session's state as static HTML with a timestamp, for closed notebooks and exports."""
    meters = "".join(map(_meter, _gauges(state)[0]))
    is_dimmed = state.connection is not None and not state.connection.is_current
    participation = f"<div>{escape(state.participation)}</div>" if state.participation else ""
    dimmed = f' style="{DIMMED}"' if is_dimmed else ""
    return (
        f'<div style="{STYLE}">{notice_html(state.notice)}<div><b>{escape(state.name)}</b> '
        f'<span style="{FAINT}">{escape(state.privacy_unit)}: {_promise(state)}; '
        f"table in {escape(state.engine)}</span></div>"
        f"{connection_html(state.connection)}"
        f"<div{dimmed}>{meters}{participation}{_next(state)}{_lists(state)}"
        f'<div style="{FAINT}">{escape(state.spent)}; {as_of_now()}</div></div></div>'
    )


def _promise(state: SessionSnapshot) -> str:
    """What is guaranteed, in words; the exact guarantee is shown on hover and focus."""
    words, exact = state.promise, state.guarantee
    return escape(words) if words == exact else explained_html(words, exact)


def mechanism_html(mechanism: Mapping[str, Any], more: str = "") -> str:
    """An interactive mechanism, whose fields are those of `dpnb._browser.snapshot.Mechanism`; and more HTML below."""
    rows = "".join(f"<li>{escape(part['name'])}: {escape(part['text'])}</li>" for part in mechanism["parts"])
    part_list = f"<ul>{rows}</ul>" if rows else ""
    return with_timestamp(
        f'<div style="{STYLE}"><b>{escape(mechanism["name"])}</b> ({escape(mechanism["kind"])}, '
        f"{escape(mechanism['state'])}): {escape(mechanism['text'])}{part_list}"
        f"<div>{escape(mechanism['description'])}</div></div>{more}"
    )


def _next(state: SessionSnapshot) -> str:
    """What to do first, until a query has been released."""
    items = "".join(f"<li>{escape(step.text)} <code>{escape(step.code)}</code></li>" for step in state.next_steps)
    return f"<div>What to do next:</div><ul>{items}</ul>" if items else ""


def _meter(gauge: Gauge) -> str:
    if gauge.value is None:
        style = f' style="{LOUD}"' if gauge.kind == "no-budget" else ""
        text = f"{escape(gauge.label)}: {escape(gauge.text)}"
        return f'<div style="margin:4px 0" title="{escape(gauge.description)}"><span{style}>{text}</span></div>'
    width = gauge.value * METER_WIDTH
    return (
        f'<div style="margin:4px 0" title="{escape(gauge.description)}">{escape(gauge.label)}: '
        f'{escape(gauge.text)}<br><svg width="{METER_WIDTH}" height="10" role="meter" aria-valuemin="0" '
        f'aria-valuemax="1" aria-valuenow="{gauge.value:.4f}" aria-label="{escape(gauge.label)}" '
        f'aria-valuetext="{escape(gauge.text)}"><rect width="{METER_WIDTH}" height="10" rx="5" '
        f'fill="var(--jp-layout-color3,#bdbdbd)"/><rect width="{width:.1f}" height="10" rx="5" '
        f'fill="var(--jp-brand-color1,#1976d2)"/></svg></div>'
    )


def _lists(state: SessionSnapshot) -> str:
    """The mechanisms, and the accounting details, collapsed."""
    mechanisms = _folded(MECHANISMS, _table(_mechanisms(state))) if state.mechanisms else ""
    _, in_details, words = _gauges(state)
    spent = f"<div>Guarantee: {escape(state.guarantee)}</div>"
    spent += f"<div>Spent: {escape(words)}</div>" if words else ""
    sections = (_folded(f"{title}: {note}" if note else title, _table(rows)) for title, note, rows in _sections(state))
    return mechanisms + _folded(DETAILS, "".join([*map(_meter, in_details), spent, *sections]))


def _folded(title: str, html: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{html}</details>"


def _mechanisms(state: SessionSnapshot) -> list[tuple[str, str]]:
    return [(one.name, f"{one.kind}, {one.state}: {one.text}") for one in state.mechanisms]


def _sections(state: SessionSnapshot) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """The filters, and the odometers that support the released losses: title, note and rows."""
    if state.filters:
        rows = [(line.label + (" (enforced)" if line.enforced else ""), line.text) for line in state.filters]
        yield "Same guarantee under each filter", "", rows
    for kind, note in ODOMETER_NOTES.items():
        if odometers := _odometers(state, kind):
            yield (
                f"Odometers, {kind}",
                NO_FILTER_NOTE if kind == "time-uniform" and not state.filters else note,
                odometers,
            )


def _odometers(state: SessionSnapshot, kind: OdometerKind) -> list[tuple[str, str]]:
    """The odometers of one kind; once they have stopped, one sentence for all of them."""
    lines = [line for line in state.odometers if line.kind == kind]
    if lines and kind == "time-uniform" and state.odometers_paused:
        return [("stopped", state.odometers_paused)]
    return [(line.label, line.description) for line in lines]


def _table(rows: list[tuple[str, str]]) -> str:
    cells = "".join(
        f'<tr><td style="text-align:left">{escape(name)}</td><td style="text-align:left">{escape(words)}</td></tr>'
        for name, words in rows
    )
    return f"<table><tbody>{cells}</tbody></table>"
