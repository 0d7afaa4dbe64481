"""A copy of a ledger in memory takes what a service sends, or refuses it whole."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpnb._plan.expressions.nodes import Column
from dpnb._plan.plan import GroupLevel
from dpnb._request import LaunchMechanism, PartitionTable
from dpnb.accounting.losses import GDP
from dpnb.errors import LedgerError
from dpnb.ledger import Ledger, shared_rows
from dpnb.ledger.charge import sealed
from dpnb.ledger.replica import ReplicaLedger
from dpnb.ledger.shared_rows import SharedRows
from ledger.rows import METADATA, answered, opened, reserve
from waiting import wait_until

Row = dict[str, Any]
LAUNCH = LaunchMechanism("towns", PartitionTable("", GroupLevel("town", Column("town")))).text
ADDRESS = "clinic at curator.example"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """Rows of every status, a launch, a row inside it, and its close."""
    with opened(path) as ledger:
        answered(ledger, reserve(ledger, "a"))
        reserve(ledger, "b")
        reserve(ledger, "c", kind="launch", request=LAUNCH, sigma=None, launch={"mechanism": "partition"})
        answered(ledger, reserve(ledger, "d", node='3 ["x"]'))
        ledger.fail(reserve(ledger, "e", observations=(1,)))
        reserve(ledger, "f", kind="close", request="", sigma=None, launch={"closes": 3})
        reserve(ledger, "g", kind="selection", sigma=None, answered=False)
        yield ledger


@pytest.fixture
def replica() -> Iterator[ReplicaLedger]:
    with closing(ReplicaLedger(ADDRESS, METADATA, {})) as replica:
        yield replica


def sent(ledger: Ledger) -> list[Row]:
    return [dict(row) for row in SharedRows(ledger).after(0, 100)]


def test_a_copy_has_the_rows_of_the_ledger(ledger: Ledger, replica: ReplicaLedger) -> None:
    rows = sent(ledger)
    replica.append(rows[:3])
    assert replica.summaries() == ledger.summaries()[:3]
    replica.append(rows)
    assert replica.charges() == ledger.charges()
    assert replica.summaries() == ledger.summaries()
    assert replica.pending == (2, 5, 7)
    assert (replica.metadata, replica.count, repr(replica)) == (METADATA, 7, f"<ReplicaLedger of '{ADDRESS}'>")
    assert (replica.path, replica.short_name) == (ADDRESS, ADDRESS)
    assert Ledger.short_name.fget(ledger) == "clinic.dpnb"  # type: ignore[attr-defined]


def test_answers_are_added_to_known_rows_and_late_messages_have_no_effect(
    ledger: Ledger, replica: ReplicaLedger
) -> None:
    before = sent(ledger)
    replica.append(before)
    answered(ledger, ledger.by_id((2,))[0])
    answered(ledger, ledger.by_id((5,))[0])  # failed before, then requested again
    ledger.answer(replace(ledger.by_id((7,))[0], status="released", result={"largest": [["a"]]}))
    replica.append(SharedRows(ledger).changed(replica.pending))
    assert replica.charges() == ledger.charges()
    assert replica.pending == ()
    replica.append([*before, *sent(ledger), *before])
    assert replica.charges() == ledger.charges()
    assert replica.pending == ()
    with replica.transaction():  # verifies the copy's own chain of hashes
        assert replica.observations("1", "", "visits")


def without(name: str) -> Callable[[list[Row]], None]:
    return lambda rows: rows[1].pop(name)


def put(index: int, **values: Any) -> Callable[[list[Row]], None]:
    return lambda rows: rows[index].update(values)


BROKEN: dict[str, Callable[[list[Row]], object]] = {
    **{
        f"no {name}": without(name)
        for name in ("id", "time", "kind", "node", "request_key", "loss", "status", "request")
    },
    "a hash": put(1, hash="a" * 64),
    "an unknown column": put(1, colour="red"),
    "the id of a request": put(1, request_id="a"),
    "a number as text": put(1, id="2"),
    "a bool as number": put(0, id=True),
    "a huge number": put(6, id=2**64),
    "number 0": put(0, id=0),
    "a text as number": put(1, request=3),
    "a status": put(1, status="done"),
    "a time": put(1, time="today"),
    "a kind": put(1, kind="gift"),
    "table files": put(1, kind="table_files", node=" files", details="{}"),
    "a node": put(1, node="later"),
    "a node of no launch": put(3, node="2"),
    "a node of a later launch": put(1, node="3"),
    "a loss": put(1, loss='{"kind": "hope"}'),
    "a negative loss": put(1, loss='{"kind": "gdp", "mu_squared": "-1", "delta": "0"}'),
    "a loss that is not JSON": put(1, loss="{"),
    "a deep loss": put(1, loss="[" * 100_000),
    "a huge integer": put(1, loss='{"kind": "gdp", "mu_squared": "' + "9" * 5000 + '", "delta": "0"}'),
    "a sigma": put(1, sigma="wide"),
    "observations of later rows": put(1, observations="[9]"),
    "observations that are no ids": put(1, observations='["1"]'),
    "details of a query": put(1, details="{}"),
    "no details of a launch": lambda rows: rows[2].pop("details"),
    "a close of no launch": put(5, details='{"closes": 2}'),
    "a close of a text": put(5, details='{"closes": "3"}'),
    "a close of nothing": put(5, details="{}"),
    "a result of a reserved row": put(1, result="{}"),
    "no result of a released row": lambda rows: rows[0].pop("result"),
    "a result that is not JSON": put(0, result="{"),
    "a result that is no measurement": put(0, result='{"values": "many"}'),
    "a result of a launch": put(2, result="{}"),
    "words of a reserved row": put(1, words='["count", null, null, null, null, null]'),
    "words that are not JSON": put(0, words="["),
    "words of another form": put(0, words='["count", 3]'),
    "a launch without an answer": put(2, status="reserved"),
    "a request that is not JSON": put(1, request="{"),
    "a request that is none": put(1, request='{"question": 1}'),
    "a request in another spelling": lambda rows: rows[1].update(request=rows[1]["request"].replace(":", ": ")),
    "a request with a default": lambda rows: rows[1].update(
        request=rows[1]["request"].replace('"mu"', '"mu","final":false')
    ),
    "no salt": lambda rows: rows[0].pop("salt"),
    "no digest of an answer": lambda rows: rows[0].pop("answer_digest"),
    "the digest of another answer": put(0, answer_digest="0" * 64),
    "an answer with another salt": put(0, salt="0" * 32),
    "the digest of an answer that is missing": put(1, salt="0" * 32, answer_digest="0" * 64),
    "a gap": lambda rows: rows.pop(1),
    "another order": lambda rows: rows.reverse(),
    "a repeated request": lambda rows: rows[1].update(request_key=rows[0]["request_key"]),
}


def test_large_rows_are_sent_a_few_at_once(
    ledger: Ledger, replica: ReplicaLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise an analyst with large answers could have the service hold all of them in memory at once."""
    shared = SharedRows(ledger)
    whole, answered = shared.after(0, 100), [row["id"] for row in shared.changed(range(1, 100))]
    assert len(whole) == ledger.count  # the control: small ones are sent together
    monkeypatch.setattr(shared_rows, "MAX_BYTES", 1)
    read: list[int] = []
    stored = ledger.stored
    monkeypatch.setattr(ledger, "stored", lambda ids, *columns: read.append(len(ids)) or stored(ids, *columns))
    parts = []
    while replica.count < ledger.count:
        parts.append(shared.after(replica.count, 100))
        replica.append(parts[-1])
    assert [len(part) for part in parts] == [1] * len(whole)
    assert set(read) == {1}  # none was read before its size was known
    assert [row["id"] for row in shared.changed(range(1, 100))] == answered[-1:]
    assert [row["id"] for row in shared.changed(answered[:1])] == answered[:1]
    assert replica.charges() == ledger.charges()


