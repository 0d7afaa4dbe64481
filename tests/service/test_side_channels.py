"""What analysts share: settings that change, times, streams, the queue; and that they learn nothing of each other."""

from __future__ import annotations

import asyncio
import threading
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dpnb._core.accountant.grant import Mode
from dpnb._core.accountant.granting import restore, revoke
from dpnb.curator.audit import audit
from dpnb.errors import InvalidValueError
from dpnb.interactive import calls
from dpnb.ledger import ChargeSummary, RequestOrigin, parent_launch, row_times
from dpnb.ledger.shared_rows import SharedRows
from dpnb.service import opening
from dpnb.service import requests as service_requests
from dpnb.service.configuration.parts import AmountSettings, DivisionSettings, PartSettings
from dpnb.service.configuration.settings import Limits, TableSettings
from dpnb.service.network import reply_times
from dpnb.service.opening import OpenTable
from dpnb.service.served import Rules
from dpnb.wire.decoding import decode_envelope
from service.served import Served, content, run_served
from service.test_division import HALF, LAUNCHES, division, seeded
from service.test_roles import JSON
from waiting import LIMIT


async def kinds_seen_by_eve(served: Served, kinds: list[str]) -> None:
    eve = served.of("eve")
    rows = content(await eve.get("/v3/tables/people/rows?after=0&pending="))["rows"]
    kinds += [row["values"]["kind"] for row in rows]


def test_a_ledger_in_reserved_mode_is_never_served_to_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attack: the curator takes the analysts out of the settings, and everyone sees what each was answered."""

    async def ask(served: Served) -> None:
        assert (await served.post(served.count("a"))).status_code == 200

    def seen() -> list[str]:
        kinds: list[str] = []

        async def look(served: Served) -> None:
            await kinds_seen_by_eve(served, kinds)

        run_served(tmp_path, look, seeded(tmp_path / "people.dpnb"), DivisionSettings())
        return kinds

    run_served(tmp_path, ask, seeded(tmp_path / "people.dpnb"), division("reserved"))
    session = seeded(tmp_path / "people.dpnb")
    with pytest.raises(InvalidValueError, match=r"here: mode: .* divided in reserved mode"):
        OpenTable(TableSettings("people", "here"), session)
    session.ledger.close()
    monkeypatch.setattr(opening, "_refuse_undivided", lambda settings, tree: None)
    assert set(seen()) == {"grant", "act"}  # the acts revoke both parts

    def includes(self: Any, charge: ChargeSummary) -> bool:  # the control: whatever is inside a part
        parent = parent_launch(charge.node)
        return charge.node == "" or (parent is not None and parent[0] in self._grants)

    monkeypatch.setattr(SharedRows, "_includes", includes)
    assert "release" in seen()


def clock(hour: int) -> type[datetime]:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Clock:
            return cls(2026, 11, 24, hour, tzinfo=tz)

    return Clock


def test_the_time_of_a_row_tells_nothing_of_the_requests_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attack: a request that waits is charged when the one before ends, and how long that takes depends on rows."""
    monkeypatch.setattr(service_requests, "datetime", clock(1))  # when it is received
    monkeypatch.setattr(row_times, "datetime", clock(2))  # when it is charged

    def hours(name: str) -> set[str]:
        seen: set[str] = set()

        async def scenario(served: Served) -> None:
            for body in (served.count("a"), served.body("b", LAUNCHES["scan"])):
                assert (await served.post(body)).status_code == 200
            rows = content(await served.get("/v3/tables/people/rows?after=0&pending="))["rows"]
            seen.update(row["values"]["time"][11:13] for row in rows)

        (tmp_path / name).mkdir()
        run_served(tmp_path / name, scenario, seeded(tmp_path / name / "people.dpnb"), division("reserved"))
        return seen

    assert hours("received") == {"01"}
    monkeypatch.setattr(service_requests, "RequestOrigin", lambda *of: RequestOrigin(*of[:3]))
    assert hours("charged") == {"02"}  # the control


