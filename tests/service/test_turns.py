"""Analysts take turns, in the thread of a table and in those for free work; an attack floods each with a control."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dpnb.interactive import calls
from dpnb.service import requests, turns
from dpnb.service import turns as free_work
from dpnb.service.access.tokens import revoke_tokens
from dpnb.service.monitoring import Metrics
from dpnb.service.served import Rules
from dpnb.service.turns import Turns
from dpnb.wire.decoding import decode_envelope
from service.served import Served, content, run_served
from service.test_division import division
from waiting import LIMIT, wait_until

MALFORMED = b'{"id":"a","request":[' + b",".join([b'{"a":1}'] * 2000) + b"]}"
"""Large enough for a turn; each test counts decodings, not seconds."""


class Held:
    """Work that is held until it is let go, in the order in which it began."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self._go = threading.Semaphore(0)

    def work(self, name: str) -> None:
        self.began.append(name)
        assert self._go.acquire(timeout=LIMIT)

    def go(self, times: int = 1) -> None:
        for _ in range(times):
            self._go.release()


@contextmanager
def opened(threads: int = 1) -> Iterator[tuple[Turns, Held]]:
    queue, held = Turns("test", threads), Held()
    try:
        yield queue, held
    finally:
        held.go(1000)
        queue.close()


def fifo(self: Turns) -> turns.Turn[Any] | None:
    """A control: first in, first out, for all analysts together."""
    with self._changed:
        while not self._queues:
            if self._is_closed:
                return None
            self._changed.wait()
        first = min(self._queues.values(), key=lambda queue: queue[0].since)
        turn = first.popleft()
        if not first:
            del self._queues[turn.owner]
        return turn


def test_the_next_turn_is_that_of_the_analyst_whose_last_turn_was_longest_ago() -> None:
    with opened() as (queue, held):
        for name in ("a1", "a2", "a3", "b1", "b2", "c1"):
            queue.submit(name[0], lambda name=name: held.work(name))  # type: ignore[misc]
        assert queue.waiting in (5, 6)
        held.go(6)
        wait_until(lambda: len(held.began) == 6, "all of it")
    assert held.began == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_one_piece_of_work_of_an_analyst_runs_at_a_time() -> None:
    with opened(threads=2) as (queue, held):
        for name in ("a1", "a2", "b1"):
            queue.submit(name[0], lambda name=name: held.work(name))  # type: ignore[misc]
        wait_until(lambda: len(held.began) == 2, "two of it")
        assert held.began == ["a1", "b1"]
        assert queue.waiting == 1
        assert queue.age > 0


def test_work_that_waits_is_dropped_and_work_that_runs_is_not() -> None:
    with opened() as (queue, held):
        running, waiting = (queue.submit("a", lambda: held.work("a")) for _ in range(2))
        wait_until(lambda: held.began, "the first")
        assert not running.drop(None)
        assert waiting.drop(None)
        assert waiting.future.done()
        assert not waiting.drop(None)
        assert queue.age == 0
    assert held.began == ["a"]
    with pytest.raises(RuntimeError, match="closed"):
        queue.submit("a", lambda: None)


def test_an_exception_ends_the_work_and_not_the_thread() -> None:
    queue = Turns("test")
    with pytest.raises(ZeroDivisionError):
        queue.submit("a", lambda: 1 / 0).future.result(LIMIT)
    assert queue.submit("a", lambda: 3).future.result(LIMIT) == 3
    queue.close()


# --- the table's thread -----------------------------------------------------------------------------------------------


