"""Work on rows in threads, of which only the result is observable, and which an interrupt ends.

Run work on rows so that only its result is observable, under fixed numeric settings.

An analyst's settings must not decide whether the work fails or what it shows: ``numpy.seterr(all="raise")`` or
``warnings.simplefilter("error")`` would turn an overflow in one row into an error, and ``numpy.seterr(all="print")``
would print a line for it in the notebook.

An engine notices an interrupt late, not at all, or as an error of its own, and its work may continue.  So the calling
thread only waits.  When interrupted, it abandons the work and has it cancelled, and the next query first waits until
that work has ended, so that nothing is charged while the engine is still busy.
"""

from __future__ import annotations

import contextvars
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar

import numpy as np

from dpnb.errors import DpnbError, ExecutionError
from dpnb.progress import Stage, at
from dpnb.threads import POLL_SECONDS, ThreadTask, end_if_asked

# --- fixed numeric settings for work on rows --------------------------------------------------------------------------


_lock = threading.RLock()
_inside: list[object] = []
_filters: list[warnings.catch_warnings[None]] = []
"""Restores the filters that were set before the first of several blocks; empty outside of them."""


@contextmanager
def isolated_numeric_settings() -> Iterator[None]:
    """Ignore warnings and floating-point errors during the block; also a decorator.

    Warning filters belong to the whole process, and blocks in several threads need not end in the order in which they
    began: work that an interrupt left behind ends later than the query.  So the first block saves the filters, and the
    last one to end restores them.
    """
    block = object()
    try:
        with _lock:
            _inside.append(block)
            if not _filters:
                before = warnings.catch_warnings()
                before.__enter__()
                _filters.append(before)
            warnings.simplefilter("ignore")
        with np.errstate(all="ignore"):
            yield
    finally:
        with _lock:
            if block in _inside:  # an interrupt may come before it was added
                _inside.remove(block)
            if _filters and not _inside:
                _filters.pop().__exit__(None, None, None)


# --- work on rows of which only the result is observable --------------------------------------------------------------


T = TypeVar("T")


def run_guarded(
    work: Callable[[], T], message: str, *, interrupted: str = "", public_errors: type[DpnbError] | tuple[()] = ()
) -> T:
    """Run `work`; any error becomes one constant `ExecutionError`, and an interrupt a plain interrupt.

    This holds for every `BaseException`: a panic of polars is not an `Exception`, and neither is a `SystemExit` from a
    function that the curator's plan calls; both may quote a value.

    The new exception is raised outside the handler, so it has no cause, no context and no traceback frame in which
    rows are local variables (IPython's verbose mode prints those).

    An error of the class `public_errors`, which never quotes rows, keeps its message.  `interrupted` is the message of
    the new `KeyboardInterrupt`.
    """
    kind: type[BaseException] = ExecutionError
    arguments: tuple[Any, ...] = (message,)
    try:
        return work()
    except KeyboardInterrupt:
        kind, arguments = KeyboardInterrupt, (interrupted,) if interrupted else ()
    except public_errors as error:
        kind, arguments = type(error), error.args
    except BaseException:  # noqa: BLE001, S110  (its message may quote rows)
        pass
    raise kind(*arguments)


_here = threading.local()
_all: weakref.WeakSet[BackgroundRunner] = weakref.WeakSet()


class Cancelled(Exception):  # noqa: N818
    """The work was abandoned; nothing handles this exception."""


def is_stopped() -> bool:
    """Whether this thread runs work that was abandoned."""
    task: _BackgroundTask | None = getattr(_here, "task", None)
    return task is not None and task.stopped


def refuse_stopped() -> None:
    """End work that was abandoned; called between its steps."""
    if is_stopped():
        raise Cancelled


