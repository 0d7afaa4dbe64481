"""What the service answers."""

from __future__ import annotations

import msgspec


class LedgerRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One row of the ledger, as the analyst may see it: `dpnb.ledger.charge.COLUMNS` without hashes.

    Rows are numbered 1, 2, ... among those of the analyst, and every reference to a row (nodes, observations, closed
    launches) uses these numbers.

    Parameters
    ----------
    values : dict
        Column names and stored values; a column that is NULL is absent.
    """

    values: dict[str, str | int]


class Rows(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Rows that the client does not have yet: the answer of ``GET /v1/tables/<table>/rows?after=&pending=&head=``.

    Parameters
    ----------
    rows : tuple of LedgerRow
        New rows, in order, at most `MAX_ROWS`; and rows named as pending whose status has changed.
    more : bool
        Whether there are further new rows.
    """

    rows: tuple[LedgerRow, ...] = ()
    more: bool = False


class Done(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag="done", tag_field="reply"):
    """A request was answered.

    Parameters
    ----------
    ids : tuple of int
        Numbers of its rows, which are among `rows` or were sent before.
    rows : Rows
        Rows that the client does not have yet.
    """

    ids: tuple[int, ...]
    rows: Rows = Rows()


class Refused(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag="refused", tag_field="reply"
):
    """A request was refused, or failed.

    Parameters
    ----------
    error : str
        Name of a class of `dpnb.errors`, or of one of this module's own errors.
    message : str
        The message, computed from schema, plan and the analyst's own rows only.
    rows : Rows
        Rows that the client does not have yet, for example the row of a charge without an answer.
    """

    error: str
    message: str
    rows: Rows = Rows()


AnyReply = Done | Refused


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table, as an analyst may know it: the answer of ``GET /v1/tables/<table>``.

    Parameters
    ----------
    name : str
        Name of the session.
    version : str
        Version of the table.
    metadata : dict
        The metadata of the ledger, from which schema, privacy unit, budget and filter are read.
    parameters : dict
        The parameters of the ledger.
    columns : tuple of (str, tuple of str)
        The names of the tables and of their columns, in the order in which the curator declared them: the metadata of a
        ledger are sorted.
    public_size : int or None
        Public number of units.
    public_rows : dict
        Public numbers of rows by table name.
    notice : str or None
        A warning that answers are not real or not private.
    analyst : str
        Name of the analyst who asked.
    mode : str
        How the budget is divided: ``reserved`` or ``pooled``.
    part : int
        Number of the row that granted the analyst's part, in pooled mode with caps; 0 for none.
    engine : str
        Name of the engine that holds the rows, in words.
    """

    name: str
    version: str
    metadata: dict[str, str]
    parameters: dict[str, str]
    columns: tuple[tuple[str, tuple[str, ...]], ...]
    public_size: int | None = None
    public_rows: dict[str, int] = {}
    notice: str | None = None
    analyst: str = ""
    mode: str = "pooled"
    part: int = 0
    engine: str = "memory"


class Changed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An event of ``GET /v1/tables/<table>/events``: the number of rows, and how many of them are answered.

    Parameters
    ----------
    rows, answered : int
        Numbers of rows.
    """

    rows: int
    answered: int
