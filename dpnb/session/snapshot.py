"""A snapshot of a session, its gauges and log, from which text, static HTML, live widgets and panel are rendered.

It is computed from schema, plan, budget and ledger.  Nothing in it is computed from rows except released values: the
existence of an answer and the width of its intervals.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from dpnb._browser import snapshot as browser
from dpnb._browser.snapshot import BudgetAxis, Curve, OdometerAxis, TimelineChart, TimelinePoint
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.budget_request import BudgetRequest
from dpnb._core.accountant.filters_and_odometers import EPSILON_ODOMETERS, FilterComparison, FilterState
from dpnb._core.core import SessionCore
from dpnb._core.execution.executor import Connection
from dpnb._core.history.log import CellCost, LoggedRequest, RequestLog
from dpnb._core.ledger_metadata import MOCK_DATA, NO_BUDGET
from dpnb._core.pricing.estimation import AnswerSummary
from dpnb._core.session_explanation import next_steps, participation_description
from dpnb._plan.description import STEP_OF
from dpnb.accounting.exact import display_up
from dpnb.accounting.losses import GDP
from dpnb.accounting.odometers import Odometer
from dpnb.errors import DpnbError, printable
from dpnb.ledger import ROOT
from dpnb.render.numbers import format_cost, format_percent_down, format_percent_up
from dpnb.render.refusals import explanation_for
from dpnb.session.gauges import (
    describe_spent,
    finite,
    full_reading,
    headroom_gauge,
    odometer_gauge,
    percent_spent,
    reserve_gauge,
    words_of,
)

RELEASES_SHOWN = 50
REQUESTS_SHOWN = 20
"""Requests for budget."""
PROMISE = "what all answers together reveal about one unit is limited, whatever is asked"
NO_LIMIT = "no budget"
POINTS_SHOWN = 120
BUDGET_AXIS = "Budget spent"
ODOMETER_AXIS = "Loss so far at most"
QUERIES_NAMED = 3
"""How many queries of a cell are named before "and others"."""
NO_ANSWER = AnswerSummary("")
ODOMETERS = {
    "mixture": "Mixture",
    "filter": "Filter (line)",
    "reflection": "Reflection",
    "stitched": "Stitched",
    "rogers": "Rogers",
    "renyi": "Renyi",
    "basic": "Basic",
    "gdp-accumulator": "GDP accumulator",
    "zcdp-accumulator": "zCDP accumulator",
    "rdp-accumulator": "RDP accumulator",
    "approx-dp-accumulator": "approx. DP accumulator",
}


class HasCore(Protocol):
    """The part of a session, a sub-session or a part of a table that a snapshot uses."""

    @property
    def _core(self) -> SessionCore: ...

    @property
    def _mechanisms(self) -> Any: ...


def snapshot(session: HasCore, *, compared: bool = False) -> browser.SessionSnapshot:
    """The state of a session, a sub-session or a part; if its ledger cannot be read, see `unreadable_snapshot`.

    If `compared`, with the filters and odometers that are computed for comparison alone.
    """
    core = session._core
    with core.account.ledger.one_moment():
        account, log = core.account, core.log
        filter_, odometer, comparison = account.filter, account.odometer, account.compared(everything=compared)
        headroom, paused, spent = headroom_gauge(account, filter_), account.paused, percent_spent(filter_)
        n_requests = log.count
        reserve, loss = reserve_gauge(filter_), odometer_gauge(odometer, account, core.statement_prefix)
        return browser.SessionSnapshot(
            id=core.id,
            name=core.name,
            privacy_unit=core.tables.words,
            engine=core.tables.engine,
            notice=core.notice,
            notice_explanation=_notice_explanation(core.notice),
            connection=connection_of(core.connection),
            guarantee=core.guarantee,
            promise=promise_of(core),
            headlines=_headlines(headroom, spent, loss, comparison),
            filter=account.guarantee.filter_name,
            gauges=[headroom, *([] if reserve is None else [reserve]), loss],
            filters=[_filter(one, comparison) for one in comparison.states.values() if one.guarantee.has_budget],
            odometers=[
                _odometer(name, one, paused, core.statement_prefix) for name, one in comparison.odometers.items()
            ],
            odometers_paused=paused,
            is_compared=compared,
            participation=participation_description(account),
            mechanisms=[_mechanism(**one) for one in session._mechanisms.entries()],
            spent=spent,
            spent_loss=describe_spent(filter_, account.budget) if account.guarantee.has_budget else NO_LIMIT,
            ledger=core.account.ledger.short_name,
            next_steps=[] if n_requests else [browser.NextStep(**step) for step in next_steps(core)],
            timeline=_timeline(account, log, comparison, compared=compared),
            n_requests=n_requests,
            log=[log_entry(one) for one in log.latest(RELEASES_SHOWN)],
            cell_costs=[
                _cell(cell_id, cost, log, core.name)
                for cell_id, cost in log.cells().items()
                if cost.loss != GDP(0) or cost.reserve_fraction
            ],
            refusals=list(log.refusals),
            budget_requests=_budget_requests(account),
        )


def promise_of(core: SessionCore) -> str:
    """The guarantee for a reader who knows none of its terms; the guarantee itself where there is no budget."""
    return PROMISE if core.account.guarantee.has_budget else core.guarantee


def _budget_requests(account: Accountant) -> list[browser.BudgetRequestEntry]:
    """The newest requests for budget, of a whole session."""
    if account.root_node != ROOT:
        return []
    made = list(account.tree.budget_requests().values())
    now = account.ledger.time_in() if made else ""
    return [
        browser.BudgetRequestEntry(
            id=one.id,
            queries=[printable(f"{query.words} at {query.target}: {query.error}") for query in one.queries],
            cost=one.total.format(up=True),
            why=printable(one.why),
            status="approved-in-part" if (status := one.status(now)) == "approved in part" else status,
            decision=_decision(one),
            time=one.time,
            analyst=printable(one.analyst) or None,
        )
        for one in reversed(made[-REQUESTS_SHOWN:])
    ]


def _decision(one: BudgetRequest) -> str | None:
    decided = one.decision
    if decided is None:
        return None
    granted = "" if decided.amount is None else f"{decided.amount.format(up=False)} added to the cap"
    until = "" if decided.until is None else f"until {decided.until[:16].replace('T', ' ')} UTC"
    parts = (" ".join(filter(None, (granted, until))), printable(decided.why))
    return "; ".join(filter(None, parts)) or "no reason given"


def _mechanism(*, state: str, parts: list[dict[str, Any]], **fields: str) -> browser.Mechanism:
    return browser.Mechanism(state=state, parts=[browser.Part(**part) for part in parts], **fields)


def _filter(state: FilterState, comparison: FilterComparison) -> browser.FilterReading:
    """One filter: its remaining budget, and how many queries like the last one it would still admit."""
    label, source, guarantee = words_of(state.guarantee)
    enforced = state.guarantee.filter_name == comparison.enforced
    if state.refused_at is not None:
        words = f"would have refused query {state.refused_at}"
        value, text, description = 0.0, words, f"{source}. It {words}."
    else:
        value, text = state.filter.headroom, _remaining(state, comparison)
        description = f"{source}. It {'enforces' if enforced else 'could enforce'} {guarantee}."
    return browser.FilterReading(
        id=state.guarantee.filter_name, label=label, enforced=enforced, value=value, text=text, description=description
    )


def _remaining(state: FilterState, comparison: FilterComparison) -> str:
    each = state.filter.is_individual
    if each and not state.filter.mu_squared_left:
        return "exhausted in the worst case; queries can continue"
    text = f"{format_percent_down(state.filter.headroom)} left{' in the worst case' if each else ''}"
    if comparison.last_loss is None:
        return text
    more = "more like the last for every unit" if each else "more like the last"
    is_own = state is comparison.own
    times = comparison.repetitions if is_own else state.max_repetitions(comparison.last_loss)
    return f"{text}; {times:,} {more}"


def _odometer(name: str, odometer: Odometer, paused: str | None, scope: str) -> browser.OdometerReading:
    label, kind = ODOMETERS[name], odometer.kind
    if paused is not None and kind == "time-uniform":
        return browser.OdometerReading(id=name, label=label, kind=kind, text="stopped", description=paused)
    description = f"{scope}{odometer.statement()}"
    return browser.OdometerReading(id=name, label=label, kind=kind, text=odometer.words, description=description)


def unreadable_snapshot(session: HasCore, error: DpnbError) -> browser.SessionSnapshot:
    """The snapshot of a session whose ledger cannot be read: it says so, and has no figures."""
    core = session._core
    return browser.SessionSnapshot(
        id=core.id,
        name=core.name,
        privacy_unit=core.tables.words,
        engine=core.tables.engine,
        notice=f"UNKNOWN: {error}",
        notice_explanation=explanation_for(error).id,
        connection=connection_of(core.connection),
        guarantee=core.guarantee,
        promise=core.guarantee,
        headlines=[browser.Headline(id="remaining", text="unknown")],
        filter=core.account.guarantee.filter_name,
        gauges=[],
        filters=[],
        odometers=[],
        odometers_paused=None,
        is_compared=True,
        participation=None,
        mechanisms=[],
        spent="spending unknown",
        spent_loss="",
        ledger=core.account.ledger.short_name,
        next_steps=[],
        timeline=TimelineChart(
            budget=BudgetAxis(label=BUDGET_AXIS, text=""),
            odometers=OdometerAxis(label=ODOMETER_AXIS, end=None, text=""),
            curves=[],
            points=[],
        ),
        n_requests=0,
        log=[],
        cell_costs=[],
        refusals=[],
        budget_requests=[],
    )


def connection_of(connection: Connection | None) -> browser.ConnectionSnapshot | None:
    """The state of a connection; None for a local session."""
    if connection is None:
        return None
    return browser.ConnectionSnapshot(where=connection.where, is_current=connection.is_current, text=connection.text)


STEP_TAKEN = "taken"
"""What the log shows instead of the sums of a regression's step."""


