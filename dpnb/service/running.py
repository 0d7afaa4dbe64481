"""The request that a table executes now, and charges that are not answered again before the curator allows it.

A charge is held if it had no answer when the service opened the ledger: the process ended while it was being answered,
perhaps because of it, or another process of the curator's is answering it now, which then writes the answer.  Or the
curator ended the request.  Each request is otherwise repeated by its client "for the same charge", so that a request
that takes all memory would end the service again and again.

What a curator ended is read from the ledger; what a curator resumed is known until the service ends, so that a request
that then runs when the service ends is held again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from dpnb._core.open_sessions import watched_by
from dpnb._core.pricing.query_state import batch_table_of
from dpnb.copying import NotCopyable
from dpnb.errors import ExecutionStopped, InvalidValueError
from dpnb.ledger import Charge, Ledger
from dpnb.ledger.charge import ACT
from dpnb.ledger.queries import MAX_STORED
from dpnb.threads import ended_by

MOST_NAMED = 20
"""Rows that a refusal names."""


class HeldRows(NotCopyable):
    """The charges of a ledger that are not answered again before the curator allows it.

    It is made when the ledger is opened, before any request is executed.  The curator `ended` some of them.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self.ended, self._ids = ledger, set[int](), set[int]()
        acts = [one.launch or {} for one in ledger.summaries() if one.kind == ACT]
        for act in acts:
            if act["act"] == "end" and "row" in act:
                self.end(int(act["row"]))
            elif act["act"] == "resume":
                self._release(int(act["row"]))
        self._ids |= {*ledger.reserved()}

    def charges(self) -> list[Charge]:
        """The rows, in order."""
        ids = sorted(self._ids)
        parts = (tuple(ids[start : start + MAX_STORED]) for start in range(0, len(ids), MAX_STORED))
        return [row for part in parts for row in self._ledger.by_id(part) if row.status != "released"]

    def end(self, row: int) -> None:
        """Hold a row whose request the curator ends, with the other rows of its batch."""
        together = self._together(row)
        self.ended |= together
        self._ids |= together

    def resume(self, row: int) -> None:
        """Let a row that is held be answered, with the other rows of its batch."""
        held = [one.id for one in self.charges()]
        if row not in held:
            shown = ", ".join(map(str, held[:MOST_NAMED])) or "there are none"
            raise InvalidValueError(f"row: must be one that waits for the curator; got {row}; those are: {shown}")
        self._release(row)

    def refuse(self, charge: Charge, number: int) -> None:
        """Refuse to answer a charge that is held; `number` is that of its row, as its analyst knows it."""
        if charge.id in self._ids:
            why = "the curator ended it" if charge.id in self.ended else "the service ended before it was answered"
            raise ExecutionStopped(
                f"request: row {number} was charged, and {why}; nothing more was charged, and the charge stands; ask "
                "the curator, who alone can let it run once more for the same charge"
            )

    def _release(self, row: int) -> None:
        together = self._together(row)
        self.ended -= together
        self._ids -= together

    def _together(self, row: int) -> set[int]:
        """The row, and the other rows of its batch."""
        for charge in self._ledger.by_id((row,)):
            table = batch_table_of(charge)
            return {row} if table is None else {*table.all_ids(charge.id)}
        return {row}


# --- the request that a table executes now ----------------------------------------------------------------------------


class RunningRequest(NotCopyable):
    """A request while it is executed; `number` counts those that the table has executed since the service started.

    `request` is the id that the client chose.  `refuse` is called with a charge before it is answered, and refuses one
    that is held.  `has_read` says whether rows were read, on which the duration depends from then on.  A curator sets
    `asked_to_end`: it then ends at its next step, and is not charged any more.
    """

    def __init__(self, number: int, analyst: str, call: str, request: str, refuse: Callable[[Charge], None]) -> None:
        self.number, self.analyst, self.call = number, analyst, call
        self.has_read, self._request, self._refuse = False, request, refuse
        self._began, self.asked_to_end = monotonic(), threading.Event()
        self._node: str | None = None
        self._row: int | None = None

    @property
    def seconds(self) -> float:
        """For how long it has been executed."""
        return monotonic() - self._began

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
        with watched_by(self._begin_reading), ended_by(self.asked_to_end):
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
