"""Interrupts on every occasion in the code that waits for threads and locks."""

from __future__ import annotations

import dis
import gc
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from dpnb._backends import worker_thread
from dpnb._backends.memory import blocks
from dpnb._backends.worker_thread import BackgroundRunner
from dpnb.ledger import ProcessLock
from dpnb.notebook.panel import Panel
from dpnb.threads import ThreadTask
from threads import at_once
from waiting import LIMIT

WHERE = ("dpnb", "threading", "concurrent")
"""Packages in whose code the interrupts come."""

CHECKED = ("RESUME", "CALL", "JUMP_BACKWARD")
"""Beginnings of the names of instructions after which Python handles an interrupt that has come."""


Actions = tuple[Callable[[], object], Callable[[], object]]
"""One to interrupt, and one that must end afterwards, in another thread."""


class InterruptAt:
    """Raise a `KeyboardInterrupt` in this thread at the n-th occasion in the packages of `WHERE`."""

    def __init__(self, occasion: int) -> None:
        self.left = occasion
        self._last: dict[FrameType, str] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "call":
            if not str(frame.f_globals.get("__name__", "")).startswith(WHERE):
                return None
            frame.f_trace_opcodes = True
        elif event == "return":
            self._last.pop(frame, None)
        elif event == "opcode":
            last = self._last.get(frame, "")
            self._last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            self.left -= last.startswith(CHECKED)
            if self.left == 0:
                self.left = -1
                raise KeyboardInterrupt
        return self


def outcome(act: Callable[[], object], occasion: int) -> tuple[str, bool]:
    """What came of `act`, and whether it ended before it was to be interrupted."""
    interrupt, before = InterruptAt(occasion), sys.gettrace()
    gc.disable()  # the finalizer of another test's ledger would be interrupted instead
    sys.settrace(interrupt)
    try:
        act()
    except BaseException as error:  # noqa: BLE001
        return type(error).__name__, interrupt.left > 0
    else:
        return "done", interrupt.left > 0
    finally:
        sys.settrace(before)
        gc.enable()


def outcomes(make: Callable[[], Actions]) -> set[str]:
    """What comes of an action that is interrupted at each occasion; afterwards another thread can do it too.

    Parameters
    ----------
    make : callable
        Makes something new and gives the actions with it.
    """
    found: set[str] = set()
    for occasion in range(1, 5000):
        act, afterwards = make()
        said, ended = outcome(act, occasion)
        found.add(said)
        assert at_once(afterwards) == []
        if ended:
            return found
    raise AssertionError("it has no end")


def a_task() -> Actions:
    task = ThreadTask(lambda: None)

    def act() -> None:
        task.start()
        task.result()

    return act, lambda: task.has_begun and task.wait(LIMIT)


def an_engine() -> Actions:
    runner = BackgroundRunner()

    def act() -> None:
        assert runner.run(lambda: 1, lambda: None) == 1

    def afterwards() -> None:
        runner.settle()
        act()

    return act, afterwards


def an_engine_that_waits() -> Actions:
    """It is interrupted while it waits for what was left behind before."""
    runner, may_end = BackgroundRunner(), threading.Event()
    runner._tasks.append(left := worker_thread._BackgroundTask(lambda: may_end.wait(LIMIT), may_end.set))
    left._task.start()
    left.stop()

    def act() -> None:
        assert runner.run(lambda: 1) == 1

    return act, act


def blocks_of_rows() -> Actions:
    def act() -> None:
        assert blocks.by_blocks(sum, [range(3)] * 9) == [3] * 9

    return act, act


def a_ledger_lock() -> Actions:
    lock = ProcessLock("a.dpnb")

    def act() -> None:
        with lock.checked():
            pass

    return act, act


def a_panel() -> Actions:
    sent: list[object] = []
    panel = Panel(lambda _: sent.append, interval=0.0)
    panel.install(list)

    def act() -> None:
        panel.publish()
        panel._last = time.monotonic() + 0.1
        panel.publish()

    def afterwards() -> None:
        panel._last = 0.0
        before = len(sent)
        panel.publish()
        assert len(sent) > before

    return act, afterwards


@pytest.mark.parametrize("make", [a_task, an_engine, an_engine_that_waits, blocks_of_rows, a_ledger_lock, a_panel])
def test_an_interrupt_at_any_occasion_stays_one_and_leaves_nothing_locked(
    make: Callable[[], Actions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "cores", lambda: 3)
    assert outcomes(make) == {"KeyboardInterrupt", "done"}


def test_of_an_event_it_becomes_another_error() -> None:
    """The broken control: what the standard library waits with."""
    assert outcomes(lambda: (lambda: threading.Event().wait(0.001), lambda: None)) == {
        "KeyboardInterrupt",
        "RuntimeError",
        "done",
    }