@pytest.fixture
def began(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of requests as they begin; the first, ``first``, is held until the id ``go`` is in the list."""
    ids: list[str] = []
    execute, executed = calls.execute, requests.RequestRunner._executed

    def noted(self: Any, request: Any, *arguments: Any) -> Any:
        ids.append(request.id)
        return executed(self, request, *arguments)

    def held(*arguments: Any) -> tuple[int, ...]:
        if len(ids) == 1:
            wait_until(lambda: "go" in ids, "the others to be sent")
        return execute(*arguments)

    monkeypatch.setattr(requests.RequestRunner, "_executed", noted)
    monkeypatch.setattr(requests, "execute", held)
    return ids


async def until(condition: Any) -> None:
    async with asyncio.timeout(LIMIT):
        while not condition():
            await asyncio.sleep(0.005)


def running(served: Served, name: str) -> int:
    return served.service.tables["people"].analyst(name).runner.running


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_flood_of_one_analyst_lets_another_one_in_after_one_request(
    is_broken: bool, began: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_broken:
        monkeypatch.setattr(Turns, "_next", fifo)

    async def scenario(served: Served) -> None:
        bob = served.of("bob")
        sent = [asyncio.create_task(served.post(served.count("first")))]
        await until(lambda: began)
        sent += [asyncio.create_task(served.post(served.count(f"a{n}", mu=f"1/{n + 20}"))) for n in range(8)]
        await until(lambda: running(served, "ana") == 9)
        sent.append(asyncio.create_task(bob.post(bob.count("bob", mu="1/9"))))
        await until(lambda: running(served, "bob") == 1 and served.service.tables["people"].table.worker.waiting == 9)
        began.append("go")
        assert {(await one).status_code for one in sent} == {200}

    run_served(tmp_path, scenario)
    before = began.index("bob") - 2  # beside the first, and the mark
    assert before == (8 if is_broken else 0)


# --- decoding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_broken", [False, True])
def test_malformed_bodies_of_one_analyst_let_the_body_of_another_in(
    is_broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attack: twenty connections with malformed bodies; another's body is decoded after at most one of them."""
    decoded: list[str] = []
    go = threading.Event()

    def noted(body: bytes) -> Any:
        decoded.append("ana" if body == MALFORMED else "bob")
        assert go.wait(LIMIT)
        return decode_envelope(body)

    monkeypatch.setattr(free_work, "decode_envelope", noted)
    monkeypatch.setattr(free_work, "SMALL_BODY", 10)
    if is_broken:
        monkeypatch.setattr(Turns, "_next", fifo)

    async def scenario(served: Served) -> None:
        bob, work = served.of("bob"), served.service._work
        malformed = [asyncio.create_task(served.post(MALFORMED)) for _ in range(20)]
        await until(lambda: work._decoding.waiting == 15)  # and one is being decoded: sixteen are the limit
        own = asyncio.create_task(bob.post(bob.count("b")))
        await until(lambda: work._decoding.waiting == 16)
        go.set()
        assert (await own).status_code == 200
        statuses = [(await one).status_code for one in malformed]
        assert (statuses.count(400), statuses.count(429)) == (16, 4)
        assert not work._receiving

    run_served(tmp_path, scenario)
    assert decoded.index("bob") == (16 if is_broken else 1)


def test_replies_are_made_in_turns(tmp_path: Path) -> None:
    """A large repetition, or many pages of rows, do not use the threads in which another one's reply is made."""
    held = Held()

    async def scenario(served: Served) -> None:
        bob, runner = served.of("bob"), served.service.tables["people"].analyst("ana").runner
        rows = runner.rows
        runner.rows = lambda *a: (held.work("ana"), rows(*a))[1]  # type: ignore[method-assign, func-returns-value]
        pages = [asyncio.create_task(served.get("/v3/tables/people/rows?after=0&pending=")) for _ in range(10)]
        await until(lambda: held.began)
        assert (await bob.post(bob.count("b"))).status_code == 200
        assert held.began == ["ana"]
        held.go(10)
        assert {(await page).status_code for page in pages} == {200}

    run_served(tmp_path, scenario)


# --- waiting requests of people who may no longer be charged ----------------------------------------------------------


@pytest.mark.parametrize("how", ["token", "part", "division"])
def test_what_waits_of_a_revoked_analyst_is_refused_at_once(
    how: str, began: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "CHECK_SECONDS", 0.02)
    expected = {"token": (401, "AccessDenied"), "part": (422, "ChargesStopped"), "division": (422, "RequestError")}

    async def scenario(served: Served) -> None:
        bob, eve, table = served.of("bob"), served.of("eve", "curator"), served.service.tables["people"]
        first = asyncio.create_task(bob.post(bob.count("first")))
        await until(lambda: began)
        waiting = [asyncio.create_task(served.post(served.count(f"a{n}", mu=f"1/{n + 20}"))) for n in range(3)]
        await until(lambda: table.table.worker.waiting == 3)
        charges = served.charges
        if how == "token":
            revoke_tokens(served.tokens, "ana")
        elif how == "part":
            act = b'{"act":"revoke","level":"analyst","name":"ana"}'
            headers = {**eve.headers, "Content-Type": "application/json"}
            acted = await served.client.post("/v3/tables/people/acts", content=act, headers=headers)
            assert acted.status_code == 200
            charges += 1
        else:
            table.table._analysts = {**table.table._analysts, "ana": table.table.for_analyst("bob")}
            await asyncio.to_thread(table.drop_refused)
        for reply in [await one for one in waiting]:  # while the first still runs
            assert (reply.status_code, content(reply)["error"]) == expected[how]
        assert not first.done()
        assert served.charges == charges
        began.append("go")
        assert (await first).status_code == 200
        assert began == ["first", "go"]
        assert metrics.registry.get_sample_value("dpnb_dropped_total", {"table": "people"}) == 3

    metrics = Metrics()
    run_served(tmp_path, scenario, division=division("pooled"), rules=Rules(metrics=metrics))


def test_the_curator_sees_how_old_the_queue_is(
    began: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(requests, "CHECK_SECONDS", 0.001)
    caplog.set_level("INFO", "dpnb.service")
    metrics = Metrics()

    def slow() -> list[Any]:
        return [one.facts for one in caplog.records if one.msg == "slow"]  # type: ignore[attr-defined]

    def figure(name: str) -> float:
        value = metrics.registry.get_sample_value(name, {"table": "people"})
        assert value is not None
        return value

    async def scenario(served: Served) -> None:
        bob = served.of("bob")
        first = asyncio.create_task(bob.post(bob.count("first")))
        await until(lambda: began)
        waiting = asyncio.create_task(served.post(served.count("a")))
        await until(lambda: figure("dpnb_waiting") == 1)
        await until(lambda: figure("dpnb_queue_seconds") > 0 and figure("dpnb_executing_seconds") > 0)
        await until(lambda: {one["actor"] for one in slow()} == {"ana", "bob"})
        assert {one["running"] for one in slow()} == {1}
        health = await served.client.get("/v3/health")
        assert content(health) == {"status": "ok", "version": 3}
        began.append("go")
        await first
        await waiting
        assert (figure("dpnb_waiting"), figure("dpnb_queue_seconds"), figure("dpnb_executing_seconds")) == (0, 0, 0)

    run_served(tmp_path, scenario, rules=Rules(metrics=metrics))
