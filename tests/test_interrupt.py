"""An interrupt may come at any stage: before the charge nothing is charged, after it the same request is free.

Each of these kernels does one thing without end, and is interrupted (SIGINT, as by Kernel > Interrupt) once the line
that says so was seen.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb import progress
from dpnb import progress as clock
from dpnb._backends.memory import memory_backend
from dpnb._backends.memory.memory_backend import JoinedRows
from dpnb._backends.memory.prepare import prepared_table
from dpnb._core import open_sessions
from dpnb._core.execution import executor, releases
from dpnb._core.pricing.pricer import QueryPricer
from dpnb._core.unit_budgets import IndividualAccounting
from dpnb.ledger import Ledger
from dpnb.threads import Helpers

if sys.platform == "win32":
    pytest.skip("needs SIGINT and fork", allow_module_level=True)

from kernels import Kernel, figures, kernels
from waiting import wait_until

PEOPLE = 300
REPLAYING = "recomputing what units have paid"


@dataclass(frozen=True)
class Case:
    """What is asked, and what of it does not end.

    Parameters
    ----------
    stage : str
        Of the line that is seen.
    place : object
    name : str
        Of a function there.
    question : str
    individual : bool
    states : tuple of str
        Of the ledger's rows after the interrupt.
    """

    stage: str
    place: Any
    name: str
    question: str = "count"
    individual: bool = False
    states: tuple[str, ...] = ("released", "failed")


CASES = {
    "before the charge": Case("charging", QueryPricer, "price", states=("released",)),
    "rows": Case("adding up rows", memory_backend, "execute"),
    "rows, clipped": Case("adding up by unit", memory_backend, "execute", question="clipped"),
    "noise": Case("drawing noise", releases, "measure"),
    "after the answer": Case("writing the answer", Ledger, "answer", states=("released", "released")),
    "groups": Case("discovering groups", memory_backend, "present_groups", question="discovery"),
    "groups' noise": Case("drawing noise", releases, "named", question="discovery"),
    "a join": Case("joining tables", JoinedRows, "of_units", question="join"),
    "a part": Case(
        "selecting the rows of a part", memory_backend, "part", question="part", states=("released",) * 2 + ("failed",)
    ),
    "unit by unit": Case("adding up by unit", memory_backend, "execute", individual=True),
    "units' groups": Case(
        "discovering groups", memory_backend, "present_groups", question="discovery", individual=True
    ),
    "units' noise": Case("drawing noise", releases, "measure", individual=True),
}

QUESTIONS: dict[str, Callable[[dpnb.Session], Any]] = {
    "count": lambda s: s.table("visits").count(),
    "clipped": lambda s: s.table("visits").bound_contributions(max_norm_per_unit=1.5)["cost"].sum(),
    "discovery": lambda s: s.table("visits").discover("town", discovery_delta="1e-7"),
    "join": lambda s: s.table("visits").merge(s.table("homes"), on="person").count(),
    "part": lambda s: s.partition("site", table="visits", max_parts_per_unit=1)["a"].table("visits").count(),
}


def opened(path: Path, *, by_unit: bool = False) -> dpnb.Session:
    people = [f"p{number}" for number in range(PEOPLE)]
    visits = pd.DataFrame(
        {
            "person": people * 2,
            "cost": [number % 7 for number in range(2 * PEOPLE)],
            "site": ["a", "b"] * PEOPLE,
            "town": ["x"] * (2 * PEOPLE),
        }
    )
    homes = pd.DataFrame({"person": people, "size": [number % 5 for number in range(PEOPLE)]})
    return dpnb.Session(
        {"visits": visits, "homes": homes},
        name="clinic",
        privacy_unit="person",
        max_rows_per_unit=2,
        budget=dpnb.Budget(2, "1e-5", discovery_delta="1e-6"),
        schema={
            "visits": {"cost": dpnb.Bounded(0, 10), "site": dpnb.Categories(["a", "b"]), "town": dpnb.Text()},
            "homes": {"size": dpnb.Bounded(0, 10)},
        },
        ledger=path,
        **({"accounting": "individual"} if by_unit else {}),
    )


@contextmanager
def without_end(place: Any, name: str) -> Iterator[None]:
    """A function that is carried out again and again."""
    real = getattr(place, name)

    def again(*arguments: Any, **options: Any) -> Any:
        while True:
            real(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place, name, again)
        yield


@contextmanager
def watched(pipe: Connection, stage: str) -> Iterator[list[str]]:
    """Say when a line has shown a stage; what the lines show."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    clock.REPORT_AFTER_SECONDS = 0.0
    shown: list[str] = []
    seen = threading.Event()

    def tell(text: str, done: bool) -> None:
        shown.append(text)
        if text.startswith(stage) and not seen.is_set():
            seen.set()
            pipe.send("seen")

    progress.show_by(lambda: tell)
    yield shown


