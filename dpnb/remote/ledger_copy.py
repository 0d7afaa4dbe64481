"""Keeps a session's copy of the ledger in step with the service's."""

from __future__ import annotations

from typing import NoReturn

from dpnb.copying import NotCopyable
from dpnb.errors import LedgerError, LedgerReplaced
from dpnb.ledger.replica import ReplicaLedger
from dpnb.remote.channel import Channel
from dpnb.wire.limits import MAX_PENDING
from dpnb.wire.replies import Rows, Table


class LedgerCopy(NotCopyable):
    """A copy of the rows that an analyst may see, and how it is brought up to date; `path` is below ``/v3``."""

    def __init__(self, channel: Channel, path: str, table: Table, ledger: ReplicaLedger) -> None:
        self.channel, self.path, self.ledger = channel, path, ledger
        self._table = table
        self._fault: LedgerError | None = None

    @property
    def problem(self) -> str | None:
        """Why the copy can no longer be used; None if it can."""
        return None if self._fault is None else str(self._fault)

    def refuse_unusable(self) -> None:
        """Raise `LedgerError` if the copy no longer fits the service's ledger."""
        if self._fault is not None:
            raise type(self._fault)(str(self._fault))

    def close(self) -> None:
        """Refuse all further requests."""
        self._fault = LedgerError(f"{self.channel.where}: the session was closed; nothing was charged; connect again")

    def refuse(self, fault: LedgerError) -> NoReturn:
        """Note why the copy can no longer be used, and raise it."""
        self._fault = fault
        self.refuse_unusable()
        raise fault

    def pending(self) -> tuple[int, ...]:
        """Rows without an answer, at most as many as a request may name."""
        return self.ledger.pending[-MAX_PENDING:]

    def add(self, rows: Rows) -> bool:
        """Add rows of a reply, and fetch those that did not fit it; return whether any row is new or has changed."""
        before = self._state()
        try:
            self.ledger.append([row.values for row in rows.rows])
        except LedgerError as error:
            self.refuse(LedgerError(str(error)))
        if rows.more:
            self.fetch()
        return self._state() != before

    def fetch(self) -> bool:
        """Fetch the rows that the copy does not have; return whether there are any."""
        before, more = self._state(), True
        while more:
            last, head = self.ledger.last
            pending = ",".join(map(str, self.pending()[-MAX_IN_ADDRESS:]))
            query: dict[str, str | int] = {"after": last, "pending": pending, "head": head}
            try:
                rows = self.channel.get(f"{self.path}/rows", Rows, retry_seconds=0, **query)
            except LedgerReplaced as error:
                self.refuse(error)
            more = rows.more
            self.add(Rows(rows.rows))
            if more and self.ledger.count == last:
                self.refuse(LedgerError(f"{self.channel.where}: announced further rows and sent none; connect again"))
        return self._state() != before

    def check_table(self) -> None:
        """Raise `LedgerError` if the service no longer has the table that this session was opened on."""
        now = self.channel.get(self.path, Table, retry_seconds=0)
        if now != self._table:
            self.refuse(
                LedgerError(
                    f"{self.channel.where}: now describes another table, version or budget under the name "
                    f"{self._table.name!r}; nothing was charged; connect again"
                )
            )

    def _state(self) -> tuple[int, tuple[int, ...]]:
        return self.ledger.count, self.ledger.pending


MAX_IN_ADDRESS = 500
"""Rows without an answer that the address of a request names: servers limit its length."""
