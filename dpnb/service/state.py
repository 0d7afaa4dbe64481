"""The state of a table as curators and auditors see it: parts of the budget, and requests for more."""

from __future__ import annotations

import math
from typing import Any

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.budget_request import BudgetRequest
from dpnb._core.accountant.grant import Grant
from dpnb._core.accountant.granting import whole_of
from dpnb._core.accountant.limit import left_of
from dpnb.accounting.exact import decimal_up
from dpnb.accounting.filters import GDPFilter
from dpnb.accounting.losses import PureGDP
from dpnb.errors import printable
from dpnb.ledger import Charge, node_of
from dpnb.render.numbers import format_percent_down
from dpnb.service.acts import words_of
from dpnb.service.opening import OpenTable
from dpnb.service.running import RunningRequest
from dpnb.wire.acts import (
    MAX_DECIDED,
    MAX_HELD,
    Components,
    HeldState,
    PartState,
    RequestedQueryState,
    RequestState,
    RunningState,
    TableState,
)


def table_state(table: OpenTable) -> TableState:
    """The state of a table; a function of the ledger, without answers."""
    core = table.session._core
    account, tree = core.account, core.account.tree
    with account.ledger.lock.checked():
        grants = tree.grants()
        requests = sorted(tree.budget_requests().values(), key=lambda one: one.id)
        pending = [one for one in requests if one.decision is None]
        decided = [one for one in reversed(requests) if one.decision is not None][:MAX_DECIDED]
        modes = sorted({grant.mode for grant in grants.values()})
        headroom = account.filter.headroom
        return TableState(
            table=table.name,
            version=core.version,
            guarantee=core.guarantee,
            headroom=0.0 if math.isnan(headroom) else headroom,
            spent=f"{format_percent_down(headroom)} of the budget is left",
            frozen=tree.frozen,
            mode=modes[0] if modes else None,
            parts=tuple(_part(table, account, grant) for grant in grants.values()),
            requests=tuple(_request(account, one) for one in (*pending, *decided)),
            rows=account.ledger.count,
            pending=len(pending),
            head=account.ledger.head,
            running=_running(table.running),
            waiting=table.worker.waiting,
            held=tuple(_held(table, one) for one in table.held.charges()[:MAX_HELD]),
        )


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
        "a curator ended it" if table.held.was_ended(charge.id) else "the service ended before it was answered",
    )


def _part(table: OpenTable, account: Accountant, grant: Grant) -> PartState:
    tree, spent = account.tree, table.limit(grant).spent
    cap, project = tree.cap(node_of(grant.id)), tree.grant_of(grant.node)
    of = grant.ceiling or cap or whole_of(account)
    whole = GDPFilter.from_loss(PureGDP.of(*map(max, of.parts, spent.parts)))
    used = whole.step(spent)
    left = used.headroom
    if cap is not None and grant.ceiling is not None:
        rest = left_of(PureGDP.of(*map(max, cap.parts, spent.parts)), spent)
        gone = PureGDP.of(*(total - part for total, part in zip(whole.budget.parts, rest.parts, strict=True)))
        left = min(left, whole.step(gone).headroom)
    return PartState(
        level=grant.level,
        name=grant.name,
        project=None if project is None else project.name,
        ceiling=_words(grant.ceiling),
        cap=_words(cap),
        spent=spent.format(up=True),
        share_spent=min(whole.budget_fraction(spent), 1.0),
        headroom=left,
        is_revoked=grant.is_revoked,
    )


def _request(account: Accountant, one: BudgetRequest) -> RequestState:
    decision, part, now = one.decision, one.part, account.ledger.time_in(one.node)
    decided: dict[str, Any] = {}
    if decision is not None:
        decided = {
            "decided_by": printable(decision.actor),
            "decided": decision.time,
            "until": decision.until,
            "granted": _words(decision.amount),
            "reason": printable(decision.why),
        }
    elif part is not None:
        cap = account.tree.cap_with_raises(node_of(part))
        decided = {"cap": _words(cap.at(now)), "cap_after": _words(cap.raised(one.total, None).at(now))}
    return RequestState(
        number=one.id,
        analyst=printable(one.analyst),
        time=one.time,
        why=printable(one.why),
        queries=tuple(
            RequestedQueryState(
                printable(query.words), printable(query.target), query.cost.format(up=True), printable(query.error)
            )
            for query in one.queries
        ),
        total=one.total.format(up=True),
        amount=_components(one.total),
        digest=one.digest,
        status=one.status(now),
        **decided,
    )


def _components(amount: PureGDP) -> Components:
    """The amount as decimals; a component that is 0 is left out."""
    mu, delta, epsilon = amount.mu, decimal_up(amount.delta), decimal_up(amount.epsilon)
    return Components(*(repr(part) if part else None for part in (mu, delta, epsilon)))


def _words(amount: PureGDP | None) -> str | None:
    return None if amount is None else amount.format(up=False)
