"""Where no thread can start, as in a kernel in the browser, everything works in the calling thread."""

from __future__ import annotations

import _thread
import threading
from typing import Any, NoReturn

import pandas as pd
import polars as pl
import pytest

import dpnb
from dpnb import progress
from dpnb._backends.worker_thread import BackgroundRunner
from dpnb._core import open_sessions
from dpnb.ledger import MEMORY
from dpnb.notebook.panel import Panel
from dpnb.progress import Stage, work
from dpnb.threads import ThreadTask

TABLE = {"x": [1.0, 2.0, 3.0] * 10}


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No thread can start; the attempts are counted."""
    attempts: list[str] = []

    def refused(*arguments: Any, **named: Any) -> NoReturn:
        attempts.append("thread")
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    monkeypatch.setattr(_thread, "start_new_thread", refused)
    return attempts


def opened(table: Any) -> dpnb.Session:
    return dpnb.Session(
        table,
        name="browser",
        budget=dpnb.Budget.gdp(10),
        schema={"x": dpnb.Bounded(0, 5)},
        ledger=MEMORY,
        not_private_test_seed=1,
    )


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame])
def test_a_session_opens_answers_and_closes(make: Any, no_threads: list[str]) -> None:
    session = opened(make(TABLE))
    answer = session.frame["x"].sum().release(mu=5)
    assert answer.estimate == pytest.approx(60, abs=10)
    assert answer.refine(mu=6).n_observations == 2
    session.ledger.close()
    assert no_threads or make is not pl.LazyFrame


def test_the_panel_sends_every_change_at_once(no_threads: list[str]) -> None:
    sent: list[Any] = []
    panel = Panel(lambda answer: sent.append, interval=1000)
    panel.install(list)
    open_sessions.subscribe(panel.publish)
    try:
        session = opened(pd.DataFrame(TABLE))
        before = len(sent)
        session.frame.count().release(mu=1)
        assert len(sent) > before
    finally:
        open_sessions.unsubscribe(panel.publish)
    assert [message["dpnb"]["seq"] for message in sent] == list(range(1, len(sent) + 1))
    assert no_threads


def test_the_last_text_of_a_task_is_shown(no_threads: list[str], caplog: pytest.LogCaptureFixture) -> None:
    shown: list[tuple[str, bool]] = []
    progress.show_by(lambda: lambda text, last: shown.append((text, last)))
    try:
        with work(Stage.READING) as task:
            task.report("3 of 3 steps")
    finally:
        progress.show_by(None)
    assert shown == [("3 of 3 steps", True)]
    assert no_threads
    assert not caplog.records


def test_work_inside_other_work_is_part_of_it(no_threads: list[str]) -> None:
    runner = BackgroundRunner()
    assert runner.run(lambda: runner.run(lambda: 3) + 1) == 4
    assert runner.run(lambda: 5) == 5  # the first task left nothing in this thread
    runner.settle()
    assert len(no_threads) == 2


def test_an_error_or_interrupt_of_the_work_is_raised(no_threads: list[str]) -> None:
    runner = BackgroundRunner()
    for kind in (ValueError, KeyboardInterrupt):

        def fails(kind: type[BaseException] = kind) -> NoReturn:
            raise kind

        with pytest.raises(kind):
            runner.run(fails, cancel=lambda: None)
    assert runner.run(lambda: 7) == 7
    assert no_threads


def test_without_the_fallback_the_same_test_fails(no_threads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: threads really cannot start in these tests."""
    monkeypatch.setattr(ThreadTask, "start_or_run", ThreadTask.start)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        BackgroundRunner().run(lambda: 1)
