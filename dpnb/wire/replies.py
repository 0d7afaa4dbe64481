"""What the service answers."""

from __future__ import annotations

from typing import Annotated

import msgspec


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
