"""Stands in for the connection of a remote session: it is lost and comes back when a test says so."""

from __future__ import annotations

from collections.abc import Callable

from dpnb._core.execution.executor import Connection

LOST = "out of date since 14:02: the service cannot be reached; reconnecting"
CURRENT = "up to date"


class FakeConnection:
    """A connection that changes by hand.

    Parameters
    ----------
    changed : callable
        What a real connection calls after a change: `SessionCore.changed`.
    comes_back : bool, default False
        Whether `refresh` restores the connection.
    """

    where = "on the curator's server, https://dp.example.org"

    def __init__(self, changed: Callable[[], None], *, comes_back: bool = False) -> None:
        self.is_current, self.n_refreshed = True, 0
        self.comes_back = comes_back
        self._changed = changed

    @property
    def text(self) -> str:
        """The state in words."""
        return CURRENT if self.is_current else LOST

    def refresh(self) -> None:
        """Note that the user asked for it."""
        self.n_refreshed += 1
        if self.comes_back:
            self.set(is_current=True)

    def set(self, *, is_current: bool) -> None:
        """Lose or restore the connection."""
        self.is_current = is_current
        self._changed()


def _is_one(fake: FakeConnection) -> Connection:
    """For the type checker: the fake follows the protocol."""
    return fake
