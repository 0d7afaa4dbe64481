"""What curators and auditors see of a table: its state; its rows are in `rows`.  There is never an answer.

It is a function of declaration, plans and costs.  Analysts choose plans and costs after seeing answers, so what an
auditor sees is within the guarantee of the table, and is not free of data.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import msgspec

from dpnb._browser.curation import (
    Amount,
    HeldState,
    Moment,
    PartState,
    RequestedQueryState,
    RequestState,
    RunningState,
    TableState,
)
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.budget_request import BudgetRequest
from dpnb._core.accountant.cap import left_of
from dpnb._core.accountant.grant import Grant
from dpnb._core.accountant.granting import whole_of
from dpnb._core.accountant.people import free_share, used_nodes
from dpnb._core.accountant.tree import BudgetTree
from dpnb.accounting.exact import decimal_down, decimal_sqrt_down, decimal_up
from dpnb.accounting.filters import GDPFilter
from dpnb.accounting.losses import PureGDP
from dpnb.errors import printable
from dpnb.ledger import Charge, node_of
from dpnb.render.numbers import limit_words, spent_words
from dpnb.service.curation.acts import outer_of
from dpnb.service.curation.rows import cost_of, words_of
from dpnb.service.opening import OpenTable
from dpnb.service.running import RunningRequest
from dpnb.session.gauges import describe_spent, headroom_gauge, percent_spent, reserve_gauge
from dpnb.session.snapshot import NO_LIMIT

MAX_HELD = 100
"""Charges in a `TableState` that wait for a curator."""

MAX_DECIDED = 100
"""Decided requests in a `TableState`."""

MILLION = 10**6

MOMENTS = 120
"""Points of the timeline."""


def table_state(table: OpenTable) -> TableState:
    """The state of a table; raises `DpnbError` if its ledger cannot be read."""
    core = table.session._core
    account, tree = core.account, core.account.tree
    has_budget = account.guarantee.has_budget
    moments = _moments(table)
    with account.ledger.lock.checked():
        filter_ = account.filter
        requests = sorted(tree.budget_requests().values(), key=lambda one: one.id)
        pending = [one for one in requests if one.decision is None]
        decided = [one for one in reversed(requests) if one.decision is not None][:MAX_DECIDED]
        reserve, used = reserve_gauge(filter_), used_nodes(account)
        return msgspec.structs.replace(
            described(table),
            mode=next((grant.mode for grant in tree.grants().values()), None),
            frozen=tree.frozen,
            gauges=(headroom_gauge(account, filter_), *(() if reserve is None else (reserve,))),
            headroom=filter_.headroom if has_budget else None,
            spent=percent_spent(filter_),
            spent_loss=describe_spent(filter_, account.budget) if has_budget else NO_LIMIT,
            rows=account.ledger.count,
            head=account.ledger.head,
            moments=tuple(moments),
            free=free_share(account, None, table.outside),
            parts=tuple(_part(table, account, grant, used) for grant in _by_project(tree)),
            requests=tuple(_request(table, account, one) for one in (*pending, *decided)),
            running=_running(table.running),
            waiting=table.worker.waiting,
            held=tuple(_held(table, one) for one in table.held.charges()[:MAX_HELD]),
        )


def described(table: OpenTable, fault: str | None = None) -> TableState:
    """What does not follow from the ledger; all that is known of a table whose ledger cannot be read."""
    core = table.session._core
    return TableState(table.name, core.tables.words, core.guarantee, core.notice, core.version, fault=fault)


def _moments(table: OpenTable) -> list[Moment]:
    """The share of the budget spent at the times of rows; thinned."""
    account = table.session._core.account
    points = account.timeline().thinned(MOMENTS)
    charges = {one.id: one for one in account.ledger.by_id(tuple(point.id for point in points if point.id))}
    first = min((one.time for one in charges.values()), default="")
    moments = []
    for point in points:
        charge = charges.get(point.id)
        spent = None if point.spent is None or math.isnan(point.spent) else point.spent
        if charge is None:
            moments.append(Moment(0, first, spent, "before the first request"))
        else:
            actor = "" if charge.origin is None else f"{printable(charge.origin.actor)}: "
            text = f"{charge.id}. {actor}{printable(words_of(account, charge))} ({cost_of(charge)})"
            moments.append(Moment(charge.id, charge.time, spent, text))
    return moments


def _running(running: RunningRequest | None) -> RunningState | None:
    if running is None:
        return None
    return RunningState(running.number, running.analyst, running.call, int(running.seconds))


def _held(table: OpenTable, charge: Charge) -> HeldState:
    return HeldState(
        charge.id,
        "local" if charge.origin is None else printable(charge.origin.actor),
        charge.time,
        printable(words_of(table.session._core.account, charge)),
        charge.loss.words,
        "a curator ended it" if charge.id in table.held.ended else "the service ended before it was answered",
    )


def _by_project(tree: BudgetTree) -> list[Grant]:
    """The parts as they were granted, but each project followed by its analysts, and last the others.

    Without those that were handed over: another part has taken their place.
    """

    def place(grant: Grant) -> tuple[float, bool]:
        project = grant if grant.level == "project" else tree.grant_of(grant.node)
        return math.inf if project is None else project.id, grant.level == "analyst"

    return sorted((one for one in tree.grants().values() if not one.is_handed_over), key=place)


def _part(table: OpenTable, account: Accountant, grant: Grant, used: set[str]) -> PartState:
    tree, spent = account.tree, table.limit(grant).spent
    cap, project = tree.cap(node_of(grant.id)), tree.grant_of(grant.node)
    outer = grant.ceiling or outer_of(account, project)
    of = grant.ceiling or cap or whole_of(account)
    whole = GDPFilter.from_loss(PureGDP.of(*map(max, of.parts, spent.parts)))
    left = whole.step(spent).headroom
    if cap is not None and grant.ceiling is not None:
        rest = left_of(PureGDP.of(*map(max, cap.parts, spent.parts)), spent)
        gone = PureGDP.of(*(total - part for total, part in zip(whole.budget.parts, rest.parts, strict=True)))
        left = min(left, whole.step(gone).headroom)
    return PartState(
        level=grant.level,
        name=grant.name,
        project=None if project is None else project.name,
        ceiling=_limit_or_none(grant.ceiling),
        cap=_limit_or_none(cap),
        limit=_limit(cap or of),
        spent=_spent(spent),
        share=min(whole.budget_fraction(spent), 1.0),
        headroom=left,
        is_revoked=grant.is_revoked,
        has_cap=(grant.mode, grant.level) != ("reserved", "project"),
        of=_limit(outer),
        cap_share=None if cap is None else _one_share(cap, outer),
        spent_share=math.ceil(MILLION * max(_shares(spent, outer))) / MILLION,
        is_removed=grant.is_removed,
        is_unused=(grant.mode, grant.level) == ("reserved", "analyst") and node_of(grant.id) not in used,
        free=free_share(account, grant, table.outside),
    )


def _one_share(amount: PureGDP, outer: PureGDP) -> float | None:
    share, *others = set(_shares(amount, outer))
    return None if others else math.floor(MILLION * share) / MILLION


def _shares(amount: PureGDP, outer: PureGDP) -> list[Fraction]:
    """The shares of the components of an amount, at most 1."""
    return [
        min(Fraction(part) / whole, Fraction(1)) for part, whole in zip(amount.parts, outer.parts, strict=True) if whole
    ]


def _request(table: OpenTable, account: Accountant, one: BudgetRequest) -> RequestState:
    decision, tree, now = one.decision, account.tree, account.ledger.time_in(one.node)
    more: dict[str, Any] = {}
    if decision is not None:
        more = {
            "decided_by": printable(decision.actor),
            "decided": decision.time,
            "until": decision.until,
            "granted": _limit_or_none(decision.amount),
            "reason": printable(decision.why),
        }
    elif one.part is not None:
        cap = tree.cap_with_raises(node_of(one.part))
        more = {
            "spent": _spent(table.limit(tree.grants()[one.part]).spent),
            "cap": _limit_or_none(cap.at(now)),
            "cap_after": _limit_or_none(cap.raised(one.total, None).at(now)),
        }
    return RequestState(
        number=one.id,
        analyst=printable(one.analyst),
        time=one.time,
        why=printable(one.why),
        queries=tuple(
            RequestedQueryState(
                printable(query.words), printable(query.target), _spent(query.cost), printable(query.error)
            )
            for query in one.queries
        ),
        total=_spent(one.total),
        largest=_limit(one.total),
        digest=one.digest,
        status=one.status(now),
        **more,
    )


def _spent(amount: PureGDP) -> Amount:
    """A cost, rounded up."""
    return _amount(spent_words(amount), amount.mu, decimal_up(amount.delta), decimal_up(amount.epsilon))


def _limit(amount: PureGDP) -> Amount:
    """A limit, rounded down, so that it is accepted where the amount is the limit."""
    mu = decimal_sqrt_down(amount.mu_squared)
    return _amount(limit_words(amount) or "", mu, decimal_down(amount.delta), decimal_down(amount.epsilon))


def _limit_or_none(amount: PureGDP | None) -> Amount | None:
    return None if amount is None else _limit(amount)


def _amount(words: str, *parts: float) -> Amount:
    return Amount(words, *(repr(part) if part else None for part in parts))
