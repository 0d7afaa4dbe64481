"""After an interrupt an engine is free before anything else is charged; what comes of an interrupt is an interrupt.

Real interrupts (SIGINT) reach kernels whose engines are at work.  Every request that is asked afterwards is answered,
rightly, and charged once.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

import clusters
import dpnb
from dpnb import progress
from dpnb._backends import dask as dask_backend
from dpnb._backends.lazy import engines
from dpnb._backends.worker_thread import BackgroundRunner, refuse_stopped

if sys.platform == "win32":
    pytest.skip("needs SIGINT and fork", allow_module_level=True)

from kernels import Kernel, kernels
from threads import at_once
from waiting import LIMIT, wait_until

ROWS = 4000
TABLE = pd.DataFrame({"pid": [row % 500 for row in range(ROWS)], "x": [float(row % 7) for row in range(ROWS)]})
EXACT = {low: int((TABLE["x"] >= low).sum()) for low in range(8)}
WAITING = "waiting for the interrupted query to end"
ENDLESS = "select sum(a.range % 7) from range(1000000) a, range(1000000) b"
MOMENTS = (0.0, 0.03, 0.3, 0.01, 0.1)
"""Seconds from a request to its interrupt."""


def opened(table: Any, path: Path) -> dpnb.Session:
    return dpnb.Session(
        table,
        name="engine",
        budget=dpnb.Budget.gdp(1000),
        privacy_unit="pid",
        max_rows_per_unit=20,
        schema={"x": dpnb.Bounded(0, 6)},
        ledger=path,
    )


def right(session: dpnb.Session, low: int) -> bool:
    """Ask how many rows have a number that is not smaller; the noise has a standard deviation of a fifth."""
    answer = session.frame[session.frame["x"] >= low].count().release(mu=100)
    return abs(float(answer.estimate) - EXACT[low]) < 3


class OnDuckDB:
    engine = engines.DuckDB

    def __init__(self) -> None:
        import duckdb

        self.connection = duckdb.connect()
        self.connection.register("given", TABLE)
        self.connection.execute("create table t as select * from given")
        self.table = self.connection.table("t")

    def work_long(self) -> None:
        self.connection.sql(ENDLESS).fetchall()


class OnPolars:
    engine = engines.Polars

    def __init__(self) -> None:
        import polars

        self.table = polars.from_pandas(TABLE).lazy()
        numbers = polars.LazyFrame({"x": [float(number % 7) for number in range(30_000)]})
        self._long = numbers.join(numbers.rename({"x": "y"}), how="cross").select(
            (polars.col("x") * polars.col("y")).sum()
        )

    def work_long(self) -> None:
        # Some seconds each time: it hears an interrupt while it works, and only if its handler is still in place.
        while True:
            refuse_stopped()
            self._long.collect(engine="streaming")


class OnSpark:
    engine = engines.Spark

    def __init__(self, folder: Path) -> None:
        self.spark = clusters.spark("local[2]", {"spark.log.level": "OFF"}, folder)
        self.table = self.spark.createDataFrame(TABLE)

    def work_long(self) -> None:
        self.spark.range(10**15).selectExpr("sum(id % 7)").collect()


class OnDask:
    engine = None

    def __init__(self) -> None:
        import dask.dataframe

        self.cluster, self.client = clusters.dask()
        self.table = dask.dataframe.from_pandas(TABLE, npartitions=4, sort=False)


PLACES: dict[str, Callable[[], Any]] = {"duckdb": OnDuckDB, "polars": OnPolars, "dask": OnDask}


def outcome(ask: Callable[[], bool]) -> str:
    """What comes of a request that an interrupt surely reaches, if need be after it was answered."""
    answered = ""
    try:
        try:
            answered = "right" if ask() else "wrong"
        except KeyboardInterrupt:
            return "interrupted"
        except BaseException as error:  # noqa: BLE001
            answered = "".join(traceback.format_exception(error))
        deadline = time.monotonic() + LIMIT / 2
        while time.monotonic() < deadline:
            time.sleep(0.1)
    except KeyboardInterrupt:
        return answered
    return f"no interrupt, but: {answered}"


def interrupted_at_work(pipe: Connection, name: str, path: Path) -> None:
    """Have the engine work long, twice for one request; then ask that and another one."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    place = PLACES[name]()
    session = opened(place.table, path)
    collected = place.engine.collected
    outcomes = []

    def endless(engine: Any, frame: Any) -> Any:
        pipe.send("working")
        place.work_long()
        return collected(engine, frame)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place.engine, "collected", endless)
        outcomes = [outcome(lambda: right(session, 1)) for _ in range(2)]
    outcomes += ["right" if right(session, low) else "wrong" for low in (1, 2, 1)]
    pipe.send((outcomes, [charge.status for charge in session.ledger.charges()]))
    os._exit(0)


