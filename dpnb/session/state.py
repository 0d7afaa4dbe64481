"""A session as one JSON-safe snapshot, the single source of every face: text, static HTML, live gauges, panel.

Made of schema, plan, budget and ledger; nothing in it was computed from rows but what was released: that there is an
answer, and how wide its intervals are.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import decimal_down, decimal_sqrt_down, decimal_up, shown_down, shown_up
from dpnb.accounting.filters import ApproxDPFilter, RogersFilter
from dpnb.accounting.individual import WorstCase
from dpnb.accounting.losses import GDP, RDP, EpsilonLoss
from dpnb.accounting.odometers import MixtureOdometer, Odometer, SpentAccumulator
from dpnb.accounting.promise import FILTERS, AnyFilter, shown_bound
from dpnb.answer.faces import ceil_percent, cost_up, floor_percent
from dpnb.errors import DpnbError
from dpnb.ledger import MEMORY
from dpnb.session import individual_words, rehearsal
from dpnb.session.account import Account
from dpnb.session.comparison import OF_EPSILONS, Comparison, Standing
from dpnb.session.explanations import explained
from dpnb.session.log import CellCost, Line, Log
from dpnb.session.plain_words import next_steps

if TYPE_CHECKING:
    from dpnb.session.session import Session

RELEASES_SHOWN = 50
POINTS_SHOWN = 120
QUESTIONS_NAMED = 3
"""Of a cell, before "and others"."""
FULL_DIAL = "The dial is full at what it reads when all of the budget is spent."
DEARER = "an odometer may read more, since it is true at whatever moment you look"
UNREADABLE = ("gauges", "filters", "odometers", "mechanisms", "next", "releases", "cells", "refusals")
"""Lists of which nothing is told where a ledger cannot be read."""
ODOMETERS = {
    "mixture": "Mixture",
    "filter": "Filter (line)",
    "stitched": "Stitched",
    "rogers": "Rogers",
    "renyi": "Renyi",
    "basic": "Basic",
    "gdp-accumulator": "GDP accumulator",
    "zcdp-accumulator": "zCDP accumulator",
    "rdp-accumulator": "RDP accumulator",
    "approx-dp-accumulator": "approx. DP accumulator",
}


def snapshot(session: Session) -> dict[str, Any]:
    """The session as the browser's contract describes it (tests/fixtures/snapshot.json is an example)."""
    account = session._account
    filter_, odometer, comparison = account.filter, account.odometer, account.comparison
    log = session._releases.log
    left = individual_words.left(account) or f"{floor_percent(filter_.headroom)} left"
    who, spent = individual_words.who(account), spent_words(filter_, account.budget)
    paused = account.paused
    label, source = FILTERS[account.promise.name]
    return {
        "id": session.id,
        "name": session.name,
        "unit": session.unit_words,
        "notice": session.notice,
        "warning": _warning(session.notice),
        "promise": session.promise,
        "headlines": _headlines(left, spent, comparison, odometer),
        "filter": account.promise.name,
        "gauges": [
            {
                "id": "headroom",
                "label": individual_words.WORST_CASE if account.individual else "Headroom",
                "kind": "remaining",
                "value": filter_.headroom,
                "text": left,
                "description": who
                or (
                    f"The {label} filter has {floor_percent(filter_.headroom)} of the budget left and refuses what "
                    f"does not fit. {source}."
                ),
            },
            _odometer_gauge(odometer, account, session.told_of),
        ],
        "filters": [_filter(standing, comparison) for standing in comparison.standings.values()],
        "odometers": [
            _odometer(name, odometer, paused, session.told_of) for name, odometer in comparison.odometers.items()
        ],
        "paused": paused,
        "individual": who,
        "mechanisms": session._mechanisms.told(),
        "spent": spent,
        "ledger": _ledger_name(session),
        "next": [] if log.count else next_steps(session),
        "timeline": _timeline(session, comparison),
        "count": log.count,
        "releases": [line(one) for one in log.latest(RELEASES_SHOWN)],
        "cells": [_cell(cell, cost, log, session.name) for cell, cost in log.cells().items() if cost.loss != GDP(0)],
        "refusals": [asdict(refusal) for refusal in list(log.refusals)],
    }


