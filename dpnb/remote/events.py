"""A thread that follows changes which other kernels of the analyst make, while the session is in use."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

import msgspec

from dpnb._core.core import SessionCore
from dpnb.copying import NotCopyable
from dpnb.errors import AccessDenied, DpnbError, RequestError
from dpnb.remote.channel import Stream
from dpnb.remote.ledger_copy import LedgerCopy
from dpnb.threads import ThreadTask
from dpnb.wire.replies import Changed

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds between two attempts to connect again: doubled from the first to the longest."""


class ServiceConnection(NotCopyable):
    """The connection of a session to its service: see `dpnb._core.execution.protocol.Connection`.

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
