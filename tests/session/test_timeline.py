"""Budget and odometers over time: what each row of the ledger left behind."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import dpnb
from dpnb.session import state


def made(folder: Path, **arguments: object) -> dpnb.Session:
    given = {"budget": dpnb.Budget(epsilon=1, delta=1e-6), "ledger": folder / "small.dpnb", **arguments}
    return dpnb.Session(pd.DataFrame({"x": [1.0, 2.0]}), name="small", schema={"x": dpnb.Bounded(0, 5)}, **given)


def points(session: dpnb.Session) -> list[dict]:
    return state.snapshot(session)["timeline"]["points"]


def ask(session: dpnb.Session, times: int, mu: float = 0.01) -> None:
    for number in range(times):
        session.frame[session.frame["x"] > number / 1000].count().release(mu=mu)


def test_each_point_says_what_filter_and_odometer_said_then(tmp_path: Path) -> None:
    session = made(tmp_path)
    said = [(session.headroom, session.odometer.bound)]
    for number in range(4):
        session.frame[session.frame["x"] > number / 10].count().release(mu=0.02 * (number + 1))
        said.append((session.headroom, session.odometer.bound))
    at = [curve["id"] for curve in state.snapshot(session)["timeline"]["curves"]].index("mixture")
    told = [(1 - point["spent"], point["bounds"][at]) for point in points(session)]
    assert told == [(pytest.approx(headroom), bound) for headroom, bound in said]


def test_another_kernel_sees_the_same_history(tmp_path: Path) -> None:
    session = made(tmp_path)
    ask(session, 5)
    assert points(made(tmp_path)) == points(session)


@pytest.mark.parametrize("times", [1, 7, 50, 243])
def test_long_history_is_thinned_but_keeps_both_ends(
    tmp_path: Path, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "POINTS_SHOWN", 20)
    session = made(tmp_path)
    ask(session, times, mu=0.001)
    shown = [point["id"] for point in points(session)]
    assert len(shown) <= 21
    assert (shown[0], shown[-1]) == (0, times)
    assert shown == sorted(shown)


def test_promise_is_a_line_where_it_has_an_epsilon(tmp_path: Path) -> None:
    (tmp_path / "gdp").mkdir()
    assert state.snapshot(made(tmp_path))["timeline"]["loss"]["limit"] == 1
    assert state.snapshot(made(tmp_path / "gdp", budget=dpnb.Budget.gdp(1)))["timeline"]["loss"]["limit"] is None


def test_odometer_that_cannot_count_everything_stops_where_it_could(tmp_path: Path) -> None:
    session = made(tmp_path, budget=dpnb.Budget(epsilon=1, delta=1e-6, discovery_delta=1e-7), public_size=100)
    ask(session, 1)
    timeline = state.snapshot(session)["timeline"]
    assert {len(point["bounds"]) for point in timeline["points"]} == {len(timeline["curves"])}


def test_spent_is_never_told_smaller_than_it_is(tmp_path: Path) -> None:
    session = made(tmp_path, budget=dpnb.Budget.gdp(1))
    for number in range(7):
        session.frame[session.frame["x"] > number].count().release(rho=0.05)
    told = [Fraction(repr(point["spent"])) for point in points(session)]
    assert told == [Fraction(number, 10) for number in range(8)]
