"""The charge comes after the answer.

Kind: budget
Fault: A query is run, and its cost is recorded afterwards. If anything between fails, or is made to fail, the answer
(or what the failure shows) was free; and two queries at once may both pass the check of one budget.
Reported: https://github.com/dscc-admin-ch/lomas/blob/v0.4.1/server/lomas_server/dp_queries/dp_querier.py (lomas);
Haeberlen, Pierce and Narayan 2011:
https://www.usenix.org/conference/usenix-security-11/differential-privacy-under-fire (budget and state attacks on PINQ
and Airavat)
dpnb: The charge is on disk before anything is computed from rows for it; a request that failed keeps its charge, and
repeating it uses it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import dpnb
from attacks.common import session

TABLE = pd.DataFrame({"x": [1.0] * 10})
SCHEMA = {"x": dpnb.Bounded(0, 1)}
Run = Callable[[Callable[[], None]], float]
"""Runs a query whose reading of rows calls a function; what is spent afterwards."""


def attack(run: Run) -> bool:
    """Whether a query that reads rows, and is interrupted then, was free."""
    read: list[bool] = []

    def interrupted() -> None:
        read.append(True)
        raise KeyboardInterrupt

    spent = run(interrupted)
    assert read, "the rows were not read"
    return spent == 0


def released(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Sums of a table in memory are computed by one function."""

    def run(interrupt: Callable[[], None]) -> float:
        made = session(TABLE, SCHEMA)
        query = made.frame["x"].sum()
        monkeypatch.setattr("dpnb._backends.memory.memory_backend.execute", lambda *_, **__: interrupt())
        with pytest.raises(KeyboardInterrupt):
            query.release(mu=1)
        monkeypatch.undo()
        return float(made.spent.mu)

    return run


def charged_afterwards(interrupt: Callable[[], None]) -> float:
    spent = 0.0
    try:
        interrupt()
        spent += 1.0
    except KeyboardInterrupt:
        pass
    return spent


def test_dpnb_resists(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not attack(released(monkeypatch))


def admitted(ask: Callable[[int], Any]) -> int:
    """How many of ten queries at once are admitted."""
    results: list[bool] = []
    barrier = threading.Barrier(10)

    def one(number: int) -> None:
        barrier.wait()
        try:
            ask(number)
            results.append(True)
        except dpnb.errors.BudgetExceeded:
            results.append(False)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(results)


def test_dpnb_admits_no_more_queries_at_once_than_one_after_the_other() -> None:
    made = session(TABLE, SCHEMA, budget=dpnb.Budget.gdp(1))
    assert admitted(lambda number: made.frame[made.frame["x"] > number / 100].count().release(mu="0.5")) == 4
    assert made.spent.mu == 1


def test_the_control_is_caught() -> None:
    assert attack(charged_afterwards)
