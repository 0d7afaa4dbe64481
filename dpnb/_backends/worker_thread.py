"""Work of an engine in threads, one piece at a time, so that an interrupt takes effect and leaves nothing running.

An engine notices an interrupt late, not at all, or as an error of its own, and its work may go on.  So the thread that
asks only waits.  When interrupted, it leaves the work behind and has it cancelled, and the next question first waits
until that work has ended, so that nothing is charged only to meet an engine that is still busy.
"""

from __future__ import annotations

import contextvars
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any, TypeVar

from dpnb.progress import Stage, at

T = TypeVar("T")

LOOKS = 0.1
"""Seconds after which an interrupt is noticed at the latest, and between two attempts to cancel."""

_here = threading.local()
_all: weakref.WeakSet[BackgroundRunner] = weakref.WeakSet()


class Cancelled(Exception):  # noqa: N818
    """The work was left behind; nothing handles this exception."""


def is_stopped() -> bool:
    """Whether this thread does work that was left behind."""
    piece: _BackgroundTask | None = getattr(_here, "piece", None)
    return piece is not None and piece.stopped


def refuse_stopped() -> None:
    """End work that was left behind; called between its steps."""
    if is_stopped():
        raise Cancelled


class BackgroundRunner:
    """The thread in which the work of one engine is done.

    One piece at a time, even if several threads ask: a connection of DuckDB refuses a second call, and an interrupt
    reaches everything that polars is doing in the process.
    """

    def __init__(self) -> None:
        self._begin()
        _all.add(self)

    def _begin(self) -> None:
        self._turn = threading.RLock()
        self._left: list[_BackgroundTask] = []

    def run(self, work: Callable[[], T], cancel: Callable[[], object] | None = None) -> T:
        """The result of `work`, done in a thread of its own after what an interrupt has left behind has ended.

        Parameters
        ----------
        work : callable
        cancel : callable, optional
            Ends what the engine is doing for `work`; called from another thread, repeatedly until it has ended.

        Raises
        ------
        KeyboardInterrupt
            The work was left behind.
        """
        if getattr(_here, "piece", None) is not None:
            return work()  # a part of work that is in the background already
        while not self._turn.acquire(timeout=LOOKS):
            pass
        try:
            self._settle(list(self._left))
            piece = _BackgroundTask(work, cancel)
            self._left.append(piece)  # before it begins: an interrupt may come at any moment
            try:
                found: T = piece.result()
                return found
            finally:
                if not piece.ended:
                    piece.stop()
                if piece.ended:
                    with suppress(ValueError):  # another thread that settles was quicker
                        self._left.remove(piece)
        finally:
            self._turn.release()

    def settle(self) -> None:
        """Wait until what an interrupt left behind has ended; at once if there is nothing."""
        self._settle([piece for piece in self._left if piece.stopped])

    def _settle(self, pieces: list[_BackgroundTask]) -> None:
        for piece in pieces:
            if not piece.ended:
                with at(Stage.WAITING):
                    piece.stop()
                    piece.wait()
            with suppress(ValueError):  # another thread was quicker
                self._left.remove(piece)


class _BackgroundTask:
    """One piece of work."""

    def __init__(self, work: Callable[[], Any], cancel: Callable[[], object] | None) -> None:
        self.stopped = False
        self._work, self._cancel = work, cancel
        self._found: Future[Any] = Future()
        context = contextvars.copy_context()
        self._thread = _thread(lambda: context.run(self._run))
        self._canceller: threading.Thread | None = None

    def result(self) -> Any:
        """Do it and wait for it."""
        self._thread.start()
        while not self._found.done():  # a signal may go to another thread, and does not wake this one
            wait([self._found], timeout=LOOKS)
        return self._found.result()

    def stop(self) -> None:
        """Leave it behind; if it has not begun, it never will, even if its thread begins yet."""
        self.stopped = True
        if self._found.cancel():
            return
        if self._cancel is not None and self._canceller is None:
            self._canceller = _thread(self._cancelled)
            self._canceller.start()

    def wait(self) -> None:
        """Wait until it has ended."""
        while not self.ended:
            wait([self._found], timeout=LOOKS)
            if self._canceller is not None:
                with suppress(RuntimeError):  # it was interrupted before it had started
                    self._canceller.join(LOOKS)

    @property
    def ended(self) -> bool:
        """Whether the engine is free and nobody is cancelling: a late attempt to cancel would hit the next piece."""
        return self._work_ended and not (self._canceller is not None and self._canceller.is_alive())

    @property
    def _work_ended(self) -> bool:
        return self._found.done()  # whether its thread is alive would not tell: an interrupt may come while it begins

    def _run(self) -> None:
        if not self._found.set_running_or_notify_cancel():
            return
        _here.piece = self
        try:
            self._found.set_result(self._work())
        except BaseException as error:  # noqa: BLE001  (for the thread that waits for it)
            self._found.set_exception(error)

    def _cancelled(self) -> None:
        while not self._work_ended:
            with suppress(Exception):
                self._cancel()  # type: ignore[misc]  # there is one
            wait([self._found], timeout=LOOKS)


def _thread(run: Callable[[], object]) -> threading.Thread:
    return threading.Thread(target=run, daemon=True, name="dpnb engine")


def _forget() -> None:
    """In a fork there are no threads, and nobody ends what they were doing."""
    for background in _all:
        background._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
