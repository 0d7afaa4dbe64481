"""What an attacker tried: interrupts, changed tables, deltas, odd numbers.  Nothing is had for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from contracts.interactive import opened
from dpnb.accounting.losses import GDP
from dpnb.errors import BudgetExceeded, InvalidValueError, LedgerError, MechanismClosed, RequestError
from dpnb.ledger import Ledger
from dpnb.mechanisms.measurement import Measurement
from dpnb.session import snapshot

LAUNCHES = {
    "sub-session": lambda session: session.delegate(mu="0.9", name="it"),
    "partition": lambda session: session.partition("site", name="it"),
    "above-threshold": lambda session: session.above_threshold(10, name="it", epsilon="0.5"),
    "noise reduction": lambda session: session.noise_reduction(session.frame.count(), name="it"),
}


@contextmanager
def commits_fail(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The writer is interrupted just before it is on disk."""
    real = Ledger.transaction

    @contextmanager
    def interrupted(ledger: Ledger) -> Iterator[None]:
        with real(ledger):
            yield
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "transaction", interrupted)
        yield


@pytest.mark.parametrize("kind", LAUNCHES)
def test_a_launch_that_did_not_reach_the_disk_never_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    session = opened(tmp_path)
    with commits_fail(monkeypatch), pytest.raises(KeyboardInterrupt):
        LAUNCHES[kind](session)
    assert session.ledger.count == 0
    assert not session.mechanisms
    assert session.odometer.kind == "time-uniform"
    LAUNCHES[kind](session)
    assert session.ledger.count == 1
    assert opened(tmp_path).spent == session.spent
    if kind == "sub-session":
        assert session.spent == GDP("0.9")


def test_a_charge_that_did_not_reach_the_disk_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(tmp_path)
    part = session.partition("site")["a"]
    with commits_fail(monkeypatch), pytest.raises(KeyboardInterrupt):
        part.frame.count().release(mu="0.5")
    assert not session.spent
    part.frame.count().release(mu="0.5")
    assert session.spent == GDP("0.5") == opened(tmp_path).spent


def test_parts_of_an_old_version_answer_nothing_about_the_new_one(tmp_path: Path) -> None:
    old = opened(tmp_path)
    sites = old.partition("site")
    sites["a"].frame.count().release(mu="0.5")
    inside = sites["a"].delegate(mu="0.5", name="inside")
    new = opened(tmp_path, version="2")
    left = new.mechanisms["by site"]
    assert left.state == "unavailable"
    spent = new.spent
    for way_in in (left["b"], left["a"].mechanisms["inside"]):
        with pytest.raises(MechanismClosed, match="version '1' of the table, and this is version '2'"):
            way_in.frame.count().release(mu="0.1")
    with pytest.raises(MechanismClosed):
        left["b"].delegate(mu="0.1", name="way in")
    assert new.spent == spent
    inside.frame.count().release(mu="0.1")  # the old table can still be asked
    new.partition("site")["b"].frame.count().release(mu="0.5")
    assert sites.state == "closed"  # nobody could reach it any more
    assert new.spent.mu_squared == spent.mu_squared + GDP("0.5").mu_squared


def test_the_old_version_finds_its_own_again(tmp_path: Path) -> None:
    for version in ("1", "2", "1", "2"):
        session = opened(tmp_path, version=version)
        part = session.partition("site")["a"]
        if part.frame.count().best is None:
            part.frame.count().release(mu="0.1")
    assert session.spent == GDP.from_mu_squared("0.02")
    assert session.ledger.count == 5  # two launches, two answers, and the end of the first


def test_what_a_scan_said_of_an_old_version_is_not_said_of_the_new_one(tmp_path: Path) -> None:
    old = opened(tmp_path, budget=dpnb.Budget.gdp(300))
    old.above_threshold(100, name="scan", epsilon=200, max_positives=9).ask(old.frame.count())
    new = opened(tmp_path, pd.DataFrame({"site": ["a"], "x": [1.0]}), budget=dpnb.Budget.gdp(300), version="2")
    with pytest.raises(MechanismClosed):
        new.mechanisms["scan"].ask(new.frame.count())
    again = new.above_threshold(100, name="scan", epsilon=20, max_positives=9)
    assert not again.ask(new.frame.count()).above


