"""Attacks on the path of a charge: what is charged can be read, answered and found again; nothing else is charged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb import _request
from dpnb._core.execution import executor
from dpnb._request import request_from
from dpnb.curator.audit import audit
from dpnb.errors import DpnbError, LedgerError, MechanismClosed, PlanError, RequestError
from dpnb.interactive import scan as hidden_noise

ROWS = 60


def opened(ledger: Path | str, version: str = "1", **changes: Any) -> dpnb.Session:
    options: dict[str, Any] = {"budget": dpnb.Budget.gdp(3), **changes}
    table = pd.DataFrame(
        {
            "x": [index % 7 for index in range(ROWS)],
            "g": [("a", "b", None)[index % 3] for index in range(ROWS)],
            "h": [("u", "v", "w", None)[index % 4] for index in range(ROWS)],
        }
    )
    schema = {
        "x": dpnb.Bounded(0, 6),
        "g": dpnb.Categories(["a", "b"]),
        "h": dpnb.Categories(["u", "v", "w"]),
    }
    return dpnb.Session(table, name="people", schema=schema, ledger=ledger, version=version, **options)


# --- what is charged can be read --------------------------------------------------------------------------------------


HARD: dict[str, Callable[[dpnb.Session], object]] = {
    "a threshold near the smallest double": lambda one: one.above_threshold(5e-324, name="tiny", epsilon=0.1),
    "a threshold of many digits": lambda one: one.above_threshold(Fraction(1, 3**1000), name="long", epsilon=0.1),
    "a learning rate of many digits": lambda one: one.frame.fit(
        "x",
        on=["g"],
        family="linear",
        mu=0.1,
        steps=2,
        clip_norm=1,
        public_size=ROWS,
        name="fit",
        learning_rate=Fraction(10**470, 3**1000),
    ),
    "a half-width of many digits": lambda one: one.frame.count().release(within=Fraction(10**400 + 1, 10**400)),
    "a batch by one column under two names": lambda one: one.plan(
        [
            one.frame.assign(k=one.frame["g"]).groupby(["k", "g"]).size(),
            one.frame.groupby("g").size(),
        ]
    ).release(mu=0.1),
}


@pytest.mark.parametrize("name", HARD)
def test_no_request_makes_a_ledger_unreadable(name: str, tmp_path: Path) -> None:
    session = opened(tmp_path / "people.dpnb")
    try:
        HARD[name](session)
    except DpnbError:
        assert session.ledger.count == 0
    session.frame.count().release(mu=0.1)
    assert len(session.log) == session.ledger.count
    for row in session.ledger.charges():
        assert request_from(row.request).text == row.request


def test_without_the_guard_a_request_would_make_the_ledger_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken control: numbers that are written, and too long to be read."""
    monkeypatch.setattr("dpnb.interactive.scan_options.refuse_long", lambda number, *_: number)
    session = opened(tmp_path / "people.dpnb")
    with pytest.raises(RequestError, match="no ledger can store"):
        HARD["a threshold of many digits"](session)
    monkeypatch.setattr(executor, "_refuse_unreadable", lambda request: None)
    with pytest.raises(LedgerError):
        HARD["a threshold of many digits"](session)
    with pytest.raises(LedgerError):
        session.frame.count().release(mu=0.1)


def test_large_requests_are_not_kept_in_memory() -> None:
    keys = [[f"{number:05}"] for number in range(5000)]
    text = opened(":memory:").frame.groupby("g", keys=["a"]).size().plan.to_json().replace('["a"]', str(keys[0]))
    large = _request.Release(
        _request.Plan.from_json(text.replace(str(keys[0]), ",".join(f'["{one[0]}"]' for one in keys))),
        _request.request_from(
            '{"request":"release","plan":{"aggregation":{"of":"count"}},"view":{"view":"plain"},'
            '"target":{"kind":"mu","amount":"1"}}'
        ).view,  # type: ignore[union-attr]
        _request.Target("mu", Fraction(1)),
    )
    before = _request._cached.cache_info().currsize
    assert len(large.text) > _request.MAX_CACHED
    assert request_from(large.text) == large
    assert _request._cached.cache_info().currsize == before


