"""Acts on the parts of a budget: requests are decided, analysts added and removed, parts handed over.

The rows of the ledger say who the analysts are; the settings of a service only add to them.

A part is handed over in one transaction: the old one is closed for ever, which is a row of its own node, and the new
one with the same ceiling is a part of the same project or budget.  So the ceilings add up to the same at every moment,
and each part has had one holder, who sees the rows of that part alone.  A charge that is made at the same time comes
before the transaction, which then finds it and changes nothing, or after it, and is refused.  An unused part has
admitted nothing: its filter, and under individual accounting the budgets of the units in it, are as they were made, and
so are those of the new part.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.budget_request import BudgetRequest
from dpnb._core.accountant.cap import Limit
from dpnb._core.accountant.grant import HAND_OVER, LEDGER_RESTORED, REMOVE, TAKE_OVER, Grant
from dpnb._core.accountant.granting import unreserved, whole_of, write_act, write_part
from dpnb.accounting.losses import PureGDP
from dpnb.errors import InvalidValueError
from dpnb.ledger import node_of
from dpnb.ledger.charge import ACT, BUDGET_REQUEST
from dpnb.wire.limits import MAX_WHY


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


def add_analyst(account: Accountant, name: str, project: str | None, amount: PureGDP | None, *, version: str) -> None:
    """Give a person a part of a divided budget; who was removed gets their own part back, without an amount.

    `amount` is the ceiling in reserved mode, and in pooled mode the cap, or None for none.
    """
    with account.ledger.transaction():
        tree = account.tree
        known, mode = tree.grant_named("analyst", name), next((one.mode for one in tree.grants().values()), None)
        if mode is None:
            raise InvalidValueError(
                "table: must have a divided budget for an analyst to be added; everybody with a token uses the budget "
                "of this one; make a token, or write mode and analysts into the settings once"
            )
        if known is not None and not known.is_handed_over:
            if not known.is_removed or amount is not None:
                raise InvalidValueError(
                    f"analyst {name}: has a part of the budget already, which is fixed; to let somebody back who was "
                    "removed, leave project and amount out; to give more, move the cap, or add a part under another "
                    f"name, such as {name}-2"
                )
            write_act(account, node_of(known.id), version, {"act": "restore"})
            return
        if mode == "reserved" and amount is None:
            raise InvalidValueError(
                f"analyst {name}: must have a ceiling in reserved mode; got none; give a share or components"
            )
        write_part(account, "analyst", name, mode, amount, _project(account, project), version=version)


def remove_analyst(account: Accountant, name: str, *, version: str) -> None:
    """End the access of an analyst: nothing more is charged to the part, and the table is closed to the person.

    What was charged stays charged, and the part stays theirs.
    """
    with account.ledger.transaction():
        part = _held_by(account, name)
        if part.is_removed:
            raise InvalidValueError(f"analyst {name}: must not be removed twice; they have no access; add them again")
        write_act(account, node_of(part.id), version, {"act": REMOVE})


def hand_over(account: Accountant, name: str, to: str, *, version: str) -> None:
    """Give the part of an analyst of which nothing was charged to another person, in reserved mode.

    The new holder has the same ceiling, project and cap; what approved requests had added to the cap ends.
    """
    with account.ledger.transaction():
        part, tree = _held_by(account, name), account.tree
        if part.mode != "reserved":
            raise InvalidValueError(
                f"analyst {name}: a part can be handed over in reserved mode only; in pooled mode nothing is reserved; "
                "remove them, and add the other person"
            )
        use = _use(account, part)
        if use:
            raise InvalidValueError(
                f"analyst {name}: a part can be handed over only while nothing in it was charged or launched; {use}; "
                "remove them, and give the other person a part of what is left"
            )
        other = tree.grant_named("analyst", to)
        if other is not None and not other.is_handed_over:
            raise InvalidValueError(
                f"analyst {to}: must have no part of the budget yet, since a ceiling is fixed; got one who has; choose "
                "another person"
            )
        project, cap = tree.grant_of(part.node), tree.cap_with_raises(node_of(part.id)).base
        write_act(account, node_of(part.id), version, {"act": HAND_OVER})
        row = write_part(account, "analyst", to, part.mode, part.ceiling, project, version=version, taken_from=part)
        write_act(account, node_of(row), version, {"act": TAKE_OVER})
        if cap is not None:
            write_act(account, node_of(row), version, {"act": "cap", "cap": cap.to_json()})


def used_nodes(account: Accountant) -> set[str]:
    """The nodes to which something was charged, or something that costs nothing."""
    return {one.node for one in account.ledger.summaries() if one.kind not in (ACT, BUDGET_REQUEST)}


def free_share(account: Accountant, part: Grant | None, outside: Limit) -> float | None:
    """The share of each component of a part, or of the budget, that is left for further ceilings; rounded down.

    None where there are no ceilings; `outside` is as for `unreserved`.
    """
    parts = account.tree.grants().values() if part is None else [part]
    if not any(one.mode == "reserved" for one in parts) or (part is not None and part.level != "project"):
        return None
    outer = (None if part is None else part.ceiling) or whole_of(account)
    pairs = zip(unreserved(account, part, outside).parts, outer.parts, strict=True)
    return math.floor(1000 * min(left / whole for left, whole in pairs if whole)) / 1000


def _use(account: Accountant, part: Grant) -> str:
    """What keeps a part from being handed over, in words; empty for nothing.

    Everything inside a part begins with a row of its node, also what costs nothing or is not answered.
    """
    node, pending = node_of(part.id), account.tree.budget_requests()
    for charge in account.ledger.summaries():
        if charge.node != node:
            continue
        if charge.kind not in (ACT, BUDGET_REQUEST):
            return f"row {charge.id} was"
        if charge.kind == BUDGET_REQUEST and pending[charge.id].decision is None:
            return f"the request for budget {charge.id} waits: decline it first"
        if charge.kind == ACT and (charge.launch or {})["act"] == LEDGER_RESTORED:
            return f"the ledger may lack charges to it, since it was accepted as an older copy in row {charge.id}"
    return ""


def _held_by(account: Accountant, name: str) -> Grant:
    part = account.tree.grant_named("analyst", name)
    if part is None or part.is_handed_over:
        known = [
            one.name for one in account.tree.grants().values() if one.level == "analyst" and not one.is_handed_over
        ]
        what = "none" if part is None else "one that was handed over"
        raise InvalidValueError(
            f"analyst {name}: must have a part of the budget; got {what}; {', '.join(known) or 'nobody'} has one"
        )
    return part


def _project(account: Accountant, name: str | None) -> Grant | None:
    if name is None:
        return None
    found = account.tree.grant_named("project", name)
    if found is None or found.is_removed:
        known = [one.name for one in account.tree.grants().values() if one.level == "project" and not one.is_removed]
        raise InvalidValueError(
            f"project {name}: must be one of the table's, {', '.join(known) or 'of which there are none'}; correct it, "
            "or leave it out"
        )
    return found
