"""Work of an engine in a thread of its own, and what an interrupt does to it."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from functools import partial

import pytest

from dpnb._backends import worker_thread
from dpnb._backends.worker_thread import BackgroundRunner
from dpnb.threads import ThreadTask
from waiting import LIMIT, wait_until


@pytest.mark.waits
def test_work_whose_thread_was_only_beginning_when_the_interrupt_came_is_never_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would have met the next request on the same connection."""
    begun: list[ThreadTask[object]] = []
    start = ThreadTask.start

    def beginning(task: ThreadTask[object]) -> None:
        begun.append(task)
        raise KeyboardInterrupt

    done: list[str] = []
    engine = BackgroundRunner()
    with monkeypatch.context() as patch:
        patch.setattr(ThreadTask, "start", beginning)
        with pytest.raises(KeyboardInterrupt):
            engine.run(lambda: done.append("what was interrupted"))
    (task,) = begun
    engine.settle()
    engine.run(lambda: done.append("the next request"))
    start(task)
    assert task.wait(LIMIT)
    assert done == ["the next request"]


def test_an_interrupt_stays_one_if_another_thread_settles_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = BackgroundRunner()
    stop = worker_thread._BackgroundTask.stop

    def stopped_and_settled(task: worker_thread._BackgroundTask) -> None:
        monkeypatch.undo()
        stop(task)
        engine.settle()

    def interrupted(task: ThreadTask[object]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(worker_thread._BackgroundTask, "stop", stopped_and_settled)
    monkeypatch.setattr(ThreadTask, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.run(lambda: None)


@pytest.mark.waits
@pytest.mark.skipif(sys.platform == "win32", reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_does_not_wait_for_a_thread_that_it_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, at_work, may_end = BackgroundRunner(), threading.Event(), threading.Event()

    def long() -> None:
        at_work.set()
        may_end.wait(LIMIT)

    def interrupted(*_: object, **__: object) -> None:
        at_work.wait(LIMIT)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ThreadTask, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.run(long)
    if child := os.fork():
        assert wait_until(lambda: os.waitpid(child, os.WNOHANG)[0], "the fork's end") == child
    else:
        engine.settle()
        engine.run(lambda: None)
        os._exit(0)
    may_end.set()
    engine.settle()


def test_nothing_of_a_query_is_kept_after_its_result() -> None:
    """What an engine gives before the noise is added must not stay in memory until some later garbage collection."""

    class Exact:
        pass

    gc.disable()
    try:
        engine = BackgroundRunner()
        result = engine.run(partial(lambda rows: (rows, Exact()), Exact()))
        kept = [weakref.ref(one) for one in result]
        del result
        assert [one() for one in kept] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("begins", [True, False])
def test_a_second_interrupt_before_the_work_is_stopped_does_not_block_the_engine(
    begins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, may_end = BackgroundRunner(), threading.Event()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ThreadTask, "wait" if begins else "start", interrupted)
        patch.setattr(worker_thread._BackgroundTask, "stop", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.run(lambda: may_end.wait(LIMIT), may_end.set)
    engine.settle()
    assert engine.run(lambda: 2) == 2
