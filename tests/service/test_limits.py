"""The time grid, the limits of one analyst, and the curator's figures."""

from __future__ import annotations

import asyncio
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest

import dpnb
from dpnb._plan.expressions.nodes import Column
from dpnb._plan.measurements import Count, RegressionModel
from dpnb._plan.plan import Plan
from dpnb._request import AnyRequest, CloseMechanism, DescendGradient, LaunchMechanism
from dpnb.interactive import calls
from dpnb.remote import channel
from dpnb.remote.tokens import Token, origin_of
from dpnb.service import app
from dpnb.service import requests as service_requests
from dpnb.service.configuration.settings import Limits
from dpnb.service.network import reply_times as grid_module
from dpnb.service.network.reply_times import POINT, UNKNOWN_ROWS, TimeGrid, assumed_rows
from dpnb.service.quotas import RequestRate
from dpnb.service.served import Rules
from service.served import Served, open_people, run_in_loop, run_served
from waiting import LIMIT

CALL = CloseMechanism("scan")


class Clock:
    """A clock that moves only when something waits or works."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


def left_after(seconds: float, rows: int = 1000, call: AnyRequest = CALL) -> tuple[float, int]:
    """When a reply leaves that is ready after some time, and how many slots it missed."""
    clock, missed = Clock(), list[int]()
    grid = TimeGrid(rows, missed.append, clock.now, clock.sleep)

    async def run() -> float:
        start = clock.time
        await clock.sleep(seconds)
        await grid.hold(start, call)
        return clock.time - start

    return run_in_loop(run()), sum(missed)


@pytest.mark.parametrize(
    ("seconds", "slot", "missed"),
    [(0, 1, 0), (0.0001, 1, 0), (0.24, 1, 0), (0.25, 1, 0), (0.26, 2, 1), (0.51, 4, 2), (2.1, 16, 4)],
)
def test_a_reply_leaves_at_a_power_of_two(seconds: float, slot: int, missed: int) -> None:
    assert left_after(seconds) == (pytest.approx(POINT * slot), missed)


def test_the_slot_is_a_function_of_public_figures_and_the_call() -> None:
    model = RegressionModel("linear", Column("age"), ())
    none = dict.fromkeys(("learning_rate", "public_size", "check_every", "check_mu", "start"))
    options: dict[str, Any] = {"chains": 1, "patience": 2, **none}
    mu = Fraction(1, 10)
    fit = LaunchMechanism("fit", DescendGradient(Plan(Count()), model, ("intercept",), mu, 2, 1.0, **options))
    assert [left_after(0, rows)[0] / POINT for rows in (0, 500_000, 500_001, 4_000_000)] == [1, 1, 2, 8]
    assert left_after(0, 500_000, fit)[0] / POINT == 16


def test_what_is_assumed_of_a_table(tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    frame = pl.LazyFrame({"age": [1, 2]})
    lazy = dpnb.Session(
        frame, name="lazy", budget=dpnb.Budget.gdp(1), schema={"age": dpnb.Bounded(0, 9)}, ledger=":memory:"
    )
    known = open_people(":memory:", public_rows=5000)
    rows = [assumed_rows(session._core) for session in (open_people(":memory:"), known, lazy)]
    assert rows == [0, 5000, UNKNOWN_ROWS]


def test_what_a_filter_matches_does_not_move_a_reply(tmp_path: Path) -> None:
    """An attack: the duration tells how many rows match; the control has no grid."""

    def duration(matches: int, has_grid: bool) -> float:
        seconds = 0.001 + matches * 1e-5
        return left_after(seconds, 20_000)[0] if has_grid else seconds

    assert duration(0, True) == duration(20_000, True)
    assert duration(0, False) != duration(20_000, False)


def test_repeating_a_request_at_many_moments_shows_no_more_than_its_points() -> None:
    """An attack: the repetitions that are received before the end and after it leave at other points."""

    def moments(end: float, has_points: bool, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        left = []
        with monkeypatch.context() as patch:
            if not has_points:
                patch.setattr(grid_module, "_point_at", lambda time: time)
            for number in range(100):
                clock = Clock()
                received = clock.time + number / 200
                clock.time = max(received, 1000 + end)  # when the first request ends
                run_in_loop(TimeGrid(0, lambda slots: None, clock.now, clock.sleep).hold(received, CALL))
                left.append(clock.time)
        return left

    patch = pytest.MonkeyPatch()
    assert moments(0.301, True, patch) == moments(0.449, True, patch)
    assert moments(0.301, False, patch) != moments(0.449, False, patch)


def test_the_service_holds_replies_and_events_to_the_grid(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        loop = asyncio.get_running_loop()
        for body, status in ((served.count("a"), 200), (served.count("b", mu="1000"), 422)):
            start = loop.time()
            assert (await served.post(body)).status_code == status
            assert loop.time() - start >= POINT / 2  # at least to the first point after the slot
        start = loop.time()
        assert (await served.get("/v3/tables/people/rows?after=0&pending=")).status_code == 200
        feed = served.service.tables["people"].analyst("ana").feed
        stream = feed.stream(lambda: True)
        assert b"data" in await anext(stream)
        assert (
            loop.time() % POINT < POINT / 2 or loop.time() - start > 1
        )  # just after a point, unless the machine is busy
        await stream.aclose()  # type: ignore[attr-defined]

    run_served(tmp_path, scenario, rules=Rules(has_grid=True))


def test_requests_in_a_minute() -> None:
    clock = Clock()
    rate = RequestRate(3, clock.now)
    assert [rate.wait() for _ in range(3)] == [0, 0, 0]
    assert rate.wait() > 0
    clock.time += 30
    assert 0 < rate.wait() <= 31
    clock.time += 31
    assert [rate.wait() for _ in range(3)] == [0, 0, 0]
    assert rate.wait() > 0


def test_what_few_people_have_sent_is_not_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MOST_SENDERS", 4)

    async def scenario(served: Served) -> None:
        first = served.service._sender("ana")
        for number in range(3):
            served.service._sender(f"other{number}")
        assert served.service._sender("ana") is first
        for number in range(4):
            served.service._sender(f"more{number}")
        assert served.service._sender("ana") is not first

    run_served(tmp_path, scenario)


def test_an_analyst_beyond_a_limit_does_not_hinder_another(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        bob = served.of("bob")
        assert [(await served.get("/v3/tables")).status_code for _ in range(4)] == [200, 200, 200, 429]
        refused = await served.post(served.count("a"))
        assert (refused.status_code, served.charges) == (429, 0)
        assert int(refused.headers["Retry-After"]) >= 1
        assert (await bob.post(bob.count("b"))).status_code == 200

    run_served(tmp_path, scenario, rules=Rules(Limits(requests_per_minute=3)))


def test_requests_that_run_and_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave, execute = threading.Event(), calls.execute

    def slow(*arguments: Any) -> tuple[int, ...]:
        assert leave.wait(LIMIT)
        return execute(*arguments)

    monkeypatch.setattr(service_requests, "execute", slow)

    async def scenario(served: Served) -> None:
        bob = served.of("bob")
        tasks = [asyncio.create_task(served.post(served.count(str(n), mu=f"1/{n + 20}"))) for n in range(2)]
        while served.service.tables["people"].analyst("ana").runner.running < 2:
            await asyncio.sleep(0.01)
        assert (await served.post(served.count("c"))).status_code == 429
        other = asyncio.create_task(bob.post(bob.count("d", mu="1/9")))  # bob has running requests of his own
        leave.set()
        assert [(await task).status_code for task in (*tasks, other)] == [200, 200, 200]
        assert (await served.post(served.count("c"))).status_code == 200  # the same id, which was not executed

    run_served(tmp_path, scenario, rules=Rules(Limits(running=2)))


def test_a_request_that_waited_too_long_is_refused_before_its_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([0.0, 700.0, 0.0, 1.0, 1.0])
    monkeypatch.setattr(service_requests, "monotonic", lambda: next(times))

    async def scenario(served: Served) -> None:
        assert (await served.post(served.count("a"))).status_code == 503
        assert served.charges == 0
        assert (await served.post(served.count("a"))).status_code == 200

    run_served(tmp_path, scenario)


def test_the_client_waits_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit is no failure of the request, and nothing was charged."""
    replies = iter([429, 429, 200])
    seen: list[int] = []

    def reply(request: httpx.Request) -> httpx.Response:
        seen.append(1)
        return httpx.Response(next(replies, 429), stream=httpx.ByteStream(b'["people"]'))

    class Told(channel.Channel):
        def _new_client(self, _: float) -> httpx.Client:
            return httpx.Client(base_url="http://service", transport=httpx.MockTransport(reply))

    told = Told(origin_of("http://localhost:1"), Token("dpnb_x", "token="), retry_seconds=30)
    assert told.get("tables", tuple[str, ...]) == ("people",)
    assert len(seen) == 3
    with pytest.raises(channel.ServiceUnavailable, match=r"too many requests of yours.*nothing was charged"):
        told.get("tables", tuple[str, ...], retry_seconds=0)