@pytest.mark.parametrize("name", ["duckdb", "polars"])
@pytest.mark.waits
@pytest.mark.slow
def test_after_an_interrupt_the_same_request_and_others_are_answered(name: str, tmp_path: Path) -> None:
    pytest.importorskip(name)
    with kernels(Kernel(interrupted_at_work, name, tmp_path / "engine.dpnb")) as (kernel,):
        for _ in range(2):
            assert kernel.hear() == "working"
            kernel.interrupt()
        outcomes, states = kernel.hear()
    assert outcomes == ["interrupted"] * 2 + ["right"] * 3
    assert states == ["released"] * 2


def now_and_then(pipe: Connection, session: dpnb.Session, times: int) -> list[tuple[str, bool]]:
    """Ask, and be interrupted at some moment; ask the same again in peace; and so on."""

    def asked(low: int) -> bool:
        pipe.send("asking")
        return right(session, low)

    return [(outcome(partial(asked, low)), right(session, low)) for low in range(times)]


def interrupted_now_and_then(pipe: Connection, name: str, path: Path, times: int) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    place = PLACES[name]()
    session = opened(place.table, path)
    found = now_and_then(pipe, session, times)
    pipe.send((found, session.ledger.count))
    os._exit(0)


def unharmed(kernel: Kernel, moments: Sequence[float]) -> None:
    """Interrupt each request some time after it has begun: it is answered or interrupted, and the next is answered.

    The moments are not waited for: whatever the request is doing then, or has done, the same must hold.
    """
    for moment in moments:
        assert kernel.hear() == "asking"
        time.sleep(moment)
        kernel.interrupt()
    found, count, *_ = kernel.hear()
    assert {said for said, _ in found} <= {"interrupted", "right"}
    assert all(again for _, again in found)
    assert count == len(moments)


@pytest.mark.parametrize("name", ["duckdb", "polars"])
@pytest.mark.waits
@pytest.mark.slow
def test_an_interrupt_at_any_moment_stays_one(name: str, tmp_path: Path) -> None:
    """`make soak` interrupts more often."""
    pytest.importorskip(name)
    with kernels(Kernel(interrupted_now_and_then, name, tmp_path / "engine.dpnb", len(MOMENTS))) as (kernel,):
        unharmed(kernel, MOMENTS)


def without_waiting(self: BackgroundRunner) -> None:
    """The broken control: what an interrupt has left behind is not waited for before a charge."""