@pytest.mark.parametrize("name", BROKEN)
def test_what_no_ledger_contains_is_refused_and_nothing_is_added(
    ledger: Ledger, replica: ReplicaLedger, name: str
) -> None:
    rows = sent(ledger)
    BROKEN[name](rows)
    with pytest.raises(LedgerError, match=r"^ledger"):
        replica.append(rows)
    assert (replica.count, replica.summaries(), replica.pending) == (0, [], ())
    replica.append(sent(ledger))
    assert replica.charges() == ledger.charges()


def rewritten(rows: list[Row]) -> None:
    rows[0]["loss"] = rows[0]["loss"].replace("1", "2")


def answer_with(row: Row, result: str) -> None:
    """Another answer, with its own digest."""
    row["result"] = result
    row["salt"], row["answer_digest"] = sealed(result, row.get("words"))


@pytest.mark.parametrize(
    "change",
    [
        rewritten,
        put(0, cell_id="x"),
        put(0, observations="[]"),
        lambda rows: rows[0].update(result=rows[0]["result"].replace("12", "13")),
        lambda rows: answer_with(rows[0], rows[0]["result"].replace("12", "13")),
        put(0, words='["count", null, null, null, null, null]'),
        put(1, status="released"),
    ],
)
def test_what_contradicts_earlier_rows_is_refused(
    ledger: Ledger, replica: ReplicaLedger, change: Callable[[list[Row]], None]
) -> None:
    replica.append(sent(ledger))
    rows = sent(ledger)
    change(rows)
    with pytest.raises(LedgerError, match=f"^ledger '{ADDRESS}': must send the rows of a ledger"):
        replica.append(rows)
    assert replica.charges() == ledger.charges()


def test_nothing_can_be_charged_on_a_copy(ledger: Ledger, replica: ReplicaLedger) -> None:
    replica.append(sent(ledger))
    (row,) = replica.by_id((2,))
    refused = f"^ledger '{ADDRESS}': must be charged by its service; this is a copy; nothing was charged"
    for write in (
        lambda: reserve(replica, "x"),
        lambda: answered(replica, row),
        lambda: replica.answer(replace(row, result={})),
        lambda: replica.fail(row),
    ):
        with pytest.raises(LedgerError, match=refused):
            write()
    assert replica.charges() == ledger.charges()


def test_readers_see_whole_messages_while_another_thread_appends(path: Path, replica: ReplicaLedger) -> None:
    with opened(path) as ledger:
        for number in range(120):
            reserve(ledger, str(number), loss=GDP(0), total_loss=GDP(0))
        shared, size = SharedRows(ledger), 4
        thread = threading.Thread(
            target=lambda: [replica.append(shared.after(start, size)) for start in range(0, 120, size)]
        )
        seen = {0}
        thread.start()
        try:
            wait_until(lambda: seen.add(len(replica.charges())) or replica.count == 120, "all rows", lambda: seen)
        finally:
            thread.join()
        assert all(number % size == 0 for number in seen)
        assert replica.charges() == ledger.charges()
