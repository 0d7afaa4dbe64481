"""Work in separate threads; the thread that waits for it can be interrupted at any moment.

`threading.Event`, `threading.Thread.start` and `concurrent.futures` wait in Python code.  An interrupt between two of
its lines can leave a lock acquired, so that another thread waits for it forever, or becomes a `RuntimeError` ("release
unlocked lock").  Here each step of the waiting thread is one call in C, and it has no lock to release.

A thread that nobody can interrupt, such as that of a service, is asked to end its work (`ended_by`): the work looks for
that between its steps, and while it waits, and then ends as after an interrupt.
"""

from __future__ import annotations

import _thread
import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar, cast

T = TypeVar("T")

POLL_SECONDS = 0.1
"""A waiting thread notices an interrupt within this time, in seconds: a signal may wake another thread instead."""

_ending: ContextVar[threading.Event | None] = ContextVar("ending", default=None)


@contextmanager
def ended_by(asked: threading.Event) -> Iterator[None]:
    """Let an event end the work of the block, in this thread; what it waits for in other threads is abandoned."""
    token = _ending.set(asked)
    try:
        yield
    finally:
        _ending.reset(token)


def end_if_asked() -> None:
    """End the work of this thread if that was asked for; called between its steps.

    Raises
    ------
    KeyboardInterrupt
    """
    asked = _ending.get()
    if asked is not None and asked.is_set():
        raise KeyboardInterrupt


class ThreadTask(Generic[T]):
    """A callable run in a separate thread, which does not keep the interpreter from exiting.

    `has_begun` and `has_ended` say whether the call has begun, and whether it has ended, also by an exception.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self.has_begun = self.has_ended = False
        self._work: Callable[[], T] | None = work
        self._value: T | None = None
        self._error: BaseException | None = None
        self._running = threading.Lock()
        self._running.acquire()

    def start(self) -> None:
        """Start the thread; a `RuntimeError` if the system cannot start another one."""
        _thread.start_new_thread(self._run, ())

    def start_or_run(self) -> None:
        """Start the thread; where none can start, as in a kernel in the browser, do the work in this one."""
        try:
            self.start()
        except RuntimeError:
            self._run()

    def wait(self, seconds: float) -> bool:
        """Wait until the work has ended, for at most `seconds`; return whether it has ended."""
        if not self.has_ended and self._running.acquire(timeout=seconds):
            self._running.release()  # wakes the next waiting thread, which otherwise, after an interrupt, only polls
        return self.has_ended

    def result(self) -> T:
        """Wait for the result; an exception of the work is raised here."""
        while not self.wait(POLL_SECONDS):
            end_if_asked()
        # Neither is kept: both may hold rows or exact sums.
        value, self._value = self._value, None
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
            return cast(T, value)
        finally:
            del error  # its traceback refers to this frame: a reference cycle

    def _run(self) -> None:
        """Do the work; called once, by the thread that does it."""
        self.has_begun = True
        work, self._work = cast(Callable[[], T], self._work), None  # it may hold rows, and refer to this task
        try:
            self._value = work()
        except BaseException as error:  # noqa: BLE001  (re-raised in the waiting thread)
            self._error = error
        del work
        self.has_ended = True
        self._running.release()


class Helpers:
    """Threads that wait for tasks and stay: starting a thread takes longer than a query of a small table.

    They do not keep the interpreter from exiting; a fork has none of them, and starts its own.
    """

    def __init__(self) -> None:
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._tasks: queue.SimpleQueue[ThreadTask[None]] = queue.SimpleQueue()
        self.number = 0

    def grow(self, number: int) -> None:
        """Start threads until this number runs; a `RuntimeError` if the system cannot start one."""
        while self.number < number:
            ThreadTask(self._work).start()
            self.number += 1

    def help_with(self, task: ThreadTask[None]) -> None:
        """Let the next thread that is free do a task."""
        self._tasks.put(task)

    def _work(self) -> None:
        while True:
            self._tasks.get()._run()  # without a name, which would keep the task while the thread waits