def log_entry(one: LoggedRequest) -> browser.LogEntry:
    """One request of the log; the sums of a regression's step are of no use to a reader, and are not described."""
    answer, is_step = one.answer or NO_ANSWER, one.query.startswith(STEP_OF)
    return browser.LogEntry(
        id=one.id,
        query=one.query,
        title=one.title,
        cost=one.cost,
        mu=one.mu,
        cost_fraction=None if math.isnan(one.cost_fraction) else format_percent_up(one.cost_fraction),
        estimate=(STEP_TAKEN if is_step else answer.text) if answer.text else None,
        value=finite(answer.value),
        low=finite(answer.low),
        high=finite(answer.high),
        error=None if is_step else one.error,
        time=one.time,
        status=one.status,
        cell_id=one.cell_id,
    )


def _cell(cell_id: str, cost: CellCost, log: RequestLog, name: str) -> browser.CellBadge:
    """What the queries of one notebook cell were charged."""
    queries = "; ".join(dict.fromkeys(one.title for one in log.by_id(cost.ids[-QUERIES_NAMED:])))
    others = "; and others" if len(cost.ids) > QUERIES_NAMED else ""
    if math.isnan(cost.cost_fraction):
        text = "a loss that implies no mu" if cost.loss is None else format_cost(cost.loss, cost.cost_fraction)
        shown, text = f"{text}, no budget", f"{text}, and {name} has no budget"
    else:
        shown = f"{format_percent_up(cost.cost_fraction)} of the budget"
        text = f"{shown} of {name}"
        if cost.loss is not None:
            text = format_cost(cost.loss, cost.cost_fraction, f"the budget of {name}")
        if cost.reserve_fraction:
            reserve = f"{format_percent_up(cost.reserve_fraction)} of the reserve"
            shown = f"{shown} and {reserve}" if cost.cost_fraction else reserve
            text = f"{shown} of {name}"
    description = f"The queries of this cell cost {text}: {queries}{others}."
    return browser.CellBadge(cell_id=cell_id, text=shown, description=description)


