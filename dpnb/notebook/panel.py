"""The kernel side of the JupyterLab panel: sends the state of every session to the browser, at most ten times a second.

One comm for each kernel process, opened silently: the browser listens to its broadcasts and opens none itself, so
that any number of tabs and notebooks on one kernel show the same state.  Outside a Jupyter kernel it has no effect.
"""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from dpnb._browser.messages import TARGET, LogChunk, PanelRequest, RequestSnapshot, RequestWholeLog
from dpnb._browser.snapshot import VERSION, ExplanationText, LogEntry, SessionSnapshot, Snapshot
from dpnb._core import open_sessions
from dpnb.errors import DpnbError
from dpnb.ledger import Ledger
from dpnb.render.refusals import EXPLANATIONS
from dpnb.session import BaseSession, snapshot
from dpnb.threads import ThreadTask

# --- snapshots of every session of this process -----------------------------------------------------------------------


_compared: set[str] = set()
"""Ids of the sessions whose filters and odometers a page compares."""


def live() -> list[BaseSession]:
    """Live sessions, most recently used first."""
    return [session for session in open_sessions.sessions() if isinstance(session, BaseSession)]


def ledgers() -> list[Ledger]:
    """The ledgers of the live sessions, each once."""
    ledgers = [session._core.account.ledger for session in live()]
    return list({id(ledger): ledger for ledger in ledgers}.values())


def log(session_id: str, start: int, max_rows: int) -> tuple[int, list[LogEntry]]:
    """The number of requests in a session's ledger, and at most `max_rows` of them from `start` on, oldest first."""
    for session in live():
        if session.id == session_id:
            requests = session._core.log
            total = requests.count
            lines = requests.by_id(requests.ids[start : start + max_rows])
            return total, [snapshot.log_entry(line) for line in lines]
    return 0, []


def compare(session_id: str, *, is_shown: bool) -> None:
    """Include all filters and odometers in the snapshots of a session, or no longer."""
    if is_shown:
        _compared.add(session_id)
    else:
        _compared.discard(session_id)


def reconnect() -> None:
    """Let the sessions that are out of date try to reach their service now."""
    connections = [session._core.connection for session in live()]
    for connection in {id(one): one for one in connections if one is not None and not one.is_current}.values():
        connection.refresh()


def sessions() -> list[SessionSnapshot]:
    """One snapshot for each session, most recently used first; an unreadable session does not hide the others."""
    return [_snapshot(session) for session in live()]


def _snapshot(session: BaseSession) -> SessionSnapshot:
    try:
        return snapshot.snapshot(session, compared=session.id in _compared)
    except DpnbError as error:
        return snapshot.unreadable_snapshot(session, error)


# --- the kernel side of the JupyterLab panel --------------------------------------------------------------------------


Sessions = list[SessionSnapshot]
"""Snapshots of sessions, most recently used first."""

Log = Callable[[str, int, int], tuple[int, list[LogEntry]]]
"""From the id of a session, a number of rows to skip and a maximum: the total number of rows, and the next rows."""

Send = Callable[[dict[str, object]], None]

EXPLAINED = [ExplanationText(explained.id, explained.title, explained.full_text) for explained in EXPLANATIONS]

LOG_ROWS = 500
"""Number of rows in one message of a whole log."""

INTERVAL = 0.1
"""Seconds between two messages.  The server drops a kernel's messages, the last one too, above 1000 a second."""

_log = logging.getLogger("dpnb")


