"""Requests of analysts for a larger cap, as the service executes them: free, and computed without the table.

Costs and expected errors are computed here, from plan, schema and the analyst's own rows of the ledger, whatever the
client may have shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpnb._core import open_sessions
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.budget_request import (
    MAX_PENDING,
    RequestedQuery,
    query_digest,
    request_details,
)
from dpnb._core.accountant.cap import NOTHING
from dpnb._core.accountant.grant import Grant
from dpnb._core.accountant.granting import whole_of
from dpnb._core.core import SessionCore
from dpnb._core.pricing.previews import preview
from dpnb._plan.plan import MAX_WORDS, shortened_words
from dpnb._request import ALWAYS, Release, RequestBudget
from dpnb.accounting.losses import GDP, PureGDP
from dpnb.accounting.losses.gaussian import as_amount
from dpnb.errors import RequestError, printable
from dpnb.ledger import ROOT, Charge, node_of
from dpnb.ledger.charge import BUDGET_REQUEST, unique_key
from dpnb.ledger.origin import current_origin
from dpnb.render.previews import UNKNOWN, describe_expected_error
from dpnb.results.preview import Preview
from dpnb.wire.limits import MAX_REQUESTED, MAX_WHY

ASK_A_SERVICE = (
    "request_budget: needs a curator who can answer, and this session has a ledger of its own; got a session without a "
    "service; release within its budget, or open a table of a service with dpnb.connect"
)


def request_budget(core: SessionCore, requested: Sequence[Release], why: str) -> Charge:
    """Record a request for a larger cap, or find the same pending request; its row costs nothing.

    `core` is that of the analyst's whole session at the service.
    """
    check_request(len(requested), why)
    account, origin = core.account, current_origin()
    if origin is None:
        raise RequestError(ASK_A_SERVICE)
    with account.ledger.lock.checked():
        part = account.tree.part_of(account.root_node, origin.actor)
        if part is None or account.root_node != (node_of(part.id) if part.mode == "reserved" else ROOT):
            raise RequestError(nothing_to_grant("this session has no cap of its own"))
        priced = tuple(_priced(core, one) for one in requested)
        if len({one.key for one in priced}) < len(priced):
            raise RequestError("queries: must differ; got one twice; request each query once")
        total = sum((one.cost for one in priced), start=NOTHING)
        with account.ledger.transaction():
            known = None if origin.id is None else account.ledger.by_request_id(account.root_node, origin.id)
            known = known or _same_pending(account, part, priced, why)
            if known is not None:
                return known
            _refuse_more(account, part, total)
            return account.ledger.reserve(
                kind=BUDGET_REQUEST,
                request_key=unique_key(),
                request=RequestBudget(tuple(requested), why).text,
                node=account.root_node,
                table_version=core.version,
                query_key="budget request",
                loss=GDP(0),
                launch=request_details(priced, total),
                cell_id=open_sessions.current_cell(),
            )


def ask_service(core: SessionCore, requested: Sequence[Release], why: str) -> int:
    """Send a request to the service that holds the table; return the number of its row in the session's ledger."""
    if core.remote is None:
        raise RequestError(ASK_A_SERVICE)
    if core.account.root_node != ROOT:
        raise RequestError(
            f"request_budget: a cap is that of the whole session; got the {core.name!r} inside it; request it there"
        )
    check_request(len(requested), why)
    request = RequestBudget(tuple(requested), why)
    expected = [(BUDGET_REQUEST, ROOT, core.version, request.text)]

    def is_request(rows: Sequence[Charge]) -> bool:
        return [(row.kind, row.node, row.table_version, row.request) for row in rows] == expected

    (row,) = core.remote.run(request, ALWAYS, is_request)
    core.changed()
    return row.id


def check_request(queries: int, why: object) -> None:
    """Check the arguments of a request that need no ledger."""
    if not 1 <= queries <= MAX_REQUESTED:
        raise RequestError(f"queries: must be 1 to {MAX_REQUESTED} queries; got {queries}; make several requests")
    if not isinstance(why, str) or not why.strip() or len(why) > MAX_WHY or not why.isprintable():
        raise RequestError(
            f"why: must be a reason of 1 to {MAX_WHY} printable characters, which the curator reads; got another value"
        )


def nothing_to_grant(because: str) -> str:
    """The refusal of a request that no decision could grant."""
    return (
        f"request_budget: nothing to grant: {because}; release what the budget admits, or ask the curator for another "
        "part of the budget"
    )


def _priced(core: SessionCore, release: Release) -> RequestedQuery:
    plan, view, target = release.plan, release.view, release.target
    if target.kind == "share":
        raise RequestError(
            "share: is a share of what is left, which can be released without a request; got share; give within=, mu=, "
            "rho= or epsilon="
        )
    found = preview(core.pricer, plan, view, target, None)
    if not any(as_amount(found.cost).parts):
        raise RequestError(
            f"{found.description}: costs nothing more at {target.words}; got a request for it; release it"
        )
    words = shortened_words(printable(found.description), plan)
    asked, error = (printable(text)[:MAX_WORDS] for text in (target.words, _expected_error(found)))
    return RequestedQuery(words, asked, as_amount(found.cost), error, query_digest(core.version, release))


def _expected_error(found: Preview) -> str:
    """The expected error, from what the analyst was released; or which count would make it known."""
    words = describe_expected_error(found)
    if words == UNKNOWN and found.count_needed is not None:
        words += f" until the {found.count_needed.description} is released"
    return words


def _same_pending(account: Accountant, part: Grant, priced: tuple[RequestedQuery, ...], why: str) -> Charge | None:
    """The pending request of the same analyst for the same queries and targets, for the same reason."""
    keys = [one.key for one in priced]
    for one in account.tree.budget_requests().values():
        if one.decision is None and one.part == part.id and one.why == why and [q.key for q in one.queries] == keys:
            return account.ledger.by_id((one.id,))[0]
    return None


def _refuse_more(account: Accountant, part: Grant, total: PureGDP) -> None:
    pending = [one for one in account.tree.budget_requests().values() if one.decision is None and one.part == part.id]
    if len(pending) >= MAX_PENDING:
        raise RequestError(
            f"request_budget: at most {MAX_PENDING} requests may be pending; got another one; wait until the curator "
            "has decided one of them"
        )
    cap, most = account.tree.cap(node_of(part.id)), part.ceiling or whole_of(account)
    if cap is None:
        raise RequestError(nothing_to_grant("no cap limits you below " + _limit_words(part)))
    if all(there <= here for asked, here, there in zip(total.parts, cap.parts, most.parts, strict=True) if asked):
        raise RequestError(nothing_to_grant("your cap is at " + _limit_words(part)))


def _limit_words(part: Grant) -> str:
    return "your ceiling, which is fixed" if part.mode == "reserved" else "the budget of the table"
