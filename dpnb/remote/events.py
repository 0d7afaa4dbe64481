"""Keeps a session's copy of the ledger in step with the service's, also with what other kernels of the analyst do."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import NoReturn

import msgspec

from dpnb._core.core import SessionCore
from dpnb.copying import NotCopyable
from dpnb.errors import AccessDenied, DpnbError, LedgerError, LedgerReplaced, RequestError
from dpnb.ledger.replica import ReplicaLedger
from dpnb.remote.channel import Channel, Stream
from dpnb.threads import ThreadTask
from dpnb.wire.limits import MAX_PENDING
from dpnb.wire.messages import Changed, Rows, Table

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds between two attempts to connect again: doubled from the first to the longest."""


MAX_IN_ADDRESS = 500
"""Rows without an answer that the address of a request names: servers limit its length."""


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
                    f"{self.channel.where}: now describes another table, schema, version or budget under the name "
                    f"{self._table.name!r}; nothing was charged; connect again"
                )
            )

    def _state(self) -> tuple[int, tuple[int, ...]]:
        return self.ledger.count, self.ledger.pending


class ServiceConnection(NotCopyable):
    """The connection of a session to its service: see `dpnb._core.execution.executor.Connection`.

    The thread ends with the session, or with `close`.  Where threads are impossible, as in a browser, and in a fork,
    nothing is followed: the copy is brought up to date by each request and by `refresh`.
    """

    def __init__(self, copy: LedgerCopy) -> None:
        origin = copy.channel.origin
        if origin.socket is not None:
            place = "in the curator's process on this machine"
        else:  # plain HTTP may end in a tunnel
            place = "in the curator's process" if origin.is_local else "on the curator's server"
        self.where = f"{place}, {origin.text}"
        self._copy = copy
        self._core: weakref.ref[SessionCore] | None = None
        self._lost: str | None = None  # since when, and why
        self._stream: Stream | None = None
        self._is_closed = self._is_followed = False
        self._wake = threading.Event()
        self._process = os.getpid()

    # --- the state ----------------------------------------------------------------------------------------------

    @property
    def is_current(self) -> bool:
        """Whether the copy has what the service has charged, as far as is known."""
        return self._lost is None and not self._is_closed and os.getpid() == self._process

    @property
    def text(self) -> str:
        """The state in words."""
        if os.getpid() != self._process:
            return "out of date: a fork of the process does not follow the service; connect again"
        if self._is_closed:
            return "closed; connect again"
        if self._lost is not None:
            return f"out of date since {self._lost}"
        if not self._is_followed:
            return "up to date after the last request; charges of other kernels are not followed here"
        return "up to date"

    def refresh(self) -> None:
        """Try to bring the copy up to date now."""
        self._wake.set()
        stream = self._stream
        if self._is_followed and self._lost is None and stream is not None:
            stream.cut()  # it connects again, and fetches what is missing
        if not self._is_followed and not self._is_closed and self._copy.problem is None:
            ThreadTask(self._fetch_once).start_or_run()

    # --- the thread ---------------------------------------------------------------------------------------------

    def follow(self, core: SessionCore) -> None:
        """Start the thread; it holds the core by a weak reference."""
        self._core = weakref.ref(core, lambda _: self.close())
        self._is_followed = True
        try:
            ThreadTask(self._run).start()
        except RuntimeError:
            self._is_followed = False

    def close(self) -> None:
        """End the thread."""
        self._is_closed = True
        self._wake.set()
        stream = self._stream
        if stream is not None and os.getpid() == self._process:
            stream.cut()

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while not self._has_ended():
            self._wake.clear()
            reason = "the connection was lost; reconnecting"
            try:
                with self._copy.channel.stream(f"{self._copy.path}/events") as stream:
                    self._stream = stream
                    is_first = True
                    for event in _events(stream):
                        if self._has_ended():
                            break
                        self._take(event, is_first)
                        is_first, pause = False, FIRST_PAUSE
            except AccessDenied:
                reason = "the service refuses the access token; connect again with a new one"
            except RequestError:
                reason = "the service no longer has this table; trying again"
            except DpnbError:
                reason = self._copy.problem or "the service cannot be reached; reconnecting"
            except Exception:  # noqa: BLE001  (whatever a service sends, the session must not seem up to date)
                reason = "the service sent what cannot be read; reconnecting"
            finally:
                self._stream = None
            if self._has_ended() or self._note_lost(reason):
                return
            self._wake.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _has_ended(self) -> bool:
        return self._is_closed

    def _take(self, event: Changed, is_first: bool) -> None:
        """Bring the copy up to date after an event.

        At the first one of a connection, also the first connection, the service may have been started again, and with
        another ledger; fetching rows compares what the copy has.
        """
        if is_first:
            self._copy.check_table()
        ledger = self._copy.ledger
        is_new = event.rows != ledger.count or event.answered != ledger.count - len(ledger.pending)
        has_changed = self._copy.fetch() if is_new or is_first or self._lost is not None else False
        was_lost, self._lost = self._lost, None
        if has_changed or was_lost is not None:
            self._notify()

    def _note_lost(self, reason: str) -> bool:
        """Note that the connection was lost; return whether trying again is useless."""
        if self._lost is None or not self._lost.endswith(reason):
            since = datetime.now().strftime("%H:%M") if self._lost is None else self._lost.partition(": ")[0]
            self._lost = f"{since}: {reason}"
            self._notify()
        return self._copy.problem is not None

    def _fetch_once(self) -> None:
        with suppress(DpnbError):
            if self._copy.fetch():
                self._notify()

    def _notify(self) -> None:
        core = None if self._core is None else self._core()
        if core is not None and not self._is_closed:
            core.changed()


def _events(stream: Stream) -> Iterator[Changed]:
    """The events of a stream; comments keep it alive."""
    data: list[str] = []
    for line in stream.lines():
        if line.startswith("data:"):
            del data[1:]  # an event has one line of data
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            text, data = "\n".join(data), []
            with suppress(msgspec.MsgspecError, RecursionError):  # of another kind
                yield msgspec.json.decode(text, type=Changed)
