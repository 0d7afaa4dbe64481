"""CPU seconds of free work are limited for each analyst; those of an execution depend on rows, and are not counted."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb._core import open_sessions
from dpnb._core.execution import releases
from dpnb.service import requests, turns
from dpnb.service.analysts import AnalystSession
from dpnb.service.configuration.settings import Limits
from dpnb.service.monitoring import Metrics
from dpnb.service.quotas import CpuSeconds
from dpnb.service.running import RunningRequest
from dpnb.service.served import Rules
from dpnb.wire.decoding import decode_envelope
from service.served import Served, content, open_people, run_served


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


used = threading.local()
"""`seconds` that this thread is taken to have used beyond those that it has."""


@pytest.fixture(autouse=True)
def clock_of_threads() -> Iterator[None]:
    """The service's clock of CPU seconds, which `use` advances: nothing here needs seconds."""
    real = time.thread_time
    assert requests.thread_time is real
    with pytest.MonkeyPatch.context() as patch:
        for module in (time, requests):
            patch.setattr(module, "thread_time", lambda: real() + getattr(used, "seconds", 0))
        yield


def use(seconds: float) -> None:
    """Let this thread have used more CPU time."""
    used.seconds = getattr(used, "seconds", 0) + seconds


def burn(seconds: float) -> None:
    """Use that much CPU time of this thread."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_seconds_of_the_last_minute() -> None:
    clock = Clock()
    spent = CpuSeconds(10, clock)
    assert spent.wait() == 0
    spent.add(6)
    clock.time += 20
    spent.add(3.5)
    assert spent.wait() == 0
    spent.add(2)
    assert spent.wait() == 40  # until the first six seconds are a minute old
    clock.time += 39
    assert spent.wait() == 1
    clock.time += 1
    assert spent.wait() == 0
    spent.add(100)
    assert spent.wait() == 60


def test_a_minute_of_many_pieces_is_kept_in_few_entries() -> None:
    clock = Clock()
    spent = CpuSeconds(10, clock)
    for _ in range(5000):
        spent.add(0.001)
        clock.time += 0.01
    assert len(spent._spent) <= 61
    assert spent.wait() == 0


def test_the_seconds_of_this_thread_are_counted() -> None:
    spent = CpuSeconds(0.05)
    with spent.counted():
        time.sleep(0.06)
    assert spent.wait() == 0

    def fail() -> None:
        with spent.counted():
            burn(0.06)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert spent.wait() > 0


def slow(work: Any, seconds: float) -> Any:
    def slower(*arguments: Any, **options: Any) -> Any:
        use(seconds)
        return work(*arguments, **options)

    return slower


@pytest.mark.parametrize("kind", ["malformed", "refused", "free", "rows", "table"])
def test_free_work_is_counted_and_refused_beyond_the_limit(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = Metrics()

    async def scenario(served: Served) -> None:
        bob = served.of("bob")
        assert (await served.post(served.count("first"))).status_code == 200
        await served.get("/v3/tables/people")
        assert not served.service._work.spent("ana").wait()
        burning: dict[str, tuple[Any, str]] = {
            "malformed": (turns, "decode_envelope"),
            "refused": (requests, "execute"),
            "free": (requests, "execute"),
            "rows": (requests.RequestRunner, "rows"),
        }
        if kind == "table":
            description = AnalystSession.description.fget
            monkeypatch.setattr(AnalystSession, "description", property(slow(description, 1.1)))
        else:
            owner, name = burning[kind]
            monkeypatch.setattr(owner, name, slow(getattr(owner, name), 1.1))
        path, expected = "/v3/tables/people", 200
        if kind == "malformed":
            reply, expected = await served.post(b"[]"), 400
        elif kind == "refused":
            reply, expected = await served.post(served.count("b", mu="1000")), 422
        elif kind == "free":
            reply = await served.post(served.count("first"))
        else:
            reply = await served.get(f"{path}/rows?after=0&pending=" if kind == "rows" else path)
        assert reply.status_code == expected
        monkeypatch.undo()
        charges = served.charges
        for refused in (await served.post(served.count("c", mu="1/9")), await served.get(path)):
            assert (refused.status_code, served.charges) == (429, charges)
            assert 1 <= int(refused.headers["Retry-After"]) <= 60
            assert "took too much work" in content(refused)["message"]
        assert metrics.registry.get_sample_value("dpnb_limited_total", {"limit": "cpu_seconds_per_minute"}) == 2
        assert (await bob.post(bob.count("b", mu="1/8"))).status_code == 200

    run_served(tmp_path, scenario, rules=Rules(Limits(cpu_seconds_per_minute=1), metrics=metrics))


@pytest.mark.parametrize("is_broken", [False, True])
def test_how_long_an_execution_takes_never_refuses_the_next_request(
    is_broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attack: an analyst just below the limit sees from the next refusal whether an execution took long.

    The control counts executions: what the analyst receives then depends on what rows take.
    """
    if is_broken:
        never = property(lambda self: False, lambda self, value: None)
        monkeypatch.setattr(RunningRequest, "has_read", never, raising=False)

    def statuses(seconds: float, folder: Path) -> list[int]:
        seen: list[int] = []
        folder.mkdir()

        async def scenario(served: Served) -> None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(releases, "measure", slow(releases.measure, seconds))
                for number in range(2):
                    seen.append((await served.post(served.count(str(number), mu=f"1/{number + 9}"))).status_code)
                patch.setattr(releases, "measure", slow(failing, seconds))  # also where it fails, and is repeated
                for _ in range(2):
                    seen.append((await served.post(served.count("f", mu="1/5"))).status_code)

        run_served(folder, scenario, rules=Rules(Limits(cpu_seconds_per_minute=1)))
        return seen

    few, many = statuses(0, tmp_path / "few"), statuses(1.1, tmp_path / "many")
    assert few == [200, 200, 500, 500]
    assert (few == many) is not is_broken


def failing(*arguments: Any, **options: Any) -> Any:
    raise MemoryError


def test_every_kind_of_request_says_that_it_reads_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each kind of call that reads rows, the watch hears before anything is read."""
    session = open_people(tmp_path / "people.dpnb", budget=dpnb.Budget(epsilon=2, delta=1e-5, pure_epsilon=0.5))
    frame, heard, read = session.frame, list[object](), list[int]()
    backend = type(session._core.tables.opened)
    sums = backend.sums

    def noted(self: Any, query: Any) -> Any:
        read.append(len(heard))
        return sums(self, query)

    monkeypatch.setattr(backend, "sums", noted)
    age = frame["age"]
    with open_sessions.watched_by(heard.append):
        frame.count().release(mu="1/10")
        frame[age > 40].count().release(mu="1/10")
        scan = session.above_threshold(100, name="many", epsilon="1/10")
        scan.ask(frame[age > 65].count())
    assert read == [1, 2, 3]
    assert heard[-1] is None
    session.ledger.close()


def test_a_body_that_waits_while_the_seconds_are_used_up_is_not_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[bytes] = []

    def slowly(body: bytes) -> Any:
        decoded.append(body)
        use(1.1)
        return decode_envelope(body)

    monkeypatch.setattr(turns, "decode_envelope", slowly)
    monkeypatch.setattr(turns, "SMALL_BODY", 1)

    async def scenario(served: Served) -> None:
        replies = await asyncio.gather(*(served.post(b"[ ]") for _ in range(10)))
        assert sorted(one.status_code for one in replies) == [400] + [429] * 9

    run_served(tmp_path, scenario, rules=Rules(Limits(cpu_seconds_per_minute=1)))
    assert len(decoded) == 1