def interrupted_while_waiting(pipe: Connection, path: Path, waits: bool) -> None:
    """Leave work behind that nothing can cancel; ask a new question and interrupt that too; then let the work end."""
    progress.REPORT_AFTER_SECONDS = 0.0
    place = OnPolars()
    session = opened(place.table, path)
    right(session, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    collected, go_on, last, told = engines.Polars.collected, threading.Event(), threading.Event(), []

    def stuck(engine: Any, frame: Any) -> Any:
        if not go_on.is_set():
            pipe.send("working")
            go_on.wait(LIMIT)
        return collected(engine, frame)

    def tell(text: str, done: bool) -> None:
        if text.startswith(WAITING) and not told:
            told.append(text)
            pipe.send(("waiting", session.ledger.count))
        if text.startswith(WAITING) and last.is_set():
            go_on.set()

    engines.Polars.collected = stuck  # type: ignore[method-assign]
    if not waits:
        BackgroundRunner.settle = without_waiting  # type: ignore[method-assign]
    first = outcome(lambda: right(session, 1))
    progress.show_by(lambda: tell)
    second = outcome(lambda: right(session, 2))
    count = session.ledger.count
    free = right(session, 0)  # was answered before: needs no rows, and waits for nobody
    last.set()
    pipe.send((first, second, count, free, right(session, 2), right(session, 1), session.ledger.count))
    os._exit(0)


@pytest.mark.parametrize("waits", [True, False], ids=["", "control"])
@pytest.mark.waits
def test_a_request_says_that_it_waits_and_is_charged_after_that(waits: bool, tmp_path: Path) -> None:
    pytest.importorskip("polars")
    with kernels(Kernel(interrupted_while_waiting, tmp_path / "engine.dpnb", waits)) as (kernel,):
        assert kernel.hear() == "working"
        kernel.interrupt()
        said, count = kernel.hear()
        kernel.interrupt()
        told = kernel.hear()
    assert said == "waiting"
    assert told[:2] == ("interrupted", "interrupted")
    assert told[3:] == (True, True, True, 3)
    assert (count == told[2] == 2) is waits  # the first answer and the question that was interrupted at work


def two_threads(pipe: Connection, path: Path) -> None:
    """Ask on one connection of DuckDB from two threads at once."""
    session = opened(OnDuckDB().table, path)
    found: list[bool] = []
    faults = at_once(*(lambda low=low: found.append(right(session, low)) for low in range(1, 7)))  # type: ignore[misc]
    pipe.send((faults, found, session.ledger.count))


@pytest.mark.waits
def test_two_threads_may_ask_on_one_connection(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    with kernels(Kernel(two_threads, tmp_path / "engine.dpnb")) as (kernel,):
        assert kernel.hear() == ([], [True] * 6, 6)


@pytest.mark.spark
@pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="Spark needs Java")
@pytest.mark.waits
def test_spark_is_cancelled_and_an_interrupt_stays_one(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    with kernels(Kernel(interrupted_spark, tmp_path / "engine.dpnb")) as (kernel,):
        for _ in range(2):
            assert kernel.hear() == "working"
            kernel.interrupt()
        for moment in MOMENTS[:3]:
            assert kernel.hear() == "asking"
            time.sleep(3 * moment)
            kernel.interrupt()
        outcomes, found, handler, count = kernel.hear()
    assert outcomes == ["interrupted"] * 2 + ["right"]
    assert {said for said, _ in found} <= {"interrupted", "right"}
    assert all(again for _, again in found)
    assert handler
    assert count == 1 + 3


def interrupted_spark(pipe: Connection, path: Path) -> None:
    """All of it with one JVM, and with the handler of interrupts that PySpark installs."""
    place = OnSpark(path.parent)
    session = opened(place.table, path)
    handler = signal.getsignal(signal.SIGINT)
    collected = engines.Spark.collected

    def endless(engine: Any, frame: Any) -> Any:
        pipe.send("working")
        place.work_long()
        return collected(engine, frame)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines.Spark, "collected", endless)
        outcomes = [outcome(lambda: right(session, 7)) for _ in range(2)]
    outcomes.append("right" if right(session, 7) else "wrong")
    found = now_and_then(pipe, session, 3)
    kept = handler is signal.getsignal(signal.SIGINT) and handler is not signal.default_int_handler
    pipe.send((outcomes, found, kept, session.ledger.count))
    os._exit(0)


def interrupted_dask(pipe: Connection, path: Path) -> None:
    """Have tasks that do not end until the next request waits for them; then be interrupted at several moments."""
    progress.REPORT_AFTER_SECONDS = 0.0
    place = OnDask()
    session = opened(place.table, path)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tried, begun, go_on, counts = dask_backend._tried, path.with_suffix(".begun"), path.with_suffix(".go"), []

    def slowly(work: Any, *given: Any) -> Any:
        begun.touch()
        wait_until(go_on.exists, "the test says: go on")
        return tried(work, *given)

    def tell(text: str, done: bool) -> None:
        if text.startswith(WAITING) and not counts:
            counts.append(session.ledger.count)
            go_on.touch()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_backend, "_tried", slowly)
        outcomes = [outcome(lambda: right(session, 7))]
    progress.show_by(lambda: tell)
    outcomes += ["right" if right(session, low) else "wrong" for low in (6, 7)]
    progress.show_by(None)
    found = now_and_then(pipe, session, 3)
    pipe.send((outcomes, counts, found, session.ledger.count))
    place.client.close()
    place.cluster.close()


class Future:
    """Notes in which thread it ends: Python drops an interrupt that arrives while `__del__` runs."""

    ended_in: ClassVar[list[bool]] = []

    def __del__(self) -> None:
        self.ended_in.append(threading.current_thread() is threading.main_thread())


@pytest.mark.dask
def test_the_futures_of_dask_end_outside_the_thread_that_hears_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    dask = pytest.importorskip("dask")
    monkeypatch.setattr(dask_backend, "_futures", lambda results: [Future() for _ in results])
    monkeypatch.setattr(Future, "ended_in", [])
    assert dask_backend.run(lambda: dask.compute(*dask_backend.persisted([dask.delayed(int)(7)]))) == (7,)
    assert Future.ended_in == [False]


@pytest.mark.waits
@pytest.mark.dask
def test_dask_is_cancelled_and_waited_for_and_an_interrupt_stays_one(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    begun = tmp_path / "engine.begun"
    with kernels(Kernel(interrupted_dask, tmp_path / "engine.dpnb")) as (kernel,):
        wait_until(begun.exists, "tasks begin", lambda: kernel.process)
        kernel.interrupt()
        for moment in MOMENTS[:3]:
            assert kernel.hear() == "asking"
            time.sleep(moment)
            kernel.interrupt()
        outcomes, counts, found, count = kernel.hear()
        kernel.end()
    assert outcomes == ["interrupted", "right", "right"]
    assert counts == [1]  # while it waited, only what was interrupted had been charged
    assert {said for said, _ in found} <= {"interrupted", "right"}
    assert all(again for _, again in found)
    assert count == 2 + 3
