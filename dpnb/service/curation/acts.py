"""The acts of a curator."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec.structs import asdict

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.deciding import approve, decline
from dpnb._core.accountant.grant import Grant
from dpnb._core.accountant.granting import (
    freeze,
    move_cap,
    restore,
    revoke,
    unfreeze,
    whole_of,
    write_act,
)
from dpnb._core.accountant.limit import NOTHING
from dpnb.accounting.losses import PureGDP
from dpnb.errors import InvalidValueError, printable
from dpnb.ledger import ROOT, node_of
from dpnb.ledger.origin import RequestOrigin, requested_by
from dpnb.service.access.tokens import Identity
from dpnb.service.configuration.parts import AmountSettings
from dpnb.service.monitoring.log import log
from dpnb.service.opening import OpenTable
from dpnb.service.running import RunningRequest, checked_running
from dpnb.service.served import ServedTable
from dpnb.wire.acts import (
    AnyAct,
    Approve,
    Components,
    Decline,
    End,
    Freeze,
    MoveCap,
    Restore,
    Resume,
    Revoke,
    Unfreeze,
)
from dpnb.wire.amounts import decimal_from_text
from dpnb.wire.limits import MAX_SHOWN


def carry_out(served: ServedTable, person: Identity, one: AnyAct, **facts: Any) -> None:
    """Do what a curator asks, and refuse at once what waits and may not be charged any more; with facts for the log."""
    act(served.table, person.name, one)
    if isinstance(one, Restore):
        served.table.admit_people()  # the settings, or a curator, may have removed them
    served.drop_refused()
    kind = str(type(one).__struct_config__.tag)
    log("act", actor=person.name, role=person.role, table=served.table.name, act=kind, **facts)


def act(table: OpenTable, actor: str, one: AnyAct) -> None:
    """Do what a curator asks, in any thread, so that a request that waits in that of the table is not charged first.

    An act that was done before is refused, and so is one about a request or a part that there is not.
    """
    core = table.session._core
    account, version = core.account, core.version
    running = _ending(table, actor, one) if isinstance(one, End) else None
    refuse_own_part(account, actor)
    with requested_by(RequestOrigin(actor)):
        match one:
            case Freeze():
                freeze(account, one.why, version=version)
            case Unfreeze():
                unfreeze(account, version=version)
            case Approve():
                request = account.tree.budget_requests().get(one.request)
                whole = None if request is None else request.total
                amount = None if one.amount is None else amount_of(one.amount, whole)
                approve(account, one.request, one.digest, amount, _time(one.until), one.why, version=version)
            case Decline():
                decline(account, one.request, one.digest, one.why, version=version)
            case MoveCap():
                part = _part(table, one)
                cap = (
                    None
                    if one.cap is None
                    else amount_of(one.cap, part.ceiling or outer_of(account, account.tree.grant_of(part.node)))
                )
                move_cap(account, part, cap, version=version)
            case Revoke():
                revoke(account, _part(table, one), version=version)
            case Restore():
                restore(account, _part(table, one), version=version)
            case End():
                _end(table, running or checked_running(table.running, one.number))
            case Resume():
                _resume(table, one)
    core.changed()


def _ending(table: OpenTable, actor: str, one: End) -> RunningRequest | None:
    """Ask the running request to end, without the ledger: its compilation may hold the lock for as long as it takes.

    None for a person who may be an analyst, which only the ledger says for certain.
    """
    if actor in table.settings.division.analysts or table.has_opened(actor):
        return None
    running = checked_running(table.running, one.number)
    running.asked_to_end.set()
    return running


def _end(table: OpenTable, running: RunningRequest) -> None:
    """End the running request; what it has charged, or is answering, is not answered again."""
    core = table.session._core
    ledger = core.account.ledger
    running.asked_to_end.set()
    with ledger.transaction():
        row = running.row(ledger)
        if row is None:
            part = core.account.tree.grant_named("analyst", running.analyst)
            node, of_row = ROOT if part is None else node_of(part.id), {}
        else:
            node, of_row = _node_of_part(table, row), {"row": row}
            table.held.end(row)
        write_act(core.account, node, core.version, {"act": "end", **of_row})


def _resume(table: OpenTable, one: Resume) -> None:
    core = table.session._core
    with core.account.ledger.transaction():
        table.held.resume(one.row)
        write_act(core.account, _node_of_part(table, one.row), core.version, {"act": "resume", "row": one.row})


def _node_of_part(table: OpenTable, row: int) -> str:
    """The node of the part of the budget that a row belongs to, whose analyst sees the acts about it."""
    account = table.session._core.account
    part = account.tree.grant_of(account.ledger.by_id((row,))[0].node)
    return ROOT if part is None else node_of(part.id)


def refuse_own_part(account: Accountant, actor: str) -> None:
    """Refuse the acts of a curator who also has an analyst's part, such as a user of JupyterHub with both scopes."""
    part = account.tree.grant_named("analyst", actor)
    if part is not None and not part.is_revoked:
        raise InvalidValueError(
            f"actor: must have no part of the budget as an analyst; got {printable(actor)!r}, who has one; let another "
            "curator decide"
        )


def _part(table: OpenTable, one: MoveCap | Revoke | Restore) -> Grant:
    """The part that an act is about."""
    tree = table.session._core.account.tree
    part = tree.grant_named(one.level, one.name)
    if part is None or part.is_handed_over:
        parts = [f"{one.level} {one.name}" for one in tree.grants().values() if not one.is_handed_over]
        raise InvalidValueError(
            f"{one.level}: must have a part of the budget; got {printable(one.name[:MAX_SHOWN])!r}; "
            f"{', '.join(parts) or 'there are none'}; add it first"
        )
    return part


def outer_of(account: Accountant, project: Grant | None) -> PureGDP:
    """What a share of the part of an analyst is taken from."""
    own = None if project is None else project.ceiling or account.tree.cap(node_of(project.id))
    return own or whole_of(account)


def amount_of(components: Components, outer: PureGDP | None) -> PureGDP:
    """An amount as a person wrote it; a share is taken from `outer`."""
    texts = {name: text for name, text in asdict(components).items() if text is not None}
    amount = AmountSettings(**{name: decimal_from_text(text, name) for name, text in texts.items()})
    if amount.problem:
        raise InvalidValueError(f"amount: {amount.problem}; got another; correct it")
    return amount.of(outer or NOTHING)


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text[:MAX_SHOWN])
    except ValueError:
        raise InvalidValueError(
            "until: must be a date and time as in 2027-01-31T12:00:00Z; got another text; correct it"
        ) from None
