"""Requests of analysts for a larger cap, and the curator's decisions about them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest
from msgspec.structs import replace

import dpnb
from dpnb._core.accountant.grant import Mode
from dpnb._request import AnyRequest, DelegateBudget, LaunchMechanism, Release, RequestBudget
from dpnb._target import Target
from dpnb.accounting.losses import GDP
from dpnb.curator.audit import audit
from dpnb.curator.verification import verify
from dpnb.errors import InvalidValueError, RequestError
from dpnb.interactive.calls import execute
from dpnb.ledger import node_of, row_times
from dpnb.ledger.origin import RequestOrigin, requested_by
from dpnb.ledger.shared_rows import SharedRows
from dpnb.service import requests as service_requests
from dpnb.service.configuration.parts import AmountSettings, DivisionSettings, PartSettings
from dpnb.service.configuration.settings import TableSettings
from dpnb.service.curation import acts
from dpnb.service.opening import OpenTable
from dpnb.session.disclosure.building import report_of
from dpnb.wire.messages import AnyAct, Approve, Components, Decline, MoveCap, Restore, Revoke
from service.served import Served, content, open_people, run_served

HALF, ALL = AmountSettings(Fraction(1, 2)), AmountSettings(Fraction(1))
SMALL = AmountSettings(Fraction(1, 100))
STATE = "/v3/tables/people/state"
ACTS = "/v3/tables/people/acts"


def division(mode: Mode, cap: AmountSettings = SMALL) -> DivisionSettings:
    if mode == "reserved":
        return DivisionSettings(
            mode, tuple(PartSettings("analyst", name, ceiling=HALF, cap=cap) for name in ("ana", "bob"))
        )
    return DivisionSettings(mode, tuple(PartSettings("analyst", name, cap=cap) for name in ("ana", "bob")))


class Clock(datetime):
    """A clock that a test moves."""

    moment = datetime(2026, 11, 24, tzinfo=UTC)

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return cls.moment


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    for module in (row_times, service_requests):  # of rows, and of the receipt of requests
        monkeypatch.setattr(module, "datetime", Clock)
    monkeypatch.setattr(Clock, "moment", datetime(2026, 11, 24, tzinfo=UTC))
    return Clock


def queries(session: dpnb.Session) -> dict[str, Any]:
    df = session.frame
    return {"count": df.count(), "mean": df["age"].mean(), "groups": df.groupby("age", keys=[20, 30]).size()}


def wants(served: Served, mu: str = "1/4", *names: str, why: str = "for the report") -> RequestBudget:
    made = queries(served.session)
    wanted = [made[name] for name in names or ("count",)]
    return RequestBudget(tuple(Release(one.plan, one.view, Target("mu", Fraction(mu))) for one in wanted), why)


async def act(curator: Served, one: AnyAct | bytes) -> Any:
    body = one if isinstance(one, bytes) else msgspec.json.encode(one)
    return await curator.client.post(
        ACTS, content=body, headers={**curator.headers, "Content-Type": "application/json"}
    )


async def requests(curator: Served) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = content(await curator.get(STATE))["requests"]
    return listed


def run(
    folder: Path,
    scenario: Callable[[Served, Served], Awaitable[None]],
    mode: Mode = "reserved",
    *,
    is_fine: bool = True,
    parts: DivisionSettings | None = None,
    **changes: Any,
) -> None:
    """A scenario with ana and a curator."""

    async def both(served: Served) -> None:
        await scenario(served, served.of("carl", "curator"))

    options = {"budget": dpnb.Budget.gdp(1), "not_private_test_seed": 26, **changes}
    run_served(folder, both, open_people(folder / "people.dpnb", **options), parts or division(mode))
    if is_fine:
        result = audit(str(folder / "people.dpnb"))
        assert result.is_fine, result.problems


@pytest.mark.parametrize("mode", ["reserved", "pooled"])
def test_an_approved_request_raises_the_cap_by_what_it_costs(mode: Mode, tmp_path: Path) -> None:
    async def scenario(ana: Served, curator: Served) -> None:
        assert content(await ana.post(ana.count("a", mu="1/4")))["error"] == "BudgetExceeded"
        before = ana.session._core.account.filter
        asked = content(await ana.post(ana.body("b", wants(ana))))
        assert asked["reply"] == "done"
        assert ana.session._core.account.filter == before  # a request costs nothing
        (one,) = await requests(curator)
        assert (one["analyst"], one["status"], one["why"]) == ("ana", "pending", "for the report")
        (query,) = one["queries"]
        assert (query["words"], query["target"], query["cost"]["mu"]) == ("count of rows", "mu=0.25", "0.25")
        assert query["error"].startswith("±")
        assert one["total"] == {"words": "mu 0.25", "mu": "0.25", "discovery_delta": None, "pure_epsilon": None}
        assert content(await ana.post(ana.count("c", mu="1/4")))["error"] == "BudgetExceeded"  # not decided yet
        assert (await act(curator, Approve(one["number"], one["digest"], why="fine"))).status_code == 200
        (one,) = await requests(curator)
        assert (one["status"], one["decided_by"], one["granted"]["mu"], one["reason"]) == (
            "approved",
            "carl",
            "0.25",
            "fine",
        )
        assert (await ana.post(ana.count("d", mu="1/4"))).status_code == 200
        assert content(await ana.post(ana.count("e", mu="2/7")))["error"] == "BudgetExceeded"

    run(tmp_path, scenario, mode)


def test_a_part_of_it_raises_the_cap_by_less(tmp_path: Path) -> None:
    async def scenario(ana: Served, curator: Served) -> None:
        await ana.post(ana.body("a", wants(ana, "1/4", "count", "mean")))
        (one,) = await requests(curator)
        for amount in (Components(mu="0.4"), Components(discovery_delta="1e-9"), Components(), Components(share="1.5")):
            reply = await act(curator, Approve(one["number"], one["digest"], amount))
            assert content(reply)["error"] == "InvalidValueError", amount
        assert (await act(curator, Approve(one["number"], one["digest"], Components(share="1/2")))).status_code == 200
        (one,) = await requests(curator)
        assert (one["status"], one["granted"]["words"]) == ("approved in part", "mu 0.25")
        assert (await ana.post(ana.count("b", mu="1/4"))).status_code == 200

    run(tmp_path, scenario)


def test_an_approval_that_lapses_is_decided_by_the_time_of_the_charge(tmp_path: Path, clock: type[Clock]) -> None:
    async def scenario(ana: Served, curator: Served) -> None:
        await ana.post(ana.body("a", wants(ana)))
        (one,) = await requests(curator)
        past = await act(curator, Approve(one["number"], one["digest"], until="2026-11-23T00:00:00Z"))
        assert "later than now" in content(past)["message"]
        assert (
            await act(curator, Approve(one["number"], one["digest"], until="2026-11-25T00:00:00+00:00"))
        ).status_code == 200
        clock.moment += timedelta(hours=23)
        assert (await ana.post(ana.count("b", mu="1/5"))).status_code == 200
        clock.moment += timedelta(hours=1)
        assert (await requests(curator))[0]["status"] == "lapsed"
        assert content(await ana.post(ana.count("c", mu="2/9")))["error"] == "BudgetExceeded"
        assert (await ana.post(ana.count("b2", mu="1/5"))).status_code == 200  # what was charged stays
        (part,) = [part for part in content(await curator.get(STATE))["parts"] if part["name"] == "ana"]
        assert part["cap"]["mu"] == "0.07071067811865475"

    run(tmp_path, scenario)
    session = open_people(tmp_path / "people.dpnb", budget=dpnb.Budget.gdp(1), not_private_test_seed=26)
    account = session._core.account
    (part, _) = account.tree.grants().values()
    with requested_by(RequestOrigin("ana")), account.ledger.transaction():  # the control: past the filter, a day later
        account.ledger.reserve(
            request_key="x", node=node_of(part.id), table_version="1", query_key="q", request="{}",
            loss=GDP(0.01), sigma=1.0,
        )  # fmt: skip
    session.ledger.close()
    assert "beyond its cap" in audit(str(tmp_path / "people.dpnb")).problems[0]


def test_an_approval_that_lapses_leaves_a_statement_as_it_was(tmp_path: Path, clock: type[Clock]) -> None:
    ledger, statement = str(tmp_path / "people.dpnb"), str(tmp_path / "statement.json")

    async def scenario(ana: Served, curator: Served) -> None:
        await ana.post(ana.body("a", wants(ana)))
        (one,) = await requests(curator)
        await act(curator, Approve(one["number"], one["digest"], until="2026-11-25T00:00:00Z"))
        report = await asyncio.to_thread(report_of, ledger)
        report.save(statement)
        assert [one.cap for one in report.division.parts] == ["mu 0.2599", "mu 0.07072"]
        assert [one.words.split(":")[0] for one in report.acts[-2:]] == ["request for budget", "request 5 approved"]

    run(tmp_path, scenario)
    clock.moment += timedelta(days=30)
    assert verify(statement, ledger).is_fine


def test_the_rows_of_a_transaction_have_the_time_at_which_they_were_admitted(clock: type[Clock]) -> None:
    session = open_people(":memory:")
    with session.ledger.transaction():
        first = session.ledger.time
        clock.moment += timedelta(hours=1)
        assert session.ledger.time == first
    assert session.ledger.time > first


def test_an_identical_pending_request_is_the_same_one(tmp_path: Path) -> None:
    async def scenario(ana: Served, curator: Served) -> None:
        first = content(await ana.post(ana.body("a", wants(ana))))
        rows = ana.charges
        assert content(await ana.post(ana.body("b", wants(ana))))["ids"] == first["ids"]
        assert ana.charges == rows
        assert content(await ana.post(ana.body("c", wants(ana, "1/5"))))["ids"] != first["ids"]
        (one, _) = await requests(curator)
        await act(curator, Decline(one["number"], one["digest"], "not now"))
        again = content(await ana.post(ana.body("a", wants(ana))))  # the same id: a repeated request
        assert again["ids"] == first["ids"]
        assert content(await ana.post(ana.body("d", wants(ana))))["ids"] != first["ids"]  # asked again

    run(tmp_path, scenario)


def test_what_no_decision_could_grant_is_refused(tmp_path: Path) -> None:
    cases: list[tuple[DivisionSettings, str]] = [
        (division("reserved", ALL), "your cap is at your ceiling"),
        (division("pooled", ALL), "your cap is at the budget of the table"),
        (DivisionSettings("pooled", (PartSettings("analyst", "ana"),)), "no cap limits you below the budget"),
        (
            DivisionSettings("reserved", (PartSettings("analyst", "ana", ceiling=HALF),)),
            "no cap limits you below your ceiling",
        ),
        (DivisionSettings(), "no cap of its own"),
    ]
    for number, (parts, words) in enumerate(cases):

        async def scenario(ana: Served, curator: Served, words: str = words) -> None:
            reply = content(await ana.post(ana.body("a", wants(ana))))
            assert (reply["error"], words in reply["message"]) == ("RequestError", True), reply

        folder = tmp_path / str(number)
        folder.mkdir()
        run(folder, scenario, parts=parts)


@pytest.mark.parametrize("mode", ["reserved", "pooled"])
def test_a_request_is_about_the_whole_session(mode: Mode, tmp_path: Path) -> None:
    """A client may send any node of its own; inside a sub-session another budget would be charged."""

    async def scenario(ana: Served, curator: Served) -> None:
        launch = LaunchMechanism("own", DelegateBudget("gdp", {"mu_squared": "1/10000"}))
        launched = content(await ana.post(ana.body("s", launch)))
        reply = content(await ana.post(ana.body("a", wants(ana), node=node_of(launched["ids"][0]))))
        assert (reply["error"], "no cap of its own" in reply["message"]) == ("RequestError", True), reply
        assert await requests(curator) == []

    run(tmp_path, scenario, mode)


@pytest.mark.parametrize("is_broken", [False, True])
def test_nobody_decides_about_a_budget_that_they_use(
    is_broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a user of JupyterHub whose role has both scopes."""
    if is_broken:  # control
        monkeypatch.setattr(acts, "refuse_own_part", lambda account, actor: None)

    async def scenario(ana: Served, curator: Served) -> None:
        await ana.post(ana.body("a", wants(ana)))
        (listed,) = await requests(curator)
        table = ana.service.tables["people"].table
        approval = Approve(listed["number"], listed["digest"])
        if is_broken:
            acts.act(table, "ana", approval)
            return
        with pytest.raises(InvalidValueError, match="must have no part of the budget"):
            acts.act(table, "ana", approval)
        acts.act(table, "carl", Revoke("analyst", "bob"))
        acts.act(table, "bob", approval)  # who can no longer use it

    run(tmp_path, scenario, is_fine=False)
    assert audit(str(tmp_path / "people.dpnb")).is_fine != is_broken


