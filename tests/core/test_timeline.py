"""Budget and odometers over time: what each row of the ledger left behind."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import dpnb
from dpnb._browser.snapshot import TimelinePoint
from dpnb._core.accountant import granting, timeline
from dpnb._core.accountant.timeline import TimelineEntry
from dpnb.session import snapshot


def made(folder: Path, **arguments: object) -> dpnb.Session:
    given = {"budget": dpnb.Budget(epsilon=1, delta=1e-6), "ledger": folder / "small.dpnb", **arguments}
    return dpnb.Session(pd.DataFrame({"x": [1.0, 2.0]}), name="small", schema={"x": dpnb.Bounded(0, 5)}, **given)


def points(session: dpnb.Session) -> list[TimelinePoint]:
    return snapshot.snapshot(session).timeline.points


def ask(session: dpnb.Session, times: int, mu: float = 0.01) -> None:
    for number in range(times):
        session.frame[session.frame["x"] > number / 1000].count().release(mu=mu)


def test_each_point_says_what_filter_and_odometer_said_then(tmp_path: Path) -> None:
    session = made(tmp_path)
    said = [(session.headroom, session.odometer.bound)]
    for number in range(4):
        session.frame[session.frame["x"] > number / 10].count().release(mu=0.02 * (number + 1))
        said.append((session.headroom, session.odometer.bound))
    at = [curve.id for curve in snapshot.snapshot(session).timeline.curves].index("mixture")
    told = [(1 - point.spent, point.bounds[at]) for point in points(session)]
    assert told == [(pytest.approx(headroom), bound) for headroom, bound in said]


def test_another_kernel_sees_the_same_history(tmp_path: Path) -> None:
    session = made(tmp_path)
    ask(session, 5)
    assert points(made(tmp_path)) == points(session)


@pytest.mark.parametrize("times", [1, 7, 50])
def test_long_history_is_thinned_but_keeps_both_ends(
    tmp_path: Path, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "POINTS_SHOWN", 20)
    session = made(tmp_path)
    ask(session, times, mu=0.001)
    shown = [point.id for point in points(session)]
    assert len(shown) <= 21
    assert (shown[0], shown[-1]) == (0, times)
    assert shown == sorted(shown)


def test_scale_of_the_odometers_ends_where_the_gauge_of_the_odometer_does(tmp_path: Path) -> None:
    session = made(tmp_path)
    ask(session, 2)
    told = snapshot.snapshot(session)
    assert told.gauges[1].end == f"{told.timeline.odometers.end:g} when the budget is spent"
    assert told.timeline.odometers.text.startswith(f"up to {told.timeline.odometers.end:g}, the mixture odometer")


def test_odometer_that_cannot_count_everything_stops_where_it_could(tmp_path: Path) -> None:
    session = made(tmp_path, budget=dpnb.Budget(epsilon=1, delta=1e-6, discovery_delta=1e-7), public_size=100)
    ask(session, 1)
    timeline = snapshot.snapshot(session).timeline
    assert {len(point.bounds) for point in timeline.points} == {len(timeline.curves)}


def test_spent_is_never_told_smaller_than_it_is(tmp_path: Path) -> None:
    session = made(tmp_path, budget=dpnb.Budget.gdp(1))
    for number in range(7):
        session.frame[session.frame["x"] > number].count().release(rho=0.05)
    told = [Fraction(repr(point.spent)) for point in points(session)]
    assert told == [Fraction(number, 10) for number in range(8)]


def live_through(session: dpnb.Session, rows: int, *, look: bool) -> None:
    """Ask, in parts and sub-sessions too, which make the odometers pause now and then; and look at every moment."""
    part, sub, number = None, None, 0
    while session.ledger.count < rows:
        number += 1
        if number % 37 == 5:
            sub = session.delegate(dpnb.Budget.gdp("0.001"), name=f"colleague {number}")
        elif number % 37 == 9:
            sub.close()
        elif number % 37 in (6, 8):
            sub.frame[sub.frame["x"] > number / 1000].count().release(mu="0.0001")
        elif number == 50:
            part = session.partition(session.frame["x"] > 1, name="parts")[True]
        elif part is not None and number % 5 == 0 and number < 150:
            part.frame[part.frame["x"] > number / 1000].count().release(mu="0.0001")
        elif number == 150:
            session.partition(session.frame["x"] > 1, name="parts").close()
        else:
            session.frame[session.frame["x"] > number / 1000].count().release(mu="0.001")
        if look:
            snapshot.snapshot(session)


@pytest.mark.parametrize("rows", [5, 40, pytest.param(260, marks=pytest.mark.slow)])
def test_points_that_are_kept_are_those_that_would_be_shown_of_all(
    tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "MAX_POINTS", 8)
    session = made(tmp_path)
    live_through(session, rows, look=True)
    watched, opened = (one._core.account.timeline(compared=True) for one in (session, made(tmp_path)))
    monkeypatch.setattr(timeline, "MAX_POINTS", 2**20)
    whole = made(tmp_path)._core.account.timeline(compared=True)
    assert watched.thinned(8) == opened.thinned(8) == whole.thinned(8)
    assert watched.thinned(4) == whole.thinned(4) == as_by_definition(whole._points, 4)


def as_by_definition(points: list[TimelineEntry], most: int) -> list[TimelineEntry]:
    step = 1
    while len(points) > most * step:
        step *= 2
    chosen = points[::step]
    return chosen if chosen[-1] is points[-1] else [*chosen, points[-1]]


def test_however_many_rows_there_are_few_points_are_kept_and_both_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "MAX_POINTS", 4)
    session = made(tmp_path)
    for _ in range(50):
        ask(session, 1)
        session.frame.count().release(mu=0.0001 * (session.ledger.count + 1))
        points = session._core.account.timeline(compared=True)._points
        assert len(points) <= 4 * 4
        assert (points[0].id, points[-1].id) == (0, session.ledger.count)
    assert [point.id for point in points] == sorted({point.id for point in points})
    assert [point.spent for point in points] == sorted(point.spent for point in points)
    for name in points[-1].bounds:
        bounds = [point.bounds[name] for point in points]
        assert bounds == sorted(bounds)


def test_changes_of_the_division_are_no_points(tmp_path: Path) -> None:
    session = made(tmp_path)
    account, version = session._core.account, session._core.version
    granting.freeze(account, "an audit", version=version)
    granting.unfreeze(account, version=version)
    ask(session, 2)
    granting.freeze(account, "another audit", version=version)
    assert [point.id for point in points(session)] == [0, 3, 4]
    assert points(made(tmp_path)) == points(session)
    assert points(session)[-1].spent == pytest.approx(1 - session.filter.headroom)