def _filter(standing: Standing, comparison: Comparison) -> dict[str, Any]:
    """One filter: what it has left, and how many questions like the last one it would still admit."""
    label, source = FILTERS[standing.promise.name]
    enforced = standing.promise.name == comparison.enforced
    line = {"id": standing.promise.name, "label": label, "enforced": enforced}
    if standing.refused is not None:
        words = f"would have refused question {standing.refused}"
        return {**line, "value": 0.0, "text": words, "description": f"{source}. It {words}."}
    headroom = standing.filter.headroom
    each = standing.filter if isinstance(standing.filter, WorstCase) else None
    text = f"{floor_percent(headroom)} left{' in the worst case' if each else ''}"
    if each is not None and each.full:
        text = "used up in the worst case; questions go on"
    elif comparison.last is not None:
        more = "more for everybody like the last" if each else "more like the last"
        text += f"; {standing.times(comparison.last):,} {more}"
    description = f"{source}. It {'keeps' if enforced else 'could keep'} this promise, {standing.promise.words}."
    return {**line, "value": headroom, "text": text, "description": description}


def _odometer_gauge(odometer: Odometer, account: Account, told_of: str) -> dict[str, Any]:
    """The odometer that can be read now, on a dial that is full when all of the budget is spent."""
    full = odometer.bound_at(account.promise.mu0_squared) if isinstance(odometer, MixtureOdometer) else math.inf
    used = 1 - account.filter.headroom
    return {
        "id": "mixture" if isinstance(odometer, MixtureOdometer) else "accumulator",
        "label": "Mixture odometer" if isinstance(odometer, MixtureOdometer) else "Accumulator",
        "kind": "used",
        "value": min(1.0, odometer.bound / full) if math.isfinite(full) else used,
        "text": _bound(odometer),
        "description": f"{told_of}{odometer.statement()} {FULL_DIAL}",
    }


def _odometer(name: str, odometer: Odometer, paused: str | None, told_of: str) -> dict[str, Any]:
    label, reading = ODOMETERS[name], odometer.reading
    if paused is not None and reading == "time-uniform":
        return {"id": name, "label": label, "reading": reading, "text": "paused", "description": paused}
    return {
        "id": name,
        "label": label,
        "reading": reading,
        "text": _bound(odometer),
        "description": f"{told_of}{odometer.statement()}",
    }


def _bound(odometer: Odometer) -> str:
    """The reading in few words; `statement` has them all."""
    if not math.isfinite(odometer.bound):
        return "unbounded"
    if isinstance(odometer, SpentAccumulator):
        return odometer.words
    bound = shown_up(odometer.bound)
    return f"loss so far at most {bound}" if odometer.reading == "time-uniform" else f"{odometer.measure} {bound}"


def unreadable(session: Session, error: DpnbError) -> dict[str, Any]:
    """What is told of a session whose ledger cannot be read: that, and no figure."""
    return {
        "id": session.id,
        "name": session.name,
        "unit": session.unit_words,
        "notice": f"NOT KNOWN: {error}",
        "warning": explained(error).id,
        "promise": session.promise,
        "headlines": [{"id": "left", "text": "not known"}],
        "filter": session._account.promise.name,
        **{name: [] for name in UNREADABLE},
        "paused": None,
        "individual": None,
        "spent": "not known",
        "ledger": _ledger_name(session),
        "timeline": {
            "budget": {"label": "Share of the budget spent", "text": ""},
            "loss": {"label": "Odometers", "limit": None, "text": ""},
            "curves": [],
            "points": [],
        },
        "count": 0,
    }


def _ledger_name(session: Session) -> str:
    return "memory" if session.ledger.path == MEMORY else Path(session.ledger.path).name


def spent_words(filter_: AnyFilter, promised: Budget) -> str:
    """What is spent and of how much, in the filter's own measure, rounded against us but never past the budget."""
    words = _spent(filter_)
    if not promised.discovery_delta:
        return words
    return f"{words}, and " + of_budget("delta", decimal_up(filter_.spent.delta), decimal_down(filter_.budget.delta))