def test_requests_are_limited(tmp_path: Path) -> None:
    async def scenario(ana: Served, curator: Served) -> None:
        many = RequestBudget(wants(ana).releases * 21, "for the report")
        for number, (call, field) in enumerate(
            (
                (many, "releases"),
                (RequestBudget((), "why"), "releases"),
                (wants(ana, why="x" * 501), "why"),
                (wants(ana, why=""), "why"),
                (wants(ana, why="a\nb"), "why"),
                (wants(ana, why="  "), "why"),
                (wants(ana, "1/4", "count", "count"), "queries"),
            )
        ):
            reply = await ana.post(ana.body(f"x{number}", call))
            assert (reply.status_code in (400, 422), content(reply)["error"]) == (True, "RequestError"), reply.content
            assert f"{field}: must" in content(reply)["message"]
        share = RequestBudget((replace(wants(ana).releases[0], target=Target("share", Fraction(1, 2))),), "why")
        assert "share" in content(await ana.post(ana.body("share", share)))["message"]
        await ana.post(ana.count("r", mu="1/50"))
        assert "costs nothing" in content(await ana.post(ana.body("free", wants(ana, "1/50"))))["message"]
        sub = await ana.post(ana.body("sub", wants(ana), node="1"))
        assert content(sub)["error"] == "RequestError"
        for number in range(10):
            assert (await ana.post(ana.body(f"n{number}", wants(ana, f"1/{number + 3}")))).status_code == 200
        rows = ana.charges
        refused = content(await ana.post(ana.body("more", wants(ana, "1/30"))))
        assert (refused["error"], "pending" in refused["message"]) == ("RequestError", True)
        assert ana.charges == rows
        bob = ana.of("bob")
        assert (await bob.post(bob.body("bob", wants(bob)))).status_code == 200
        assert [one["status"] for one in await requests(curator)] == ["pending"] * 11

    run(tmp_path, scenario)


