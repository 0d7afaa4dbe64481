"""What the cockpit shows of a table: computed from declaration, plans and costs, and never from an answer."""

from __future__ import annotations

import math

from msgspec import structs

from dpnb._core.accountant.budget_request import BudgetRequest
from dpnb._core.accountant.grant import Grant
from dpnb._core.accountant.granting import whole_of
from dpnb._protocol import cockpit as protocol
from dpnb.accounting.exact import decimal_down, decimal_sqrt_down
from dpnb.accounting.losses import PureGDP
from dpnb.errors import DpnbError, printable
from dpnb.ledger import node_of
from dpnb.render.numbers import limit_words, spent_words
from dpnb.service.access.tokens import Identity, StoredToken
from dpnb.service.curation.acts import audit_page, words_of
from dpnb.service.curation.state import HAVE_PLANS, table_state
from dpnb.service.opening import OpenTable
from dpnb.service.served import ServedTable
from dpnb.session.gauges import describe_spent, headroom_gauge, percent_spent, reserve_gauge
from dpnb.session.snapshot import NO_LIMIT
from dpnb.wire.acts import AuditRow, PartState, RequestState, RunningState, TableState

MOMENTS = 120
"""Points of the timeline."""

LONG_SECONDS = 5
"""Time after which the page shows a running request."""

PAGES = 5
"""Pages of an audit in one reply."""

NOTHING_YET = "before the first request"


def table_view(table: OpenTable) -> protocol.CockpitTable:
    """A table; with nothing but a fault if its ledger cannot be read."""
    try:
        return _table_view(table)
    except DpnbError as error:
        return _unreadable(table, str(error))


def _table_view(table: OpenTable) -> protocol.CockpitTable:
    core, state = table.session._core, table_state(table)
    account = core.account
    filter_ = account.filter
    reserve = reserve_gauge(filter_)
    return protocol.CockpitTable(
        name=table.name,
        privacy_unit=core.tables.words,
        guarantee=core.guarantee,
        notice=core.notice,
        mode=state.mode,
        version=core.version,
        frozen=state.frozen,
        gauges=[headroom_gauge(account, filter_), *([] if reserve is None else [reserve])],
        spent=percent_spent(filter_),
        spent_loss=describe_spent(filter_, account.budget) if account.guarantee.has_budget else NO_LIMIT,
        n_rows=state.rows,
        moments=_moments(table),
        parts=_parts(table, state),
        requests=[_request(table, one) for one in state.requests],
        running=_running(state.running),
        waiting=state.waiting,
        held=[protocol.HeldCharge(**structs.asdict(one)) for one in state.held],
        fault=None,
    )


def _parts(table: OpenTable, state: TableState) -> list[protocol.BudgetPart]:
    """The parts, each project followed by its analysts."""
    grants = {(one.level, one.name): one for one in table.session._core.account.tree.grants().values()}
    projects = [one.name for one in state.parts if one.level == "project"]

    def place(one: PartState) -> tuple[int, bool]:
        project = one.name if one.level == "project" else one.project
        return (projects.index(project) if project in projects else len(projects), one.level == "analyst")

    return [_part(table, one, grants[one.level, one.name]) for one in sorted(state.parts, key=place)]  # type: ignore[index]


def _part(table: OpenTable, one: PartState, grant: Grant) -> protocol.BudgetPart:
    account = table.session._core.account
    cap = account.tree.cap(node_of(grant.id))
    return protocol.BudgetPart(
        level=one.level,
        name=one.name,
        project=one.project,
        ceiling=limit_words(grant.ceiling),
        cap=limit_words(cap),
        limit=_fields_of(cap or grant.ceiling or whole_of(account)),
        spent=spent_words(table.limit(grant).spent),
        share=one.share_spent,
        headroom=one.headroom,
        is_revoked=one.is_revoked,
        has_cap=(grant.mode, grant.level) != ("reserved", "project"),
    )


def _request(table: OpenTable, one: RequestState) -> protocol.AskedBudget:
    request = table.session._core.account.tree.budget_requests()[one.number]
    return protocol.AskedBudget(
        id=one.number,
        analyst=one.analyst,
        time=one.time,
        why=one.why,
        queries=[
            protocol.AskedQuery(words=shown.words, target=shown.target, cost=spent_words(query.cost), error=shown.error)
            for shown, query in zip(one.queries, request.queries, strict=True)
        ],
        total=spent_words(request.total),
        amount=_fields_of(request.total),
        digest=one.digest,
        state=one.status,
        decision=_decision(one, request),
        after=_after(table, request),
    )


def _decision(one: RequestState, request: BudgetRequest) -> str | None:
    if request.decision is None:
        return None
    granted = "" if request.decision.amount is None else f": {limit_words(request.decision.amount)}"
    until = "" if one.until is None else f" until {_minute(one.until)}"
    reason = f" ({one.reason})" if one.reason else ""
    return f"{one.status} by {one.decided_by}, {_minute(one.decided or '')}{granted}{until}{reason}"


