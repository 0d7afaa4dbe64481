"""The panel follows what others charge to the same ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import dpnb
from dpnb.notebook import ledger_watch
from dpnb.notebook.ledger_watch import LedgerWatch
from dpnb.threads import ThreadTask
from forked import ran
from waiting import LIMIT, wait_until

pytestmark = pytest.mark.waits

CHARGE = """
import pandas as pd, dpnb
session = dpnb.Session(pd.DataFrame({"x": [1.0, 2.0]}), name="shared", budget=dpnb.Budget.gdp(1),
                       schema={"x": dpnb.Bounded(0, 5)}, ledger="shared.dpnb")
session.frame.count().release(mu=0.1)
"""


def made(ledger: Path | str) -> dpnb.Session:
    return dpnb.Session(
        pd.DataFrame({"x": [1.0, 2.0]}),
        name="shared",
        budget=dpnb.Budget.gdp(1),
        schema={"x": dpnb.Bounded(0, 5)},
        ledger=ledger,
    )


class Watched:
    """A watch of one session, and the number of changes that it reported."""

    def __init__(self, session: dpnb.Session, lease: float = LIMIT) -> None:
        self.session: dpnb.Session | None = session
        self.n_changes = 0
        self.watch = LedgerWatch(self._ledgers, self._on_change, interval=0.02, lease=lease)

    def _ledgers(self) -> list:
        return [] if self.session is None else [self.session._core.account.ledger]

    def _on_change(self) -> None:
        self.n_changes += 1


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(made(tmp_path / "shared.dpnb"))
    yield watched
    watched.session = None
    wait_until(lambda: not watched.watch.is_running, "the end of the thread")


def charge_elsewhere(folder: Path) -> None:
    exit_code, _ = ran(folder, CHARGE)
    assert exit_code == 0, (folder / "errors").read_text("utf-8")


def test_charge_of_another_process_is_noticed_while_this_one_is_idle(watched: Watched, tmp_path: Path) -> None:
    watched.watch.follow("page", True)
    wait_until(lambda: watched.n_changes == 1, "the first look")
    charge_elsewhere(tmp_path)
    wait_until(lambda: watched.n_changes > 1, "the charge of the other process")
    assert watched.session is not None
    assert watched.session.log["mu"].tolist() == [0.1]


def test_own_charges_are_not_announced_again(watched: Watched) -> None:
    assert watched.watch.look(), "a new ledger"
    assert watched.session is not None
    watched.session.frame.count().release(mu=0.1)
    assert not watched.watch.look()


def test_look_writes_nothing_and_does_not_wait_for_a_writer(watched: Watched, tmp_path: Path) -> None:
    path = tmp_path / "shared.dpnb"
    watched.watch.look()
    before = path.read_bytes()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        path.touch()  # so that it looks into the file
        assert not watched.watch.look()
    finally:
        other.execute("ROLLBACK")
        other.close()
    assert path.read_bytes() == before


def test_nothing_runs_before_a_page_looks_and_after_it_is_hidden(watched: Watched) -> None:
    watched.watch.wake()
    assert not watched.watch.is_running
    watched.watch.follow("page", True)
    watched.watch.follow("other", True)
    assert watched.watch.is_running
    watched.watch.follow("page", False)
    assert watched.watch.is_running, "the other page is looking"
    watched.watch.follow("other", False)
    wait_until(lambda: not watched.watch.is_running, "the end of the thread")
    watched.watch.follow("page", True)
    assert watched.watch.is_running


def test_page_that_disappears_is_forgotten(tmp_path: Path) -> None:
    watched = Watched(made(tmp_path / "shared.dpnb"), lease=0.1)
    watched.watch.follow("page", True)
    wait_until(lambda: not watched.watch.is_running, "the end of the thread")


def test_thread_ends_with_the_session_and_begins_with_the_next(watched: Watched) -> None:
    session = watched.session
    watched.watch.follow("page", True)
    watched.session = None
    wait_until(lambda: not watched.watch.is_running, "the end of the thread")
    watched.watch.wake()
    assert not watched.watch.is_running
    watched.session = session
    watched.watch.wake()
    assert watched.watch.is_running


def test_ledger_in_memory_needs_no_thread() -> None:
    watched = Watched(made(":memory:"))
    watched.watch.follow("page", True)
    assert not watched.watch.is_running


def test_kernel_that_cannot_start_threads_goes_on_without(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoThreads(ThreadTask):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ledger_watch, "ThreadTask", NoThreads)
    watched.watch.follow("page", True)
    assert not watched.watch.is_running


def test_ledger_that_disappears_is_announced_once(watched: Watched, tmp_path: Path) -> None:
    watched.watch.look()
    (tmp_path / "shared.dpnb").rename(tmp_path / "moved.dpnb")
    assert watched.watch.look(), "the snapshot shows the reason"
    assert not watched.watch.look()
    (tmp_path / "moved.dpnb").rename(tmp_path / "shared.dpnb")
    assert watched.watch.look()


def test_many_pages_share_one_thread(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[ThreadTask] = []

    class Counted(ThreadTask):
        def start(self) -> None:
            started.append(self)
            super().start()

    monkeypatch.setattr(ledger_watch, "ThreadTask", Counted)
    for page in range(20):
        watched.watch.follow(str(page), True)
    assert len(started) == 1