def test_a_local_session_has_nobody_to_ask() -> None:
    session = open_people(":memory:")
    query = session.frame.count()
    call: AnyRequest = RequestBudget((Release(query.plan, query.view, Target("mu", Fraction(1, 4))),), "why")
    with pytest.raises(RequestError, match=r"dpnb\.connect"):
        execute(session._mechanisms, call)
    assert session.ledger.count == 0


# --- decisions ------------------------------------------------------------------------------------------------------


def test_a_decision_names_what_was_shown_and_is_made_once(tmp_path: Path) -> None:
    async def scenario(ana: Served, curator: Served) -> None:
        await ana.post(ana.body("a", wants(ana)))
        await ana.post(ana.body("b", wants(ana, "1/5")))
        one, two = await requests(curator)
        rows = ana.charges
        for wrong in (
            Approve(one["number"], two["digest"]),
            Decline(one["number"], ""),
            Approve(one["number"] + 50, one["digest"]),
            Approve(1, one["digest"]),
            Approve(one["number"], one["digest"], why="a\x1b[2J"),
            Approve(one["number"], one["digest"], until="tomorrow"),
            Approve(one["number"], one["digest"], until="2027-01-01"),
            Approve(one["number"], one["digest"], until="9999-12-31T23:59:59-23:00"),
        ):
            reply = await act(curator, wrong)
            assert (reply.status_code, content(reply)["error"]) == (422, "InvalidValueError"), wrong
        assert ana.charges == rows
        approval = Approve(one["number"], one["digest"])
        assert (await act(curator, approval)).status_code == 200
        for again in (approval, Decline(one["number"], one["digest"])):
            assert "already decided by carl" in content(await act(curator, again))["message"]
        assert ana.charges == rows + 1

    run(tmp_path, scenario)


