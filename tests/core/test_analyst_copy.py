"""An analyst's copy of a ledger says the same as the ledger, although its rows are numbered differently."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.admission import admit
from dpnb._core.core import SessionCore
from dpnb._core.ledger_metadata import LedgerMetadata
from dpnb._core.pricing.public_knowledge import PublicSizes
from dpnb._core.source_files import TableFileCheck
from dpnb._request import Release
from dpnb._target import target_from
from dpnb.accounting.losses import GDP
from dpnb.errors import BudgetExceeded, DpnbError, LedgerError, MechanismClosed, RequestError
from dpnb.ledger import Charge, Ledger, RequestOrigin, node_of, parent_launch, requested_by
from dpnb.ledger.charge import LAUNCH, digest
from dpnb.ledger.replica import ReplicaLedger
from dpnb.ledger.shared_rows import NOT_SHARED, SharedRows
from dpnb.mechanisms import randomness
from dpnb.query.query import Query
from load import anything, clinic, count

ADDRESS = "clinic at the service"


@contextmanager
def copied(ledger: Ledger, root: str = "") -> Iterator[tuple[SharedRows, ReplicaLedger]]:
    shared = SharedRows(ledger, root)
    with closing(ReplicaLedger(ADDRESS, ledger.metadata, ledger.parameters)) as replica:
        yield shared, replica


def follow(shared: SharedRows, replica: ReplicaLedger, limit: int = 3) -> None:
    """Bring a copy up to date, page by page, as a client does."""
    replica.append(shared.changed(replica.pending))
    while rows := shared.after(replica.count, limit):
        replica.append(rows)


def core_over(ledger: Ledger) -> SessionCore:
    """The core of a session without rows."""
    metadata = LedgerMetadata.from_dict(
        {name: text for name, text in ledger.metadata.items() if name not in ("budget", "filter")}, ADDRESS
    )
    return SessionCore(
        id="x",
        name=metadata.name,
        tables=metadata.tables,
        account=Accountant.from_ledger(ledger),
        version="1",
        public=PublicSizes(),
        source=randomness.SystemNoiseSource(),
    )


def history(session: dpnb.Session, chance: random.Random, turns: int) -> Iterator[None]:
    """Everything that a session can do, at random, with rows about table files among it; some of it fails."""
    for turn in range(turns):
        if chance.random() < 0.3:
            TableFileCheck(session.ledger, f"other {turn}", lambda: "a" * 64)
        place: Any = session
        with suppress(BudgetExceeded, MechanismClosed, RequestError):
            for _ in range(chance.randrange(3)):
                place = place.partition("town")["a"] if chance.random() < 0.5 else place.delegate(mu="0.2", name="team")
            frame = place.frame
            match chance.randrange(8):
                case 0:
                    place.plan([frame.groupby("town").size(), frame.count()]).release(mu="0.03")
                case 1:
                    frame.groupby("town").size().top(2).release(epsilon="0.01")
                case 2:
                    charge_without_answer(place, chance)
                case _:
                    with requested_by(RequestOrigin("ana", str(turn), digest(turn))):
                        anything(place, chance)
        yield


def charge_without_answer(place: Any, chance: random.Random) -> None:
    """A crash, or a failure, between charge and answer."""
    core, query, threshold = place._core, count(place, 9), chance.random()
    ledger, node, loss = core.account.ledger, core.account.root_node, GDP("0.01")
    with ledger.transaction():
        core.account.tree.refuse_ended(node, core.version)
        admit(core.account, "a count", loss, GDP(0))
        row = ledger.reserve(
            request_key=digest([threshold]),
            node=node,
            table_version=core.version,
            query_key="without an answer",
            request=Release(query.plan, query.view, target_from(mu="0.01")).text,
            total_loss=loss,
            loss=loss,
            sigma=100.0,
            tau=0.5,
        )
    if chance.random() < 0.5:
        ledger.fail(row)


def renumbered(shared: SharedRows, replica: Ledger, ledger: Ledger) -> None:
    """Every row of the copy is the ledger's, with every reference translated; and back."""
    ids = [charge.id for charge in ledger.charges() if charge.kind != "table_files"]
    assert shared.by_ids(ids) == tuple(range(1, len(ids) + 1))
    number = dict(zip(ids, range(1, len(ids) + 1), strict=True))
    for mine, theirs in zip(replica.charges(), ledger.by_id(tuple(ids)), strict=True):
        assert shared.node(mine.node) == theirs.node
        if mine.kind == LAUNCH:
            assert shared.launch(mine.id) == theirs.id
        assert changed(mine) == {
            **changed(theirs),
            "id": number[theirs.id],
            "node": local(theirs.node, number),
            "observations": tuple(number[one] for one in theirs.observations),
            "launch": theirs.launch and closes(theirs, number),
        }


