"""Work in threads of its own, for which a thread can wait and be interrupted at any moment.

`threading.Event`, `threading.Thread.start` and `concurrent.futures` wait in Python code.  An interrupt between two of
its lines can leave a lock taken for which another thread then waits for ever, or becomes a `RuntimeError` ("release
unlocked lock").  Here each step of the thread that waits is one call in C, and no lock has to be released.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from typing import Generic, TypeVar, cast

T = TypeVar("T")

POLL_SECONDS = 0.1
"""Seconds after which a waiting thread notices an interrupt at the latest: a signal may wake another thread instead."""


class ThreadTask(Generic[T]):
    """A piece of work in a thread of its own, which does not keep the interpreter from ending.

    Parameters
    ----------
    work : callable
        Takes no arguments.

    Attributes
    ----------
    has_begun, has_ended : bool
        Whether the thread has begun the work, and whether it has ended it, in whatever way.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self.has_begun = self.has_ended = False
        self._work = work
        self._value: T | None = None
        self._error: BaseException | None = None
        self._running = threading.Lock()
        self._running.acquire()

    def start(self) -> None:
        """Begin the work.

        Raises
        ------
        RuntimeError
            The system has no thread to spare.
        """
        _thread.start_new_thread(self._run, ())

    def wait(self, seconds: float) -> bool:
        """Wait until the work has ended, at most so many seconds; return whether it has."""
        if not self.has_ended and self._running.acquire(timeout=seconds):
            self._running.release()  # wakes the next thread that waits; without it, after an interrupt, that one polls
        return self.has_ended

    def result(self) -> T:
        """Wait for the result; what the work raised is raised."""
        while not self.wait(POLL_SECONDS):
            pass
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
            return cast(T, self._value)
        finally:
            del error  # whose traceback has this frame

    def _run(self) -> None:
        self.has_begun = True
        try:
            self._value = self._work()
        except BaseException as error:  # noqa: BLE001  (for the thread that waits for it)
            self._error = error
        self.has_ended = True
        self._running.release()
