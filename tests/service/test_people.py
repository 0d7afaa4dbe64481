"""Analysts who come and go: parts that are handed over, people who are added and removed, and their tokens."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dpnb
from dpnb._core.accountant import granting, people
from dpnb._core.accountant.granting import note_restored
from dpnb._plan.expressions.nodes import Column, Cut
from dpnb._plan.plan import GroupLevel
from dpnb._request import DelegateBudget, LaunchMechanism, PartitionTable, Release, RequestBudget
from dpnb._target import Target
from dpnb.curator.audit import audit
from dpnb.errors import InvalidValueError
from dpnb.ledger import row_times
from dpnb.ledger.origin import current_origin
from dpnb.service import requests as service_requests
from dpnb.service.access.tokens import new_token
from dpnb.service.configuration.parts import AmountSettings, DivisionSettings, PartSettings
from dpnb.service.configuration.settings import TableSettings
from dpnb.service.opening import OpenTable
from dpnb.session.disclosure.building import report_of
from dpnb.wire.messages import AddAnalyst, AnyPersonAct, Components, HandOver, RemoveAnalyst
from service.served import Served, content, open_people, run_served
from service.test_division import StoppedClock
from waiting import wait_until

PEOPLE, STATE, AUDIT = (f"/v3/tables/people/{name}" for name in ("people", "state", "audit"))
HALF, QUARTER = Components(share="0.5"), Components(share="0.25")
BUDGET = dpnb.Budget.gdp(1)


def parts(*names: str, mode: Any = "reserved", share: str = "1/2") -> DivisionSettings:
    amount = AmountSettings(Fraction(share))
    given = {"ceiling": amount} if mode == "reserved" else {"cap": amount}
    return DivisionSettings(mode, tuple(PartSettings("analyst", name, **given) for name in names))


class Office:
    """A service with ana, bob and a curator, of whose people the test decides."""

    def __init__(self, ana: Served) -> None:
        self.ana, self.bob, self.eve = ana, ana.of("bob"), ana.of("eve", "curator")
        self.table = ana.service.tables["people"].table

    async def act(self, one: AnyPersonAct, status: int = 200) -> Any:
        headers = {**self.eve.headers, "Content-Type": "application/json"}
        reply = await self.eve.client.post(PEOPLE, content=msgspec.json.encode(one), headers=headers)
        assert reply.status_code == status, reply.text
        return content(reply)

    async def parts(self) -> dict[str, Any]:
        return {one["name"]: one for one in content(await self.eve.get(STATE))["parts"]}

    def holder(self, name: str, token: str | None) -> Served:
        assert token is not None
        one = Served.__new__(Served)
        one.tokens, one.client, one.service, one.token = self.ana.tokens, self.ana.client, self.ana.service, token
        return one


def run(
    folder: Path,
    scenario: Callable[[Office], Awaitable[None]],
    division: DivisionSettings | None = None,
    *,
    problems: int = 0,
    **changes: Any,
) -> None:
    async def whole(served: Served) -> None:
        await scenario(Office(served))

    session = open_people(folder / "people.dpnb", **{"budget": BUDGET, "not_private_test_seed": 7, **changes})
    run_served(folder, whole, session, division or parts("ana", "bob"))
    found = audit(str(folder / "people.dpnb")).problems
    assert bool(found) == bool(problems), found


async def spends(one: Served, number: str, mu: str, *, of: str = "rows") -> int:
    df = one.session.frame
    query = df.count() if of == "rows" else df["age"].sum()
    sent = await one.post(one.body(number, Release(query.plan, query.view, Target("mu", Fraction(mu)))))
    return int(sent.status_code)


ALL_OF_HALF = "7071/10000"  # whose square is just below 1/2


# --- a part is handed over --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("individual", [False, True])
def test_an_unused_part_goes_to_another_person_with_its_ceiling(individual: bool, tmp_path: Path) -> None:
    async def scenario(office: Office) -> None:
        assert (await office.parts())["ana"]["is_unused"]
        token = (await office.act(HandOver("ana", "carl")))["token"]
        carl = office.holder("carl", token)
        assert await spends(office.ana, "a", "1/10") == 401  # the token of who left
        assert await spends(carl, "b", ALL_OF_HALF) == 200
        assert await spends(carl, "c", "1/10", of="ages") == (200 if individual else 422)
        assert await spends(office.bob, "d", ALL_OF_HALF) == 200
        assert list(await office.parts()) == ["bob", "carl"]
        await office.act(HandOver("carl", "dora"), 422)  # it is used now
        rows = content(await carl.get("/v3/tables/people/rows?after=0"))
        assert [row["values"]["kind"] for row in rows["rows"]][:2] == ["act", "release"]
        assert "ana" not in msgspec.json.encode(rows).decode()

    accounting = {"accounting": "individual"} if individual else {}
    run(tmp_path, scenario, **accounting)
    path = str(tmp_path / "people.dpnb")
    for report in (report_of(path), report_of(path, "carl")):
        assert any("handed over to another analyst" in text for text in report.division.assumptions)
    assert not any("handed over" in text for text in report_of(path, "bob").division.assumptions)
    ceilings = [one.ceiling for one in report_of(path).division.parts]
    assert ceilings[0] == "nothing, since it was handed over"
    assert len(ceilings) == 3
    words = [one.words for one in report_of(path).acts]
    assert "part of the budget handed over, of which nothing was charged" in words
    assert any("carl, at most mu 0.7071" in one and "in the place of the unused one of row 1" in one for one in words)


def asked(office: Office) -> RequestBudget:
    query = office.ana.session.frame.count()
    return RequestBudget((Release(query.plan, query.view, Target("mu", Fraction(1, 5))),), "a report")


TENS = GroupLevel("tens", Cut(Column("age"), (20, 30, 40), ("a", "b")))


def launched(mechanism: Any) -> LaunchMechanism:
    return LaunchMechanism("inner", mechanism)


USES: dict[str, Callable[[Office], Any]] = {
    "a charge": lambda office: Release(
        (query := office.ana.session.frame.count()).plan, query.view, Target("mu", Fraction(1, 100))
    ),
    "a launch that costs nothing": lambda office: launched(
        PartitionTable("", GroupLevel("twenties", Cut(Column("age"), (20, 30, 40), ("a", "b"))))
    ),
    "a sub-session": lambda office: launched(DelegateBudget("gdp", {"mu_squared": "1/10000"})),
    "a request that waits": asked,
}


@pytest.mark.parametrize("use", USES)
def test_a_part_that_was_used_is_not_handed_over(use: str, tmp_path: Path) -> None:
    async def scenario(office: Office) -> None:
        if use == "a request that waits":
            account = office.table.session._core.account
            (part,) = [one for one in account.tree.grants().values() if one.name == "ana"]
            tenth = granting.share_of(part.ceiling, Fraction(1, 10))  # type: ignore[arg-type]
            granting.move_cap(account, part, tenth, version="1")
        sent = await office.ana.post(office.ana.body("a", USES[use](office)))
        assert sent.status_code == 200, sent.content
        refused = await office.act(HandOver("ana", "carl"), 422)
        what = "waits: decline it first" if use == "a request that waits" else "row 3 was"
        assert what.replace("row 3", f"row {office.ana.charges}") in refused["message"]
        assert list(await office.parts()) == ["ana", "bob"]
        assert await spends(office.ana, "b", "1/10") == 200

    run(tmp_path, scenario)


def test_a_part_whose_charges_a_restored_ledger_may_lack_is_not_handed_over(tmp_path: Path) -> None:
    async def scenario(office: Office) -> None:
        note_restored(office.table.session._core.account, None, version="1")
        assert "may lack charges" in (await office.act(HandOver("ana", "carl"), 422))["message"]

    run(tmp_path, scenario)


def test_a_part_is_handed_over_to_nobody_who_has_one_and_in_reserved_mode_only(tmp_path: Path) -> None:
    async def reserved(office: Office) -> None:
        office.ana.of("aud", "auditor")
        for name, to, why in (
            ("ana", "bob", "must have no part"),
            ("ana", "ana", "must have no part"),
            ("ana", "eve", "another person"),
            ("ana", "aud", "role: 'aud' has a valid token with the role 'auditor'"),
            ("carl", "dora", "analyst carl: must have a part of the budget; got none; ana, bob has one"),
        ):
            assert why in (await office.act(HandOver(name, to), 422))["message"]
        await office.act(HandOver("ana", "carl"))
        assert "one that was handed over" in (await office.act(HandOver("ana", "dora"), 422))["message"]
        await office.act(HandOver("carl", "ana"))  # and back: a part of its own
        assert list(await office.parts()) == ["bob", "ana"]

    async def pooled(office: Office) -> None:
        assert "in reserved mode only" in (await office.act(HandOver("ana", "carl"), 422))["message"]

    for mode, scenario in (("reserved", reserved), ("pooled", pooled)):
        (tmp_path / mode).mkdir()
        run(tmp_path / mode, scenario, parts("ana", "bob", mode=mode))


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_spent_ceiling_cannot_be_had_again(is_broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By handing it over, or by removing its analyst and adding them again."""
    if is_broken:  # control: nobody looks whether it was used
        monkeypatch.setattr(people, "_use", lambda account, part: "")

    async def scenario(office: Office) -> None:
        assert await spends(office.ana, "a", ALL_OF_HALF) == 200
        moved = await office.act(HandOver("ana", "carl"), 200 if is_broken else 422)
        if is_broken:
            carl = office.holder("carl", moved["token"])
            assert await spends(carl, "a", ALL_OF_HALF) == 200  # a second charge of one ceiling
            return
        await office.act(RemoveAnalyst("ana"))
        assert "fixed" in (await office.act(AddAnalyst("ana", amount=HALF), 422))["message"]
        back = office.holder("ana", (await office.act(AddAnalyst("ana")))["token"])
        assert await spends(back, "b", "1/10", of="ages") == 422
        assert await spends(back, "a", ALL_OF_HALF) == 200  # the old request, replayed: what was recorded
        assert office.table.session._core.account.filter.spent.mu_squared < Fraction(1, 2)  # type: ignore[attr-defined]

    run(tmp_path, scenario, problems=is_broken)


