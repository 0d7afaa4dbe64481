"""Deciding the requests of analysts for a larger cap: each decision is a row of the ledger."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.budget_request import BudgetRequest
from dpnb._core.accountant.grant import Grant
from dpnb._core.accountant.granting import MAX_WHY, write_act
from dpnb.accounting.losses import PureGDP
from dpnb.errors import InvalidValueError
from dpnb.ledger import node_of


def approve(
    account: Accountant,
    number: int,
    digest: str,
    amount: PureGDP | None,
    until: datetime | None,
    why: str,
    *,
    version: str,
) -> BudgetRequest:
    """Approve a request, or a part of it: its analyst's cap rises, in reserved mode up to the ceiling at most.

    `account` is that of the table, `number` the id of the row of the request, and `digest` that of what the curator was
    shown (`BudgetRequest.digest`), so that nothing else is approved.  `amount` None is all that was requested.  From
    `until` on, the cap is what it would be without the approval, and charges that were made stay.  The analyst sees
    `why`, which may be empty.
    """
    _refuse_text(why)
    with account.ledger.transaction():
        request = _pending(account, number, digest)
        part = _part(account, request)
        added = request.total if amount is None else amount
        if not added.within(request.total) or not any(added.parts):
            raise InvalidValueError(
                f"amount: must be a part of what was requested, which is {request.total.format(up=False)}; got "
                f"{added.format(up=True)}; to give more, move the cap"
            )
        now = account.ledger.time_in(node_of(part.id))
        lapses = None if until is None else _lapsing(until, now)
        known = account.tree.cap_with_raises(node_of(part.id))
        if known.base is None:
            raise InvalidValueError(
                f"request {number}: {part.name} has no cap now, so there is nothing to add to; decline it, or set a cap"
            )
        cap = known.raised(added, lapses).at(now)
        details: dict[str, Any] = {"act": "approve", "request": number, "digest": digest, "amount": added.to_json()}
        details |= {"cap": None if cap is None else cap.to_json(), "until": lapses, "why": why}
        write_act(account, node_of(part.id), version, details)
    return account.tree.budget_requests()[number]


def decline(account: Accountant, number: int, digest: str, why: str, *, version: str) -> BudgetRequest:
    """Decline a request; for the arguments see `approve`."""
    _refuse_text(why)
    with account.ledger.transaction():
        request = _pending(account, number, digest)
        part = _part(account, request)
        details = {"act": "decline", "request": number, "digest": digest, "why": why}
        write_act(account, node_of(part.id), version, details)
    return account.tree.budget_requests()[number]


def _pending(account: Accountant, number: int, digest: str) -> BudgetRequest:
    requests = account.tree.budget_requests()
    request = requests.get(number)
    if request is None:
        pending = ", ".join(str(one.id) for one in requests.values() if one.decision is None) or "there are none"
        raise InvalidValueError(f"request: must be the number of a pending request; got {number}; pending: {pending}")
    if request.decision is not None:
        raise InvalidValueError(
            f"request {number}: was already decided by {request.decision.actor}; a decision stands; to change what the "
            "analyst may spend, move the cap"
        )
    if request.digest != digest:
        raise InvalidValueError(
            f"digest: must be that of request {number} as it was shown; got another one; look at the request again"
        )
    return request


def _part(account: Accountant, request: BudgetRequest) -> Grant:
    part = None if request.part is None else account.tree.grants().get(request.part)
    if part is None:
        raise InvalidValueError(
            f"request {request.id}: its analyst has no part of the budget; got none to decide about"
        )
    return part


def _lapsing(until: datetime, now: str) -> str:
    if until.tzinfo is None:
        raise InvalidValueError(f"until: must have a time zone; got {until.isoformat()}; add Z for UTC")
    try:
        text = until.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:
        raise InvalidValueError(
            "until: must be a date that a calendar has; got another; choose an earlier one"
        ) from None
    if text <= now:
        raise InvalidValueError(f"until: must be later than now, {now}; got {text}; choose a later time, or none")
    return text


def _refuse_text(why: str) -> None:
    if len(why) > MAX_WHY or not why.isprintable():
        raise InvalidValueError(
            f"why: must be at most {MAX_WHY} printable characters, which the analyst sees; got another text"
        )
