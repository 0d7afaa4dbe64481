"""The curator ends what runs; what ran when the service ended is not executed again before the curator allows it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dpnb
from dpnb._backends.memory import blocks, execute
from dpnb._backends.memory.memory_backend import MemoryBackend
from dpnb._core.execution import releases
from dpnb._core.pricing.pricer import QueryPricer
from dpnb._request import AnyRequest, Conditions, Release, ReleaseBatch, SelectGroups
from dpnb._target import Target
from dpnb.curator.audit import audit
from dpnb.ledger import Ledger
from dpnb.service.monitoring import Metrics
from dpnb.service.served import Rules
from dpnb.threads import end_if_asked, ended_by
from dpnb.wire.messages import AnyAct, End, Resume
from service.served import Served, content, open_people, run_served
from service.test_division import BUDGET, LAUNCHES, division
from service.test_turns import until
from waiting import LIMIT, wait_until

TARGET = Target("mu", Fraction(1, 50))


class Curator:
    """A curator of a served table."""

    def __init__(self, served: Served) -> None:
        self._served = served.of("eve", "curator")

    async def act(self, one: AnyAct) -> tuple[int, Any]:
        headers = {**self._served.headers, "Content-Type": "application/json"}
        path = "/v3/tables/people/acts"
        reply = await self._served.client.post(path, content=msgspec.json.encode(one), headers=headers)
        return reply.status_code, content(reply)

    async def state(self) -> Any:
        return content(await self._served.get("/v3/tables/people/state"))

    async def held(self) -> list[int]:
        return [one["row"] for one in (await self.state())["held"]]

    async def running(self, name: str = "ana") -> int:
        """The number of the running request of an analyst, once it runs."""
        seen: list[Any] = []
        async with asyncio.timeout(LIMIT):
            while not seen or seen[-1] is None or seen[-1]["analyst"] != name:
                seen.append((await self.state())["running"])
                await asyncio.sleep(0.02)
        return int(seen[-1]["number"])


def waiting_for_the_end(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Let each query look for its end at every step, without another end, until the event is set."""
    go_on, sums = threading.Event(), MemoryBackend.sums

    def endless(self: MemoryBackend, query: Any) -> Any:
        while not go_on.wait(0.005):
            end_if_asked()
        return sums(self, query)

    monkeypatch.setattr(MemoryBackend, "sums", endless)
    return go_on


def calls_of(session: dpnb.Session) -> dict[str, AnyRequest]:
    frame = session.frame
    mean, sizes = frame["age"].mean(), frame.groupby(frame["age"] > 50).size()
    batch = tuple(Release(one.plan, one.view, TARGET) for one in (sizes, frame.count()))
    return {
        "release": Release(mean.plan, mean.view, TARGET),
        "batch": ReleaseBatch(batch),
        "select": SelectGroups(sizes.plan, 1, Fraction(1, 100)),
    }


