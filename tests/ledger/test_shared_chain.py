"""The service and an analyst's copy compute the same chain of hashes, over the rows of that analyst alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb._core.accountant.grant import Mode
from dpnb._plan.measurements import Count, PlainView
from dpnb._plan.plan import Plan
from dpnb._request import BatchTable
from dpnb._target import target_from
from dpnb.accounting.losses import GDP
from dpnb.errors import LedgerError, LedgerReplaced
from dpnb.ledger import Ledger, node_of, row_times
from dpnb.ledger.origin import RequestOrigin, requested_by
from dpnb.ledger.replica import ReplicaLedger
from dpnb.ledger.shared_rows import SharedRows
from ledger.rows import METADATA, answered, reserve

PARAMETERS = {"odometer": "1/7"}
OWN = {"metadata": {"name": "clinic", "budget": "half"}, "parameters": {"odometer": "1/9"}}
KINDS = (
    "release",
    "answered",
    "failed",
    "comparison",
    "selection",
    "launch",
    "part",
    "inside",
    "close",
    "act",
    "batch",
)


def table_of_three(index: int) -> BatchTable:
    target = target_from(mu="0.1")
    return BatchTable(Plan(Count()), PlainView(), target, index, 3, 0, sizes=(2, 2), tables=((0,), (1,), (0, 1)))


class Analysts:
    """A ledger in memory in which analysts do what a test draws."""

    def __init__(self, ledger: Ledger, mode: Mode) -> None:
        self.ledger, self.launches, self.keys = ledger, dict[int, list[int]](), Counter[int]()
        self.roots = ["", ""]
        if mode == "reserved":
            for person in range(2):
                details = {"grant": "analyst", "name": f"p{person}", "mode": mode, "ceiling": None}
                self.roots[person] = node_of(self.write(0, "grant", launch=details, node="").id)

    def write(self, person: int, kind: str = "release", **changes: Any) -> Any:
        number = self.ledger.count
        columns: dict[str, Any] = {
            "kind": kind,
            "node": self.roots[person],
            "request_key": f"p{person} {self.keys[person]}",
        }
        self.keys[person] += 1  # a key depends on no row of others
        if kind != "release":
            columns |= {"sigma": None, "tau": None}
        if kind not in ("release", "comparison", "selection"):
            columns |= {"request": "", "loss": GDP(0), "total_loss": GDP(0)}
        with requested_by(RequestOrigin(f"p{person}", f"r{number}", "0" * 64)):
            return reserve(self.ledger, "", **{**columns, **changes})

    def do(self, person: int, kind: str) -> None:
        launches = self.launches.setdefault(person, [])
        match kind:
            case "answered":
                answered(self.ledger, self.write(person))
            case "failed":
                self.ledger.fail(self.write(person))
            case "comparison":
                self.write(person, kind, result={"above": True})
            case "selection":
                self.write(person, kind, answered=False)
            case "launch":
                details = {"mechanism": "partition", "name": "a"}
                launches.append(self.write(person, kind, launch=details).id)
            case "part" | "inside" if launches:
                self.write(person, node=node_of(launches[-1], ("x",) if kind == "part" else None))
            case "close" if launches:
                details = {"closes": launches[0], "name": "a", "mechanism": "partition"}
                self.write(person, kind, launch=details)
            case "act":
                self.write(person, kind, launch={"act": "cap", "cap": None})
            case "batch":
                for index in range(3):
                    self.write(person, request=table_of_three(index).text, cell_id="c")
            case _:
                self.write(person)

    def shared(self, person: int) -> SharedRows:
        root = self.roots[person]
        return SharedRows(self.ledger, root, **OWN) if root else SharedRows(self.ledger, shows_actors=True)  # type: ignore[arg-type]


class StoppedClock(datetime):
    """A clock that stands still, so that two ledgers have the same times."""

    @classmethod
    def now(cls, tz: Any = None) -> StoppedClock:
        return cls(2026, 11, 24, tzinfo=tz)


@contextmanager
def analysts(mode: Mode) -> Iterator[Analysts]:
    with (
        mock.patch.object(row_times, "datetime", StoppedClock),
        closing(Ledger(":memory:", METADATA, PARAMETERS)) as ledger,
    ):
        yield Analysts(ledger, mode)


def heads(shared: SharedRows) -> list[str]:
    return [shared.head(number) for number in range(shared.count + 1)]


STEPS = st.lists(st.tuples(st.integers(0, 1), st.sampled_from(KINDS), st.booleans()), max_size=25)


@pytest.mark.parametrize("mode", ["pooled", "reserved"])
@given(steps=STEPS)
def test_service_and_copy_have_the_same_hashes(mode: Mode, steps: list[tuple[int, str, bool]]) -> None:
    with analysts(mode) as both:
        shared = both.shared(0)
        known = OWN if mode == "reserved" else {"metadata": METADATA, "parameters": PARAMETERS}
        with closing(ReplicaLedger("clinic", **known)) as replica:
            seen = [replica.last]
            for person, kind, is_read in steps:
                both.do(person, kind)
                if is_read:
                    shared.refuse_fork(*replica.last)
                    replica.append(shared.after(replica.count, 2))
                    seen.append(replica.last)
            while replica.count < shared.count:
                replica.append(shared.after(replica.count, 3))
                seen.append(replica.last)
            for number, head in seen:
                assert shared.head(number) == both.shared(0).head(number) == head


@pytest.mark.parametrize("mode", ["pooled", "reserved"])
@given(steps=STEPS)
def test_a_reserved_chain_does_not_depend_on_others(mode: Mode, steps: list[tuple[int, str, bool]]) -> None:
    """The control: in pooled mode, where everybody sees all rows, and in the ledger itself, it does."""
    own = [step for step in steps if not step[0]]
    found = []
    for chosen in (steps, own):
        with analysts(mode) as both:
            for person, kind, _ in chosen:
                both.do(person, kind)
            found.append((heads(both.shared(0)), both.ledger.head))
    (chain, whole), (own_chain, own_whole) = found
    assert (whole == own_whole) == (steps == own)
    assert (chain == own_chain) == (steps == own or mode == "reserved")


def test_a_copy_of_another_ledger_is_refused_and_tells_nothing_of_others() -> None:
    with analysts("reserved") as both:
        for step in ((0, "answered"), (1, "answered"), (0, "release"), (1, "launch")):
            both.do(*step)
        shared = both.shared(0)
        shared.refuse_fork(2, shared.head(2))
        shared.refuse_fork(0, "")
        shared.refuse_fork(2, "")
        for number, head in ((3, ""), (3, shared.head(2)), (2, shared.head(1)), (1, both.ledger.head), (0, "0" * 64)):
            with pytest.raises(LedgerReplaced, match=f"does not contain row {number} as this session has received it"):
                shared.refuse_fork(number, head)


def test_metadata_and_parameters_are_part_of_the_chain() -> None:
    with analysts("reserved") as both:
        other = SharedRows(both.ledger, both.roots[0], metadata=OWN["metadata"], parameters=PARAMETERS)
        assert both.shared(0).head(0) != other.head(0)


def test_the_hash_depends_on_no_answer() -> None:
    """Which may be written after the copy has received the row."""
    with analysts("pooled") as both:
        row = both.write(0)
        before = heads(both.shared(0))
        answered(both.ledger, row)
        assert heads(both.shared(0)) == before


def test_rows_are_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with analysts("pooled") as both:
        shared = both.shared(0)
        read: list[int] = []
        stored = Ledger.stored

        def counted(self: Ledger, ids: Any, *columns: Any) -> Any:
            read.extend(ids)
            return stored(self, ids, *columns)

        monkeypatch.setattr(Ledger, "stored", counted)
        for _ in range(60):
            both.do(0, "release")
            shared.head(shared.count)
        assert sorted(read) == list(range(1, 61))


@pytest.mark.parametrize("removed", [1, 2, 3])
def test_rows_that_were_removed_while_the_ledger_is_open_are_missed(removed: int) -> None:
    with analysts("pooled") as both:
        for _ in range(3):
            both.write(0)
        shared = both.shared(0)
        assert shared.count == 3
        both.ledger._file.run("DELETE FROM events WHERE id = ?", removed)
        with pytest.raises(LedgerError, match="must have the rows from 1 on"):
            shared.head(3)
