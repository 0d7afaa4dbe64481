"""What the curator's page receives from the service beside the tables, which `curation` describes."""

from __future__ import annotations

from dpnb._protocol.curation import TableState
from dpnb._protocol.types import Record


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
    may_rotate: bool  # Whether the reader may replace it.


class ServiceState(Record, frozen=True):
    """Everything that the page shows but the log."""

    time: str  # ISO 8601, UTC.
    name: str  # Of the reader.
    role: str  # Of the reader.
    may_act: bool  # Whether the reader may do more than read.
    tables: list[TableState]
    tokens: list[TokenHolder]  # Empty for an auditor.


class PeopleChanged(Record, frozen=True):
    """What there is after an act about an analyst of a table."""

    table: TableState
    token: str | None  # A new token of the person who came, which is not shown again; None if none was made.


class NewToken(Record, frozen=True):
    """A token, which is not shown again."""

    name: str
    token: str  # Empty if none was made.