class BackgroundRunner:
    """The threads that run the work of one engine.

    One task at a time, even if several threads call it: a connection of DuckDB refuses a second call, and an interrupt
    affects everything that polars is doing in the process.
    """

    def __init__(self) -> None:
        self._begin()
        _all.add(self)

    def _begin(self) -> None:
        self._tasks: list[_BackgroundTask] = []  # in the order in which they run; those that ended may remain

    def run(self, work: Callable[[], T], cancel: Callable[[], object] | None = None, within: float | None = None) -> T:
        """The result of `work`, run in a separate thread after all earlier work has ended.

        `cancel` ends what the engine is doing for `work`; it is called from another thread, repeatedly until that has
        ended.  After a `KeyboardInterrupt`, and after a `TimeoutError` for work that takes longer than `within`
        seconds, the work is abandoned.  Later work does not wait for work that took too long.
        """
        if getattr(_here, "task", None) is not None:
            return work()  # part of work that already runs in the background
        task = _BackgroundTask(work, cancel)
        try:
            self._tasks.append(task)  # before it begins: an interrupt may come at any time
            self._wait_for(takewhile(lambda earlier: earlier is not task, list(self._tasks)))
            result: T = task.result(within)
            return result
        except TimeoutError:
            self._remove(task)
            raise
        finally:
            if not task.ended:
                task.stop()
            if task.ended:
                self._remove(task)

    def settle(self) -> None:
        """Wait until interrupted work has ended; returns at once if there is none."""
        self._wait_for(task for task in list(self._tasks) if task.stopped or task.is_left_here)

    def _wait_for(self, tasks: Iterable[_BackgroundTask]) -> None:
        for task in tasks:
            if task.stopped or task.is_left_here:
                task.stop()  # again: a second interrupt may have come before it was stopped or cancelled
            while not task.ended:
                end_if_asked()
                if task.stopped:
                    with at(Stage.WAITING):
                        task.wait(POLL_SECONDS)
                else:
                    task.wait(POLL_SECONDS)
            self._remove(task)

    def _remove(self, task: _BackgroundTask) -> None:
        with suppress(ValueError):  # another thread has removed it
            self._tasks.remove(task)


class _BackgroundTask:
    """One task."""

    def __init__(self, work: Callable[[], Any], cancel: Callable[[], object] | None) -> None:
        self.stopped = False
        self._owner = threading.get_ident()
        self._begun = False
        self._lock = threading.Lock()  # for the two flags above
        self._work, self._cancel = work, cancel
        self._task = ThreadTask(partial(contextvars.copy_context().run, self._run))
        self._cancellers: list[ThreadTask[None]] = []

    def result(self, within: float | None = None) -> Any:
        """Run it and wait for it, at most `within` seconds."""
        self._task.start_or_run()
        end = None if within is None else time.monotonic() + within
        while end is not None and not self._task.wait(POLL_SECONDS):
            end_if_asked()
            if time.monotonic() > end:
                raise TimeoutError
        return self._task.result()

    def stop(self) -> None:
        """Abandon it; if it has not begun, it never will, even if its thread begins later."""
        with self._lock:
            self.stopped = True
        if self._begun and self._cancel is not None and not any(one.has_begun for one in self._cancellers):
            canceller = ThreadTask(self._cancelled)
            self._cancellers.append(canceller)
            try:
                canceller.start()
            except RuntimeError:  # no further thread can start
                self._cancel_once()

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, at most `seconds` for the work and for each attempt to cancel it."""
        self._task.wait(seconds)
        for canceller in self._cancellers:
            if canceller.has_begun:
                canceller.wait(seconds)

    @property
    def is_left_here(self) -> bool:
        """Whether this thread, which waits for one task at a time, no longer waits for it."""
        return self._owner == threading.get_ident()

    @property
    def ended(self) -> bool:
        """Whether the engine is free and no cancellation is running: a late one would hit the next task."""
        return self._work_ended and not any(one.has_begun and not one.has_ended for one in self._cancellers)

    @property
    def _work_ended(self) -> bool:
        return self._task.has_ended or (self.stopped and not self._begun)

    def _run(self) -> Any:
        with self._lock:
            if self.stopped:
                return None  # no thread waits for it
            self._begun = True
        _here.task = self
        try:
            return self._work()
        finally:
            _here.task = None  # the thread may be the caller's, if no other can start

    def _cancelled(self) -> None:
        while not self._work_ended:
            self._cancel_once()
            self._task.wait(POLL_SECONDS)

    def _cancel_once(self) -> None:
        with suppress(Exception):
            self._cancel()  # type: ignore[misc]  # there is one


def _forget() -> None:
    """Forget all tasks: a forked process has none of the threads."""
    for runner in _all:
        runner._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
