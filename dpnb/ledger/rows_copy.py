"""A copy in memory of the first rows of a ledger: what a statement about one moment is computed from."""

from __future__ import annotations

from typing import Any, NoReturn

from dpnb.errors import LedgerError
from dpnb.ledger import charge as row
from dpnb.ledger.chain import ChainHead
from dpnb.ledger.charge import Charge
from dpnb.ledger.connection import MEMORY
from dpnb.ledger.ledger import INSERT, Ledger
from dpnb.ledger.queries import MAX_STORED


class RowsCopy(Ledger):
    """A copy in memory of the first rows of a ledger (by default of all), with the same hashes.

    Later charges are not in it, and nothing can be charged on it.  An answer that is given while the rows are copied
    may or may not be in it.
    """

    _not_copied = "it is a copy of a ledger for one purpose; make another one"

    def __init__(self, ledger: Ledger, rows: int | None = None) -> None:
        super().__init__(MEMORY, ledger.metadata, ledger.parameters)
        self.path = ledger.path
        with ledger.lock.checked():
            count = ledger.count if rows is None else rows
            if not 0 <= count <= ledger.count:
                raise LedgerError(f"ledger {self.path!r}: must have {count} rows; it has {ledger.count}")
            for first in range(1, count + 1, MAX_STORED):
                self._append(ledger.stored(range(first, min(first + MAX_STORED, count + 1))))
        with self.transaction():  # verifies the chain
            pass

    @property
    def short_name(self) -> str:
        """Where the ledger is."""
        return self.path

    def _append(self, rows: list[dict[str, Any]]) -> None:
        with self._file.transaction():
            for stored in rows:
                self._file.run(INSERT, *(stored[name] for name in row.COLUMNS))
            head = ChainHead(rows[-1]["id"], rows[-1]["hash"])
            self._file.run("UPDATE head SET id = ?, hash = ?", *head)

    def reserve(self, **columns: Any) -> Charge:
        """Refuse: this is a copy."""
        self._refuse_writing()

    def _finish(self, charge: Charge, status: str, result: str | None, words: str | None = None) -> NoReturn:
        self._refuse_writing()

    def _refuse_writing(self) -> NoReturn:
        raise LedgerError(f"ledger {self.path!r}: must be charged by its session; this is a copy; nothing was charged")