@pytest.mark.parametrize("mode", ["reserved", "pooled"])
@pytest.mark.parametrize("kind", ["release", "batch", "select"])
def test_a_charged_request_that_the_curator_ends_stays_charged_and_the_next_one_runs(
    kind: str, mode: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = waiting_for_the_end(monkeypatch)

    async def scenario(served: Served) -> None:
        bob, curator, call = served.of("bob"), Curator(served), calls_of(served.session)[kind]
        for one in (served, bob):
            await one.get("/v3/tables/people")
        own = asyncio.create_task(served.post(served.body("a", call)))
        number = await curator.running()
        other = asyncio.create_task(bob.post(bob.count("b", mu="1/9")))
        await until(lambda: served.service.tables["people"].table.worker.waiting == 1)
        status, refused = await curator.act(End(number + 1))
        assert (status, refused["error"]) == (422, "InvalidValueError")
        assert f"number {number} runs" in refused["message"]
        before = served.charges
        assert (await curator.act(End(number)))[0] == 200
        ended = await own
        assert (ended.status_code, content(ended)["error"]) == (422, "ExecutionStopped")
        assert "was charged, and the curator ended it; the charge stands" in content(ended)["message"]
        assert await curator.running("bob") == number + 1
        go_on.set()
        assert (await other).status_code == 200
        assert served.charges == before + 2  # the act, and bob's
        held = await curator.held()
        row = held[0]
        assert len(held) == {"release": 1, "batch": 2, "select": 1}[kind]
        assert served.session.ledger.by_id((row,))[0].status == "failed"
        for name in ("a", "again"):  # under any id
            refused = await served.post(served.body(name, call))
            assert content(refused)["error"] == "ExecutionStopped"
            assert "ask the curator" in content(refused)["message"]
        status, refused = await curator.act(Resume(1000))
        assert (status, str(row) in refused["message"]) == (422, True)
        assert (await curator.act(Resume(held[-1])))[0] == 200  # any row of a batch is for all of it
        before = served.charges
        answered = await served.post(served.body("a", call))
        assert (answered.status_code, served.charges) == (200, before)
        assert await curator.held() == []
        assert (await curator.act(Resume(row)))[0] == 422
        await sees_own_acts_only(served, bob, mode)

    session = open_people(tmp_path / "people.dpnb", budget=BUDGET)
    run_served(tmp_path, scenario, session, division=division(mode))
    assert audit(str(tmp_path / "people.dpnb")).is_fine


async def sees_own_acts_only(served: Served, bob: Served, mode: str) -> None:
    """In reserved mode, the acts are among the rows of the analyst whom they are about, with that analyst's numbers."""
    acts = []
    for one in (served, bob):
        rows = content(await one.get("/v3/tables/people/rows?after=0&pending="))["rows"]
        values = [row["values"] for row in rows]
        acts.append([msgspec.json.decode(row["details"]) for row in values if row["kind"] == "act"])
        assert all(values[act["row"] - 1]["kind"] in ("release", "selection") for act in acts[-1])
    assert [one["act"] for one in acts[0]] == ["end", "resume"]
    assert acts[1] == ([] if mode == "reserved" else acts[0])


def test_a_request_that_is_ended_before_its_charge_is_not_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The price is computed while it is asked to end, without a look at that; the charge is not written."""
    price, ending = QueryPricer.price, threading.Event()

    def slow(self: QueryPricer, *arguments: Any) -> Any:
        computed = price(self, *arguments)
        running = tables[0].running
        assert running is not None
        ending.set()
        wait_until(lambda: running.asked_to_end.is_set(), "the curator")
        return computed

    tables: list[Any] = []

    async def scenario(served: Served) -> None:
        curator = Curator(served)
        tables.append(served.service.tables["people"].table)
        with monkeypatch.context() as patch:
            patch.setattr(QueryPricer, "price", slow)
            own = asyncio.create_task(served.post(served.count("a")))
            await until(ending.is_set)
            assert (await curator.act(End(tables[0].running.number)))[0] == 200
            ended = content(await own)
        assert ended["error"] == "ExecutionStopped"
        assert "before it was charged; nothing was charged" in ended["message"]
        assert [charge.kind for charge in served.session.ledger.charges()] == ["act"]
        assert await curator.held() == []
        assert (await curator.act(End(1)))[0] == 422  # none runs
        assert (await served.post(served.count("a"))).status_code == 200

    run_served(tmp_path, scenario)
    assert audit(str(tmp_path / "people.dpnb")).is_fine


def test_blocks_are_the_steps_of_a_table_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No block is begun once the end is asked for; the control asks for none."""
    begun: list[int] = []
    asked = threading.Event()

    def work(block: slice) -> None:
        begun.append(block.start)
        if len(begun) == 3:
            asked.set()

    monkeypatch.setattr(blocks, "cores", lambda: 1)
    parts = blocks.even_blocks(1000, size=10)
    with ended_by(asked), pytest.raises(KeyboardInterrupt):
        blocks.by_blocks(work, parts)
    assert len(begun) == 3
    blocks.by_blocks(work, parts)
    assert len(begun) == 103


def ended(folder: Path, session: dpnb.Session, call: Callable[[dpnb.Session], AnyRequest]) -> None:
    """Execute a real query that takes minutes, and end it once it has been charged."""

    async def scenario(served: Served) -> None:
        curator = Curator(served)
        own = asyncio.create_task(served.post(served.body("a", call(served.session))))
        number = await curator.running()
        await until(lambda: served.charges == 1)
        assert (await curator.act(End(number)))[0] == 200
        assert content(await own)["error"] == "ExecutionStopped"
        assert [one.status for one in served.session.ledger.charges()] == ["failed", "released"]

    run_served(folder, scenario, session)


def test_a_query_of_a_table_in_memory_ends_between_its_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_blocks = blocks.by_blocks

    def many(work: Any, parts: Any, *arguments: Any) -> Any:
        return by_blocks(work, [part for part in parts for _ in range(3 * 10**5)], *arguments)

    for module in (blocks, execute):
        monkeypatch.setattr(module, "by_blocks", many)
    ended(tmp_path, open_people(tmp_path / "people.dpnb"), lambda session: calls_of(session)["release"])


def test_a_query_of_an_engine_is_interrupted(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    table = connection.sql("SELECT (range % 100)::INTEGER AS age FROM range(200_000_000_000)")
    session = dpnb.Session(
        table,
        name="people",
        budget=dpnb.Budget.gdp(1),
        schema={"age": dpnb.Bounded(0, 100, integer=True)},
        ledger=tmp_path / "people.dpnb",
    )
    ended(tmp_path, session, lambda session: calls_of(session)["release"])


# --- what ran when the service ended ----------------------------------------------------------------------------------


def dying(patch: pytest.MonkeyPatch) -> None:
    """Leave each charge as a kill leaves it: charged, without an answer."""

    def dies(*arguments: Any, **options: Any) -> Any:
        raise SystemExit

    patch.setattr(MemoryBackend, "sums", dies)
    patch.setattr(Ledger, "fail", lambda self, charge: None)


@pytest.mark.parametrize("kind", ["release", "batch", "select"])
def test_what_ran_when_the_service_ended_waits_for_the_curator(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def served_again(scenario: Callable[[Served], Awaitable[None]]) -> None:
        session = open_people(tmp_path / "people.dpnb", budget=BUDGET)
        run_served(tmp_path, scenario, session, division=division("reserved"), rules=Rules(metrics=metrics))

    async def killed(served: Served) -> None:
        assert (await served.post(served.body("a", calls_of(served.session)[kind]))).status_code == 500

    async def repeated(served: Served) -> None:
        bob, curator, call = served.of("bob"), Curator(served), calls_of(served.session)[kind]
        held, before = await curator.held(), served.charges
        assert len(held) == {"release": 1, "batch": 2, "select": 1}[kind]
        assert metrics.registry.get_sample_value("dpnb_held", {"table": "people"}) == len(held)
        first = (await curator.state())["held"][0]
        assert (first["analyst"], first["why"]) == ("ana", "the service ended before it was answered")
        for name in ("a", "b"):
            refused = await served.post(served.body(name, call))
            assert content(refused)["error"] == "ExecutionStopped"
            assert "row 1 was charged" in content(refused)["message"]  # ana's own first row
        assert (await bob.post(bob.body("a", call))).status_code == 200  # of bob's own part
        assert (await served.post(served.count("c"))).status_code == 200  # everything else goes on
        assert read == ["bob", "ana"] or len(read) > 2
        assert served.charges > before
        count = served.charges
        assert (await curator.act(Resume(held[0])))[0] == 200
        assert (await served.post(served.body("a", call))).status_code == 200
        assert served.charges == count + 1  # the act
        assert await curator.held() == []

    metrics, read = Metrics(), list[str]()
    with monkeypatch.context() as patch:
        dying(patch)
        served_again(killed)
    sums = MemoryBackend.sums

    def noted(self: MemoryBackend, query: Any) -> Any:
        read.append("ana" if read else "bob")
        return sums(self, query)

    monkeypatch.setattr(MemoryBackend, "sums", noted)
    served_again(repeated)
    assert audit(str(tmp_path / "people.dpnb")).is_fine


def test_so_does_a_step_of_a_mechanism(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its launch is recorded, and so are the steps before; only the step that ran waits."""

    def step(served: Served, number: int) -> bytes:
        total = served.session.frame["age"].sum()
        release = Release(total.plan, total.view, Target("mu", Fraction(number, 1001)))
        return served.body(f"s{number}", release, conditions=Conditions("1"))

    async def killed(served: Served) -> None:
        assert (await served.post(served.body("l", LAUNCHES["nr"]))).status_code == 200
        assert (await served.post(step(served, 1))).status_code == 200
        with monkeypatch.context() as patch:
            dying(patch)
            assert (await served.post(step(served, 2))).status_code == 500

    async def repeated(served: Served) -> None:
        curator = Curator(served)
        (row,) = await curator.held()
        before = served.charges
        assert (await served.post(step(served, 1))).status_code == 200
        refused = content(await served.post(step(served, 2)))
        assert (refused["error"], "row 3 was charged" in refused["message"]) == ("ExecutionStopped", True)
        assert served.charges == before
        assert (await curator.act(Resume(row)))[0] == 200
        assert (await served.post(step(served, 2))).status_code == 200
        assert served.charges == before + 1

    for scenario in (killed, repeated):
        session = open_people(tmp_path / "people.dpnb", budget=BUDGET)
        run_served(tmp_path, scenario, session, division=division("reserved"))


def test_what_the_curator_ended_waits_also_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def first(served: Served) -> None:
        curator = Curator(served)
        with monkeypatch.context() as patch:
            waiting_for_the_end(patch)
            own = asyncio.create_task(served.post(served.count("a")))
            number = await curator.running()
            await until(lambda: served.charges == 1)
            assert (await curator.act(End(number)))[0] == 200
            assert (await own).status_code == 422

    async def second(served: Served) -> None:
        curator = Curator(served)
        assert await curator.held() == [1]
        refused = content(await served.post(served.count("a")))
        assert "the curator ended it" in refused["message"]
        assert (await curator.act(Resume(1)))[0] == 200
        assert (await served.post(served.count("a"))).status_code == 200

    async def third(served: Served) -> None:
        assert await Curator(served).held() == []

    for scenario in (first, second, third):
        run_served(tmp_path, scenario, open_people(tmp_path / "people.dpnb"))


def test_a_request_that_runs_out_of_memory_has_failed_and_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process goes on, so the charge does not wait for the curator; the client does not repeat it on its own."""

    def full(*arguments: Any, **options: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(releases, "measure", full)

    async def scenario(served: Served) -> None:
        failed = await served.post(served.count("a"))
        assert (failed.status_code, content(failed)["error"]) == (500, "ExecutionError")
        assert [one.status for one in served.session.ledger.charges()] == ["failed"]
        assert await Curator(served).held() == []

    run_served(tmp_path, scenario)


def test_a_local_session_answers_what_was_left_without_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_people(tmp_path / "people.dpnb")
    with monkeypatch.context() as patch:
        dying(patch)
        with pytest.raises(dpnb.errors.ExecutionError):
            session.frame.count().release(mu="1/10")
    session.ledger.close()
    again = open_people(tmp_path / "people.dpnb")
    assert again.frame.count().release(mu="1/10").estimate is not None
    assert again.ledger.count == 1
    again.ledger.close()
