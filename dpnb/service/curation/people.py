"""Adding and removing the analysts of a table, and handing over an unused part, with their tokens; tokens alone.

The ledger is written first: a removed analyst is charged nothing more from its row on, also if the file of tokens
cannot be written then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from dpnb._core.accountant.people import add_analyst, hand_over, remove_analyst
from dpnb.errors import InvalidValueError, printable
from dpnb.ledger.origin import MAX_ACTOR, RequestOrigin, requested_by
from dpnb.service.access.tokens import Identity, Role, TokenStore, expiry_of
from dpnb.service.configuration.parts import NAME
from dpnb.service.curation.acts import amount_of, outer_of, refuse_own_part
from dpnb.service.monitoring.log import log
from dpnb.service.opening import OpenTable
from dpnb.service.served import ServedTable
from dpnb.wire.acts import AddAnalyst, AnyPersonAct, HandOver, RemoveAnalyst
from dpnb.wire.limits import MAX_SHOWN

LONGER = MAX_ACTOR + 1
"""Characters of a name that are looked up: one more than the longest has, so that no other name is meant."""


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
    _act(served.table, person, one)
    served.table.admit_people()
    served.table.session._core.changed()
    served.drop_refused()
    kind, name = str(type(one).__struct_config__.tag), served.table.name
    log("act", actor=person.name, role=person.role, table=name, act=kind, leaving=leaving, coming=coming, **facts)
    if leaving is not None and tokens.role_of(leaving) == "analyst":
        others = [other.table for other in tables.values() if other is not served]
        if not any(other.may_open(leaving) for other in others):
            tokens.revoke(leaving)
    if coming is None or isinstance(one, RemoveAnalyst) or not one.has_token or tokens.role_of(coming) is not None:
        return None
    return tokens.make(coming, expires)


def _act(table: OpenTable, person: Identity, one: AnyPersonAct) -> None:
    core = table.session._core
    account, version = core.account, core.version
    refuse_own_part(account, person.name)
    with requested_by(RequestOrigin(person.name)):
        match one:
            case AddAnalyst(name=name, project=project, amount=amount):
                outer = outer_of(account, account.tree.grant_named("project", project or ""))
                part = None if amount is None else amount_of(amount, outer)
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


TOKEN_EVENTS = {"replace": "token_rotated", "new": "token_made", "extend": "token_extended", "revoke": "token_revoked"}
"""In the service's log."""


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
        return tokens.make(one.name, one.expires, one.role)
    if one.act == "replace":
        return tokens.rotate(one.name)
    if one.act == "extend":
        tokens.extend(one.name, one.expires)
    else:
        tokens.revoke(one.name)
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
