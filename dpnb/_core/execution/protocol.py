"""What a session knows of the service that has its table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, Self

from dpnb._request import Conditions, Request
from dpnb.ledger import Charge

# --- the connection ---------------------------------------------------------------------------------------------------


class Connection(Protocol):
    """The connection of a session to the service that has its table; a local session has none.

    A session is notified of a change of `is_current` or `text` as of any other change: the connection calls
    `SessionCore.changed`, from any thread.  The properties are read often, from several threads, and must neither wait
    nor raise.
    """

    @property
    def where(self) -> str:
        """Where the table is, in words, for example "on the curator's server, https://dp.example.org"."""
        ...

    @property
    def is_current(self) -> bool:
        """Whether the copy of the ledger includes what the service has charged, as far as is known."""
        ...

    @property
    def text(self) -> str:
        """The state in words, for example "up to date".

        While it is not current, since when, why and what happens next: "out of date since 14:02: the service cannot be
        reached; reconnecting".
        """
        ...

    def refresh(self) -> None:
        """Try to bring the copy up to date now; returns without waiting for the service."""
        ...


class RemoteCalls(Protocol):
    """The service that holds the table, as one session, sub-session or part uses it; see `dpnb.remote`."""

    def run(
        self, request: Request, conditions: Conditions, is_answer: Callable[[Sequence[Charge]], bool]
    ) -> list[Charge]:
        """Have the service execute a request, and return its rows, which the session's ledger has now.

        `is_answer` says whether rows are those of the request; a `ServiceError` if they are not.  A refusal of the
        service is raised as a local session would raise it; a `DpnbError` also if the service cannot be reached.
        """
        ...

    def at(self, node: str) -> Self:
        """The same service for a sub-session or a part, by its node in the session's ledger."""
        ...