# --- what is charged is found again -----------------------------------------------------------------------------------


def test_a_batch_is_answered_in_any_order_of_its_queries(tmp_path: Path) -> None:
    """Queries about rows with missing values, whose conditions must not depend on the order."""
    session = opened(tmp_path / "people.dpnb")
    frame = session.frame
    queries = [frame.count(), frame.groupby("g").size(), frame.groupby("h").size(), frame.groupby(["g", "h"]).size()]
    first = session.plan(queries).release(mu=0.5)
    rows = session.ledger.count
    for order in permutations(range(len(queries))):
        batch = session.plan([queries[index] for index in order]).release(mu=0.5)
        for place, index in enumerate(order):
            assert batch[place].arrays.value.tolist() == first[index].arrays.value.tolist()
    assert session.ledger.count == rows


def test_a_scan_of_an_earlier_version_does_not_show_the_answers_of_its_successor(tmp_path: Path) -> None:
    old = opened(tmp_path / "people.dpnb").above_threshold(20, name="many", epsilon=0.1, monotonic=True)
    session = opened(tmp_path / "people.dpnb", version="2")
    new = session.above_threshold(20, name="many", epsilon=0.1, monotonic=True)
    count = session.frame.count()
    new.ask(count)
    stale = session._mechanisms._read(old._launch)
    with pytest.raises(MechanismClosed):
        stale.ask(count)
    assert new.ask(count).above == new.answers[0].above


def test_the_noise_of_a_scan_that_is_durable_is_kept_whatever_comes_after(tmp_path: Path) -> None:
    session = opened(tmp_path / "people.dpnb")

    def interrupted(head: object) -> None:
        raise KeyboardInterrupt

    session.ledger.follow(interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.above_threshold(20, name="many", epsilon=0.1, monotonic=True)
    session.ledger.follow(lambda head: None)
    assert session.above_threshold(20, name="many", epsilon=0.1, monotonic=True).state == "open"


def test_the_noise_of_a_scan_that_was_not_charged_is_discarded(tmp_path: Path) -> None:
    session = opened(tmp_path / "people.dpnb", budget=dpnb.Budget.gdp(0.01))
    before = dict(hidden_noise._hidden)
    with pytest.raises(dpnb.errors.BudgetExceeded):
        session.above_threshold(20, name="many", epsilon=2, monotonic=True)
    assert hidden_noise._hidden == before


def test_a_batch_that_groups_twice_by_one_column_is_refused_before_its_charge(tmp_path: Path) -> None:
    session = opened(tmp_path / "people.dpnb")
    with pytest.raises(PlanError, match="groups twice by the same values"):
        HARD["a batch by one column under two names"](session)
    assert session.ledger.count == 0


# --- a ledger without its answers -------------------------------------------------------------------------------------


def test_a_ledger_without_its_answers_is_verified_and_not_used(tmp_path: Path) -> None:
    session = opened(tmp_path / "people.dpnb")
    session.frame.groupby("g").size().release(mu=0.1)
    session.frame.groupby("g").size().top(1).release(epsilon=0.1)
    head = session.ledger.head
    session.ledger.close()
    with closing(sqlite3.connect(tmp_path / "people.dpnb")) as file:
        file.execute("UPDATE events SET result = NULL, words = NULL, salt = NULL")
        file.commit()
    found = audit(str(tmp_path / "people.dpnb"))
    assert (found.problems, found.head) == ((), head)
    with pytest.raises(LedgerError, match="must be as dpnb left it"):
        opened(tmp_path / "people.dpnb")
    with closing(sqlite3.connect(tmp_path / "people.dpnb")) as file:
        file.execute("UPDATE events SET answer_digest = '0' WHERE id = 1")
        file.commit()
    with pytest.raises(LedgerError, match="must be as dpnb left it"):
        audit(str(tmp_path / "people.dpnb"))
