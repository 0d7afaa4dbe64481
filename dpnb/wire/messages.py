"""What sessions and curators send to a service, what it answers, and the version of these messages.

Whatever of an analyst writes into the ledger or reads rows is a request (`dpnb._request`), sent with what the service
needs beside it.  Everything else is free (previews, explanations, gauges, logs, combined answers): it is computed by
the analyst's session from its copy of the ledger, with the same code as in a local session, and is never sent.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

import msgspec

from dpnb._request import AnyRequest, Conditions, encode
from dpnb.wire.limits import MAX_INTEGER

VERSION = 3
"""Part of every address; a client and a service of different versions refuse each other."""


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One request, the body of ``POST /v3/tables/<table>/requests``.

    The same request with the same id takes up the same charge.  The service compares `head` with the hash of
    its own row: see `dpnb.ledger.shared_rows`.
    """

    id: str  # chosen by the client, unique
    request: AnyRequest
    conditions: Conditions | None = None
    node: str = ""  # of the session, sub-session or part that pays; empty for the analyst's whole session
    cell_id: str | None = None  # of the notebook cell that made the request
    after: int = 0  # number of the last row that the client has
    pending: tuple[int, ...] = ()  # numbers of earlier rows that the client has without an answer
    head: str = ""  # hash of the row `after` in the client's copy; empty for a client that keeps no copy

    def digest(self) -> str:
        """SHA-256 of what it does: its node, request and conditions.

        Which rows the client has is not part of it: a client that repeats the request may have received more of them.
        """
        return hashlib.sha256(_ENCODER.encode([self.node, self.request, self.conditions])).hexdigest()


_ENCODER = msgspec.json.Encoder(order="deterministic", enc_hook=encode)


class LedgerRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One row of the ledger, as the analyst may see it: `dpnb.ledger.charge.COLUMNS` without hashes.

    Rows are numbered 1, 2, ... among those of the analyst, and every reference to a row (nodes, observations, closed
    launches) uses these numbers.
    """

    values: dict[str, str | int]  # stored values by column; a column that is NULL is absent


class Rows(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Rows that the client does not have yet: the answer of ``GET /v3/tables/<table>/rows?after=&pending=&head=``.

    At most `MAX_ROWS` new rows, in order, and the rows named as pending whose status has changed.
    """

    rows: tuple[LedgerRow, ...] = ()
    more: bool = False  # whether there are further new rows


class Done(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag="done", tag_field="reply"):
    """A request was answered."""

    ids: tuple[int, ...]  # numbers of its rows, which are among `rows` or were sent before
    rows: Rows = Rows()  # that the client does not have yet


class Refused(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag="refused", tag_field="reply"
):
    """A request was refused, or failed."""

    error: str  # name of a class of `dpnb.errors`, or of one of this module's own errors
    message: str  # computed from schema, plan and the analyst's own rows only
    rows: Rows = Rows()  # that the client does not have yet, such as that of a charge without an answer


AnyReply = Done | Refused


class EarlierColumns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The columns and limits that were declared for a version of the table before those of the present one."""

    last: Annotated[int, msgspec.Meta(gt=0)]  # number of the last row about them
    metadata: dict[str, str]  # those of the ledger that are about columns and limits


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table, as an analyst may know it: the answer of ``GET /v3/tables/<table>``."""

    name: str  # of the session
    version: str
    metadata: dict[str, str]  # of the ledger; schema, privacy unit, budget and filter are read from it
    parameters: dict[str, str]  # of the ledger
    columns: tuple[tuple[str, tuple[str, ...]], ...]  # of each table, in the declared order: the metadata are sorted
    public_size: int | None = None  # number of units
    public_rows: dict[str, int] = {}  # by table name
    notice: str | None = None  # a warning that answers are not real or not private
    analyst: str = ""
    mode: str = "pooled"  # how the budget is divided: ``reserved`` or ``pooled``
    part: int = 0  # row that granted the analyst's part, in pooled mode with caps; 0 for none
    engine: str = "memory"  # the engine that holds the rows, in words
    earlier: tuple[EarlierColumns, ...] = ()  # what other versions of the table declared; in order


class Changed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An event of ``GET /v3/tables/<table>/events``: the number of rows, and how many of them are answered."""

    rows: int
    answered: int


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