def test_faces_say_something_true_after_a_loss_with_a_delta(tmp_path: Path) -> None:
    schema = {"site": dpnb.Categories(["a", "b"]), "town": dpnb.Text()}
    table = pd.DataFrame({"site": ["a", "b"], "town": ["x", "y"]})
    budget = dpnb.Budget(1, 1e-6, discovery_delta=1e-7)
    session = dpnb.Session(table, name="towns", schema=schema, budget=budget, ledger=tmp_path / "towns.dpnb")
    session.frame.discover("town", discovery_delta=8e-8).release(mu="0.05")
    part = session.partition("site")["a"]
    assert "the hidden coins behind them" in session.odometer.statement()
    assert "at least mu 0.05 and delta 8e-8." in " ".join(repr(session.explain()).split())
    assert "delta 8e-8" in repr(session.explain())
    assert "delta 0 of 2e-8" in snapshot.snapshot(part).spent_loss
    with pytest.raises(BudgetExceeded, match="2e-8 of discovery_delta is left, and this query needs 5e-8"):
        part.frame.discover("town", discovery_delta=5e-8).release(mu="0.05")


def test_inside_another_session_odometers_say_what_they_are_about(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.frame.count().release(mu="0.5")
    part, sub = session.partition("site")["a"], session.delegate(mu="0.1", name="sub")
    for inner, words in ((part, "in this part alone"), (sub, "in this sub-session alone")):
        told = snapshot.snapshot(inner)
        for line in (*told.odometers, told.gauges[1]):
            assert line.description.startswith(f"Of the queries {words}: ")
        assert words in repr(inner.explain())


@pytest.mark.parametrize("threshold", ["1e400", "-1e400", 10**400])
def test_a_threshold_that_cannot_be_shown_is_refused(tmp_path: Path, threshold: Any) -> None:
    session = opened(tmp_path)
    with pytest.raises(InvalidValueError, match="range of doubles"):
        session.above_threshold(threshold, name="scan", epsilon="0.1")
    assert session.ledger.count == 0
    scan = session.above_threshold(0, name="scan", epsilon="0.1")
    with pytest.raises(InvalidValueError, match="range of doubles"):
        scan.ask(session.frame.count(), threshold=threshold)
    assert not scan.answers


def test_a_dry_run_refuses_what_a_launch_refuses_and_finds_what_it_finds(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.delegate(mu=1, name="all")
    assert "earlier launch of this name" in repr(session.delegate(mu=1, name="all", dry_run=True))
    with pytest.raises(RequestError, match="identified by its name"):
        session.delegate(mu="0.5", name="all", dry_run=True)


def test_ways_that_contradict_each_other_are_refused_also_where_the_name_is_known(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.delegate(share="0.5", name="half")
    with pytest.raises(RequestError, match="got mu and share"):
        session.delegate(share="0.5", mu=4, name="half")


def test_a_noise_reduction_without_anything_left_is_not_launched(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.delegate(share=1, name="all")
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            session.noise_reduction(session.frame.count(), name="it")
    assert list(session.mechanisms) == ["all"]


def test_a_branch_of_a_launch_that_is_not_there_is_a_fault_of_the_ledger(tmp_path: Path) -> None:
    session = opened(tmp_path)
    with session.ledger.transaction():
        session.ledger.reserve(request_key="stray", node="7", table_version="1", query_key="", loss=GDP("0.1"))
    with pytest.raises(dpnb.errors.LedgerError, match="row 7, which is missing"):
        _ = session.spent


@pytest.mark.parametrize("trouble", [LedgerError("the disk is full"), KeyboardInterrupt()])
def test_noise_that_did_not_reach_the_ledger_is_in_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: BaseException
) -> None:
    # The charge will be taken up with other noise, and two noisy values for one charge would be one too many.
    def failing(*_: Any) -> None:
        raise trouble

    session = opened(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "answer", failing)
        with pytest.raises(type(trouble)) as raised:
            session.frame.count().release(mu="0.5")
    frame = raised.value.__traceback__
    while frame is not None:
        assert not any(isinstance(value, Measurement | np.ndarray) for value in frame.tb_frame.f_locals.values())
        frame = frame.tb_next
    assert (raised.value.__cause__, raised.value.__context__) == (None, None)
    assert "the disk is full" in str(raised.value) or isinstance(trouble, KeyboardInterrupt)
    (charge,) = session.ledger.charges()
    assert (charge.status, session.spent) == ("failed", GDP("0.5"))
    session.frame.count().release(mu="0.5")
    assert session.spent == GDP("0.5")
