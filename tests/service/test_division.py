"""The budget of a table divided among analysts: what each may spend, and what each may see."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb._core.accountant.admission import refuse_divided
from dpnb._core.accountant.grant import Mode
from dpnb._request import (
    CloseMechanism,
    CompareWithThreshold,
    Conditions,
    DelegateBudget,
    LaunchMechanism,
    Release,
    ReleaseBatch,
    SelectGroups,
)
from dpnb._target import Target
from dpnb.accounting.losses import PureGDP
from dpnb.curator.audit import audit
from dpnb.errors import BudgetExceeded, InvalidValueError, RequestError
from dpnb.interactive import scan as hidden_noise
from dpnb.interactive.launcher import MechanismRegistry
from dpnb.ledger import node_of, row_times
from dpnb.ledger.origin import current_origin
from dpnb.ledger.shared_rows import SharedRows
from dpnb.mechanisms import randomness
from dpnb.service import analysts
from dpnb.service import requests as service_requests
from dpnb.service.configuration.parts import AmountSettings, DivisionSettings, PartSettings
from dpnb.service.configuration.settings import TableSettings
from dpnb.service.opening import OpenTable
from service.served import Served, content, open_people, run_served

HALF = AmountSettings(Fraction(1, 2))
ALL = AmountSettings(Fraction(1))
SCHEMA = {"age": dpnb.Bounded(0, 100, integer=True)}
BUDGET = dpnb.Budget(epsilon=2, delta=1e-5, discovery_delta=1e-6, pure_epsilon=0.2)


def division(mode: Mode, ana: AmountSettings = HALF, bob: AmountSettings = HALF) -> DivisionSettings:
    shares = (("ana", ana), ("bob", bob))
    if mode == "reserved":
        return DivisionSettings(mode, tuple(PartSettings("analyst", name, ceiling=share) for name, share in shares))
    return DivisionSettings(mode, tuple(PartSettings("analyst", name, cap=share) for name, share in shares))


def seeded(ledger: Path, **changes: Any) -> dpnb.Session:
    session: dpnb.Session = open_people(ledger, **{"budget": BUDGET, "not_private_test_seed": 25, **changes})
    return session


class StoppedClock(datetime):
    """A clock that stands still, since the time of a request is no secret of the other analysts."""

    @classmethod
    def now(cls, tz: Any = None) -> StoppedClock:
        return cls(2026, 11, 24, tzinfo=tz)


# --- reserved mode --------------------------------------------------------------------------------------------------


async def asks(one: Served, prefix: str) -> list[tuple[int, bytes]]:
    """What an analyst receives for requests of every kind."""
    df, replies = one.session.frame, []

    async def post(number: str, call: Any, **changes: Any) -> None:
        reply = await one.post(one.body(f"{prefix}{number}", call, **changes))
        replies.append((reply.status_code, reply.content))

    async def get(path: str) -> None:
        reply = await one.get(path)
        replies.append((reply.status_code, reply.content))

    mean, by_age = df["age"].mean(), df.groupby("age", keys=[20, 30]).size()
    mean_call = Release(mean.plan, mean.view, Target("mu", Fraction(1, 100)))
    await get("/v3/tables")
    await get("/v3/tables/people")
    await post("1", Release(mean.plan, mean.view, Target("share", Fraction(1, 10))))
    await post("1", Release(mean.plan, mean.view, Target("share", Fraction(1, 5))))  # the id of another call
    await post("2", Release(mean.plan, mean.view, Target("share", Fraction(1, 5))), after=1)  # a refinement
    await post("3", Release(by_age.plan, by_age.view, Target("mu", Fraction(1, 10))))
    await post("4", Release(mean.plan, mean.view, Target("within", Fraction(1, 100))))  # beyond the budget
    await post("5", LAUNCHES["scan"])
    await post("6", CompareWithThreshold("scan", df.count().plan, Fraction(50)))
    await post("7", CloseMechanism("scan"))
    await post("8", CloseMechanism("nothing"))
    await post("9", LAUNCHES["sub"])
    await post("11", mean_call, node="4")  # no session
    await post("12", CloseMechanism("scan"), node="7")  # of another node
    await post("13", mean_call, node="7")
    await post("14", Release(mean.plan, mean.view, Target("mu", Fraction(1, 90))), conditions=Conditions("7"))
    await post("10", SelectGroups(by_age.plan, 1, Fraction(1, 50)))
    for name in ("parts", "nr"):
        await post(name, LAUNCHES[name])
    counts = df.count()
    batch = ReleaseBatch(tuple(Release(one.plan, one.view, mean_call.target) for one in (by_age, counts)))
    await post("b1", batch)
    await post("b2", batch, node="7")
    await get("/v3/tables/people/rows?after=0&pending=1,2,3")
    await get("/v3/tables/people/rows?after=3&pending=")
    return replies


def launches() -> dict[str, LaunchMechanism]:
    """A launch of every kind, as a session sends it."""
    session = open_people(":memory:", budget=BUDGET)
    df = session.frame
    session.above_threshold(50, epsilon=0.05, name="scan")
    session.delegate(name="sub", mu=0.03)
    session.partition(dpnb.cut(df["age"], [0, 50, 100]), name="parts")
    session.noise_reduction(df["age"].sum(), initial_mu=0.001, max_mu=0.01, name="nr")
    made = session._core.account.tree.sync().values()
    return {one.name: LaunchMechanism(one.name, one.mechanism) for one in made}


LAUNCHES = launches()


TOKENS: Counter[object] = Counter()
"""Tokens of hidden noise, keys and salts that each analyst has drawn."""


def received_by_ana(
    folder: Path, is_bob_busy: bool, mode: Mode = "reserved", *, floods: bool = True, **changes: Any
) -> list[tuple[int, bytes]]:
    """What ana receives, while bob does nothing or the same kinds of things; without `floods`, before she does."""
    received: list[tuple[int, bytes]] = []

    async def scenario(served: Served) -> None:
        bob = served.of("bob")
        if is_bob_busy:
            await asks(bob, "b")
            await bob.post(bob.count("more", mu="1/9"))
            await bob.post(b"{}")
        flood = [asyncio.create_task(one) for one in (flood_of(bob) if is_bob_busy and floods else ())]
        received.extend(await asks(served, "a"))
        await asyncio.gather(*flood)
        if is_bob_busy:
            await bob.post(bob.count("again", mu="1/8"))
        reply = await served.get("/v3/tables/people/rows?after=0&pending=")
        received.append((reply.status_code, reply.content))

    folder.mkdir()
    TOKENS.clear()
    run_served(folder, scenario, seeded(folder / "people.dpnb", **changes), division(mode))
    return received


def flood_of(bob: Served) -> list[Any]:
    """Requests that keep the service busy: large malformed bodies, refused and free requests, pages of rows."""
    malformed = b'{"id":"a","request":[' + b",".join([b'{"a":1}'] * 3000) + b"]}"
    return [
        *(bob.post(malformed) for _ in range(30)),
        *(bob.post(bob.count(f"refused {number}", mu="1000")) for number in range(30)),
        *(bob.post(bob.count("more", mu="1/9")) for _ in range(10)),
        *(bob.get("/v3/tables/people/rows?after=0&pending=") for _ in range(10)),
    ]


@pytest.fixture(autouse=True)
def nothing_random(monkeypatch: pytest.MonkeyPatch) -> None:
    """And tokens of hidden noise, keys and salts, which are random, that depend on their analyst alone."""
    for module in (row_times, service_requests):
        monkeypatch.setattr(module, "datetime", StoppedClock)

    def token(_: int) -> str:
        origin = current_origin()
        actor = None if origin is None else origin.actor
        TOKENS[actor] += 1
        return f"{actor} {TOKENS[actor]}"

    monkeypatch.setattr(hidden_noise.secrets, "token_hex", token)


def test_in_reserved_mode_every_byte_is_the_same_whatever_the_others_did(tmp_path: Path) -> None:
    alone, beside = (received_by_ana(tmp_path / str(busy), busy) for busy in (False, True))
    for one, other in zip(alone, beside, strict=True):
        assert one == other
    assert [status for status, _ in alone].count(200) >= 9, alone  # most of it is answered


def test_also_under_individual_accounting(tmp_path: Path) -> None:
    budget = dpnb.Budget(epsilon=2, delta=1e-5, discovery_delta=1e-6)

    def received(busy: bool) -> list[tuple[int, bytes]]:
        return received_by_ana(tmp_path / str(busy), busy, accounting="individual", budget=budget)

    assert received(False) == received(True)


def test_controls_in_which_the_others_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def differ(name: str, mode: Mode = "reserved") -> bool:
        alone, beside = (
            received_by_ana(tmp_path / f"{name}{busy}", busy, mode, floods=False) for busy in (False, True)
        )
        return alone != beside

    assert not differ("nothing")
    assert differ("pooled", "pooled")
    with monkeypatch.context() as patch:  # one sequence of test noise for all
        patch.setattr(randomness, "derived_source", lambda source, name: source)
        assert differ("noise")
    with monkeypatch.context() as patch:  # the gauge of the whole table instead of the part's
        description = analysts.AnalystSession.description.fget  # type: ignore[attr-defined]

        def spent(self: analysts.AnalystSession) -> Any:
            whole = self.session._core.account.whole
            table = description(self)
            table.parameters["spent"] = "" if whole is None else str(whole.filter.headroom)
            return table

        patch.setattr(analysts.AnalystSession, "description", property(spent))
        assert differ("gauge")
    with monkeypatch.context() as patch:  # a number of the ledger in a refusal
        at = MechanismRegistry.at

        def numbered(self: Any, node: str) -> Any:
            if node == self.core.account.root_node:
                return at(self, node)
            raise RequestError(f"node: {node} is another number")

        patch.setattr(MechanismRegistry, "at", numbered)
        assert differ("refusal")
    with monkeypatch.context() as patch:  # numbers of rows of the whole ledger
        patch.setattr(SharedRows, "by_ids", lambda self, ids: tuple(ids))
        assert differ("numbers")


@pytest.mark.parametrize("mode", ["reserved", "pooled"])
def test_a_restart_closes_the_scans_of_every_node(mode: Mode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def launches(served: Served) -> None:
        team = LaunchMechanism("team", DelegateBudget("gdp", {"mu_squared": "1/100"}))
        sub, parts = [
            content(await served.post(served.body(f"l{number}", one)))["ids"][0]
            for number, one in enumerate((team, LAUNCHES["parts"]))
        ]
        (launch,) = [one for one in served.session._core.account.tree.sync().values() if one.name == "parts"]
        for number, node in enumerate(("", node_of(sub), node_of(parts, (launch.resolved["keys"][0],)))):
            reply = content(await served.post(served.body(f"s{number}", LAUNCHES["scan"], node=node)))
            assert reply["reply"] == "done", reply

    async def restarted(served: Served) -> None:
        tree = served.session._core.account.tree
        scans = [one for one in tree.sync().values() if one.name == "scan"]
        assert len({one.node for one in scans}) == len(scans) == 3
        for scan in scans:
            (row,) = served.session.ledger.by_id((scan.closed_by or 0,))
            assert (row.kind, row.node, (row.launch or {})["closes"]) == ("close", scan.node, scan.id)
        reply = content(await served.post(served.body("a", LAUNCHES["scan"])))
        assert reply["reply"] == "done"  # recorded

    for scenario in (launches, restarted):
        run_served(tmp_path, scenario, seeded(tmp_path / "people.dpnb"), division(mode))
        monkeypatch.setattr(hidden_noise, "_hidden", {})  # as in another process
    assert audit(str(tmp_path / "people.dpnb")).is_fine


def test_ceilings_add_up_to_at_most_the_budget(tmp_path: Path) -> None:
    def opened(one: DivisionSettings) -> OpenTable:
        return OpenTable(TableSettings("people", "here", division=one), seeded(tmp_path / "people.dpnb"))

    with pytest.raises(InvalidValueError, match="add up to at most"):
        opened(division("reserved", HALF, AmountSettings(Fraction(51, 100))))
    few = division("reserved", AmountSettings(Fraction(99, 100)))
    with pytest.raises(InvalidValueError, match="analyst bob: the ceilings must add up"):
        opened(few)  # ana's part, which fits and is a mistake, would be fixed if it were made
    opened(division("reserved", HALF, HALF)).close()
    for wrong, words in (
        (division("reserved", AmountSettings(Fraction(1, 4))), "fixed"),
        (division("pooled"), "fixed"),
    ):
        with pytest.raises(InvalidValueError, match=words):
            opened(wrong)
    opened(division("reserved")).close()
    assert audit(str(tmp_path / "people.dpnb")).is_fine


def test_a_project_divides_its_own_part(tmp_path: Path) -> None:
    parts = (
        PartSettings("project", "flu", ceiling=HALF),
        PartSettings("analyst", "ana", "flu", ceiling=HALF),
        PartSettings("analyst", "bob", "flu", ceiling=HALF),
        PartSettings("analyst", "eve", ceiling=HALF),
    )

    async def scenario(served: Served) -> None:
        mean = served.session.frame["age"].mean()
        everything = Release(mean.plan, mean.view, Target("share", Fraction(1)))
        for name in ("ana", "bob", "eve"):
            one = served if name == "ana" else served.of(name)
            assert (await one.post(one.body(name, everything))).status_code == 200
        filter_ = served.session._core.account.filter
        assert filter_.spent.parts[0] == filter_.budget.parts[0]  # exactly all of it

    session = open_people(tmp_path / "people.dpnb", budget=dpnb.Budget.gdp(1))
    run_served(tmp_path, scenario, session, DivisionSettings("reserved", parts))
    result = audit(str(tmp_path / "people.dpnb"))
    assert result.is_fine, result.problems
    spent = {one.name: one.spent.mu_squared for one in result.sums}
    assert spent == {
        "table": 1,
        "project flu": Fraction(1, 2),
        "analyst ana": Fraction(1, 4),
        "analyst bob": Fraction(1, 4),
        "analyst eve": Fraction(1, 2),
    }


def test_a_local_session_cannot_take_what_is_reserved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = OpenTable(TableSettings("people", "here", division=division("reserved")), seeded(tmp_path / "people.dpnb"))
    table.close()
    session = seeded(tmp_path / "people.dpnb")
    with pytest.raises(BudgetExceeded, match="divided among analysts"):
        session.frame["age"].mean().release(share=0.1)
    with pytest.raises(BudgetExceeded, match="divided among analysts"):
        session.delegate(name="mine", share=0.1)
    assert audit(session.ledger.path).is_fine
    monkeypatch.setattr("dpnb._core.accountant.admission.refuse_divided", lambda account, description: None)
    session.frame["age"].mean().release(share=0.1)
    assert "outside all parts" in audit(session.ledger.path).problems[0]  # the audit finds what the control let through
    assert refuse_divided is not None


def test_a_lower_cap_leaves_less_and_the_ceiling_as_it_was(tmp_path: Path) -> None:
    quarter = PartSettings("analyst", "ana", ceiling=HALF, cap=HALF), PartSettings("analyst", "bob", ceiling=HALF)

    async def scenario(served: Served) -> None:
        mean = served.session.frame["age"].mean()
        body = served.body("a", Release(mean.plan, mean.view, Target("share", Fraction(1))))
        assert (await served.post(body)).status_code == 200
        spent = served.session._core.account.filter.spent
        assert spent.parts[0] == Fraction(1, 4)
        assert (await served.post(served.count("b", mu="1/1000"))).status_code == 422
        table = served.service.tables["people"].table
        again = PartSettings("analyst", "ana", ceiling=HALF), PartSettings("analyst", "bob", ceiling=HALF)
        table.divide(TableSettings("people", "here", division=DivisionSettings("reserved", again)))
        assert (await served.post(served.count("c", mu="1/1000"))).status_code == 200

    session = open_people(tmp_path / "people.dpnb", budget=dpnb.Budget.gdp(1))
    run_served(tmp_path, scenario, session, DivisionSettings("reserved", quarter))
    assert audit(str(tmp_path / "people.dpnb")).is_fine


# --- pooled mode ----------------------------------------------------------------------------------------------------


def test_in_pooled_mode_charges_are_seen_and_answers_shared(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        bob = served.of("bob")
        first = content(await served.post(served.count("a")))
        charges = served.charges
        second = content(await bob.post(bob.count("b")))
        assert served.charges == charges
        assert first["ids"] == second["ids"]  # the same answer, free
        assert [row["values"]["actor"] for row in second["rows"]["rows"] if row["values"]["kind"] == "release"] == [
            "ana"
        ]
        await bob.post(bob.count("c", mu="1/5"))
        rows = content(await served.get("/v3/tables/people/rows?after=0&pending="))["rows"]
        assert [row["values"]["actor"] for row in rows if row["values"]["kind"] == "release"] == ["ana", "bob"]

    run_served(tmp_path, scenario, seeded(tmp_path / "people.dpnb"), division("pooled", ALL, ALL))


def test_caps_limit_what_one_analyst_or_project_takes(tmp_path: Path) -> None:
    parts = (
        PartSettings("project", "flu", cap=HALF),
        PartSettings("analyst", "ana", "flu", cap=HALF),
        PartSettings("analyst", "bob", "flu"),
        PartSettings("analyst", "eve"),
    )

    async def scenario(served: Served) -> None:
        bob, eve = served.of("bob"), served.of("eve")
        df, account = served.session.frame, served.session._core.account
        queries = (df["age"].mean(), df["age"].sum(), df["age"].std())
        for one, query, spent in zip((served, bob, eve), queries, (Fraction(1, 4), Fraction(1, 2), 1), strict=True):
            everything = Release(query.plan, query.view, Target("share", Fraction(1)))
            reply = await one.post(one.body(one.token, everything))
            assert reply.status_code == 200, reply.content
            assert account.filter.spent.parts[0] == spent
            refused = await one.post(one.count(f"{one.token}2", mu="1/1000"))
            assert content(refused)["error"] == "BudgetExceeded"

    session = open_people(tmp_path / "people.dpnb", budget=dpnb.Budget.gdp(1))
    run_served(tmp_path, scenario, session, DivisionSettings("pooled", parts))
    assert audit(str(tmp_path / "people.dpnb")).is_fine


def test_a_launch_belongs_to_one_analyst(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        bob = served.of("bob")
        scan = LAUNCHES["scan"]
        assert content(await served.post(served.body("a", scan)))["reply"] == "done"
        compare = CompareWithThreshold("scan", served.session.frame.count().plan, Fraction(50))
        for call in (compare, CloseMechanism("scan"), scan):
            reply = content(await bob.post(bob.body(f"b{type(call).__name__}", call)))
            assert "another analyst" in reply["message"], reply
        sub = LAUNCHES["sub"]
        (inside,) = content(await served.post(served.body("s", sub)))["ids"]
        assert "another analyst" in content(await bob.post(bob.count("t", mu="1/100", node=str(inside))))["message"]
        assert (await served.post(served.count("u", mu="1/100", node=str(inside)))).status_code == 200
        assert (await served.post(served.body("c", compare))).status_code == 200

    run_served(tmp_path, scenario, seeded(tmp_path / "people.dpnb"), division("pooled", ALL, ALL))


def test_a_launch_is_charged_at_the_smallest_residual(tmp_path: Path) -> None:
    """What a pure-DP launch costs depends on what is left, which a cap makes less."""

    def charged(cap: AmountSettings, folder: Path) -> Fraction:
        costs: list[Fraction] = []

        async def scenario(served: Served) -> None:
            scan = LAUNCHES["scan"]
            reply = await served.post(served.body("a", scan))
            assert reply.status_code == 200, reply.content
            row = served.session.ledger.summaries()[-1]
            assert isinstance(row.charged, PureGDP)
            costs.append(row.charged.mu_squared)

        folder.mkdir()
        session = open_people(folder / "people.dpnb", budget=dpnb.Budget(epsilon=2, delta=1e-5))
        run_served(folder, scenario, session, division("pooled", cap, ALL))
        return costs[0]

    assert charged(HALF, tmp_path / "half") > charged(ALL, tmp_path / "all")


# --- acts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["reserved", "pooled"])
def test_an_analyst_who_is_taken_out_of_the_settings_is_revoked_until_they_are_back(mode: Mode, tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        table = served.service.tables["people"].table
        assert (await served.post(served.count("a", mu="1/50"))).status_code == 200
        whole = division(mode)
        without = DivisionSettings(mode, tuple(one for one in whole.parts if one.name != "ana"))
        await asyncio.to_thread(table.divide, TableSettings("people", "here", division=without))
        assert (await served.post(served.count("b", mu="1/40"))).status_code == 404
        assert content(await served.get("/v3/tables")) == []
        await asyncio.to_thread(table.divide, TableSettings("people", "here", division=whole))
        assert (await served.post(served.count("c", mu="1/30"))).status_code == 200
        rows = content(await served.of("eve", "auditor").get("/v3/tables/people/audit"))["rows"]
        words = [row["words"] for row in rows if row["kind"] == "act"]
        assert words == ["analyst ana: part of the budget revoked", "analyst ana: part of the budget restored"]

    run_served(tmp_path, scenario, seeded(tmp_path / "people.dpnb"), division(mode))
    result = audit(str(tmp_path / "people.dpnb"))
    assert result.is_fine, result.problems
    assert {one.name: one.requests for one in result.sums}["analyst ana"] == 2


def test_a_table_without_a_division_is_pooled_among_all(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        table = content(await served.get("/v3/tables/people"))
        assert (table["analyst"], table.get("mode", "pooled")) == ("ana", "pooled")
        bob = served.of("bob")
        assert content(await served.post(served.count("a")))["ids"] == content(await bob.post(bob.count("b")))["ids"]

    run_served(tmp_path, scenario)
