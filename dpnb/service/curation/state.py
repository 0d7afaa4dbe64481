"""What curators and auditors see of a table: its state, its rows and the whole plan of a row, and never an answer.

It is a function of declaration, plans and costs.  Analysts choose plans and costs after seeing answers, so what an
auditor sees is within the guarantee of the table, and is not free of data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import msgspec

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.budget_request import BudgetRequest
from dpnb._core.accountant.grant import Grant
from dpnb._core.accountant.granting import whole_of
from dpnb._core.accountant.limit import left_of
from dpnb._core.accountant.people import free_share, used_nodes
from dpnb._core.accountant.tree import BudgetTree
from dpnb._core.history import launch_text
from dpnb._core.pricing.query_state import plan_of, request_of
from dpnb._plan.measurements import PlainView
from dpnb._plan.plan import columns_read, describe_plan, shortened_words
from dpnb._protocol.curation import (
    Amount,
    AuditPage,
    AuditRow,
    HeldState,
    Moment,
    PartState,
    PlanPage,
    RequestedQueryState,
    RequestState,
    RunningState,
    TableState,
)
from dpnb._request import LaunchMechanism, Request, RequestBudget, request_from
from dpnb.accounting.exact import decimal_down, decimal_sqrt_down, decimal_up
from dpnb.accounting.filters import GDPFilter
from dpnb.accounting.losses import PureGDP
from dpnb.errors import InvalidValueError, printable
from dpnb.ledger import Charge, node_of, refuse_unreadable
from dpnb.ledger.charge import (
    ACT,
    BUDGET_REQUEST,
    COMPARISON,
    LAUNCH,
    REDACTION,
    RELEASE,
    SELECTION,
    STATEMENT,
    TABLE_FILES,
    VERSION,
)
from dpnb.render.numbers import limit_words, spent_words
from dpnb.service.opening import OpenTable
from dpnb.service.running import RunningRequest
from dpnb.session.gauges import describe_spent, headroom_gauge, percent_spent, reserve_gauge
from dpnb.session.snapshot import NO_LIMIT
from dpnb.session.table_contents import TAKEN

MAX_HELD = 100
"""Charges in a `TableState` that wait for a curator."""

MAX_DECIDED = 100
"""Decided requests in a `TableState`."""

MOMENTS = 120
"""Points of the timeline."""

# --- the state of a table ---------------------------------------------------------------------------------------------


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
            text = f"{charge.id}. {actor}{printable(words_of(account, charge))} ({_cost(charge)})"
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
        is_removed=grant.is_removed,
        is_unused=(grant.mode, grant.level) == ("reserved", "analyst") and node_of(grant.id) not in used,
        free=free_share(account, grant, table.outside),
    )


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


# --- the rows ---------------------------------------------------------------------------------------------------------


MAX_ROWS = 200
"""Rows of a page."""

HAVE_PLANS = frozenset((RELEASE, SELECTION, COMPARISON, LAUNCH, BUDGET_REQUEST))
"""Kinds of rows that have plans, or may have: those that an analyst requested."""


def audit_page(table: OpenTable, after: int, pages: int = 1) -> AuditPage:
    """The rows after a number: at most that many pages in one reply."""
    account = table.session._core.account
    ids = [one.id for one in account.ledger.summaries(after=after)]
    page, more = ids[: pages * MAX_ROWS], len(ids) > pages * MAX_ROWS
    hashes = {stored["id"]: str(stored["hash"]) for stored in account.ledger.stored(page)}
    rows = tuple(_row(account, charge, hashes[charge.id]) for charge in account.ledger.by_id(tuple(page)))
    return AuditPage(rows, more)


def _row(account: Accountant, charge: Charge, chained: str) -> AuditRow:
    return AuditRow(
        id=charge.id,
        time=charge.time,
        kind=charge.kind,
        node=charge.node,
        status=charge.status,
        words=printable(words_of(account, charge)),
        cost=_cost(charge),
        hash=chained,
        actor=None if charge.origin is None else printable(charge.origin.actor),
        has_plan=charge.kind in HAVE_PLANS,
    )


def _cost(charge: Charge) -> str:
    return charge.loss.words if charge.loss else "free"


ABOUT_TABLE_WORDS = {
    TABLE_FILES: "files of the table",
    VERSION: "declaration of the table",
    STATEMENT: "text of the disclosure statement",
    REDACTION: "key of the redacted ledger",
}
"""Rows about the table in words."""


def words_of(account: Accountant, charge: Charge) -> str:
    """What was requested, or whose part of the budget was changed: never what came of it."""
    if charge.kind == ACT:
        part = account.tree.grant_of(charge.node)
        return f"{'' if part is None else f'{part.level} {part.name}: '}{launch_text.of(charge)}"
    if charge.kind == RELEASE:
        plan = plan_of(charge)
        return shortened_words(describe_plan(plan, request_of(charge).view), plan)
    if charge.kind == COMPARISON:
        plan = plan_of(charge)
        return f"comparison of the {shortened_words(describe_plan(plan, PlainView()), plan)}"
    if charge.kind == SELECTION:
        return shortened_words(launch_text.of(charge), plan_of(charge))
    if charge.kind in ABOUT_TABLE_WORDS:
        of = f" for version {charge.table_version!r}" if charge.kind in (TABLE_FILES, VERSION) else ""
        taken = (charge.launch or {}).get(TAKEN)
        return f"{ABOUT_TABLE_WORDS[charge.kind]}{of}{f', read from databases at {taken}' if taken else ''}"
    return launch_text.of(charge)


# --- the whole plan of a row ------------------------------------------------------------------------------------------


MAX_CHARACTERS = 200_000
"""Characters of a plan, and of all plans of a row together."""

WIDTH = 100
"""Characters of a list or an object that is written on one line."""


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
    request = request_from(charge.request)
    match request:
        case RequestBudget():
            for release in request.releases:
                yield _query(release)
        case LaunchMechanism():
            yield _text(json.loads(request.text))
        case _:
            yield _query(request)


def _query(request: Request) -> str:
    stored = json.loads(request.text)
    del stored["request"]
    return _text({"reads": columns_read(request.plan), **stored})  # type: ignore[attr-defined]  # all others have one


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
