"""A session as one JSON-safe snapshot, the single source of every face: text, static HTML, live gauges, panel.

Made of schema, plan, budget and ledger; nothing in it was computed from rows except released answers' existence.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpnb.answer.faces import FAINT, LOUD, STYLE, floor_percent, mu_down, mu_up
from dpnb.ledger import MEMORY, Charge
from dpnb.query.plan import Plan

if TYPE_CHECKING:
    from dpnb.session.session import Session

RELEASES_SHOWN = 50
METER_WIDTH = 240


def snapshot(session: Session) -> dict[str, Any]:
    """The session as the browser's contract describes it (tests/fixtures/snapshot.json is an example)."""
    filter_, odometer = session.filter, session.odometer
    left = f"{floor_percent(filter_.headroom)} left"
    full = odometer.bound_at(filter_.budget.mu_squared)
    spent, budget = filter_.spent, filter_.budget
    return {
        "id": session.id,
        "name": session.name,
        "unit": session.privacy_unit.words,
        "notice": session.notice,
        "promise": session.promise,
        "headline": left,
        "filter": "gdp",
        "gauges": [
            {
                "id": "headroom",
                "label": "Headroom",
                "kind": "remaining",
                "value": filter_.headroom,
                "text": left,
                "description": (
                    f"The GDP filter has {floor_percent(filter_.headroom)} of the budget left (in mu squared) and "
                    "refuses what does not fit."
                ),
            },
            {
                "id": "mixture",
                "label": "Mixture odometer",
                "kind": "used",
                "value": min(1.0, odometer.bound / full) if math.isfinite(full) else 1.0,
                "text": f"loss so far at most {_up(odometer.bound)}",
                "description": odometer.statement(),
            },
        ],
        "spent": f"mu {mu_up(spent)} of {mu_down(budget)}",
        "ledger": "memory" if session.ledger.path == MEMORY else Path(session.ledger.path).name,
        "releases": [_release(charge) for charge in session.ledger.latest(RELEASES_SHOWN)],
    }


def text(state: dict[str, Any]) -> str:
    """A session's state for a terminal."""
    lines = [f"dpnb session {state['name']}: {state['promise']}"]
    if state["notice"]:
        lines.insert(0, state["notice"])
    for gauge in state["gauges"]:
        filled = round(gauge["value"] * 20)
        lines.append(f"  {gauge['label']:<18}[{'#' * filled}{'.' * (20 - filled)}] {gauge['text']}")
    count = len(state["releases"])
    shown = f"{count}+" if count == RELEASES_SHOWN else str(count)
    lines.append(f"  {state['spent']}; {shown} request{'s' if count != 1 else ''} in {state['ledger']}")
    return "\n".join(lines)


def html(state: dict[str, Any]) -> str:
    """A session's state as a still picture, dated, for closed notebooks and exports."""
    meters = "".join(_meter(gauge) for gauge in state["gauges"])
    notice = f'<div style="{LOUD}">{escape(state["notice"])}</div>' if state["notice"] else ""
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return (
        f'<div style="{STYLE}">{notice}<div><b>{escape(state["name"])}</b> '
        f'<span style="{FAINT}">{escape(state["promise"])}</span></div>{meters}'
        f'<div style="{FAINT}">{escape(state["spent"])}; as of {when}</div></div>'
    )


def _meter(gauge: dict[str, Any]) -> str:
    width = gauge["value"] * METER_WIDTH
    return (
        f'<div style="margin:4px 0" title="{escape(gauge["description"])}">{escape(gauge["label"])}: '
        f'{escape(gauge["text"])}<br><svg width="{METER_WIDTH}" height="10" role="meter" aria-valuemin="0" '
        f'aria-valuemax="1" aria-valuenow="{gauge["value"]:.4f}" aria-label="{escape(gauge["label"])}" '
        f'aria-valuetext="{escape(gauge["text"])}"><rect width="{METER_WIDTH}" height="10" rx="5" '
        f'fill="var(--jp-layout-color3,#bdbdbd)"/><rect width="{width:.1f}" height="10" rx="5" '
        f'fill="var(--jp-brand-color1,#1976d2)"/></svg></div>'
    )


def _release(charge: Charge) -> dict[str, Any]:
    cost = f"mu {mu_up(charge.loss)}" if charge.loss.mu_squared else "free"
    question = Plan.from_json(charge.plan).words
    return {"id": charge.id, "question": question, "cost": cost, "time": charge.time, "status": charge.state}


def _up(bound: float) -> str:
    """Two decimals (or two digits of a small number), rounded up."""
    if not math.isfinite(bound):
        return "infinity"
    places = 2 if bound >= 0.1 or bound == 0 else 1 - math.floor(math.log10(bound))
    return f"{math.ceil(bound * 10**places) / 10**places:.{places}f}"
