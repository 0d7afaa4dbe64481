"""The request that a table executes now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from dpnb._core.reading import watched_by
from dpnb.copying import NotCopyable
from dpnb.errors import ExecutionStopped, InvalidValueError
from dpnb.ledger import Charge, Ledger
from dpnb.threads import ended_by


class RunningRequest(NotCopyable):
    """A request while it is executed; `number` counts those that the table has executed since the service started.

    `request` is the id that the client chose.  `refuse` is called with a charge before it is answered, and refuses one
    that is held.  `has_read` says whether rows were read, on which the duration depends from then on.
    """

    def __init__(self, number: int, analyst: str, call: str, request: str, refuse: Callable[[Charge], None]) -> None:
        self.number, self.analyst, self.call = number, analyst, call
        self.has_read, self._request, self._refuse = False, request, refuse
        self._began, self._asked = monotonic(), threading.Event()
        self._node: str | None = None
        self._row: int | None = None

    @property
    def seconds(self) -> float:
        """For how long it has been executed."""
        return monotonic() - self._began

    @property
    def is_ending(self) -> bool:
        """Whether a curator has asked for its end."""
        return self._asked.is_set()

    def ask_to_end(self) -> None:
        """Let it end at its next step; it is not charged any more."""
        self._asked.set()

    def row(self, ledger: Ledger) -> int | None:
        """The id of the row that it is answering or has charged; None for none.  Call in a transaction."""
        if self._row is None and self._node is not None:
            charged = ledger.by_request_id(self._node, self._request)
            return None if charged is None else charged.id
        return self._row

    @contextmanager
    def at(self, node: str) -> Iterator[None]:
        """Watch the block, which executes it in a node of the ledger."""
        self._node = node
        with watched_by(self._begin_reading), ended_by(self._asked):
            yield

    def _begin_reading(self, charge: Charge | None) -> None:
        if charge is not None:
            self._refuse(charge)
            self._row = charge.id
        self.has_read = True

    def stopped(self, number: int | None) -> ExecutionStopped:
        """The refusal after its end; `number` is that of its row, as its analyst knows it."""
        if number is None:
            return ExecutionStopped(
                "request: the curator ended it before it was charged; nothing was charged; ask the curator before "
                "sending it again"
            )
        return ExecutionStopped(
            f"request: row {number} was charged, and the curator ended it; the charge stands and nothing was released; "
            "ask the curator, who alone can let it run once more for the same charge"
        )


def checked_running(running: RunningRequest | None, number: int) -> RunningRequest:
    """The running request, if it has this number; else `InvalidValueError`."""
    if running is None or running.number != number:
        now = "none runs" if running is None else f"number {running.number} runs"
        raise InvalidValueError(f"number: must be that of the running request; got {number}, and {now} now")
    return running
