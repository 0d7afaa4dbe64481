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
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar

from dpnb.progress import Stage, at
from dpnb.threads import POLL_SECONDS, ThreadTask

T = TypeVar("T")

_here = threading.local()
_all: weakref.WeakSet[BackgroundRunner] = weakref.WeakSet()


class Cancelled(Exception):  # noqa: N818
    """The work was left behind; nothing handles this exception."""


def is_stopped() -> bool:
    """Whether this thread does work that was left behind."""
    task: _BackgroundTask | None = getattr(_here, "task", None)
    return task is not None and task.stopped


def refuse_stopped() -> None:
    """End work that was left behind; called between its steps."""
    if is_stopped():
        raise Cancelled


class BackgroundRunner:
    """The threads in which the work of one engine is done.

    One task at a time, even if several threads ask: a connection of DuckDB refuses a second call, and an interrupt
    reaches everything that polars is doing in the process.
    """

    def __init__(self) -> None:
        self._begin()
        _all.add(self)

    def _begin(self) -> None:
        self._tasks: list[_BackgroundTask] = []  # in the order in which they are done; those that ended may remain

    def run(self, work: Callable[[], T], cancel: Callable[[], object] | None = None) -> T:
        """The result of `work`, done in a thread of its own after all work that was given before has ended.

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
        if getattr(_here, "task", None) is not None:
            return work()  # a part of work that is in the background already
        task = _BackgroundTask(work, cancel)
        try:
            self._tasks.append(task)  # before it begins: an interrupt may come at any moment
            self._wait_for(takewhile(lambda earlier: earlier is not task, list(self._tasks)))
            found: T = task.result()
            return found
        finally:
            if not task.ended:
                task.stop()
            if task.ended:
                self._remove(task)

    def settle(self) -> None:
        """Wait until what an interrupt left behind has ended; at once if there is nothing."""
        self._wait_for(task for task in list(self._tasks) if task.stopped)

    def _wait_for(self, tasks: Iterable[_BackgroundTask]) -> None:
        for task in tasks:
            if task.stopped:
                task.stop()  # once more: a second interrupt may have come before it was cancelled
            while not task.ended:
                if task.stopped:
                    with at(Stage.WAITING):
                        task.wait(POLL_SECONDS)
                else:
                    task.wait(POLL_SECONDS)
            self._remove(task)

    def _remove(self, task: _BackgroundTask) -> None:
        with suppress(ValueError):  # another thread was quicker
            self._tasks.remove(task)


class _BackgroundTask:
    """One piece of work."""

    def __init__(self, work: Callable[[], Any], cancel: Callable[[], object] | None) -> None:
        self.stopped = False
        self._begun = False
        self._lock = threading.Lock()  # for these two
        self._work, self._cancel = work, cancel
        self._task = ThreadTask(partial(contextvars.copy_context().run, self._run))
        self._cancellers: list[ThreadTask[None]] = []

    def result(self) -> Any:
        """Do it and wait for it."""
        self._task.start()
        return self._task.result()

    def stop(self) -> None:
        """Leave it behind; if it has not begun, it never will, even if its thread begins yet."""
        with self._lock:
            self.stopped = True
        if self._begun and self._cancel is not None and not any(one.has_begun for one in self._cancellers):
            canceller = ThreadTask(self._cancelled)
            self._cancellers.append(canceller)
            canceller.start()

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, at most so many seconds for the work and for each attempt to cancel it."""
        self._task.wait(seconds)
        for canceller in self._cancellers:
            if canceller.has_begun:
                canceller.wait(seconds)

    @property
    def ended(self) -> bool:
        """Whether the engine is free and nobody is cancelling: a late attempt to cancel would hit the next task."""
        return self._work_ended and not any(one.has_begun and not one.has_ended for one in self._cancellers)

    @property
    def _work_ended(self) -> bool:
        return self._task.has_ended or (self.stopped and not self._begun)

    def _run(self) -> Any:
        with self._lock:
            if self.stopped:
                return None  # nobody waits for it
            self._begun = True
        _here.task = self
        return self._work()

    def _cancelled(self) -> None:
        while not self._work_ended:
            with suppress(Exception):
                self._cancel()  # type: ignore[misc]  # there is one
            self._task.wait(POLL_SECONDS)


def _forget() -> None:
    """In a fork there are no threads, and nobody ends what they were doing."""
    for runner in _all:
        runner._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