def _minute(stamp: str) -> str:
    """A time of the ledger, to the minute."""
    return f"{stamp[:16].replace('T', ' ')} UTC"


def _after(table: OpenTable, request: BudgetRequest) -> str | None:
    """What an approval of all that is requested makes of the analyst's part."""
    if request.decision is not None or request.part is None:
        return None
    account = table.session._core.account
    node = node_of(request.part)
    cap, now = account.tree.cap_with_raises(node), account.ledger.time_in(node)
    spent = spent_words(table.limit(account.tree.grants()[request.part]).spent)
    before, after = limit_words(cap.at(now)), limit_words(cap.raised(request.total, None).at(now))
    return f"Spent so far: {spent}. Cap now: {before or 'none'}; after an approval: {after or 'none'}."


def _unreadable(table: OpenTable, fault: str) -> protocol.CockpitTable:
    core = table.session._core
    return protocol.CockpitTable(
        name=table.name,
        privacy_unit=core.tables.words,
        guarantee=core.guarantee,
        notice=core.notice,
        mode=None,
        version=core.version,
        frozen=None,
        gauges=[],
        spent="unknown",
        spent_loss="",
        n_rows=0,
        moments=[],
        parts=[],
        requests=[],
        running=None,
        waiting=0,
        held=[],
        fault=fault,
    )


def _running(one: RunningState | None) -> protocol.ExecutedRequest | None:
    """What runs; a short request would only flicker."""
    return None if one is None or one.seconds < LONG_SECONDS else protocol.ExecutedRequest(**structs.asdict(one))


def _moments(table: OpenTable) -> list[protocol.Moment]:
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
            moments.append(protocol.Moment(id=0, time=first, spent=spent, text=NOTHING_YET))
            continue
        actor = "" if charge.origin is None else f"{printable(charge.origin.actor)}: "
        cost = charge.loss.words if charge.loss else "free"
        text = f"{charge.id}. {actor}{printable(words_of(table.session._core.account, charge))} ({cost})"
        moments.append(protocol.Moment(id=charge.id, time=charge.time, spent=spent, text=text))
    return moments


def log_view(table: OpenTable, after: int) -> protocol.LogPage:
    """The rows after a number: at most `PAGES` pages of an audit."""
    page = audit_page(table, after)
    rows = list(page.rows)
    for _ in range(PAGES - 1):
        if not page.more:
            break
        page = audit_page(table, rows[-1].id)
        rows += page.rows
    return protocol.LogPage(rows=[_row(one) for one in rows], more=page.more)


def _row(one: AuditRow) -> protocol.LoggedRow:
    return protocol.LoggedRow(
        id=one.id,
        time=one.time,
        kind=one.kind,
        status=one.status,
        words=one.words,
        cost=one.cost,
        actor=None if one.actor is None else printable(one.actor),
        has_plan=one.kind in HAVE_PLANS,
    )


def may_rotate(person: Identity, role: str, name: str) -> bool:
    """Whether a person may replace a token: an owner's or another curator's only if they are the owner.

    Who replaces a token has it, so a curator would otherwise become the owner.
    """
    if person.role == "owner" or person.name == name:
        return person.role != "auditor"
    return person.role == "curator" and role in ("analyst", "auditor")


def holder_view(person: Identity, one: StoredToken) -> protocol.TokenHolder:
    """A person with a valid token, without its hash."""
    return protocol.TokenHolder(
        name=one.name,
        role=one.role,
        created=one.created,
        expires=one.expires,
        may_rotate=may_rotate(person, one.role, one.name),
    )


def version_of(served: ServedTable) -> str:
    """A text that changes with anything that `table_view` and `log_view` return."""
    try:
        ledger, tree = served.table.session.ledger, served.table.session._core.account.tree
        nodes = map(node_of, tree.grants())
        lapsed = sum(tree.cap_with_raises(node).lapsed(ledger.time_in(node)) for node in nodes)
        one = served.table.running
        running = 0 if one is None or one.seconds < LONG_SECONDS else one.number
        return f"{served.table.name} {served.version} {ledger.count} {ledger.foreign_changes()} {lapsed} {running}"
    except DpnbError as error:
        return f"{served.table.name} {error}"


def _fields_of(amount: PureGDP) -> protocol.Amount:
    """An amount as the fields of a dialog: rounded down, so that it is accepted where the amount is the limit."""
    parts = decimal_sqrt_down(amount.mu_squared), decimal_down(amount.delta), decimal_down(amount.epsilon)
    mu, delta, epsilon = (repr(part) if part else None for part in parts)
    return protocol.Amount(mu=mu, discovery_delta=delta, pure_epsilon=epsilon)
