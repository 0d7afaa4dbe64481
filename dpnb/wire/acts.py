"""What a curator sends about a table, and what an auditor receives."""

from __future__ import annotations

import msgspec


class Freeze(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="freeze", tag_field="act"):
    """Refuse all further charges of a table.

    Parameters
    ----------
    why : str
        The reason, which analysts see.
    """

    why: str


class Unfreeze(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="unfreeze", tag_field="act"):
    """Accept charges of a table again."""


AnyAct = Freeze | Unfreeze


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
