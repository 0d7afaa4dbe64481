"""The acts of a curator about a budget, about the analysts of a table and about tokens.

The ledger is written first: a removed analyst is charged nothing more from its row on, also if the file of tokens
cannot be written then.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec.structs import asdict

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.cap import NOTHING
from dpnb._core.accountant.grant import Grant
from dpnb._core.accountant.granting import freeze, move_cap, restore, revoke, unfreeze, whole_of, write_act
from dpnb._core.accountant.people import add_analyst, approve, decline, hand_over, remove_analyst
from dpnb.accounting.losses import PureGDP
from dpnb.errors import InvalidValueError, printable
from dpnb.ledger import ROOT, node_of
from dpnb.ledger.origin import MAX_ACTOR, RequestOrigin, requested_by
from dpnb.service.access.tokens import (
    Identity,
    Role,
    TokenStore,
    expiry_of,
    extend_tokens,
    new_token,
    revoke_tokens,
    rotate_token,
)
from dpnb.service.configuration.parts import NAME, AmountSettings
from dpnb.service.monitoring import log
from dpnb.service.opening import OpenTable
from dpnb.service.running import RunningRequest, checked_running
from dpnb.service.served import ServedTable
from dpnb.wire.limits import MAX_SHOWN, decimal_from_text
from dpnb.wire.messages import (
    AddAnalyst,
    AnyAct,
    AnyPersonAct,
    Approve,
    Components,
    Decline,
    End,
    Freeze,
    HandOver,
    MoveCap,
    RemoveAnalyst,
    Restore,
    Resume,
    Revoke,
    Unfreeze,
)

LONGER = MAX_ACTOR + 1
"""Characters of a name that are looked up: one more than the longest has, so that no other name is meant."""

TOKEN_EVENTS = {"replace": "token_rotated", "new": "token_made", "extend": "token_extended", "revoke": "token_revoked"}
"""In the service's log."""


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
                amount = None if one.amount is None else _amount_of(one.amount, whole)
                approve(account, one.request, one.digest, amount, _time(one.until), one.why, version=version)
            case Decline():
                decline(account, one.request, one.digest, one.why, version=version)
            case MoveCap():
                part = _part(table, one)
                cap = (
                    None
                    if one.cap is None
                    else _amount_of(one.cap, part.ceiling or outer_of(account, account.tree.grant_of(part.node)))
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


def _amount_of(components: Components, outer: PureGDP | None) -> PureGDP:
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


def change_people(
    tables: Mapping[str, ServedTable],
    served: ServedTable,
    tokens: TokenStore,
    person: Identity,
    one: AnyPersonAct,
    **facts: Any,
) -> str | None:
    """Do what a curator asks about an analyst of a table, in any thread; returns a new token, which is not kept.

    A person who leaves and may open no other of the `tables` loses the tokens.  One who comes without a token gets one,
    if that is asked.  `facts` are for the log.
    """
    coming = one.to if isinstance(one, HandOver) else one.name if isinstance(one, AddAnalyst) else None
    leaving = None if isinstance(one, AddAnalyst) else one.name
    if coming is not None:
        _refuse_name(coming, person)
        tokens.refuse_role(coming, "analyst")
    expires = None if isinstance(one, RemoveAnalyst) else one.expires
    expiry_of(expires)  # before anything is done
    _act_about_people(served.table, person, one)
    served.table.admit_people()
    served.table.session._core.changed()
    served.drop_refused()
    kind, name = str(type(one).__struct_config__.tag), served.table.name
    log("act", actor=person.name, role=person.role, table=name, act=kind, leaving=leaving, coming=coming, **facts)
    if leaving is not None and tokens.role_of(leaving) == "analyst":
        others = [other.table for other in tables.values() if other is not served]
        if not any(other.may_open(leaving) for other in others):
            revoke_tokens(tokens.path, leaving)
    if coming is None or isinstance(one, RemoveAnalyst) or not one.has_token or tokens.role_of(coming) is not None:
        return None
    return new_token(tokens.path, coming, expires)


def _act_about_people(table: OpenTable, person: Identity, one: AnyPersonAct) -> None:
    core = table.session._core
    account, version = core.account, core.version
    refuse_own_part(account, person.name)
    with requested_by(RequestOrigin(person.name)):
        match one:
            case AddAnalyst(name=name, project=project, amount=amount):
                outer = outer_of(account, account.tree.grant_named("project", project or ""))
                part = None if amount is None else _amount_of(amount, outer)
                add_analyst(account, name, project, part, version=version)
            case RemoveAnalyst(name=name):
                remove_analyst(account, printable(name[:LONGER]), version=version)
            case HandOver(name=name, to=to):
                hand_over(account, printable(name[:LONGER]), to, version=version)


def _refuse_name(name: str, person: Identity) -> None:
    if NAME.fullmatch(name) is None:
        raise InvalidValueError(
            "name: must be letters, digits, '.', '_', '@' and '-', and begin with a letter or digit; got "
            f"{printable(name[:MAX_SHOWN])!r}; for example 'ana'"
        )
    if name == person.name:
        raise InvalidValueError(
            f"name: must be that of another person; got {name!r}, who asks for it; a person who decides about a budget "
            "has no part of it"
        )


# --- tokens without a table -------------------------------------------------------------------------------------------


class TokenAct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request about the tokens of a person; a new person has the role and the expiry that it says.

    To extend is to let the tokens expire at another time, which may be an earlier one.
    """

    name: str
    act: Literal["replace", "new", "extend", "revoke"] = "replace"
    role: Role = "analyst"
    expires: str | None = None


def change_tokens(tokens: TokenStore, one: TokenAct) -> str:
    """The token that an act made; empty for none."""
    if one.act == "new":
        return new_token(tokens.path, one.name, one.expires, one.role)
    if one.act == "replace":
        return rotate_token(tokens.path, one.name)
    if one.act == "extend":
        extend_tokens(tokens.path, one.name, one.expires)
    else:
        revoke_tokens(tokens.path, one.name)
    return ""


def may_change(person: Identity, role: str, one: TokenAct) -> bool:
    """Whether a person may do what is asked: nobody but the owner lets their own tokens live longer."""
    is_own_end = one.act == "extend" and one.name == person.name and person.role != "owner"
    return may_rotate(person, role, one.name) and not is_own_end


def may_rotate(person: Identity, role: str, name: str) -> bool:
    """Whether a person may replace a token: an owner's or another curator's only if they are the owner.

    Who replaces a token has it, so a curator would otherwise become the owner.
    """
    if person.role == "owner" or person.name == name:
        return person.role != "auditor"
    return person.role == "curator" and role in ("analyst", "auditor", "monitor")