def test_a_stream_shows_that_it_is_open_however_busy_the_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attack: the moments of the comments in a stream told when another analyst asked something."""
    monkeypatch.setattr(reply_times, "HEARTBEAT_SECONDS", 0.05)

    async def scenario(served: Served) -> None:
        feed = served.service.tables["people"].analyst("ana").feed

        async def others() -> None:
            while True:
                feed.notify()
                await asyncio.sleep(0)

        stream, busy = feed.stream(lambda: True), asyncio.create_task(others())
        async with asyncio.timeout(LIMIT):
            assert [(await anext(stream))[:4] for _ in range(4)] == [b"data", *[b": st"] * 3]
        busy.cancel()
        await stream.aclose()  # type: ignore[attr-defined]

    run_served(tmp_path, scenario, seeded(tmp_path / "people.dpnb"), division("reserved"))


def test_a_freeze_does_not_wait_behind_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave, execute = threading.Event(), calls.execute

    def slow(*arguments: Any) -> tuple[int, ...]:
        assert leave.wait(LIMIT)
        return execute(*arguments)

    monkeypatch.setattr(service_requests, "execute", slow)

    async def scenario(served: Served) -> None:
        kim = served.of("kim", "curator")
        tasks = [asyncio.create_task(served.post(served.count(str(n), mu=f"1/{n + 20}"))) for n in range(2)]
        while served.service.tables["people"].analyst("ana").runner.running < 2:
            await asyncio.sleep(0.01)
        body = {"content": b'{"act":"freeze","why":"an audit"}', "headers": {**kim.headers, **JSON}}
        async with asyncio.timeout(LIMIT):
            assert (await served.client.post("/v3/tables/people/acts", **body)).status_code == 200
        leave.set()
        for task in tasks:
            assert "frozen it (an audit)" in content(await task)["message"]

    run_served(tmp_path, scenario, seeded(tmp_path / "people.dpnb"), division("reserved"))


def test_no_more_streams_than_allowed_are_opened_at_once(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        feed = served.service.tables["people"].analyst("ana").feed
        streams = [feed.stream(lambda: True) for _ in range(5)]  # all were accepted before the first was counted
        first = await asyncio.gather(*(anext(stream, b"") for stream in streams))
        assert (first.count(b""), feed.streams) == (3, 2)
        for stream in streams:
            await stream.aclose()  # type: ignore[attr-defined]

    run_served(tmp_path, scenario, rules=Rules(Limits(streams=2)))


@pytest.mark.parametrize("mode", ["reserved", "pooled"])
def test_a_project_that_is_revoked_ends_its_analysts(mode: Mode, tmp_path: Path) -> None:
    amount = {"ceiling": HALF} if mode == "reserved" else {"cap": HALF}
    parts = (
        PartSettings("project", "flu", **amount),
        PartSettings("analyst", "ana", "flu", **amount),
        PartSettings("analyst", "bob", **amount),
    )

    async def scenario(served: Served) -> None:
        account, bob = served.session._core.account, served.of("bob")
        flu = account.tree.grant_named("project", "flu")
        assert flu is not None
        await asyncio.to_thread(revoke, account, flu, version="1")
        refused = await served.post(served.count("a", mu="1/50"))
        assert "revoked" in content(refused)["message"]
        assert (await bob.post(bob.count("b", mu="1/40"))).status_code == 200
        await asyncio.to_thread(restore, account, flu, version="1")
        assert (await served.post(served.count("a", mu="1/50"))).status_code == 200

    run_served(tmp_path, scenario, seeded(tmp_path / "people.dpnb"), DivisionSettings(mode, parts))
    assert audit(str(tmp_path / "people.dpnb")).is_fine


def test_failures_and_ids_of_requests_are_an_analyst_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    execute, is_broken = calls.execute, threading.Event()

    def sometimes(*arguments: Any) -> tuple[int, ...]:
        if is_broken.is_set():
            raise RuntimeError
        return execute(*arguments)

    monkeypatch.setattr(service_requests, "execute", sometimes)

    async def scenario(served: Served) -> None:
        bob = served.of("bob")
        is_broken.set()
        for one, number in ((bob, 1), (bob, 2), (served, 1)):
            reply = content(await one.post(one.count(f"failing {number}".replace(" ", "-"))))
            assert reply["message"] == f"failed, number {number}; the curator's log has the details"
        is_broken.clear()
        assert (await bob.post(bob.count("same", mu="1/9"))).status_code == 200
        assert (await served.post(served.count("same", mu="1/8"))).status_code == 200  # as if the id were new

    run_served(tmp_path, scenario, seeded(tmp_path / "people.dpnb"), division("reserved"))


@pytest.mark.parametrize("mode", ["reserved", "pooled"])
def test_events_tell_of_an_analyst_s_own_rows_only(mode: Mode, tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        bob, feed = served.of("bob"), served.service.tables["people"].analyst("ana").feed
        stream = feed.stream(lambda: True)
        before = msgspec.json.decode((await anext(stream))[len("data: ") :])["rows"]
        assert (await bob.post(bob.count("b", mu="1/9"))).status_code == 200
        if mode == "reserved":
            assert (await served.post(served.count("a", mu="1/8"))).status_code == 200
        async with asyncio.timeout(LIMIT):
            rows = msgspec.json.decode((await anext(stream))[len("data: ") :])["rows"]
        assert rows == before + 1  # the next event is of ana's own row, or, in pooled mode, of bob's
        await stream.aclose()  # type: ignore[attr-defined]

    run_served(tmp_path, scenario, seeded(tmp_path / "people.dpnb"), division(mode))


def test_a_request_that_is_repeated_for_another_version_charges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The curator replaced the table while a client waited for its reply."""

    def charged(version: str) -> tuple[int, int]:
        """The status of the reply, and the number of charges."""
        seen: list[tuple[int, int]] = []

        async def scenario(served: Served) -> None:
            before, reply = served.charges, await served.post(served.count("a"))
            seen.append((reply.status_code, served.charges - before))

        session = seeded(tmp_path / "people.dpnb", version=version)
        run_served(tmp_path, scenario, session, division("reserved"))
        return seen[0]

    assert charged("1") == (200, 1)
    assert charged("2") == (422, 0)
    monkeypatch.setattr(SharedRows, "version_of", lambda self, number: None)  # the control
    assert charged("2") == (200, 1)


