"""What a curator sends about a table, and what an auditor receives."""

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


class AuditRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A row of the ledger without its answer."""

    id: int  # number of the row in the ledger
    time: str  # UTC, ISO 8601
    kind: str
    node: str
    status: str
    words: str  # what was requested
    cost: str  # in words
    hash: str  # chained to the row before
    actor: str | None = None  # None in a local session


class AuditPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A page of rows, in order: the answer of ``GET /v1/tables/<table>/audit?after=``."""

    rows: tuple[AuditRow, ...]
    more: bool = False  # whether there are further rows
    spent: str = ""  # how much of the budget is left, in words
    frozen: str | None = None  # why the table is frozen; None if it is not


class PlanPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole plans of a row: the answer of ``GET /v1/tables/<table>/plan?row=``."""

    row: int  # number of the row in the ledger
    plans: tuple[str, ...]  # each with its arguments, as indented JSON; several for a request for budget


class PartState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The part of the budget of a project or an analyst."""

    level: str  # ``project`` or ``analyst``
    name: str
    project: str | None  # of an analyst
    ceiling: str | None  # in words, like `cap`; None for none
    cap: str | None
    spent: str  # what was charged, in words
    share_spent: float  # share of the ceiling, in pooled mode of the cap or the budget; rounded up
    headroom: float  # share of the same that is left within all limits of the part itself; rounded down
    is_revoked: bool  # whether it can no longer be charged


class RequestedQueryState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query of a request for budget, in words."""

    words: str
    target: str
    cost: str
    error: str  # the expected error


class RequestState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request for budget, and what was decided."""

    number: int  # of its row in the ledger
    analyst: str
    time: str
    why: str
    queries: tuple[RequestedQueryState, ...]
    total: str  # the sum of the costs, in words
    amount: Components  # the same as decimals, rounded up
    digest: str  # what a decision must name
    status: str  # ``pending``, ``approved``, ``approved in part``, ``declined`` or ``lapsed``
    cap: str | None = None  # of the analyst now, in words; None for none
    cap_after: str | None = None  # after an approval of all that was requested
    decided_by: str | None = None
    decided: str | None = None
    until: str | None = None  # when the approval lapses
    granted: str | None = None  # what the approval added to the cap, in words
    reason: str = ""  # the curator's; empty without one


class RunningState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request that a table executes."""

    number: int  # since the service started; `End` names it
    analyst: str
    call: str  # kind of call
    seconds: int  # for how long it has been executed


class HeldState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A charge that is not answered again before a curator allows it."""

    row: int  # number of its row in the ledger, which `Resume` names
    analyst: str
    time: str
    words: str  # what was requested
    cost: str  # in words
    why: str  # why it waits, in words


class TableState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of a table, for curators and auditors: the answer of ``GET /v1/tables/<table>/state``."""

    table: str
    version: str
    guarantee: str
    headroom: float  # share of the budget that is left, rounded down
    spent: str  # how much of the budget is left, in words
    frozen: str | None  # why the table is frozen; None if it is not
    mode: str | None  # ``reserved`` or ``pooled``; None if the budget is not divided
    parts: tuple[PartState, ...]  # in the order in which they were granted
    requests: tuple[RequestState, ...]  # pending, oldest first; then at most `MAX_DECIDED` decided, newest first
    rows: int  # number of rows of the ledger
    pending: int  # number of pending requests
    head: str  # hash of the last row
    running: RunningState | None = None
    waiting: int = 0  # number of requests that wait for their turn
    held: tuple[HeldState, ...] = ()  # oldest first, at most `MAX_HELD`


MAX_HELD = 100
"""Charges in a `TableState` that wait for a curator."""

MAX_DECIDED = 100
"""Decided requests in a `TableState`."""
