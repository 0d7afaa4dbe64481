"""Executes the requests of an analyst: each is charged once, however often it is sent.

A request is decoded within limits, and then executed by the one thread of its table, which lets the filter admit it,
writes the charge, and only then reads rows.  An id belongs to one request: the same request with the same id joins the
running one, or takes up its charge in the ledger; another request is refused.

Analysts take turns, so that much work of one does not keep the others waiting (`dpnb.service.turns`).  A charge that
was being answered when the process ended, or whose request a curator ended, is not answered again before a curator
allows it (`dpnb.service.running`).

A reply is an answer, a refusal, whose text is computed from schema, plan and the analyst's own rows, or "failed" with a
number.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import count
from time import monotonic, perf_counter, thread_time
from typing import Any

import msgspec

from dpnb._core import open_sessions
from dpnb.copying import NotCopyable
from dpnb.errors import (
    BudgetExceeded,
    ConversionError,
    ErrorEstimateUnavailable,
    ExecutionError,
    InvalidValueError,
    LedgerReplaced,
    MechanismClosed,
    PlanError,
    RequestError,
    SchemaError,
    ServiceUnavailable,
    StorageFull,
)
from dpnb.interactive.calls import execute
from dpnb.ledger import Charge
from dpnb.ledger.origin import RequestOrigin, requested_by
from dpnb.service.analysts import AnalystSession
from dpnb.service.configuration.settings import Limits
from dpnb.service.monitoring import Metrics, log
from dpnb.service.network.reply_times import TimeGrid
from dpnb.service.opening import OpenTable
from dpnb.service.quotas import CHARGED, NOT_CHARGED, TOO_MANY, TOO_MUCH_WORK, WAITED, StoredRows
from dpnb.service.running import RunningRequest
from dpnb.service.turns import FreeWork, TooMuch, Turn
from dpnb.wire.limits import WireError
from dpnb.wire.messages import AnyReply, Done, Envelope, LedgerRow, Refused, Rows

TYPED = (
    BudgetExceeded,
    ConversionError,
    ErrorEstimateUnavailable,
    InvalidValueError,
    MechanismClosed,
    PlanError,
    RequestError,
    SchemaError,
    WireError,
)
"""Refusals that an analyst sees.  Other errors name files of the curator's, or are not foreseen."""

MAX_ROWS = 500
"""Rows in one reply, unless a batch has more."""

MAX_REMEMBERED = 10_000
"""Ids of finished requests that are kept in memory; those that were charged are in the ledger for ever."""

UNEXECUTED = 401, 409, 429, 503
"""Of requests that were not executed, whose id may belong to another call."""

CHECK_SECONDS = 1.0
"""Seconds between two looks at the token of a request that waits."""

LOOKS_BEFORE_LOG = 64
"""Looks, a power of two, before the log says that a request is slow, and what runs."""

UNAUTHORIZED = 401, Refused("AccessDenied", "token: must be valid; got a token that is unknown, expired or revoked")
CONFLICT = (
    409,
    Refused("RequestError", "request: the id was used before for another call; nothing was charged; use a new id"),
)
_cell: ContextVar[str | None] = ContextVar("cell", default=None)

Outcome = tuple[int, AnyReply]
"""Status and reply."""


@dataclass(frozen=True)
class _Received:
    """When a request was received: by the clock that waiting is measured with, and as the time of its rows."""

    monotonic: float
    time: datetime


@dataclass(frozen=True)
class _Executed:
    """What a request did, before its reply is made: a refusal or failure, or ids of the ledger's rows."""

    status: int
    refused: Refused | None = None
    ids: tuple[int, ...] = ()