def test_hostile_bodies_of_acts_are_refused_by_type(tmp_path: Path) -> None:
    bodies = [
        b"",
        b"[]",
        b"null",
        b'{"act":"approve"}',
        b'{"act":"approve","request":"1","digest":""}',
        b'{"act":"approve","request":-1,"digest":""}',
        b'{"act":"approve","request":1' + b"0" * 5000 + b',"digest":""}',
        b'{"act":"approve","request":1,"digest":"","amount":0.1}',
        b'{"act":"approve","request":1,"digest":"","amount":{"mu":0.1}}',
        b'{"act":"approve","request":1,"digest":"","actor":"ana"}',
        b'{"act":"move_cap","level":"table","name":"x","cap":null}',
        b'{"act":"move_cap","level":"analyst","name":"ana","cap":{"mu":"1e99"}}',
        b'{"act":"move_cap","level":"analyst","name":"ana","cap":{"mu":"nan"}}',
        b'{"act":"move_cap","level":"analyst","name":"ana","cap":{"mu":"1/0"}}',
        b'{"act":"move_cap","level":"analyst","name":"ana","cap":{"mu":"-1"}}',
        b'{"act":"move_cap","level":"analyst","name":"ana","cap":{"mu":"5"}}',
        b'{"act":"move_cap","level":"analyst","name":"ana","cap":{}}',
        b'{"act":"revoke","level":"analyst","name":"\\ud800"}',
        b'{"act":"revoke","level":"analyst","name":"' + b"x" * 5000 + b'"}',
        b'{"act":"restore","level":"project","name":"ana"}',
        b'{"act":"explode"}',
        b"[" * 9000,
    ]

    async def scenario(ana: Served, curator: Served) -> None:
        rows = ana.charges
        for body in bodies:
            reply = await act(curator, body)
            assert reply.status_code in (400, 422), (body[:80], reply.content)
            assert content(reply)["error"] in ("RequestError", "InvalidValueError")
            assert len(reply.content) < 1000
        assert ana.charges == rows
        assert (await act(ana, b'{"act":"unfreeze"}')).status_code == 403

    run(tmp_path, scenario)