def changed(charge: Charge) -> dict[str, Any]:
    return {name: value for name, value in vars(charge).items() if name != "origin"}


def closes(charge: Charge, number: dict[int, int]) -> dict[str, Any]:
    details = dict(charge.launch or {})
    return details | ({"closes": number[details["closes"]]} if "closes" in details else {})


def local(node: str, number: dict[int, int]) -> str:
    parent = parent_launch(node)
    return node if parent is None else f"{number[parent[0]]}{node[len(str(parent[0])) :]}"


def accounts(ledger: Ledger, number: dict[int, int]) -> list[dict[str, Any]]:
    """What filters, odometers, tree and log of every session of a ledger say, with the numbers of the copy."""
    whole = Accountant.from_ledger(ledger)
    found = []
    launches = whole.tree.sync()
    sessions = [whole, *(whole.for_sub_session(one) for one in launches.values() if one.kind == "sub-session")]
    for account in sessions:
        state, comparison = account.sync(), account.compared()
        found.append(
            {
                "node": local(account.root_node, number),
                "filter": account.filter,
                "odometer": account.odometer,
                "paused": account.paused,
                "state": (state.filter, state.odometer, state.first_exclusion, state.by_version),
                "comparison": {
                    name: (
                        one.guarantee,
                        one.filter,
                        {number[launch]: sums for launch, sums in one.parts.sums.items()},
                        number.get(one.refused_at or 0),
                    )
                    for name, one in comparison.states.items()
                },
                "accumulator": comparison.accumulator,
                "costs": {number[row]: cost for row, cost in account._cost_fractions.items() if row in number},
            }
        )
    found.append(
        {
            number[one.id]: (
                one.kind,
                one.name,
                local(one.node, number),
                one.mechanism,
                one.resolved,
                number.get(one.closed_by or 0),
            )
            for one in launches.values()
        }
    )
    return found


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_a_copy_says_what_the_ledger_says(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with closing(clinic(tmp_path / "clinic.dpnb").ledger):
        session = clinic(tmp_path / "clinic.dpnb")
        with copied(session.ledger) as (shared, replica):
            for _ in history(session, chance, 25):
                if chance.random() < 0.3:
                    follow(shared, replica, chance.randrange(1, 6))
            follow(shared, replica)
            ledger = session.ledger
            renumbered(shared, replica, ledger)
            ids = [charge.id for charge in ledger.charges() if charge.kind != "table_files"]
            number = {row: place for place, row in enumerate(ids, start=1)}
            assert accounts(replica, {one: one for one in number.values()}) == accounts(ledger, number)
            log, mine = core_over(ledger).log.to_pandas(), core_over(replica).log.to_pandas()
            assert mine.index.tolist() == [number[row] for row in log.index]
            log = log.drop(columns="analyst", errors="ignore")  # which this copy does not have
            assert "analyst" not in mine
            assert mine.reset_index(drop=True).equals(log.reset_index(drop=True))
            assert shared.answered == sum(one.status == "released" for one in replica.charges())
            assert len(replica.pending) == replica.count - shared.answered


def test_a_copy_finds_its_requests_in_every_node_however_the_rows_are_numbered(tmp_path: Path) -> None:
    session = clinic(tmp_path / "clinic.dpnb")
    for number in range(12):  # so that the numbers of the launches have another number of digits
        TableFileCheck(session.ledger, f"other {number}", lambda: "a" * 64)
    team = session.delegate(mu="0.3", name="team")
    part = team.partition("town", name="towns", max_parts_per_unit=2)["b"]
    part.frame.count().release(mu="0.01")
    team.frame.groupby("town").size().top(1).release(epsilon="0.01")
    scan = team.above_threshold(3, name="line", epsilon="0.01", max_positives=2)
    scan.ask(team.frame.count())
    scan.close()
    with copied(session.ledger) as (shared, replica):
        follow(shared, replica)
        core = core_over(replica)
        (launch,) = [one for one in core.account.tree.sync().values() if one.name == "team"]
        inner = core.sub_session(launch)
        assert launch.id == 1
        assert inner.account.root_node == "1" != team._core.account.root_node == "13"
        (towns,) = [one for one in core.account.tree.sync().values() if one.name == "towns"]
        plan = part.frame.count()
        b, target = inner.part_of(towns, "b"), target_from(mu="0.01")
        request = Release(plan.plan, plan.view, target)
        assert [row.status for row in b.executor.find(request)] == ["released"]
        assert inner.part_of(towns, "a").executor.find(request) == []
        best = b.releases.best(plan.plan, plan.view)
        assert best is not None
        assert float(best) == float(part.frame.count().release(mu="0.01"))
        counts = team.frame.groupby("town").size()
        assert Query(counts.plan, counts.view, inner).top(1).preview(epsilon="0.01").is_known
        kinds = {charge.kind: charge for charge in replica.charges()}
        assert {*kinds} == {"release", "comparison", "selection", "launch", "close"}
        # A control: in the ledger's own numbering, nothing is found.
        for charge in session.ledger.charges():
            if charge.node or charge.kind == "close":
                assert replica.by_key(charge.node, charge.table_version, charge.request_key) is None


def test_a_batch_is_never_cut(tmp_path: Path) -> None:
    session = clinic(tmp_path / "clinic.dpnb")
    frame = session.frame
    session.plan([frame.groupby("town").size(), frame.count(), frame["visits"].mean()]).release(mu="0.1")
    assert session.ledger.count > 1
    frame.count().release(mu="0.2")
    with copied(session.ledger) as (shared, _):
        assert len(shared.after(0, 1)) == session.ledger.count - 1
        assert len(shared.after(session.ledger.count - 1, 1)) == 1
        assert shared.after(session.ledger.count, 1) == []


def test_an_analyst_sees_the_rows_of_the_own_node_only(tmp_path: Path) -> None:
    def seen(folder: Path, others: int) -> list[dict[str, str | int]]:
        folder.mkdir()
        session = clinic(folder / "clinic.dpnb")
        mine, theirs = session.delegate(mu="0.3", name="mine"), session.delegate(mu="0.3", name="theirs")
        for number in range(others):
            count(theirs, number).release(mu="0.01")
            theirs.partition("town")["a"].frame.count().release(mu="0.02")
        part = mine.partition("town")["a"]
        part.frame.count().release(mu="0.02")
        mine.delegate(mu="0.1", name="inner").close()
        shared = SharedRows(session.ledger, node_of(1))
        assert shared.node('1 ["a"]') == f'{shared.launch(1)} ["a"]'
        with pytest.raises(LedgerError, match="belongs to another node"):
            shared.by_ids([2])
        differs = {"time", "result", "details", "words", "salt", "answer_digest"}
        return [
            {
                name: value
                for name, value in row.items()
                if name not in (differs | {"request_key"} if row["kind"] == "close" else differs)  # which is a new one
            }
            | {"query": json.loads(str(row.get("words", "[null]")))[0]}
            for row in shared.after(0, 100)
        ]

    assert seen(tmp_path / "alone", 0) == seen(tmp_path / "crowd", 3)
    assert all(not NOT_SHARED & row.keys() for row in seen(tmp_path / "again", 1))


@pytest.mark.parametrize(
    "node", ["2", "0", "99", " files", "x", "07", "-1", '3 ["a"] ', f"1{'0' * 30}", "9" * 5000, "1 x"]
)
def test_a_node_that_is_not_the_analyst_s_is_refused(tmp_path: Path, node: str) -> None:
    session = clinic(tmp_path / "clinic.dpnb")
    session.delegate(mu="0.3", name="mine")
    session.frame.count().release(mu="0.01")
    shared = SharedRows(session.ledger)
    with pytest.raises(RequestError, match=r"^(node|launch): must be"):
        shared.node(node)
    assert shared.node("") == ""
    assert shared.node("1") == "1"
    assert shared.changed([0, -1, 5, 10**30]) == []


def test_the_request_of_a_row_is_found_by_its_id(tmp_path: Path) -> None:
    session = clinic(tmp_path / "clinic.dpnb")
    TableFileCheck(session.ledger, "1", lambda: "a" * 64)
    origin = RequestOrigin("ana", "7", "b" * 64)
    shared = SharedRows(session.ledger)
    with requested_by(origin):
        session.frame.count().release(mu="0.01")
    assert shared.request("7") == (1, origin)
    assert shared.request("8") is None
    with requested_by(RequestOrigin("ana", "8", "b" * 64)), suppress(DpnbError):
        session.frame.count().release(mu=100)
    assert shared.request("8") is None  # nothing was charged
