"""What a curator sends about a table; `dpnb._protocol.curation` is what they see of it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from dpnb.wire.limits import MAX_INTEGER

Level = Literal["analyst", "project"]
RowNumber = Annotated[int, msgspec.Meta(ge=1, le=MAX_INTEGER)]


class Act(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="act"):
    """Base class of the acts of a curator."""


class Freeze(Act, frozen=True, tag="freeze"):
    """Refuse all further charges of a table."""

    why: str  # analysts see it


class Unfreeze(Act, frozen=True, tag="unfreeze"):
    """Accept charges of a table again."""


class Components(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An amount of budget, as a person writes it: decimals such as ``"0.1"``, or exact fractions; None for none.

    Instead of components, `share` is a share of each: of what was requested, or for a cap of the ceiling, in pooled
    mode of the project's cap or the budget.
    """

    mu: str | None = None
    discovery_delta: str | None = None
    pure_epsilon: str | None = None
    share: str | None = None


class Approve(Act, frozen=True, tag="approve"):
    """Approve a request for budget: the cap of its analyst rises."""

    request: RowNumber  # of the request in the ledger
    digest: str  # of the request as it was shown
    amount: Components | None = None  # added to the cap; None for all that was requested
    until: str | None = None  # when the approval lapses, ISO 8601 with a time zone
    why: str = ""  # the analyst sees it


class Decline(Act, frozen=True, tag="decline"):
    """Decline a request for budget."""

    request: RowNumber  # as for `Approve`, like the next two
    digest: str
    why: str = ""


class MoveCap(Act, frozen=True, tag="move_cap"):
    """Move the cap of a part of the budget; earlier approvals end."""

    level: Level
    name: str
    cap: Components | None = None  # None for none but that of the ceiling or the budget


class Revoke(Act, frozen=True, tag="revoke"):
    """Refuse all further charges of a part of the budget."""

    level: Level
    name: str


class Restore(Act, frozen=True, tag="restore"):
    """Accept charges of a part of the budget again."""

    level: Level
    name: str


class End(Act, frozen=True, tag="end"):
    """End the request that the table executes: if it was charged, it stays charged and has no answer."""

    number: RowNumber  # of the running request, as it was shown; another one is not ended


class Resume(Act, frozen=True, tag="resume"):
    """Let a charge be answered that was being answered when the service ended, or whose request a curator ended."""

    row: RowNumber


AnyAct = Freeze | Unfreeze | Approve | Decline | MoveCap | Revoke | Restore | End | Resume

ACTS: msgspec.json.Decoder[AnyAct] = msgspec.json.Decoder(AnyAct)
"""Made once, at import: see `dpnb.wire.decoding`."""

# --- acts about people, which may make a token ------------------------------------------------------------------------


class AddAnalyst(Act, frozen=True, tag="add_analyst"):
    """Give a person a part of the budget; who was removed gets their own part back, without project and amount."""

    name: str
    project: str | None = None
    amount: Components | None = None  # the ceiling in reserved mode; in pooled mode the cap, or None for none
    expires: str | None = None  # of the token: a date, or a period such as ``30d``; None for never
    has_token: bool = True  # whether a person without a token gets one


class RemoveAnalyst(Act, frozen=True, tag="remove_analyst"):
    """End the access of an analyst to a table; who has no other table loses their tokens."""

    name: str


class HandOver(Act, frozen=True, tag="hand_over"):
    """Give an analyst's part, of which nothing was charged, to another person."""

    name: str
    to: str
    expires: str | None = None  # of the other person's token, like the next one
    has_token: bool = True


AnyPersonAct = AddAnalyst | RemoveAnalyst | HandOver

PERSON_ACTS: msgspec.json.Decoder[AnyPersonAct] = msgspec.json.Decoder(AnyPersonAct)
"""Likewise."""