@pytest.mark.parametrize("is_broken", [False, True])
def test_of_a_charge_and_a_hand_over_at_once_one_is_refused(
    is_broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The charge begins when the hand-over has looked, and would come before it is written."""
    use = people._use

    async def scenario(office: Office) -> None:
        loop, sent = asyncio.get_running_loop(), list[Any]()

        def looked(account: Any, part: Any) -> str:
            found = use(account, part)
            if not sent:
                sent.append(asyncio.run_coroutine_threadsafe(spends(office.ana, "a", "1/10"), loop))
                wait_until(lambda: sent[0].done() or office.table.running is not None, "the charge")
                if is_broken:  # control: it looks before the transaction, which lets the charge pass
                    sent[0].result()
            return found

        monkeypatch.setattr(people, "_use", looked)
        if is_broken:
            account = office.table.session._core.account
            part = account.tree.grant_named("analyst", "ana")
            await asyncio.to_thread(looked, account, part)
            monkeypatch.setattr(people, "_use", lambda account, part: "")
        moved = await office.act(HandOver("ana", "carl"))
        assert (await asyncio.wrap_future(sent[0])) == (200 if is_broken else 422)
        assert await spends(office.holder("carl", moved["token"]), "b", ALL_OF_HALF) == 200

    run(tmp_path, scenario, problems=is_broken)


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_crash_within_a_hand_over_leaves_the_part_where_it_was(
    is_broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_people(tmp_path / "people.dpnb", budget=BUDGET)
    table = OpenTable(TableSettings("people", "here", division=parts("ana", "bob")), session)
    account, before = session._core.account, session.ledger.count
    ana = account.tree.grant_named("analyst", "ana")
    assert ana is not None
    if is_broken:  # control: not in one transaction, and it ends between the two rows
        with session.ledger.transaction():
            granting.write_part(account, "analyst", "carl", "reserved", ana.ceiling, None, version="1", taken_from=ana)
    else:

        def crashing(*arguments: Any, **options: Any) -> int:
            raise KeyboardInterrupt

        monkeypatch.setattr(people, "write_part", crashing)
        with pytest.raises(KeyboardInterrupt):
            people.hand_over(account, "ana", "carl", version="1")
        monkeypatch.undo()
        assert session.ledger.count == before
        people.hand_over(account, "ana", "carl", version="1")
        assert session.ledger.count == before + 3
    table.close()
    assert bool(audit(str(tmp_path / "people.dpnb")).problems) == is_broken


# --- people are added and removed -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["reserved", "pooled"])
def test_people_are_added_and_removed_and_stay_so_after_a_restart(mode: Any, tmp_path: Path) -> None:
    async def scenario(office: Office) -> None:
        added = await office.act(AddAnalyst("carl", amount=HALF, expires="30d"))
        assert added["token"].startswith("dpnb_")
        carl = office.holder("carl", added["token"])
        assert await spends(carl, "a", "1/10") == 200
        assert (await office.act(RemoveAnalyst("bob")))["token"] is None
        assert await spends(office.bob, "b", "1/10") == 401
        new = new_token(office.ana.tokens, "bob")  # a token alone opens nothing
        assert await spends(office.holder("bob", new), "c", "1/10") == 404
        assert "removed twice" in (await office.act(RemoveAnalyst("bob"), 422))["message"]
        listed = await office.parts()
        assert {name: one["is_removed"] for name, one in listed.items()} == {"ana": False, "bob": True, "carl": False}
        office.table.divide(office.table.settings)  # as at a start, and at SIGHUP
        assert await spends(carl, "d", "1/5") == 200
        assert await spends(office.holder("bob", new), "e", "1/10") == 404
        assert (await office.act(AddAnalyst("bob")))["token"] is None  # who has one
        assert await spends(office.holder("bob", new), "f", "1/10") == 200

    share = "1/4" if mode == "reserved" else "1/2"
    run(tmp_path, scenario, parts("ana", "bob", mode=mode, share=share))


def test_who_has_another_table_keeps_the_token(tmp_path: Path) -> None:
    async def scenario(office: Office) -> None:
        other = open_people(tmp_path / "others.dpnb", name="others")
        office.ana.service.add(OpenTable(TableSettings("others", "here", division=parts("ana")), other))
        await office.act(RemoveAnalyst("ana"))
        assert await spends(office.ana, "a", "1/10") == 404
        assert content(await office.ana.get("/v3/tables")) == ["others"]

    run(tmp_path, scenario)


@pytest.mark.parametrize("is_broken", [False, True])
def test_adding_and_removing_gives_no_more_than_the_whole(
    is_broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_broken:  # control: nobody adds the ceilings up
        monkeypatch.setattr(granting, "_refuse_excess", lambda *arguments: None)

    async def scenario(office: Office) -> None:
        await office.act(RemoveAnalyst("ana"))  # whose ceiling stays theirs
        await office.act(AddAnalyst("carl", amount=HALF), 200 if is_broken else 422)
        await office.act(AddAnalyst("ana"))
        await office.act(HandOver("bob", "dora"))
        await office.act(AddAnalyst("bob", amount=QUARTER), 200 if is_broken else 422)
        state = content(await office.eve.get(STATE))
        assert state["free"] == 0

    run(tmp_path, scenario, problems=is_broken)


def test_the_settings_change_what_they_say_otherwise_and_nothing_else(tmp_path: Path) -> None:
    async def scenario(office: Office) -> None:
        await office.act(HandOver("ana", "carl"))

        def divide(*names: str) -> None:
            office.table.divide(TableSettings("people", "here", division=parts(*names)))

        divide("ana", "bob")  # as before: who came stays
        assert list(await office.parts()) == ["bob", "carl"]
        divide("carl", "bob")  # the file is brought up to date
        divide("bob", "carl")
        assert not any(one["is_removed"] or one["is_revoked"] for one in (await office.parts()).values())
        with pytest.raises(InvalidValueError, match="analyst ana: the ceilings must add up to at most"):
            divide("ana", "bob", "carl")  # whose part was handed over

    run(tmp_path, scenario)


HOSTILE = (
    "",
    "../ana",
    "<b>ana</b>",
    "ana\n",
    "a\u202eb",
    "\x1b[2J",
    "a" * 300,
    "(settings)",
    ".ana",
    "a/b",
    "ana bob",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_refused_and_not_repeated(name: str, tmp_path: Path) -> None:
    async def scenario(office: Office) -> None:
        before = office.ana.charges
        for one in (AddAnalyst(name, amount=HALF), HandOver("ana", name), HandOver(name, "carl"), RemoveAnalyst(name)):
            reply = await office.act(one, 422)
            assert reply["message"].isprintable()
            assert len(reply["message"]) < 400
        assert "project" in (await office.act(AddAnalyst("carl", name or "x", HALF), 422))["message"]
        assert office.ana.charges == before

    run(tmp_path, scenario, parts("ana", "bob", share="1/4"))


def test_a_long_name_is_not_taken_for_one_that_it_begins_with(tmp_path: Path) -> None:
    short, long = "a" * 60, "a" * 100

    async def scenario(office: Office) -> None:
        await office.act(RemoveAnalyst(long))
        await office.act(HandOver("b" * 100, "carl"))
        known = await office.parts()
        assert [known[name]["is_removed"] for name in (short, long)] == [False, True]
        assert "carl" in known

    run(tmp_path, scenario, parts(short, long, "b" * 100, share="1/4"))


def test_nobody_gives_a_part_to_themselves(tmp_path: Path) -> None:
    async def scenario(office: Office) -> None:
        assert "another person" in (await office.act(AddAnalyst("eve", amount=QUARTER), 422))["message"]
        assert "ceiling in reserved mode" in (await office.act(AddAnalyst("carl"), 422))["message"]
        assert "period" in (await office.act(AddAnalyst("carl", amount=QUARTER, expires="soon"), 422))["message"]
        assert list(await office.parts()) == ["ana", "bob"]

    run(tmp_path, scenario, parts("ana", "bob", share="1/4"))


def test_a_table_that_is_not_divided_gets_no_analyst(tmp_path: Path) -> None:
    async def scenario(office: Office) -> None:
        assert "a divided budget" in (await office.act(AddAnalyst("carl", amount=QUARTER), 422))["message"]

    run(tmp_path, scenario, DivisionSettings())


# --- what the others see ----------------------------------------------------------------------------------------------


def received_by_bob(folder: Path, drawn: Counter[str], is_busy: bool, mode: Any = "reserved") -> list[bytes]:
    replies: list[bytes] = []
    drawn.clear()

    async def scenario(office: Office) -> None:
        if is_busy:
            if mode == "reserved":
                await office.act(HandOver("ana", "carl"))
                await office.act(RemoveAnalyst("carl"))
            else:
                await office.act(RemoveAnalyst("ana"))
            await office.act(AddAnalyst("dora", amount=QUARTER))
        for number, of in enumerate(("rows", "ages")):
            df = office.bob.session.frame
            query = df.count() if of == "rows" else df["age"].sum()
            call = Release(query.plan, query.view, Target("mu", Fraction(1, 10)))
            replies.append((await office.bob.post(office.bob.body(f"b{number}", call))).content)
        for path in ("/v3/tables", "/v3/tables/people", "/v3/tables/people/rows?after=0"):
            replies.append((await office.bob.get(path)).content)

    folder.mkdir()
    run(folder, scenario, parts("ana", "bob", mode=mode, share="1/4"))
    return replies


def test_nobody_else_sees_who_comes_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (row_times, service_requests):
        monkeypatch.setattr(module, "datetime", StoppedClock)
    drawn = Counter[str]()

    def token(size: int) -> str:
        """A salt or a key, which is random, that depends on its actor alone."""
        actor = "" if (origin := current_origin()) is None else origin.actor
        drawn[actor] += 1
        return f"{actor} {drawn[actor]}"

    monkeypatch.setattr(secrets, "token_hex", token)
    quiet = received_by_bob(tmp_path / "quiet", drawn, is_busy=False)
    assert received_by_bob(tmp_path / "busy", drawn, is_busy=True) == quiet
    # Control: in pooled mode the acts are rows that everybody sees.
    pooled = [received_by_bob(tmp_path / f"pooled{busy}", drawn, busy, "pooled") for busy in (False, True)]
    assert pooled[0] != pooled[1]
