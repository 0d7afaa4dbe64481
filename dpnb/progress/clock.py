"""A piece of work, the stage that it is in, and the clock that tells of it.

Only the thread that works changes the stage; the clock is a thread of its own, which looks at it a few times a second
and is gone when the work is, however that ends.  Where nobody looks on there is no clock.
"""

from __future__ import annotations

import contextvars
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from dpnb.progress import terminal
from dpnb.progress.stage import Stage
from dpnb.threads import ThreadTask

REPORT_AFTER_SECONDS = 1.0
"""Seconds that work may last before anything is said of it."""

TICK = 0.2
"""Seconds between two looks of the clock."""

FINAL_MESSAGE_SECONDS = 1.0
"""Seconds that finished work waits for its line to be ended; a front end that hangs must not hold it up."""

T = TypeVar("T")

Tell = Callable[[str, bool], None]
"""Shows a text in place of the one before, and is told whether it is the last; an empty last one leaves nothing."""

_show: list[Callable[[], Tell]] = []
_here = threading.local()
_log = logging.getLogger("dpnb")


def show_by(begin: Callable[[], Tell] | None) -> None:
    """Let a front end show what work is doing, each piece in a line begun by `begin`; None takes it back."""
    _show[:] = [] if begin is None else [begin]


class ProgressTask:
    """A piece of work.

    Parameters
    ----------
    stage : Stage
        In which it begins.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._began = time.monotonic()
        self._said = ("", self._began)

    def say(self, words: str) -> None:
        """Tell how far it is, where that is public, as the number of released steps is; the last words stay."""
        self._said = words, time.monotonic()

    @property
    def last(self) -> str:
        """What stays of it."""
        return self._said[0]

    def text(self) -> str:
        """What there is to tell by now; empty for nothing."""
        now = time.monotonic()
        words, since = self._said
        if now < self._began + REPORT_AFTER_SECONDS:
            return words
        # The stages of steps that pass quickly would only flicker.
        stage = self.stage.value if now >= since + REPORT_AFTER_SECONDS or not words else ""
        elapsed = _elapsed(int(now - self._began))
        doing = f"{stage}, {elapsed}" if stage else elapsed
        return f"{words}; {doing}" if words else doing


@contextmanager
def work(stage: Stage) -> Iterator[ProgressTask]:
    """The block is a piece of work; inside another one, in the same thread, it is a stage of that.

    Parameters
    ----------
    stage : Stage
        What it does where no inner one says otherwise.
    """
    around = getattr(_here, "work", None)
    if around is not None:
        with at(stage):
            yield around
        return
    clock = None
    try:
        made = _here.work = ProgressTask(stage)
        clock = _clock(made)
        if clock is not None:
            clock.start()
        yield made
    finally:
        try:
            if clock is not None:
                clock.stop()
        finally:  # also if a second interrupt does not wait for the clock
            _here.work = None


@contextmanager
def at(stage: Stage) -> Iterator[None]:
    """During the block the work of this thread is at this stage; where no work is, as in a pool, nothing happens."""
    now: ProgressTask | None = getattr(_here, "work", None)
    if now is None:
        yield
        return
    before, now.stage = now.stage, stage
    try:
        yield
    finally:
        now.stage = before


class _Clock:
    """A thread that tells what a piece of work is doing, in the context of whoever began the work.

    The context matters in a notebook: it says to which cell a display belongs.
    """

    def __init__(self, watched: ProgressTask, tell: Tell) -> None:
        self._watched, self._tell = watched, tell
        self._end: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._task = ThreadTask(partial(contextvars.copy_context().run, self._run))
        self._started = False

    def start(self) -> None:
        _harmless(self._task.start)
        self._started = True

    def stop(self) -> None:
        """End the line, and wait until it is."""
        self._end.put(None)
        if self._started:
            self._task.wait(FINAL_MESSAGE_SECONDS)

    def _run(self) -> None:
        _harmless(self._told)

    def _told(self) -> None:
        shown = ""
        while not self._has_to_end():
            text = self._watched.text()
            if text != shown:
                self._tell(text, False)
                shown = text
        if shown or self._watched.last:
            self._tell(self._watched.last, True)

    def _has_to_end(self) -> bool:
        try:
            self._end.get(timeout=TICK)
        except queue.Empty:
            return False
        return True


def _clock(watched: ProgressTask) -> _Clock | None:
    """Who tells of some work; None where nobody looks on."""
    begin = _show[-1] if _show else terminal.line
    tell = _harmless(begin)
    return None if tell is None else _Clock(watched, tell)


def _harmless(act: Callable[[], T]) -> T | None:
    """What was paid for must not fail because it could not be shown."""
    try:
        return act()
    except Exception as error:  # noqa: BLE001
        _log.error("dpnb could not show what it is doing (%s)", type(error).__name__)
        return None


def _elapsed(seconds: int) -> str:
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60} s"