def left_threads() -> list[str]:
    """Where other threads are, without those that wait for work; waits for those that are about to end."""

    def others() -> list[str]:
        own = threading.get_ident()
        codes = [frame.f_code for thread, frame in sys._current_frames().items() if thread != own]
        return [str(code) for code in codes if code is not Helpers._work.__code__]

    with suppress(AssertionError):
        wait_until(lambda: not others(), "the end of all threads")
    return others()


def interrupted_question(pipe: Connection, name: str, path: Path) -> None:
    """Ask once in peace, once without end; then again."""
    case = CASES[name]
    ask = QUESTIONS[case.question]
    session = opened(path, by_unit=case.individual)
    session.table("homes").count().release(mu="0.1")
    heard: list[tuple[str, ...]] = []
    open_sessions.subscribe(lambda: heard.append(tuple(charge.status for charge in session.ledger.charges())))
    with watched(pipe, case.stage) as shown, without_end(case.place, case.name):
        try:
            ask(session).release(mu="0.2")
        except KeyboardInterrupt as error:
            said = error.args
    told = tuple(charge.status for charge in session.ledger.charges())
    before = session.spent
    progress.show_by(None)
    after = {"args": said, "states": told, "heard": heard[-1:], "line": shown[-1], "threads": left_threads()}
    first = ask(session).release(mu="0.2")
    again = ask(session).release(mu="0.2")
    same = figures(first) == figures(again) if case.question != "discovery" else first.keys == again.keys
    count, spent = session.ledger.count, session.spent
    replayed = True
    if session._core.individuals is not None and session._core.individuals._state is not None:
        units, reopened = (
            session._core.individuals._state.unit_budgets.units,
            opened(path, by_unit=True)._core.individuals,
        )
        assert reopened is not None
        replayed = all(reopened.paid_by(unit)[-1].spent == units.spent[unit] for unit in (0, 1, PEOPLE - 1))
    pipe.send({**after, "free": spent == before, "same": same, "count": count, "replayed": replayed})


