"""The tables that the service serves, with the analysts who use them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dpnb.copying import NotCopyable
from dpnb.service.analysts import AnalystSession
from dpnb.service.configuration.settings import Limits
from dpnb.service.monitoring import Metrics
from dpnb.service.network.reply_times import ChangeFeed, TimeGrid, assumed_rows
from dpnb.service.opening import OpenTable
from dpnb.service.quotas import StoredRows
from dpnb.service.requests import RequestRunner
from dpnb.service.turns import FreeWork
from dpnb.wire.messages import Changed, Rows

MOST_ANALYSTS = 1000
"""Analysts of a table of whom something is kept while they do nothing."""


@dataclass(frozen=True)
class Rules:
    """How requests are limited, timed and counted."""

    limits: Limits = field(default_factory=Limits)
    has_grid: bool = False  # whether replies leave at the points of a time grid
    metrics: Metrics = field(default_factory=Metrics)

    def grid(self, table: OpenTable) -> TimeGrid | None:
        """The time grid of a table."""
        if not self.has_grid:
            return None
        return TimeGrid(assumed_rows(table.session._core), self.metrics.missed.labels(table.name).inc)


class ServedAnalyst(NotCopyable):
    """An analyst's session on a table, with its running requests and streams.

    `changed` is called after every request.
    """

    def __init__(
        self,
        table: OpenTable,
        session: AnalystSession,
        changed: Callable[[], None],
        rules: Rules,
        work: FreeWork,
        stored: StoredRows,
    ) -> None:
        self.session, self._work = session, work
        grid = self._grid = rules.grid(table)
        self.feed = ChangeFeed(self._state, table.session.ledger.foreign_changes, rules.limits.streams, grid)
        self.runner = RequestRunner(table, session, changed, rules.limits, rules.metrics, grid, work, stored)

    @property
    def is_idle(self) -> bool:
        """Whether nothing of the analyst runs, waits or is streamed."""
        return not self.runner.running and not self.feed.streams

    async def next_rows(self, after: int, pending: tuple[int, ...], head: str) -> Rows:
        """Rows that the analyst does not have yet, at the next point of the time grid.

        Raises `LedgerReplaced` if the analyst's copy has a row that the ledger does not contain.
        """
        if self._grid is not None:
            await self._grid.next_point()

        def shown() -> Rows:
            self.session.rows.refuse_fork(after, head)
            return self.runner.rows(after, pending)

        return await self._work.reply(self.session.name, shown)

    def _state(self) -> Changed:
        rows = self.session.rows
        return Changed(rows.count, rows.answered)


class ServedTable(NotCopyable):
    """A table and the analysts who have used it; `version` increases with every change that this process makes."""

    def __init__(self, table: OpenTable, rules: Rules, work: FreeWork) -> None:
        self.table, self._rules, self._work, self.version = table, rules, work, 0
        table.session._core.tables.work_limits = rules.limits.work
        self.stored = StoredRows(table.session.ledger, rules.limits)
        self._analysts: dict[str, ServedAnalyst] = {}
        rules.metrics.follow(
            table.name,
            {
                "running": lambda: sum(one.runner.running for one in list(self._analysts.values())),
                "executing_seconds": lambda: 0.0 if (running := table.running) is None else running.seconds,
                "waiting": lambda: table.worker.waiting,
                "queue_seconds": lambda: table.worker.age,
                "held": lambda: len(table.held.charges()),
                "streams": lambda: sum(one.feed.streams for one in list(self._analysts.values())),
                "stored_bytes": lambda: self.stored.largest,
                "disk_free_bytes": lambda: self.stored.free,
                "headroom": lambda: table.session._core.account.filter.headroom,
            },
        )
        table.session._core.on_change(self._notify)

    def analyst(self, name: str) -> ServedAnalyst:
        """An analyst who may open the table; call in the event loop."""
        session, known = self.table.for_analyst(name), self._analysts.get(name)
        if known is not None and known.session is session:
            return known
        if known is not None:  # of a part from before the budget was divided in another way
            known.feed.end()
        for other in list(self._analysts)[: max(len(self._analysts) - MOST_ANALYSTS, 0)]:
            if self._analysts[other].is_idle:
                self._analysts.pop(other).feed.end()
        served = self._analysts[name] = ServedAnalyst(
            self.table, session, self._notify, self._rules, self._work, self.stored
        )
        return served

    def _notify(self) -> None:
        """Let every stream look for new rows; only those of its analyst cause an event."""
        self.version += 1
        for one in list(self._analysts.values()):
            one.feed.notify()

    def drop_refused(self) -> None:
        """Refuse at once what waits of analysts who may no longer be charged; in any thread but the event loop's."""
        for one in list(self._analysts.values()):
            one.runner.drop_refused()

    def end_revoked(self) -> None:
        """End the sessions of analysts who may no longer open the table, or who have another part of its budget now."""
        for name, one in list(self._analysts.items()):
            if not self.table.has(one.session):
                self._analysts.pop(name).feed.end()

    def end(self) -> None:
        """End all streams."""
        for one in self._analysts.values():
            one.feed.end()