class RequestRunner(NotCopyable):
    """Executes the requests of one analyst about one table; `changed` is called after every request.

    Replies leave at the points of `grid`; without one, as soon as they are ready.
    """

    def __init__(
        self,
        table: OpenTable,
        analyst: AnalystSession,
        changed: Callable[[], None],
        limits: Limits,
        metrics: Metrics,
        grid: TimeGrid | None,
        work: FreeWork,
        stored: StoredRows,
    ) -> None:
        self._table, self._analyst, self._changed = table, analyst, changed
        self._limits, self._metrics, self._grid, self._work = limits, metrics, grid, work
        self._stored = stored
        self._turns: dict[str, Turn[_Executed]] = {}
        self._running: dict[str, tuple[str, asyncio.Task[_Executed]]] = {}
        self._finished: OrderedDict[str, str] = OrderedDict()
        self._failures = count(1)
        open_sessions.set_cell_provider(_cell.get)

    @property
    def running(self) -> int:
        """The number of requests that run or wait."""
        return len(self._running)

    async def run(
        self,
        envelope: Envelope,
        is_valid: Callable[[], bool],
        last_known: Callable[[], bool] | None = None,
        place: Callable[[], Awaitable[object]] | None = None,
    ) -> Outcome:
        """Execute a request, or join it, and return the reply at a point of the time grid.

        Whether the analyst's token is still valid is asked of `is_valid` just before the charge, in the thread of the
        table, and of `last_known`, which knows it without waiting, while the request waits for its turn.  `place` waits
        until the reply may be made, which is when the analyst has read enough of earlier ones.
        """
        received = 0.0 if self._grid is None else self._grid.time()
        done = await self._run(envelope, is_valid, last_known or is_valid)
        if self._grid is not None:
            await self._grid.hold(received, envelope.request)
        if not isinstance(done, _Executed):
            return done
        if place is not None:
            await place()
        return await self._work.reply(self._analyst.name, partial(self._reply, envelope, done))  # reads the ledger

    async def _run(
        self, envelope: Envelope, is_valid: Callable[[], bool], last_known: Callable[[], bool]
    ) -> _Executed | Outcome:
        digest = envelope.digest()
        known = self._running.get(envelope.id)
        if known is None:
            if len(self._running) >= self._limits.running:
                self._metrics.limited("running")
                return TOO_MANY
            if self._finished.get(envelope.id, digest) != digest:
                return self._conflict(envelope)
            received = _Received(monotonic(), datetime.now(UTC))
            task = asyncio.create_task(self._execute(envelope, digest, is_valid, last_known, received))
            self._running[envelope.id] = digest, task
            task.add_done_callback(lambda done: self._end(envelope.id, digest, done))
        else:
            running, task = known
            if running != digest:
                return self._conflict(envelope)
        return await asyncio.shield(task)  # a client that disconnects ends its own waiting only

    def _end(self, number: str, digest: str, done: asyncio.Task[_Executed]) -> None:
        del self._running[number]
        if done.cancelled() or done.exception() is not None or done.result().status in UNEXECUTED:
            return  # the id may belong to another call
        self._finished[number] = digest
        while len(self._finished) > MAX_REMEMBERED:
            self._finished.popitem(last=False)

    async def _execute(
        self,
        envelope: Envelope,
        digest: str,
        is_valid: Callable[[], bool],
        last_known: Callable[[], bool],
        received: _Received,
    ) -> _Executed:
        work = partial(self._timed, envelope, digest, is_valid, received)
        turn = self._turns[envelope.id] = self._table.worker.submit(self._analyst.name, work)
        future = asyncio.wrap_future(turn.future)
        looks = 0
        try:
            while not (await asyncio.wait({future}, timeout=CHECK_SECONDS))[0]:
                looks += 1
                if looks >= LOOKS_BEFORE_LOG and looks.bit_count() == 1:  # and after twice the time, ...
                    running, waiting = self._table.running, self._table.worker.waiting
                    number = None if running is None else running.number
                    log("slow", **self._facts(envelope), seconds=looks * CHECK_SECONDS, running=number, waiting=waiting)
                if not last_known():
                    self._drop(turn, _Executed(*UNAUTHORIZED))
        finally:
            del self._turns[envelope.id]
        self._changed()
        return future.result()

    def drop_refused(self) -> None:
        """Refuse at once what waits, if it would be refused at its turn since the analyst may no longer be charged."""
        if not self._turns:
            return
        try:
            self._analyst.refuse_revoked()
            self._table.refuse_ended(self._analyst)
        except RequestError as error:
            refused = _Executed(422, Refused(type(error).__name__, str(error)))
            for turn in list(self._turns.values()):
                self._drop(turn, refused)

    def _drop(self, turn: Turn[_Executed], executed: _Executed) -> None:
        if turn.drop(executed):
            log("dropped", actor=self._analyst.name, table=self._table.name, status=executed.status)
            self._metrics.dropped.labels(self._table.name).inc()

    # --- in the worker's thread ---------------------------------------------------------------------------------

    def _timed(self, envelope: Envelope, digest: str, is_valid: Callable[[], bool], received: _Received) -> _Executed:
        started, facts = monotonic(), self._facts(envelope)
        if started - received.monotonic > self._limits.wait_seconds:
            log("refused", **facts, refusal="waited too long")
            self._metrics.limited("wait_seconds")
            return _Executed(*WAITED)
        try:
            self._work.refuse_beyond(self._analyst.name)
        except TooMuch as error:
            log("refused", **facts, refusal=error.limit)
            return _Executed(*TOO_MUCH_WORK)
        cpu_started = thread_time()
        with self._table.running_request(self._analyst.name, facts["call"], envelope.id, self._refuse_held) as running:
            executed = self._executed(envelope, digest, is_valid, received.time, running)
        if not running.has_read:  # else it depends on rows
            self._work.spent(self._analyst.name).add(thread_time() - cpu_started)
        self._metrics.executed(facts["table"], facts["call"], str(executed.status), monotonic() - started)
        return executed

    def _refuse_held(self, charge: Charge) -> None:
        self._table.held.refuse(charge, *self._analyst.rows.by_ids((charge.id,)))

    def _executed(
        self,
        envelope: Envelope,
        digest: str,
        is_valid: Callable[[], bool],
        received: datetime,
        running: RunningRequest,
    ) -> _Executed:
        started, facts, rows = perf_counter(), self._facts(envelope), self._analyst.rows
        token = _cell.set(envelope.cell_id)
        try:
            if not is_valid():
                log("refused", **facts, refusal="AccessDenied")
                return _Executed(*UNAUTHORIZED)
            rows.refuse_fork(envelope.after, envelope.head)
            recorded = rows.request(envelope.id)
            if recorded is not None and (recorded[1].actor, recorded[1].digest) != (self._analyst.name, digest):
                return _Executed(*CONFLICT)
            self._analyst.refuse_other_version(envelope.id)
            self._analyst.refuse_revoked()
            self._table.refuse_ended(self._analyst)
            node = rows.node(envelope.node)
            conditions = self._analyst.translated(envelope.conditions)
            self._analyst.refuse_foreign(node, envelope.request, conditions)
            room = None
            if recorded is None:
                self._stored.refuse_full_disk()
                room = self._stored.room(self._analyst.name, facts["call"])
            with requested_by(RequestOrigin(self._analyst.name, envelope.id, digest, received, room)), running.at(node):
                ids = execute(self._analyst.session._mechanisms.at(node), envelope.request, conditions)
        except ServiceUnavailable as error:  # JupyterHub cannot say whether the token is still valid
            log("refused", logging.WARNING, **facts, refusal="ServiceUnavailable")
            return _Executed(503, Refused("ServiceUnavailable", str(error)))
        except ExecutionError as error:  # its text is one of a few constants
            log("failed", logging.ERROR, **facts, refusal="ExecutionError")
            return _Executed(500, Refused("ExecutionError", str(error)))
        except StorageFull as error:
            return self._full(error, envelope, facts)
        except LedgerReplaced as error:  # the rows that the client lacks are not sent: its copy is of another ledger
            log("refused", logging.WARNING, **facts, refusal="LedgerReplaced")
            return _Executed(409, Refused("LedgerReplaced", str(error)))
        except TYPED as error:
            log("refused", **facts, refusal=type(error).__name__)
            return _Executed(422, Refused(type(error).__name__, str(error)))
        except BaseException as error:  # noqa: BLE001  (whatever it is, the analyst sees a number)
            if isinstance(error, KeyboardInterrupt) and running.asked_to_end.is_set():
                return self._ended(running, facts)
            return self._failed(error, facts)
        finally:
            _cell.reset(token)
        cost = self._costs(ids)
        log("done", **facts, rows=list(ids), cost=cost, milliseconds=round(1000 * (perf_counter() - started)))
        return _Executed(200, ids=ids)

    def _full(self, error: StorageFull, envelope: Envelope, facts: dict[str, Any]) -> _Executed:
        """The refusal of a request that could not be charged, or not be answered, since the disk is full."""
        log("disk_full", logging.ERROR, error, **facts)
        try:
            was_charged = self._analyst.rows.request(envelope.id) is not None
        except BaseException as unread:  # noqa: BLE001  (then nobody knows)
            return self._failed(unread, facts)
        return _Executed(500, Refused("StorageFull", CHARGED if was_charged else NOT_CHARGED))

    def _ended(self, running: RunningRequest, facts: dict[str, Any]) -> _Executed:
        """The refusal of a request that the curator has ended."""
        ledger = self._table.session.ledger
        with ledger.transaction():
            row = running.row(ledger)
        if row is not None:
            self._table.held.end(row)  # also if this comes before the curator's act is written
        log("ended", logging.WARNING, **facts, row=row)
        error = running.stopped(None if row is None else self._analyst.rows.by_ids((row,))[0])
        return _Executed(422, Refused(type(error).__name__, str(error)))

    def _failed(self, error: BaseException, facts: dict[str, Any]) -> _Executed:
        number = next(self._failures)
        log("failed", logging.ERROR, error, **facts, number=number)
        text = f"failed, number {number}; the curator's log has the details"
        return _Executed(500, Refused("ServiceError", text))

    def _reply(self, envelope: Envelope, executed: _Executed) -> Outcome:
        try:
            refused = executed.refused
            if refused is not None:
                shows_rows = refused.error != "ServiceError" and executed.status not in UNEXECUTED
                rows = self.rows(envelope.after, envelope.pending) if shows_rows else Rows()
                return executed.status, msgspec.structs.replace(refused, rows=rows)
            rows = self.rows(envelope.after, envelope.pending)
            return executed.status, Done(self._analyst.rows.by_ids(executed.ids), rows)
        except BaseException as error:  # noqa: BLE001  (as above)
            failed = self._failed(error, {"table": self._table.name})
            return failed.status, failed.refused or Refused("ServiceError", "")

    def rows(self, after: int, pending: tuple[int, ...]) -> Rows:
        """Rows that the analyst does not have yet."""
        shared = self._analyst.rows
        count = shared.count  # read first: a row that is written meanwhile must not be announced without being sent
        new = shared.after(after, MAX_ROWS)
        changed = shared.changed(number for number in pending if number <= after)
        rows = tuple(LedgerRow(values) for values in (*changed, *new))
        return Rows(rows, more=count > after + len(new))

    # --- the log ------------------------------------------------------------------------------------------------

    def _facts(self, envelope: Envelope) -> dict[str, Any]:
        kind = str(type(envelope.request).__struct_config__.tag)
        return {
            "actor": self._analyst.name,
            "table": self._table.name,
            "node": envelope.node,
            "call": kind,
            "request": envelope.id,
        }

    def _costs(self, ids: tuple[int, ...]) -> list[Any]:
        return [row.loss.to_json() for row in self._table.session.ledger.by_id(ids)] if ids else []

    def _conflict(self, envelope: Envelope) -> Outcome:
        log("refused", **self._facts(envelope), refusal="conflict")
        return CONFLICT