def _spent(filter_: AnyFilter) -> str:
    spent, budget = filter_.spent, filter_.budget
    if isinstance(spent, GDP) and isinstance(budget, GDP):
        return of_budget("mu", spent.mu, decimal_sqrt_down(budget.mu_squared))
    if isinstance(filter_, ApproxDPFilter):
        return of_budget("V", decimal_up(2 * spent.parts[0]), decimal_down(2 * budget.parts[0]))
    name = "K" if isinstance(filter_, RogersFilter) else "epsilon" if isinstance(budget, EpsilonLoss) else "rho"
    words = of_budget(name, decimal_up(spent.parts[0]), decimal_down(budget.parts[0]))
    return f"{words} at order {decimal_up(budget.orders[0]):g}" if isinstance(budget, RDP) else words


def of_budget(name: str, spent: float, budget: float) -> str:
    """What is spent, rounded up, of a budget, rounded down, in as many digits as it takes not to seem beyond it.

    Where no number of digits does, all of it is spent, and what is spent is still rounded up.
    """
    for digits in range(4, 18):
        used, whole = shown_up(spent, digits), shown_down(budget, digits)
        if float(used) <= float(whole):
            return f"{name} {used} of {whole}"
    return f"{name} {shown_up(spent)}, all of it"


def line(one: Line) -> dict[str, Any]:
    """One request as the browser is told it."""
    return {
        "id": one.id,
        "question": one.question,
        "cost": one.cost,
        "mu": one.mu,
        "share": one.share_words,
        "error": one.error,
        "time": one.time,
        "status": one.status,
        "cell": one.cell,
    }


def _cell(cell: str, cost: CellCost, log: Log, name: str) -> dict[str, Any]:
    """What one cell of a notebook was charged."""
    asked = list(dict.fromkeys(one.question for one in log.named(cost.ids[-QUESTIONS_NAMED:])))
    words = "; ".join(asked) + ("; and others" if len(cost.ids) > QUESTIONS_NAMED else "")
    share = f"{ceil_percent(cost.share)} of the budget of {name}"
    text = share if cost.loss is None else cost_up(cost.loss)
    return {"cell": cell, "text": text, "description": f"The questions of this cell cost {text}, {share}: {words}."}


def _warning(notice: str | None) -> str | None:
    """Which explanation a notice has."""
    return None if notice is None else "rehearsal" if notice == rehearsal.NOTICE else "not-private"


def _headlines(left: str, spent: str, comparison: Comparison, odometer: Odometer) -> list[dict[str, str]]:
    """What the status bar may show; the reader chooses."""
    told = {"left": left, "spent": spent, "loss": _bound(odometer)}
    if comparison.last is not None:
        times = comparison.standings[comparison.enforced].times(comparison.last)
        told["times"] = f"{times:,} more like the last"
    return [{"id": name, "text": text} for name, text in told.items()]


def _timeline(session: Session, comparison: Comparison) -> dict[str, Any]:
    """Budget and odometers after each request, and what was promised."""
    account = session._account
    points = account.timeline.thinned(POINTS_SHOWN)
    own = comparison.enforced
    # Those of epsilons are far above the others: they are drawn only under such a filter.
    names = [
        name
        for name, odometer in comparison.odometers.items()
        if odometer.reading == "time-uniform" and (name not in OF_EPSILONS or name == own)
    ]
    asked = {one.id: one for one in session._releases.log.named(point.id for point in points if point.id)}
    budget = account.budget
    promised = ""
    if budget.epsilon is not None:
        promised = f"the epsilon of the promise: {shown_bound(budget.epsilon)}; the filter keeps it, and {DEARER}"
    limit = None if budget.epsilon is None or budget.delta is None else decimal_up(budget.epsilon)
    return {
        "budget": {"label": "Share of the budget spent", "text": f"the promise: {account.promise.words}"},
        "loss": {
            "label": "Odometers, time-uniform: loss so far at most",
            "limit": limit,
            "text": promised,
        },
        "curves": [{"id": name, "label": ODOMETERS[name]} for name in names],
        "points": [
            {
                "id": point.id,
                "spent": point.spent,
                "bounds": [point.bounds.get(name) for name in names],
                "text": _moment(asked.get(point.id)),
            }
            for point in points
        ],
    }


def _moment(one: Line | None) -> str:
    if one is None:
        return "before the first question"
    return f"{one.id}. {one.question}: {one.cost}{'' if one.status == 'released' else f', {one.status}'}"
