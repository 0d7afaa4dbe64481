"""Charges that are not answered again before the curator allows it.

Such a charge had no answer when the service opened the ledger: the process ended while it was being answered, perhaps
because of it, or another process of the curator's is answering it now, which then writes the answer.  Or the curator
ended the request.  Each request is otherwise repeated by its client "for the same charge", so that a request that takes
all memory would end the service again and again.

What a curator ended is read from the ledger; what a curator resumed is known until the service ends, so that a request
that then runs when the service ends is held again.
"""

from __future__ import annotations

from dpnb._core.pricing.batch_observations import record_of
from dpnb.copying import NotCopyable
from dpnb.errors import ExecutionStopped, InvalidValueError
from dpnb.ledger import Charge, Ledger
from dpnb.ledger.charge import ACT
from dpnb.ledger.queries import MAX_STORED

MOST_NAMED = 20
"""Rows that a refusal names."""


class HeldRows(NotCopyable):
    """The charges of a newly opened ledger that are not answered again before the curator allows it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._ended, self._ids = ledger, set[int](), set[int]()
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

    def was_ended(self, row: int) -> bool:
        """Whether the curator ended the request of a row."""
        return row in self._ended

    def end(self, row: int) -> None:
        """Hold a row whose request the curator ends, with the other rows of its batch."""
        together = self._together(row)
        self._ended |= together
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
            why = "the curator ended it" if charge.id in self._ended else "the service ended before it was answered"
            raise ExecutionStopped(
                f"request: row {number} was charged, and {why}; nothing more was charged, and the charge stands; ask "
                "the curator, who alone can let it run once more for the same charge"
            )

    def _release(self, row: int) -> None:
        together = self._together(row)
        self._ended -= together
        self._ids -= together

    def _together(self, row: int) -> set[int]:
        """The row, and the other rows of its batch."""
        for charge in self._ledger.by_id((row,)):
            record = record_of(charge)
            return {row} if record is None else {*record.all_ids(charge)}
        return {row}
