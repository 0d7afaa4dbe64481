"""Where the table of a remote session is, and whether what this process knows about it is up to date."""

from __future__ import annotations

from typing import Protocol


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
