"""Keeps a session's copy of the ledger in step with the service's."""

from __future__ import annotations

from dpnb.copying import NotCopyable
from dpnb.errors import LedgerError
from dpnb.ledger.replica import ReplicaLedger
from dpnb.remote.channel import Channel
from dpnb.wire.limits import MAX_PENDING
from dpnb.wire.replies import Rows, Table


class LedgerCopy(NotCopyable):
    """A copy of the rows that an analyst may see, and how it is brought up to date.

    Parameters
    ----------
    channel : Channel
        The service.
    path : str
        Path of the table below ``/v1``.
    table : Table
        The table as the service described it.
    ledger : ReplicaLedger
        The copy.
    """

    def __init__(self, channel: Channel, path: str, table: Table, ledger: ReplicaLedger) -> None:
        self.channel, self.path, self.ledger = channel, path, ledger
        self._table = table
        self._problem: str | None = None

    @property
    def problem(self) -> str | None:
        """Why the copy can no longer be used; None if it can."""
        return self._problem

    def refuse_unusable(self) -> None:
        """Refuse to use a copy that no longer fits the service's ledger.

        Raises
        ------
        LedgerError
            If it does not.
        """
        if self._problem is not None:
            raise LedgerError(self._problem)

    def close(self) -> None:
        """Refuse all further requests."""
        self._problem = f"{self.channel.where}: the session was closed; nothing was charged; connect again"

    def pending(self) -> tuple[int, ...]:
        """Rows without an answer, at most as many as a request may name."""
        return self.ledger.pending[-MAX_PENDING:]

    def add(self, rows: Rows) -> bool:
        """Add rows of a reply, and fetch those that did not fit it; return whether any row is new or has changed.

        Raises
        ------
        DpnbError
            If they cannot be fetched, or do not fit the copy.
        """
        before = self._state()
        try:
            self.ledger.append([row.values for row in rows.rows])
        except LedgerError as error:
            self._refuse(str(error))
        if rows.more:
            self.fetch()
        return self._state() != before

    def fetch(self) -> bool:
        """Fetch the rows that the copy does not have; return whether there are any.

        Raises
        ------
        DpnbError
            If they cannot be fetched, or do not fit the copy.
        """
        before, more = self._state(), True
        while more:
            last = self.ledger.count
            pending = ",".join(map(str, self.pending()[-MAX_IN_ADDRESS:]))
            rows = self.channel.get(f"{self.path}/rows", Rows, retry_seconds=0, after=last, pending=pending)
            more = rows.more
            self.add(Rows(rows.rows))
            if more and self.ledger.count == last:
                self._refuse(f"{self.channel.where}: announced further rows and sent none; connect again")
        return self._state() != before

    def check_table(self) -> None:
        """Check that the service still has the table that this session was opened on.

        Raises
        ------
        LedgerError
            If it describes another one.
        """
        now = self.channel.get(self.path, Table, retry_seconds=0)
        if now != self._table:
            self._refuse(
                f"{self.channel.where}: now describes another table, version or budget under the name "
                f"{self._table.name!r}; nothing was charged; connect again"
            )

    def check_count(self, rows: int) -> None:
        """Check that the service has at least the rows of the copy.

        Raises
        ------
        LedgerError
            If it has fewer, as after a restored backup.
        """
        known = self.ledger.count
        if rows < known and not self._has_row(known):  # else the event was sent before a reply that arrived first
            self._refuse(
                f"{self.channel.where}: its ledger has {rows} rows, and this session has received {known}; the curator "
                "may have restored an older ledger; connect again, and tell the curator"
            )

    def _has_row(self, number: int) -> bool:
        """Whether the service has this row now."""
        return bool(self.channel.get(f"{self.path}/rows", Rows, retry_seconds=0, after=number - 1, pending="").rows)

    def _state(self) -> tuple[int, tuple[int, ...]]:
        return self.ledger.count, self.ledger.pending

    def _refuse(self, problem: str) -> None:
        self._problem = problem
        raise LedgerError(problem)


MAX_IN_ADDRESS = 500
"""Rows without an answer that the address of a request names: servers limit its length."""
