"""The progress of long work: a task, its current stage, and the clock that shows it.

Only the working thread changes the stage; the clock is a separate thread, which reads it a few times a second and ends
with the task, however that ends.  If there is no display there is no clock.

The line in a terminal uses a duplicated descriptor, since that of standard error is redirected while an engine works.
"""

from __future__ import annotations

import contextvars
import logging
import os
import queue
import shutil
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from functools import partial
from typing import Protocol, TextIO, TypeVar

from dpnb.threads import ThreadTask, end_if_asked

# --- the progress line in a terminal ----------------------------------------------------------------------------------


class TextStream(Protocol):
    """A stream that a line is written to."""

    def write(self, text: str, /) -> int:
        """Write a text."""

    def flush(self) -> None:
        """Flush the stream."""


def line() -> Callable[[str, bool], None] | None:
    """A new line on standard error; None if that is not a terminal."""
    out = sys.stderr
    return Line(_own(out)) if out is not None and out.isatty() else None


class _DescriptorStream:
    """A terminal, by a duplicated descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    def write(self, text: str) -> int:
        return os.write(self._descriptor, text.encode(errors="replace"))

    def flush(self) -> None:
        pass


def _own(out: TextIO) -> TextStream:
    try:
        return _DescriptorStream(os.dup(out.fileno()))
    except (AttributeError, OSError):  # it has none; `io.UnsupportedOperation` is an OSError
        return out


class Line:
    """One progress line of a terminal."""

    def __init__(self, out: TextStream) -> None:
        self._out, self._width = out, 0

    def __call__(self, text: str, done: bool) -> None:
        """Show a text in place of the previous one; the last one remains, unless it is empty."""
        text = text[: shutil.get_terminal_size().columns - 1]  # a wrapped line cannot be overwritten
        blank = " " * (self._width - len(text))
        end = ("\n" if text else "\r") if done else ""
        self._out.write(f"\r{text}{blank}{end}")
        self._out.flush()
        self._width = len(text)


# --- the stages of a task ---------------------------------------------------------------------------------------------


class Stage(Enum):
    """What a task is doing, in texts that are the same for every table."""

    READING = "reading the table"
    PREPARING = "preparing columns"
    SERVICE = "waiting for the service"
    LEDGER = "reading the ledger"
    WAITING = "waiting for the interrupted query to end"
    CHARGING = "charging"
    JOINING = "joining tables"
    PART = "selecting the rows of a part"
    REPLAYING = "recomputing what units have paid"
    ADDING = "adding up rows"
    UNITS = "adding up by unit"
    GROUPS = "discovering groups"
    NOISE = "drawing noise"
    WRITING = "writing the answer"


# --- a task -----------------------------------------------------------------------------------------------------------


REPORT_AFTER_SECONDS = 1.0
"""Seconds before anything is shown of a task."""

TICK = 0.2
"""Seconds between two readings of the clock."""

FINAL_MESSAGE_SECONDS = 1.0
"""Seconds that a finished task waits for its last line; a front end that hangs must not delay it longer."""

T = TypeVar("T")

ShowText = Callable[[str, bool], None]
"""Shows a text in place of the previous one; the flag marks the last one, which if empty clears the line."""

_show: list[Callable[[], ShowText]] = []
_here = threading.local()
_log = logging.getLogger("dpnb")


def show_by(begin: Callable[[], ShowText] | None) -> None:
    """Let a front end show the progress of tasks, each in a line started by `begin`; None removes it."""
    _show[:] = [] if begin is None else [begin]


class ProgressTask:
    """A task, which begins with `stage`."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._began = time.monotonic()
        self._message = ("", self._began)

    def report(self, words: str) -> None:
        """Show how much is done, where that is public, such as the number of released steps; the last text remains."""
        self._message = words, time.monotonic()

    @property
    def last(self) -> str:
        """The text that remains when it has ended."""
        return self._message[0]

    def text(self) -> str:
        """The text to show now; empty for none."""
        now = time.monotonic()
        words, since = self._message
        if now < self._began + REPORT_AFTER_SECONDS:
            return words
        # Stages of quick steps would only flicker.
        stage = self.stage.value if now >= since + REPORT_AFTER_SECONDS or not words else ""
        elapsed = _elapsed(int(now - self._began))
        doing = f"{stage}, {elapsed}" if stage else elapsed
        return f"{words}; {doing}" if words else doing


@contextmanager
def work(stage: Stage) -> Iterator[ProgressTask]:
    """Run the block as a task; inside another task of the same thread, as a stage of it.

    `stage` is the one while no inner block sets another.
    """
    outer = getattr(_here, "work", None)
    if outer is not None:
        with at(stage):
            yield outer
        return
    clock = None
    try:
        task = _here.work = ProgressTask(stage)
        show_text = _harmless(_show[-1] if _show else line)
        if show_text is not None:  # otherwise there is no display
            clock = _ProgressThread(task, show_text)
            clock.start()
        yield task
    finally:
        try:
            if clock is not None:
                clock.stop()
        finally:  # also if a second interrupt does not wait for the clock
            _here.work = None


@contextmanager
def at(stage: Stage) -> Iterator[None]:
    """Set the stage of this thread's task during the block; without a task, as in a pool, only look for its end."""
    end_if_asked()
    task: ProgressTask | None = getattr(_here, "work", None)
    if task is None:
        yield
        return
    before, task.stage = task.stage, stage
    try:
        yield
    finally:
        task.stage = before


class _ProgressThread:
    """A thread that shows the progress of a task, in the context of the thread that began the task.

    The context matters in a notebook: it determines the cell of a display.
    """

    def __init__(self, watched: ProgressTask, show_text: ShowText) -> None:
        self._watched, self._show_text = watched, show_text
        self._end: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._task = ThreadTask(partial(contextvars.copy_context().run, self._run))
        self._started = False

    def start(self) -> None:
        _harmless(self._start)

    def _start(self) -> None:
        with suppress(RuntimeError):  # no thread can start, as in a kernel in the browser
            self._task.start()
            self._started = True

    def stop(self) -> None:
        """End the line, and wait for that; without a thread, only the last text is shown."""
        self._end.put(None)
        if self._started:
            self._task.wait(FINAL_MESSAGE_SECONDS)
        elif self._watched.last:
            _harmless(lambda: self._show_text(self._watched.last, True))

    def _run(self) -> None:
        _harmless(self._show_progress)

    def _show_progress(self) -> None:
        shown = ""
        while not self._has_to_end():
            text = self._watched.text()
            if text != shown:
                self._show_text(text, False)
                shown = text
        if shown or self._watched.last:
            self._show_text(self._watched.last, True)

    def _has_to_end(self) -> bool:
        try:
            self._end.get(timeout=TICK)
        except queue.Empty:
            return False
        return True


def _harmless(act: Callable[[], T]) -> T | None:
    """Call a function and log its errors: work that was paid for must not fail because it cannot be shown."""
    try:
        return act()
    except Exception as error:  # noqa: BLE001
        _log.error("dpnb could not show the progress (%s)", type(error).__name__)
        return None


def _elapsed(seconds: int) -> str:
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60} s"