@pytest.mark.parametrize("name", CASES)
@pytest.mark.waits
def test_an_interrupted_question_is_charged_once_and_answered_when_asked_again(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    with kernels(Kernel(interrupted_question, name, tmp_path / "clinic.dpnb")) as (kernel,):
        assert kernel.hear() == "seen"
        kernel.interrupt()
        told = kernel.hear()
        assert kernel.end() == 0
    charged = len(case.states) == 2 or "failed" in case.states
    assert told["states"] == case.states
    assert told["args"] == ((executor.INTERRUPTED,) if charged else ())
    assert told["heard"] == ([case.states] if charged else told["heard"])
    assert told["line"] == ""
    assert told["threads"] == []
    assert told["free"] is charged
    assert told["same"]
    assert told["replayed"]
    assert told["count"] == len(case.states) + (not charged)


def interrupted_replay(pipe: Connection, path: Path) -> None:
    """In a later kernel replay what units have paid without end; then ask."""
    earlier = opened(path, by_unit=True)
    earlier.table("visits").count().release(mu="0.1")
    session = opened(path, by_unit=True)
    question = session.table("visits")["cost"].sum()
    with suppress(KeyboardInterrupt), watched(pipe, REPLAYING), without_end(IndividualAccounting, "_fresh"):
        question.release(mu="0.2")
    progress.show_by(None)
    before = session.spent
    question.release(mu="0.2")
    assert session._core.individuals is not None
    assert session._core.individuals._state is not None
    spent = session._core.individuals._state.unit_budgets.units.spent[0]
    other = opened(path, by_unit=True)._core.individuals
    assert other is not None
    pipe.send((session.spent == before, session.ledger.count, other.paid_by(0)[-1].spent == spent))


@pytest.mark.waits
def test_an_interrupted_replay_of_the_units_is_started_again(tmp_path: Path) -> None:
    with kernels(Kernel(interrupted_replay, tmp_path / "clinic.dpnb")) as (kernel,):
        assert kernel.hear() == "seen"
        kernel.interrupt()
        assert kernel.hear() == (True, 2, True)
        assert kernel.end() == 0


def interrupted_set_up(pipe: Connection, path: Path) -> None:
    """Make a session without end; then make it."""
    with (
        watched(pipe, "preparing columns") as shown,
        without_end(prepared_table, "_numbered"),
        suppress(KeyboardInterrupt),
    ):
        opened(path)
    after = shown[-1], left_threads(), path.exists()
    progress.show_by(None)
    session = opened(path)
    count = session.ledger.count
    session.table("visits").count().release(mu="0.1")
    pipe.send((*after, count, session.ledger.count))


@pytest.mark.waits
def test_an_interrupted_set_up_charges_nothing(tmp_path: Path) -> None:
    with kernels(Kernel(interrupted_set_up, tmp_path / "clinic.dpnb")) as (kernel,):
        assert kernel.hear() == "seen"
        kernel.interrupt()
        assert kernel.hear() == ("", [], False, 0, 1)
        assert kernel.end() == 0


def interrupted_scan(pipe: Connection, path: Path) -> None:
    """Ask above-threshold without end; then again."""
    session = opened(path)
    scan = session.above_threshold(10, name="scan", epsilon="0.2", max_positives=2, monotonic=True)
    before, count = session.spent, session.ledger.count
    question = session.table("visits").count()
    with watched(pipe, "adding up rows"), without_end(memory_backend, "execute"), suppress(KeyboardInterrupt):
        scan.ask(question)
    progress.show_by(None)
    after = session.ledger.count == count, session.spent == before
    again = scan.ask(question)
    pipe.send((*after, again.above, again == scan.ask(question), session.spent == before, left_threads()))


@pytest.mark.waits
def test_an_interrupted_scan_has_answered_nothing_and_goes_on(tmp_path: Path) -> None:
    with kernels(Kernel(interrupted_scan, tmp_path / "clinic.dpnb")) as (kernel,):
        assert kernel.hear() == "seen"
        kernel.interrupt()
        assert kernel.hear() == (True, True, True, True, True, [])
        assert kernel.end() == 0


def interrupted_fit(pipe: Connection, path: Path) -> None:
    """Fit, with a third step without end; then go on."""
    session = opened(path)
    fit = session.table("visits").fit(
        "cost", on="site", family="linear", mu="0.1", steps=4, public_size=PEOPLE, name="fit"
    )
    fit.step()
    fit.step()
    with (
        watched(pipe, "fit: step 2 of 4") as shown,
        without_end(memory_backend, "execute"),
        suppress(KeyboardInterrupt),
    ):
        fit.run()
    pipe.send((shown[-1], [charge.status for charge in session.ledger.charges()], session.spent.mu_squared))
    progress.show_by(None)
    fit.run()
    pipe.send((fit.n_steps, fit.state, session.spent.mu_squared, left_threads()))


@pytest.mark.waits
def test_an_interrupted_fit_keeps_its_steps_and_takes_the_charged_one_up(tmp_path: Path) -> None:
    with kernels(Kernel(interrupted_fit, tmp_path / "clinic.dpnb")) as (kernel,):
        assert kernel.hear() == "seen"
        kernel.interrupt()
        line, states, spent = kernel.hear()
        assert line.startswith("fit: step 2 of 4, 8.1% of the budget (mu 0.1")
        assert states == ["released"] * 3 + ["failed"]  # the launch, two steps, the one that was interrupted
        taken, state, in_all, threads = kernel.hear()
        assert kernel.end() == 0
    assert (taken, state, threads) == (4, "closed", [])
    assert in_all == spent / 3 * 4


def endless(engine: str) -> Any:
    """A table of more rows than an engine comes to the end of, made as they are asked for."""
    if engine == "duckdb":
        import duckdb

        return duckdb.sql("select (a.range % 7)::double as x from range(1000000) a, range(1000000) b")
    import polars

    numbers = polars.LazyFrame({"x": [float(number % 7) for number in range(65_000)]})
    return numbers.join(numbers.rename({"x": "y"}), how="cross")


def interrupted_engine(pipe: Connection, engine: str, path: Path) -> None:
    """Ask about a table that no engine comes to the end of."""
    session = dpnb.Session(
        endless(engine), name="endless", budget=dpnb.Budget.gdp(1), schema={"x": dpnb.Bounded(0, 6)}, ledger=path
    )
    said: tuple[Any, ...] = ()
    with watched(pipe, "adding up rows") as shown:
        try:
            session.frame["x"].mean().release(mu="0.2")
        except KeyboardInterrupt as error:
            said = error.args
    states = tuple(charge.status for charge in session.ledger.charges())
    pipe.send({"args": said, "states": states, "line": shown[-1]})
    os._exit(0)  # an engine may take its time to notice


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.waits
def test_an_interrupt_stops_an_engine_and_the_charge_stands(tmp_path: Path, engine: str) -> None:
    pytest.importorskip(engine)
    with kernels(Kernel(interrupted_engine, engine, tmp_path / "endless.dpnb")) as (kernel,):
        assert kernel.hear() == "seen"
        kernel.interrupt()
        told = kernel.hear()
        assert kernel.end() == 0
    assert told == {"args": (executor.INTERRUPTED,), "states": ("failed",), "line": ""}