@pytest.mark.parametrize("mode", ["reserved", "pooled"])
def test_a_curator_moves_caps_and_revokes(mode: Mode, tmp_path: Path) -> None:
    async def scenario(ana: Served, curator: Served) -> None:
        assert (await act(curator, MoveCap("analyst", "ana", Components(mu="0.3")))).status_code == 200
        rows = ana.charges
        assert (await act(curator, MoveCap("analyst", "ana", Components(mu="0.3")))).status_code == 200
        assert ana.charges == rows  # it is there already
        assert (await ana.post(ana.count("a", mu="1/4"))).status_code == 200
        assert (await act(curator, Revoke("analyst", "ana"))).status_code == 200
        for call in (ana.count("b", mu="2/7"), ana.body("c", wants(ana, "2/7"))):
            assert "revoked" in content(await ana.post(call))["message"]
        assert (await act(curator, Restore("analyst", "ana"))).status_code == 200
        assert (await ana.post(ana.count("d", mu="2/7"))).status_code == 200
        page = content(await curator.get("/v3/tables/people/audit"))
        acts = [(row["actor"], row["words"]) for row in page["rows"] if row["kind"] == "act" and row["actor"] == "carl"]
        assert [words for _, words in acts] == [
            "analyst ana: cap moved to mu 0.3",
            "analyst ana: part of the budget revoked",
            "analyst ana: part of the budget restored",
        ]

    run(tmp_path, scenario, mode)


def test_a_moved_cap_ends_earlier_approvals(tmp_path: Path) -> None:
    async def scenario(ana: Served, curator: Served) -> None:
        await ana.post(ana.body("a", wants(ana)))
        (one,) = await requests(curator)
        await act(curator, Approve(one["number"], one["digest"]))
        await act(curator, MoveCap("analyst", "ana", Components(share="1/50")))
        assert content(await ana.post(ana.count("b", mu="1/5")))["error"] == "BudgetExceeded"
        assert (await ana.post(ana.count("c", mu="1/10"))).status_code == 200

    run(tmp_path, scenario)