@pytest.mark.parametrize("mode", ["reserved", "pooled"])
def test_a_division_that_is_made_while_the_service_runs_holds_for_everybody(
    mode: Mode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attack: an analyst who used the table before keeps the whole budget, and sees what the others are answered."""
    few = AmountSettings(Fraction(1, 1000))

    async def scenario(served: Served) -> None:
        bob, table = served.of("bob"), served.service.tables["people"]
        assert (await served.post(served.count("a", mu="1/1000"))).status_code == 200
        old = table.analyst("ana")  # a request that is being received now will be executed there
        settings = TableSettings("people", "here", division=division(mode, few, HALF))
        await asyncio.to_thread(table.table.worker.submit("", lambda: table.table.divide(settings)).future.result)
        table.end_revoked()
        assert (await bob.post(bob.count("b", mu="1/90"))).status_code == 200
        late = await old.runner.run(decode_envelope(served.count("c", mu="1/100")), lambda: True)
        assert late[0] == 422
        assert "changed how its budget is divided" in getattr(late[1], "message", "")
        refused = await served.post(served.count("d", mu="1/10"))
        assert content(refused)["error"] == "BudgetExceeded"
        rows = content(await served.get("/v3/tables/people/rows?after=0&pending=")).get("rows", [])
        assert len(rows) == (0 if mode == "reserved" else 4)  # two grants, and a release of each
        if mode == "pooled":
            monkeypatch.setattr(OpenTable, "refuse_ended", lambda self, one: None)  # the control: past every cap
            late = await old.runner.run(decode_envelope(served.count("e", mu="1/100")), lambda: True)
            assert late[0] == 200

    run_served(tmp_path, scenario, seeded(tmp_path / "people.dpnb"), DivisionSettings())
    assert audit(str(tmp_path / "people.dpnb")).is_fine
