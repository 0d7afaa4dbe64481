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
    """Refuse all further charges of a table.

    Parameters
    ----------
    why : str
        The reason, which analysts see.
    """

    why: str


class Unfreeze(Act, frozen=True, tag="unfreeze"):
    """Accept charges of a table again."""


class Components(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An amount of budget, as a person writes it: decimals such as ``"0.1"``, or exact fractions.

    Parameters
    ----------
    mu, discovery_delta, pure_epsilon : str or None
        The components; None for none.
    share : str or None
        Instead, a share of each component: of what was requested, or for a cap of the ceiling, in pooled mode of the
        project's cap or the budget.
    """

    mu: str | None = None
    discovery_delta: str | None = None
    pure_epsilon: str | None = None
    share: str | None = None


class Approve(Act, frozen=True, tag="approve"):
    """Approve a request for budget: the cap of its analyst rises.

    Parameters
    ----------
    request : int
        Number of the request's row in the ledger.
    digest : str
        Digest of the request as it was shown.
    amount : Components or None
        What is added to the cap; None for all that was requested.
    until : str or None
        When the approval lapses, ISO 8601 with a time zone; None if it does not.
    why : str
        A reason, which the analyst sees.
    """

    request: RowNumber
    digest: str
    amount: Components | None = None
    until: str | None = None
    why: str = ""


class Decline(Act, frozen=True, tag="decline"):
    """Decline a request for budget.

    Parameters
    ----------
    request, digest, why
        As for `Approve`.
    """

    request: RowNumber
    digest: str
    why: str = ""


class MoveCap(Act, frozen=True, tag="move_cap"):
    """Move the cap of a part of the budget; earlier approvals end.

    Parameters
    ----------
    level : {"analyst", "project"}
        Whose cap it is.
    name : str
        The name.
    cap : Components or None
        The cap; None for none but that of the ceiling or the budget.
    """

    level: Level
    name: str
    cap: Components | None = None


class Revoke(Act, frozen=True, tag="revoke"):
    """Refuse all further charges of a part of the budget.

    Parameters
    ----------
    level, name
        As for `MoveCap`.
    """

    level: Level
    name: str


class Restore(Act, frozen=True, tag="restore"):
    """Accept charges of a part of the budget again.

    Parameters
    ----------
    level, name
        As for `MoveCap`.
    """

    level: Level
    name: str


class End(Act, frozen=True, tag="end"):
    """End the request that the table executes: if it was charged, it stays charged and has no answer.

    Parameters
    ----------
    number : int
        Number of the running request, as it was shown; another one is not ended.
    """

    number: RowNumber


class Resume(Act, frozen=True, tag="resume"):
    """Let a charge be answered that was being answered when the service ended, or whose request a curator ended.

    Parameters
    ----------
    row : int
        Number of its row in the ledger.
    """

    row: RowNumber


AnyAct = Freeze | Unfreeze | Approve | Decline | MoveCap | Revoke | Restore | End | Resume

ACTS: msgspec.json.Decoder[AnyAct] = msgspec.json.Decoder(AnyAct)
"""Made once, at import: see `dpnb.wire.decoding`."""


class AuditRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A row of the ledger without its answer.

    Parameters
    ----------
    id : int
        Number of the row in the ledger.
    time : str
        When it was charged; UTC, ISO 8601.
    kind, node, status : str
        As in the ledger.
    words : str
        What was requested, in words.
    cost : str
        What it cost, in words.
    hash : str
        Hash of the row, chained to the row before.
    actor : str or None
        Who requested it; None in a local session.
    """

    id: int
    time: str
    kind: str
    node: str
    status: str
    words: str
    cost: str
    hash: str
    actor: str | None = None


class AuditPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A page of rows: the answer of ``GET /v1/tables/<table>/audit?after=``.

    Parameters
    ----------
    rows : tuple of AuditRow
        The rows, in order.
    more : bool
        Whether there are further rows.
    spent : str
        What has been charged of the budget, in words.
    frozen : str or None
        Why the table is frozen; None if it is not.
    """

    rows: tuple[AuditRow, ...]
    more: bool = False
    spent: str = ""
    frozen: str | None = None


class PlanPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole plans of a row: the answer of ``GET /v1/tables/<table>/plan?row=``.

    Parameters
    ----------
    row : int
        Number of the row in the ledger.
    plans : tuple of str
        Each plan with its arguments, as indented JSON; several for a request for budget.
    """

    row: int
    plans: tuple[str, ...]


class PartState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The part of the budget of a project or an analyst.

    Parameters
    ----------
    level : str
        ``project`` or ``analyst``.
    name : str
        The name.
    project : str or None
        The project of an analyst.
    ceiling, cap : str or None
        In words; None for none.
    spent : str
        What was charged, in words.
    share_spent : float
        The share of the ceiling, in pooled mode of the cap or the budget, that was charged; rounded up.
    headroom : float
        The share of the same that is left within all limits of the part itself; rounded down.
    is_revoked : bool
        Whether it can no longer be charged.
    """

    level: str
    name: str
    project: str | None
    ceiling: str | None
    cap: str | None
    spent: str
    share_spent: float
    headroom: float
    is_revoked: bool


class RequestedQueryState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query of a request for budget.

    Parameters
    ----------
    words, target, cost, error : str
        The query, the target, the cost and the expected error, in words.
    """

    words: str
    target: str
    cost: str
    error: str


class RequestState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request for budget, and what was decided.

    Parameters
    ----------
    number : int
        Number of its row in the ledger.
    analyst, time, why : str
        Who requested it, when, and the reason.
    queries : tuple of RequestedQueryState
        What the budget is requested for.
    total : str
        The sum of the costs, in words.
    amount : Components
        The same as decimals, rounded up.
    digest : str
        What a decision must name.
    status : str
        ``pending``, ``approved``, ``approved in part``, ``declined`` or ``lapsed``.
    cap, cap_after : str or None
        The analyst's cap now, and after an approval of all that was requested, in words; None for none.
    decided_by, decided, until, granted : str or None
        Who decided and when, when the approval lapses, and what it added to the cap, in words.
    reason : str
        The curator's reason; empty without one.
    """

    number: int
    analyst: str
    time: str
    why: str
    queries: tuple[RequestedQueryState, ...]
    total: str
    amount: Components
    digest: str
    status: str
    cap: str | None = None
    cap_after: str | None = None
    decided_by: str | None = None
    decided: str | None = None
    until: str | None = None
    granted: str | None = None
    reason: str = ""


class RunningState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request that a table executes.

    Parameters
    ----------
    number : int
        Its number since the service started, which `End` names.
    analyst, call : str
        Who sent it, and the kind of call.
    seconds : int
        For how long it has been executed.
    """

    number: int
    analyst: str
    call: str
    seconds: int


class HeldState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A charge that is not answered again before a curator allows it.

    Parameters
    ----------
    row : int
        Number of its row in the ledger, which `Resume` names.
    analyst, time, words, cost : str
        Who requested what when, at which cost.
    why : str
        Why it waits, in words.
    """

    row: int
    analyst: str
    time: str
    words: str
    cost: str
    why: str


class TableState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of a table, for curators and auditors: the answer of ``GET /v1/tables/<table>/state``.

    Parameters
    ----------
    table, version, guarantee : str
        Name, version and guarantee of the table.
    headroom : float
        Share of the budget that is left, rounded down.
    spent : str
        What was charged, in words.
    frozen : str or None
        Why the table is frozen; None if it is not.
    mode : str or None
        ``reserved`` or ``pooled``; None if the budget is not divided.
    parts : tuple of PartState
        Projects and analysts, in the order in which they were granted.
    requests : tuple of RequestState
        The pending requests, oldest first; then the decided ones, newest first, at most `MAX_DECIDED`.
    rows : int
        The number of rows of the ledger.
    pending : int
        The number of pending requests.
    head : str
        Hash of the last row.
    running : RunningState or None
        The request that is executed now.
    waiting : int
        The number of requests that wait for their turn.
    held : tuple of HeldState
        Charges that wait for a curator to let them be answered, oldest first, at most `MAX_HELD`.
    """

    table: str
    version: str
    guarantee: str
    headroom: float
    spent: str
    frozen: str | None
    mode: str | None
    parts: tuple[PartState, ...]
    requests: tuple[RequestState, ...]
    rows: int
    pending: int
    head: str
    running: RunningState | None = None
    waiting: int = 0
    held: tuple[HeldState, ...] = ()


MAX_HELD = 100
"""Charges in a `TableState` that wait for a curator."""

MAX_DECIDED = 100
"""Decided requests in a `TableState`."""