# --- a restart ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["reserved", "pooled"])
@pytest.mark.parametrize("again", ["restart", "reload"])
def test_what_a_curator_did_survives_a_restart_with_the_same_settings(mode: Mode, again: str, tmp_path: Path) -> None:
    def caps(table: OpenTable) -> dict[str, tuple[Any, bool]]:
        tree = table.session._core.account.tree
        return {one.name: (tree.cap(node_of(one.id)), one.is_revoked) for one in tree.grants().values()}

    def restarted(table: OpenTable, parts: DivisionSettings) -> OpenTable:
        settings = TableSettings("people", "here", division=parts)
        if again == "reload":
            table.divide(settings)
            return table
        table.close()
        return OpenTable(settings, open_people(tmp_path / "people.dpnb", not_private_test_seed=26))

    async def scenario(ana: Served, curator: Served) -> None:
        await ana.post(ana.body("a", wants(ana)))
        (one,) = await requests(curator)
        await act(curator, Approve(one["number"], one["digest"]))
        await act(curator, Revoke("analyst", "bob"))
        served = ana.service.tables["people"]
        before = caps(served.table)
        rows = ana.charges
        table = served.table = await asyncio.to_thread(restarted, served.table, division(mode))
        assert caps(table) == before
        assert table.session.ledger.count == rows
        assert before["bob"][1]
        changed = await asyncio.to_thread(restarted, table, division(mode, HALF))  # the file has other caps
        served.table = changed
        assert caps(changed)["ana"][0] != before["ana"][0]
        assert caps(changed)["bob"][1]  # which says nothing new about who has access
        without = DivisionSettings(mode, division(mode, HALF).parts[:1])
        for parts in (without, division(mode, HALF)):
            served.table = changed = await asyncio.to_thread(restarted, changed, parts)
        assert not caps(changed)["bob"][1]  # the file took bob out, and has him again

    run(tmp_path, scenario, mode)


def test_the_file_is_followed_also_where_a_curator_did_the_same_before(tmp_path: Path) -> None:
    async def scenario(ana: Served, curator: Served) -> None:
        table = ana.service.tables["people"].table
        tree = table.session._core.account.tree
        part = tree.grant_named("analyst", "ana")
        assert part is not None
        await act(curator, MoveCap("analyst", "ana", Components(share="1/2")))
        await asyncio.to_thread(table.divide, TableSettings("people", "here", division=division("reserved", HALF)))
        await act(curator, MoveCap("analyst", "ana", Components(share="1/4")))
        moved = tree.cap(node_of(part.id))
        await asyncio.to_thread(table.divide, TableSettings("people", "here", division=division("reserved", HALF)))
        assert tree.cap(node_of(part.id)) == moved  # the file says what it said

    run(tmp_path, scenario)


# --- what the others see --------------------------------------------------------------------------------------------


def without_random(content: bytes) -> bytes:
    """A reply but for keys of acts and requests for budget, salts of answers, and hashes of these."""
    drawn = rb'("kind":"(?:act|budget_request)","request_key"|"salt"|"answer_digest"|"head"):"[0-9a-f]+"'
    return re.sub(drawn, rb"\1:0", content)


def received_by_ana(folder: Path, is_bob_busy: bool, mode: Mode = "reserved") -> list[tuple[int, bytes]]:
    """What ana receives about requests, while bob does nothing or the same kinds of things."""
    received: list[tuple[int, bytes]] = []

    async def scenario(ana: Served, curator: Served) -> None:
        bob = ana.of("bob")

        async def asks(one: Served, name: str) -> None:
            for number, mu in enumerate(("1/4", "1/5", "1/4")):
                reply = await one.post(one.body(f"{name}{number}", wants(one, mu)))
                if one is ana:
                    received.append((reply.status_code, without_random(reply.content)))

        async def decides(name: str) -> None:
            first, second = [one for one in await requests(curator) if one["analyst"] == name]
            await act(
                curator, Approve(first["number"], first["digest"], Components(mu="0.2"), "2027-01-01T00:00Z", "ok")
            )
            await act(curator, Decline(second["number"], second["digest"], "no"))

        if is_bob_busy:
            await asks(bob, "b")
        await asks(ana, "a")
        if is_bob_busy:
            await decides("bob")
            await bob.post(bob.count("bc", mu="1/6"))
        await decides("ana")
        for reply in (
            await ana.post(ana.count("c", mu="1/5")),
            await ana.post(ana.count("d", mu="1/3")),
            await ana.get("/v3/tables/people/rows?after=0&pending="),
        ):
            received.append((reply.status_code, without_random(reply.content)))

    folder.mkdir()
    run(folder, scenario, mode)
    return received


def test_in_reserved_mode_nothing_shows_the_requests_of_others(tmp_path: Path) -> None:
    alone, beside = (received_by_ana(tmp_path / str(busy), busy) for busy in (False, True))
    assert alone == beside
    rows = json.loads(alone[-1][1])["rows"]
    assert [row["values"]["kind"] for row in rows].count("budget_request") == 2
    assert b"carl" not in alone[-1][1]


