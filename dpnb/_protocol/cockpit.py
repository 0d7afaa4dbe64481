"""What the curator's page receives from the service beside the tables, which `curation` describes."""

from __future__ import annotations

from dpnb._protocol.curation import TableState
from dpnb._protocol.types import NonNegative, Record


class Login(Record, frozen=True):
    """The answer to a login."""

    csrf: str  # What the page sends with every further request, beside the cookie.
    name: str  # Name of the person.
    role: str  # "owner", "curator" or "auditor".
    ends: str  # When the login ends; ISO 8601, UTC.


class TokenHolder(Record, frozen=True):
    """A person with a valid token."""

    name: str
    role: str
    created: str  # When the token was made.
    expires: str | None
    may_rotate: bool  # Whether the reader may replace and revoke it.
    may_extend: bool  # Whether the reader may let it expire at another time.


class ServiceState(Record, frozen=True):
    """Everything that the page shows but the log."""

    time: str  # ISO 8601, UTC.
    name: str  # Of the reader.
    role: str  # Of the reader.
    may_act: bool  # Whether the reader may do more than read.
    tables: list[TableState]
    tokens: list[TokenHolder]  # Empty for an auditor.


class VersionState(Record, frozen=True):
    """A version of a table."""

    name: str
    since: str | None  # Time of the first row of the ledger with it; None if there is none yet.
    requests: NonNegative  # Charged ones.
    last: str | None  # Time of the last of them.
    changes: tuple[str, ...]  # What is other than in the version before, or was changed later, in words.


class BackupState(Record, frozen=True):
    """The last copy of a ledger that `python -m dpnb backup` has made."""

    time: str
    rows: NonNegative  # Number of the last row that was copied.
    is_known: bool  # Whether that row is in the ledger; otherwise the copy is of another ledger, or of a later state.


class AuditState(Record, frozen=True):
    """An audit of a ledger that somebody started on the page."""

    actor: str
    begun: str
    ended: str | None  # None while it runs.
    is_fine: bool  # Whether it found no problem.
    text: str  # As `python -m dpnb audit` prints it.


class ReadFigure(Record, frozen=True):
    """A figure for Prometheus, to be read by a person."""

    words: str
    value: str


class RecordsPage(Record, frozen=True):
    """What is kept of a table and its ledger, and figures of its service."""

    rows: NonNegative  # Of the ledger.
    versions: tuple[VersionState, ...]  # Newest first.
    backup: BackupState | None
    audit: AuditState | None
    figures: tuple[ReadFigure, ...]  # Empty for an auditor.


class PeopleChanged(Record, frozen=True):
    """What there is after an act about an analyst of a table."""

    table: TableState
    token: str | None  # A new token of the person who came, which is not shown again; None if none was made.


class NewToken(Record, frozen=True):
    """A token, which is not shown again."""

    name: str
    token: str  # Empty if none was made.