def _notice_explanation(notice: str | None) -> str | None:
    if notice is None or notice == NO_BUDGET:
        return None if notice is None else "no-budget"
    return "rehearsal" if notice.startswith(MOCK_DATA) else "not-private"


def _headlines(
    remaining: browser.Gauge, spent: str, loss: browser.Gauge, comparison: FilterComparison
) -> list[browser.Headline]:
    """The texts that the status bar can show; the user chooses one."""
    words = {"remaining": remaining.text, "spent": spent, "odometer": loss.text}
    if remaining.kind == "no-budget":  # what is reported is shown instead
        words = {"odometer": words["odometer"], "spent": spent}
    elif comparison.last_loss is not None:
        words["max_repetitions"] = f"{comparison.repetitions:,} more like the last"
    return [browser.Headline(id=name, text=text) for name, text in words.items()]


def _timeline(account: Accountant, log: RequestLog, comparison: FilterComparison, *, compared: bool) -> TimelineChart:
    """Budget and odometers after each request, with the limits of the guarantee."""
    points = account.timeline(compared=compared).thinned(POINTS_SHOWN)
    own = comparison.enforced
    # Odometers that add epsilons are far above the others: they are drawn only under such a filter.
    names = [
        name
        for name, odometer in comparison.odometers.items()
        if odometer.kind == "time-uniform" and (name not in EPSILON_ODOMETERS or name == own)
    ]
    entries = {one.id: one for one in log.by_id(point.id for point in points if point.id)}
    mixture = comparison.odometers.get("mixture")
    end = math.inf
    if mixture is not None and account.guarantee.has_budget:
        end = full_reading(mixture, account)
    is_drawn = math.isfinite(end)
    return TimelineChart(
        budget=BudgetAxis(label=BUDGET_AXIS, text=""),
        odometers=OdometerAxis(
            label=ODOMETER_AXIS,
            end=float(display_up(end)) if is_drawn else None,  # as in the text
            text=f"up to {display_up(end)}, the mixture odometer when the budget is spent" if is_drawn else "",
        ),
        curves=[Curve(id=name, label=ODOMETERS[name]) for name in names],
        points=[
            TimelinePoint(
                id=point.id,
                spent=point.spent,
                bounds=[point.bounds.get(name) for name in names],
                text=_point_description(entries.get(point.id)),
            )
            for point in points
        ],
    )


def _point_description(one: LoggedRequest | None) -> str:
    if one is None:
        return "before the first query"
    cost = one.cost
    if not math.isnan(one.cost_fraction):
        cost = f"{format_percent_up(one.cost_fraction)} of the budget ({one.cost})"
    return f"{one.id}. {one.title}: {cost}{'' if one.status == 'released' else f', {one.status}'}"