def test_controls_in_which_they_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def differ(name: str, mode: Mode = "reserved") -> bool:
        alone, beside = (received_by_ana(tmp_path / f"{name}{busy}", busy, mode) for busy in (False, True))
        return alone != beside

    assert not differ("reserved")
    assert differ("pooled", "pooled")
    shared = SharedRows._shared

    def with_numbers(self: SharedRows, stored: dict[str, Any]) -> dict[str, Any]:
        return {**shared(self, stored), **({"details": stored["details"]} if stored["kind"] == "act" else {})}

    with monkeypatch.context() as patch:  # an act with the ledger's number of the request
        patch.setattr(SharedRows, "_shared", with_numbers)
        assert differ("numbers")


def test_in_pooled_mode_they_are_rows_like_others(tmp_path: Path) -> None:
    async def scenario(ana: Served, curator: Served) -> None:
        await ana.post(ana.body("a", wants(ana)))
        rows = content(await ana.of("bob").get("/v3/tables/people/rows?after=0&pending="))["rows"]
        assert [row["values"].get("actor") for row in rows if row["values"]["kind"] == "budget_request"] == ["ana"]

    run(tmp_path, scenario, "pooled")


def test_a_request_reads_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replies are the same bytes on a neighbouring table; the control answers a query on both."""

    def replies(name: str, rows: int) -> tuple[list[bytes], bytes]:
        received: list[bytes] = []
        exact: list[bytes] = []

        async def scenario(ana: Served, curator: Served) -> None:
            for number, mu in enumerate(("1/4", "1/5")):
                reply = await ana.post(ana.body(f"a{number}", wants(ana, mu, "count", "mean", "groups")))
                received.append(without_random(reply.content))
            received.append(without_random((await curator.get(STATE)).content))
            exact.append((await ana.post(ana.count("c", mu="1/20"))).content)

        monkeypatch.setattr("service.served.people", lambda: pd.DataFrame({"age": [30] * rows}))
        (tmp_path / name).mkdir()
        run(tmp_path / name, scenario)
        return received, exact[0]

    (with_unit, answer), (without, other) = replies("with", 41), replies("without", 40)
    assert with_unit == without
    assert answer != other


@pytest.mark.parametrize("mode", ["reserved", "pooled"])
def test_a_clock_that_is_set_back_does_not_revive_an_approval(mode: Mode, tmp_path: Path, clock: type[Clock]) -> None:
    async def scenario(ana: Served, curator: Served) -> None:
        await ana.post(ana.body("a", wants(ana)))
        (one,) = await requests(curator)
        until = "2026-11-25T00:00:00Z"
        await act(curator, Approve(one["number"], one["digest"], until=until))
        clock.moment += timedelta(days=1)
        assert (await ana.post(ana.count("tiny", mu="1/1000"))).status_code == 200  # a row after it has lapsed
        clock.moment -= timedelta(hours=12)
        refused = await ana.post(ana.count("large", mu="1/5"))
        assert (refused.status_code, content(refused)["error"]) == (422, "BudgetExceeded")
        (one,) = await requests(curator)
        assert one["status"] == "lapsed"
        await ana.post(ana.body("b", wants(ana, "1/6")))
        (one, _) = await requests(curator)
        reply = await act(curator, Approve(one["number"], one["digest"], until="2026-11-24T18:00:00Z"))
        assert (reply.status_code, "must be later than now" in content(reply)["message"]) == (422, True)

    run(tmp_path, scenario, mode)


def test_the_time_of_an_approval_does_not_depend_on_others(tmp_path: Path, clock: type[Clock]) -> None:
    """Bob's row after the end of ana's approval is the last one of the ledger."""

    async def scenario(ana: Served, curator: Served) -> None:
        bob = ana.of("bob")
        await ana.post(ana.body("a", wants(ana)))
        (one,) = await requests(curator)
        await act(curator, Approve(one["number"], one["digest"], until="2026-11-25T00:00:00Z"))
        clock.moment += timedelta(days=1)
        assert (await bob.post(bob.count("b", mu="1/1000"))).status_code == 200
        clock.moment -= timedelta(hours=12)
        assert (await ana.post(ana.count("large", mu="1/5"))).status_code == 200
        rows = content(await ana.get("/v3/tables/people/rows?after=0&pending="))["rows"]
        assert max(row["values"]["time"] for row in rows) == "2026-11-24T12:00:00.000Z"

    run(tmp_path, scenario)
