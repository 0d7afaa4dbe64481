"""A fork is refused at once, whatever another thread was doing when it was made."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from threads import joined
from waiting import LIMIT, wait_until

if sys.platform == "win32":
    pytest.skip("needs fork", allow_module_level=True)

import pandas as pd

import dpnb
from dpnb._core import open_sessions
from dpnb.accounting.losses import GDP
from dpnb.errors import LedgerError
from dpnb.ledger import Ledger, ProcessLock
from ledger.rows import opened, reserve

FORKS = 30
REFUSED, ANSWERED, OTHER, WAITS = 3, 4, 5, 6

pytestmark = [
    pytest.mark.waits,
    # That is the test.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def outcome(act: Callable[[], object]) -> int:
    """What becomes of an act in a fork of this process."""
    child = os.fork()
    if child == 0:
        code = OTHER
        gc.freeze()  # what other tests have loaded need not survive a fork: leave its finalizers alone
        try:
            act()
            code = ANSWERED
        except LedgerError as error:
            code = REFUSED if "a fork of that process" in str(error) else OTHER
        finally:
            os._exit(code)
    ended: list[int] = []

    def waited() -> bool:
        done, status = os.waitpid(child, os.WNOHANG)
        ended.extend([os.waitstatus_to_exitcode(status)] if done else [])
        return bool(done)

    try:
        wait_until(waited, "the fork ends")
    finally:
        if not ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return ended[0]


@contextmanager
def held(lock: threading.RLock) -> Iterator[None]:
    """Another thread holds a lock."""
    got, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            got.set()
            done.wait(LIMIT)

    thread = threading.Thread(target=hold)
    thread.start()
    assert got.wait(LIMIT)
    try:
        yield
    finally:
        done.set()
        joined(thread)


@contextmanager
def busy(ledger: Ledger) -> Iterator[None]:
    """Another thread charges without end."""
    done = threading.Event()

    def charge() -> None:
        number = 0
        while not done.is_set():
            reserve(ledger, str(number := number + 1))

    thread = threading.Thread(target=charge)
    thread.start()
    try:
        yield
    finally:
        done.set()
        joined(thread)


@pytest.mark.slow
def test_no_fork_of_a_busy_process_hangs_and_the_ledger_stays_whole(path: Path) -> None:
    with opened(path) as ledger:
        with busy(ledger):
            assert {outcome(lambda: reserve(ledger, "fork")) for _ in range(FORKS)} == {REFUSED}
        rows = ledger.count
    with opened(path) as ledger:
        assert ledger.count == rows


def in_a_transaction(ledger: Ledger) -> None:
    with ledger.transaction():
        pass


ACTS: dict[str, Callable[[Ledger], object]] = {
    "charge": lambda ledger: reserve(ledger, "b"),
    "read": lambda ledger: ledger.charges(),
    "count": lambda ledger: ledger.count,
    "lock": lambda ledger: ledger.lock.checked(),
    "transaction": in_a_transaction,
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_a_fork_does_not_wait_for_a_thread_that_it_has_not(path: Path, act: Callable[[Ledger], object]) -> None:
    with opened(path) as ledger, held(ledger.lock.checked()):
        assert outcome(lambda: act(ledger)) == REFUSED


def test_with_the_lock_first_it_would_wait_for_ever(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unchecked(lock: ProcessLock) -> threading.RLock:
        if not lock._lock.acquire(blocking=False):
            os._exit(WAITS)  # for a thread that the fork has not: there is nobody who would ever release it
        lock._lock.release()
        return lock._lock

    monkeypatch.setattr(ProcessLock, "checked", unchecked)
    with opened(path) as ledger, held(ledger.lock.checked()):
        assert outcome(lambda: reserve(ledger, "b")) == WAITS


def after_a_fork(path: Path, act: Callable[[Ledger], object]) -> int:
    """How many rows there are if a fork does something while many are being written."""
    rows = 300
    with opened(path) as ledger:
        ledger._file.run("PRAGMA cache_size = 2")  # so that some are in the file already
        with ledger.transaction():
            for number in range(rows):
                ledger.reserve(request_key=str(number), table_version="1", query_key="q", loss=GDP(1))
            assert outcome(lambda: act(ledger)) == ANSWERED
    try:
        with opened(path) as ledger:
            return ledger.count - rows
    except LedgerError:
        return -1


def drop(ledger: Ledger) -> None:
    """What happens to a connection that nobody refers to any more."""
    ledger._file.close()
    del ledger._file._connection
    gc.collect()


@pytest.mark.parametrize("act", [Ledger.close, drop])
def test_whatever_a_fork_closes_the_first_process_keeps_what_it_writes(
    path: Path, act: Callable[[Ledger], object]
) -> None:
    assert after_a_fork(path, act) == 0


def test_a_connection_that_a_fork_closed_would_undo_what_is_being_written(path: Path) -> None:
    assert after_a_fork(path, lambda ledger: ledger._file._connection.close()) < 0


TABLE = pd.DataFrame({"person": ["a", "b"], "visits": [1, 2]})


def session(path: Path | str, accounting: str) -> dpnb.Session:
    return dpnb.Session(
        TABLE,
        name="clinic",
        privacy_unit="person",
        max_rows_per_unit=1,
        budget=dpnb.Budget.gdp(1),
        schema={"visits": dpnb.Bounded(0, 10)},
        accounting=accounting,  # type: ignore[arg-type]
        ledger=path,
    )


def test_a_session_with_individual_accounting_does_not_wait_either(path: Path) -> None:
    made = session(path, "individual")
    lock = made._core.individuals.lock.checked()  # type: ignore[union-attr]
    with held(lock), held(made.ledger.lock.checked()):
        for act in (made.frame.count().release, lambda **_: made.spent, lambda **_: made.log):
            assert outcome(lambda act=act: act(mu="0.1")) == REFUSED  # type: ignore[misc]
    made.ledger.close()


def test_a_fork_can_make_a_session_of_its_own(path: Path) -> None:
    made = session(path, "worst-case")
    with held(open_sessions._lock[0]), held(made.ledger.lock.checked()):  # type: ignore[arg-type]
        assert outcome(lambda: session(":memory:", "worst-case").frame.count().release(mu="0.1")) == ANSWERED
    made.ledger.close()
