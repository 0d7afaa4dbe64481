"""A session's state and connection, rendered: text for a terminal, and HTML for closed notebooks and exports."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from dpnb._protocol.connection import ConnectionSnapshot
from dpnb._protocol.snapshot import Gauge, SessionSnapshot
from dpnb.accounting.odometers import OdometerKind
from dpnb.errors import printable
from dpnb.render.page import FAINT, LOUD, STYLE, as_of_now, explained_html, notice_html, with_timestamp

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
    """An interactive mechanism, whose fields are those of `dpnb._protocol.snapshot.Mechanism`; and more HTML below."""
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