class Panel:
    """Throttled broadcasts of a snapshot that always include the last change.

    Thread-safe; no lock is held while a snapshot is taken or sent, so that a caller may hold its own.

    `open_channel` opens the channel to the browser, given the function that handles its messages; it returns None
    without a kernel.  There are at least `interval` seconds between two messages.
    """

    def __init__(
        self, open_channel: Callable[[Callable[[object], None]], Send | None], *, interval: float = INTERVAL
    ) -> None:
        self._open_channel = open_channel
        self._interval = interval
        self._process_id = str(uuid.uuid4())
        self._pid = -1
        self._seq = 0
        self._send: Send | None = None
        self._snapshot: Callable[[], Sessions] | None = None
        self._log: Log | None = None
        self._listeners: list[Callable[[Sessions], None]] = []
        self._on_request: Callable[[PanelRequest], None] = lambda request: None
        self._lock = threading.Lock()  # for the fields below
        self._last = -interval
        self._is_flushing = False
        self._is_dirty = False
        self._is_late = False
        self._worker: ThreadTask[None] | None = None
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()

    def install(
        self,
        snapshot: Callable[[], Sessions],
        log: Log | None = None,
        on_request: Callable[[PanelRequest], None] | None = None,
    ) -> None:
        """Send the result of `snapshot` to the browser, now and after every `publish`.

        `snapshot` is called from any thread.  `log` returns rows of the whole log of a session, which a snapshot does
        not contain.  `on_request` is called with every message of a browser, before it is answered.
        """
        self._snapshot, self._log = snapshot, log
        self._on_request = on_request or (lambda request: None)
        if self._send is None:
            self._send = self._open_channel(self._answer)
            self._pid = os.getpid()
        self.publish()

    def on_flush(self, listener: Callable[[Sessions], None]) -> None:
        """Call `listener` with every snapshot that is sent; registering it again has no effect."""
        if listener not in self._listeners:
            self._listeners.append(listener)

    def publish(self) -> None:
        """Announce a change; it is sent at once, or one interval after the last message."""
        if not self._is_live():
            return
        if self._take_turn():
            self.flush()
        else:
            self._flush_soon()

    def flush(self) -> None:
        """Send the state without waiting.  If another thread is sending, it sends once more before it stops."""
        if not self._is_live():
            return
        is_ours = False
        try:
            with self._lock:
                self._is_dirty = True
                if self._is_flushing:
                    return
                is_ours = self._is_flushing = True
            while (seq := self._next()) is not None:
                self._send_once(seq)
        except BaseException:  # for example an interrupt: the next caller must not wait forever
            if is_ours:
                with self._lock:
                    self._is_flushing = False
                self._flush_soon()
            raise

    def _answer(self, message: object) -> None:
        """Broadcast what a browser requested; other messages are ignored."""
        try:
            request = msgspec.convert(message, PanelRequest)
        except msgspec.ValidationError:
            return
        self._on_request(request)
        match request:
            case RequestSnapshot():
                self.publish()
            case RequestWholeLog(session=session):
                self._send_log(session)

    def _send_log(self, session: str) -> None:
        if not self._is_live() or self._send is None or self._log is None:
            return
        start = 0
        while True:
            try:
                total, rows = self._log(session, start, LOG_ROWS)
            except DpnbError:
                total, rows = 0, []  # the snapshot shows the reason
            chunk = LogChunk(VERSION, self._process_id, session, start, total, rows)
            self._send({"dpnb_log": msgspec.to_builtins(chunk)})
            start += len(rows)
            if not rows or start >= total:
                return

    def _is_live(self) -> bool:
        # A forked child shares the sockets of its parent and must not write to them.
        return self._send is not None and os.getpid() == self._pid

    def _next(self) -> int | None:
        """Number of the next message; None, which ends the flush, if nothing has changed since the last one.

        The number is assigned before the snapshot is taken, so that the later of two numbers has the later state.
        """
        with self._lock:
            if not self._is_dirty:
                self._is_flushing = False
                return None
            self._is_dirty = False
            self._last = time.monotonic()
            self._seq += 1
            return self._seq

    def _send_once(self, seq: int) -> None:
        if self._send is None or self._snapshot is None:
            return
        try:
            sessions = self._snapshot()
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            snapshot = Snapshot(VERSION, self._process_id, seq, now, sessions, EXPLAINED)
            self._send({"dpnb": msgspec.to_builtins(snapshot)})
        except Exception as error:  # noqa: BLE001
            # A release that was charged must not fail because it could not be displayed.
            _log.error("dpnb could not update the gauges (%s)", type(error).__name__)
            return
        for listener in list(self._listeners):
            try:
                listener(sessions)
            except Exception as error:  # noqa: BLE001  (likewise; and one widget must not affect the next)
                _log.error("dpnb could not update a widget (%s)", type(error).__name__)

    def _take_turn(self) -> bool:
        """Whether an interval has passed since the last message; if so the caller must send one."""
        with self._lock:
            now = time.monotonic()
            if now < self._last + self._interval:
                return False
            self._last = now
            self._is_late = False  # before the snapshot: a change published during it requires another one
            return True

    def _flush_soon(self) -> None:
        """Let the worker send the state, one interval after the last message; without a worker, send it at once."""
        if not self._start_worker():
            self.flush()
            return
        self._is_late = True
        self._wake.put(None)

    def _start_worker(self) -> bool:
        """Whether the worker is running; no thread can start in a kernel in the browser."""
        # A single permanent thread, since a kernel keeps a socket for every thread that has sent a message.
        with self._lock:
            if self._worker is None:
                worker = ThreadTask(self._flush_late)
                try:
                    worker.start()
                except RuntimeError:
                    return False
                self._worker = worker
            return True

    def _flush_late(self) -> None:
        """Send changes that came too early for a separate message, one interval after the last message."""
        while True:
            self._wake.get()
            time.sleep(max(0.0, self._last + self._interval - time.monotonic()))
            if self._is_late and self._take_turn():
                self.flush()


def _open_comm(answer: Callable[[object], None]) -> Send | None:
    """Open the silent comm of this kernel; None outside a kernel."""
    ipython = sys.modules.get("IPython")
    if ipython is None or getattr(ipython.get_ipython(), "kernel", None) is None:
        return None
    import comm

    # Not primary: a primary comm sends comm_open, to which a browser without the extension responds with an error.
    channel = comm.create_comm(target_name=TARGET, primary=False)
    comm.get_comm_manager().register_comm(channel)

    channel.on_msg(lambda message: answer(message["content"].get("data")))
    send: Send = channel.send
    return send


_panel = Panel(_open_comm)

install = _panel.install
publish = _panel.publish
flush = _panel.flush
on_flush = _panel.on_flush
