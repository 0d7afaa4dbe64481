"""The tracker in a person's statement: its figures by hand, beside the public worst case."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import dpnb
from core.people import MODES, MU0, QUESTIONS, TABLE, ask_all, curator, of
from curator.test_statement import made
from dpnb.accounting.individual import UnitTracker
from dpnb.curator.personal_statement_text import statement_text

STEP = MU0**2 / 20


def by_hand(charges: list[Fraction]) -> Iterator[Fraction]:
    """The paper's tracker, where a charge above the increment fills as many as it needs."""
    increments, block = 1, Fraction(0)
    for charge in charges:
        if charge > STEP:
            while block + charge > STEP:
                increments, charge = increments + 1, charge - STEP
            block += charge
        elif block + charge > STEP:
            increments, block = increments + 1, charge
        else:
            block += charge
        yield min(increments * STEP, MU0**2)


@pytest.mark.parametrize("mode", MODES)
def test_the_bound_after_each_query_is_that_of_a_recomputation(mode: str, tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, mode)
    public = []
    for question in QUESTIONS:
        question.ask(session.frame).release(mu=question.mu)
        public.append(session.filter.spent.mu_squared)  # type: ignore[union-attr]
    readings = set()
    for person in TABLE["person"].unique():
        entries = made(ledger, file, unit=person).entries
        assert [entry.tracked for entry in entries] == list(by_hand([entry.paid for entry in entries])), person
        assert [entry.worst_case for entry in entries] == public
        spent = Fraction(0)
        for entry in entries:
            spent += entry.paid
            assert spent <= entry.tracked
            assert entry.tracked % STEP == 0
            assert spent <= entry.worst_case * (1 + Fraction(1, 10**9))
        readings.add(tuple(entry.tracked for entry in entries))
    assert len(readings) > 3, "the persons differ"


def test_a_person_whom_no_query_affects_stays_at_one_increment(tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "skip")
    for mu in ("0.2", "0.3"):
        session.frame[session.frame["visits"] >= 9].count().release(mu=mu)
    assert {entry.tracked for entry in made(ledger, file, unit="p2").entries} == {STEP}
    assert [entry.worst_case for entry in made(ledger, file, unit="p2").entries][-1] > 7 * STEP
    assert len(of("p2")) == 1


def test_the_worst_case_of_a_partition_grows_with_its_largest_part(tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "skip")
    parts = session.partition("town", max_parts_per_unit=1)
    for town in parts:
        parts[town].frame.count().release(mu="0.1")
    entries = made(ledger, file, unit="p1").entries
    assert [entry.worst_case for entry in entries] == [0, Fraction(1, 100), Fraction(1, 100)]
    assert [entry.tracked for entry in entries] == [STEP] * 3


def test_queries_of_another_version_count_in_full_and_may_exceed_the_budget(tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "skip")
    for least in (1, 9):
        session.frame[session.frame["visits"] >= least].count().release(mu="0.4")
    entries = made(ledger, file, unit="p2", version="2").entries
    assert [entry.worst_case for entry in entries] == [Fraction(16, 100), MU0**2]
    assert entries[0].tracked == Fraction(13, 20) * MU0**2
    assert MU0**2 < entries[1].paid + entries[0].paid <= entries[1].tracked


def test_under_zcdp_the_shares_are_the_same(tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "skip", budget=dpnb.Budget(epsilon=1, delta=1e-6), filter="zcdp")
    session.frame.count().release(rho="0.005")
    got = made(ledger, file, unit="p0")
    (entry,) = got.entries
    assert entry.tracked == UnitTracker(got.budget).step(entry.paid).bound
    assert entry.worst_case == Fraction(1, 100)


def test_the_text_has_both_bounds_after_each_query(tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "skip")
    ask_all(session)
    got = made(ledger, file, unit="p3")
    lines = statement_text(got).splitlines()
    (head,) = [line for line in lines if line.startswith("no.")]
    at = {name: head.index(name) + len(name) for name in ("so far", "worst case")}
    rows = lines[lines.index(head) + 1 :][: len(got.entries)]
    assert [row[: at["so far"]].split()[-1] for row in rows] == [
        f"{float(100 * entry.tracked / MU0**2):.1f}%" for entry in got.entries
    ]
    assert all(row[: at["worst case"]].endswith("%") for row in rows)
    assert "in steps of 5%" in statement_text(got)
    assert "the analyst sees the worst case only" in " ".join(lines)
