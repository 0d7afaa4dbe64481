"""What curators and auditors see of a table: parts of its budget, requests for more, and the whole plan of a row."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.budget_request import BudgetRequest, plan_is_bound, requested_queries
from dpnb._core.accountant.grant import Grant
from dpnb._core.accountant.granting import whole_of
from dpnb._core.accountant.limit import left_of
from dpnb._plan.plan import Plan, columns_read
from dpnb.accounting.exact import decimal_up
from dpnb.accounting.filters import GDPFilter
from dpnb.accounting.losses import PureGDP
from dpnb.errors import InvalidValueError, PlanError, printable
from dpnb.ledger import Charge, node_of, refuse_unreadable
from dpnb.ledger.charge import BUDGET_REQUEST, COMPARISON, LAUNCH, RELEASE, SELECTION
from dpnb.render.numbers import format_percent_down
from dpnb.service.curation.acts import words_of
from dpnb.service.opening import OpenTable
from dpnb.service.running import RunningRequest
from dpnb.wire.acts import (
    MAX_DECIDED,
    MAX_HELD,
    Components,
    HeldState,
    PartState,
    PlanPage,
    RequestedQueryState,
    RequestState,
    RunningState,
    TableState,
)

# --- the whole plan of a row ------------------------------------------------------------------------------------------


MAX_CHARACTERS = 200_000
"""Characters of a plan, and of all plans of a row together."""

WIDTH = 100
"""Characters of a list or an object that is written on one line."""

HAVE_PLANS = frozenset((RELEASE, SELECTION, COMPARISON, LAUNCH, BUDGET_REQUEST))
"""Kinds of rows that have plans, or may have: those that an analyst requested."""

NOT_RECORDED = "This request was recorded by a version of dpnb that did not record plans."


def plan_page(table: OpenTable, number: int) -> PlanPage:
    """The plans of a row."""
    account = table.session._core.account
    with account.ledger.lock.checked():
        charge = next(iter(account.ledger.by_id((number,))), None)
    if charge is None or charge.kind not in HAVE_PLANS:
        raise InvalidValueError(
            f"row: must be that of a query, a launch or a request for budget; got {number}; the log lists the rows"
        )
    with refuse_unreadable(f"row {number}"):
        plans = list(_plans(charge))
    return PlanPage(number, tuple(_bounded(one, MAX_CHARACTERS // len(plans)) for one in plans))


def _plans(charge: Charge) -> Iterator[str]:
    if charge.kind == BUDGET_REQUEST:
        for query in requested_queries(charge.launch or {}):
            if not query.plan:
                yield NOT_RECORDED
            elif not plan_is_bound(query, charge.table_version):
                raise PlanError("plan: is not the one that the request was for")
            else:
                yield _query(query.plan, query.arguments)
    elif charge.kind == LAUNCH:
        launch = charge.launch or {}
        arguments = {name: _parsed(part) for name, part in launch["arguments"].items()}
        yield _text({"mechanism": launch["mechanism"], "name": launch["name"], "arguments": arguments})
    else:
        yield _query(charge.plan, charge.arguments)


def _query(plan: str, arguments: str) -> str:
    reads = columns_read(Plan.from_json(plan))
    return _text({"reads": reads, "plan": json.loads(plan), "arguments": json.loads(arguments)})


def _parsed(value: Any) -> Any:
    """An argument; a plan or view inside is stored as the text of its JSON."""
    return json.loads(value) if isinstance(value, str) and value.startswith("{") else value


def _text(value: Any) -> str:
    return "\n".join(map(printable, _lines(value, "")))


def _lines(value: Any, indent: str) -> list[str]:
    """A JSON value, whose small parts are each on one line."""
    compact = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(indent) + len(compact) <= WIDTH:
        return [indent + compact]
    inside = f"{indent} "
    if isinstance(value, list) and not any(isinstance(part, dict) for part in value):
        texts = [json.dumps(part, ensure_ascii=False) for part in value]
        if max(map(len, texts)) <= WIDTH:
            return [f"{indent}[", *_filled(texts, inside), f"{indent}]"]
    if isinstance(value, dict):
        named = [(f"{json.dumps(name, ensure_ascii=False)}: ", part) for name, part in value.items()]
    else:
        named = [("", part) for part in value]
    lines: list[str] = []
    for name, part in named:
        first, *rest = _lines(part, inside)
        lines += [f"{inside}{name}{first.removeprefix(inside)}", *rest]
        lines[-1] += ","
    lines[-1] = lines[-1].removesuffix(",")
    start, end = "{}" if isinstance(value, dict) else "[]"
    return [indent + start, *lines, indent + end]


def _filled(texts: list[str], indent: str) -> list[str]:
    """The parts of a list, several on each line."""
    lines = [indent + texts[0]]
    for text in texts[1:]:
        if len(lines[-1]) + len(text) + 2 > WIDTH:
            lines[-1] += ","
            lines.append(indent + text)
        else:
            lines[-1] += f", {text}"
    return lines


def _bounded(text: str, limit: int) -> str:
    """A text of limited length: its beginning, which names the columns, and what is missing."""
    return text if len(text) <= limit else f"{text[:limit]}\n... and {len(text) - limit:,} more characters"


# --- the state of a table as curators and auditors see it -------------------------------------------------------------


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
