"""Requests as values: equal ones have one text and one key, and what a ledger stores of them is read back."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpnb
from dpnb._plan.measurements import Count, PlainView
from dpnb._plan.plan import Plan, column
from dpnb._request import (
    BATCH_TABLE,
    BatchTable,
    CloseMechanism,
    CompareWithThreshold,
    DelegateBudget,
    LaunchMechanism,
    PartitionTable,
    ReduceNoise,
    Release,
    ReleaseBatch,
    RequestBudget,
    ScanThreshold,
    SelectGroups,
    request_from,
)
from dpnb._target import Target, target_from
from dpnb.errors import InvalidValueError, LedgerError
from dpnb.ledger.charge import sealed
from rationals import fractions

COUNT, BY_PLAN = Plan(Count()), Plan(Count(), group_by=(column("plan"),))
TENTH = Target("mu", Fraction(1, 10))
RELEASE, OTHER = Release(COUNT, PlainView(), TENTH), Release(BY_PLAN, PlainView(), TENTH)

REQUESTS: dict[str, Any] = {
    "release": RELEASE,
    "release of groups": Release(BY_PLAN, PlainView(), target_from(within={"free": 3}, groups=(("free",),))),
    "batch": ReleaseBatch((RELEASE, OTHER)),
    "table of a batch": BatchTable(COUNT, PlainView(), TENTH, 1, 3, 0, (2, 2), ((0,), (1,), ())),
    "selection": SelectGroups(BY_PLAN, 1, Fraction(1, 3)),
    "partition": LaunchMechanism("by plan", PartitionTable("", column("plan"), 2)),
    "delegation": LaunchMechanism("part", DelegateBudget("gdp", share=Fraction(1, 7))),
    "scan": LaunchMechanism("many", ScanThreshold(Fraction(-5, 2), Fraction(1, 5), monotonic=True)),
    "noise reduction": LaunchMechanism("n", ReduceNoise(COUNT, PlainView(), max_mu=Fraction(3, 10))),
    "close": CloseMechanism("many"),
    "comparison": CompareWithThreshold("many", COUNT, Fraction(100)),
    "request for budget": RequestBudget((RELEASE,), "the report"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_what_is_stored_is_read_back(name: str) -> None:
    request = REQUESTS[name]
    again = request_from(request.text)
    assert (again, again.text, again.key) == (request, request.text, request.key)
    assert request.text.startswith(BATCH_TABLE) == isinstance(request, BatchTable)


def test_requests_differ_in_their_keys() -> None:
    assert len({request.key for request in REQUESTS.values()}) == len(REQUESTS)


amounts = fractions(Fraction(1, 10**12), 10**6).filter(
    lambda one: max(one.numerator.bit_length(), one.denominator.bit_length()) <= 200
)


@given(amounts, fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=10**9), st.booleans())
def test_no_digit_of_a_target_is_lost(amount: Fraction, confidence: Fraction, flag: bool) -> None:
    request = Release(COUNT, PlainView(), target_from(mu=amount, confidence=confidence, simultaneous=flag))
    assert request_from(request.text) == request


def test_the_order_of_a_batch_does_not_count() -> None:
    one, other = ReleaseBatch((RELEASE, OTHER)), ReleaseBatch((OTHER, RELEASE, RELEASE))
    assert one.key == other.key
    assert len({one.key_of(index) for index in range(4)} | {other.key_of(index) for index in range(4)}) == 4


@pytest.mark.parametrize("spelling", ["2/20", "0.1", "1/010", "+1/10", " 1/10", "1_0/100", "1/0", "-1/-10", "1e-1", ""])
def test_an_amount_has_one_spelling(spelling: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        request_from(RELEASE.text.replace("1/10", spelling))


def test_a_text_of_many_digits_is_refused_before_it_is_converted() -> None:
    with pytest.raises(msgspec.ValidationError):
        request_from(RELEASE.text.replace("1/10", "1" * 100_000))


@pytest.mark.parametrize("within", [Fraction(10**400 + 1, 10**400), Fraction(1, 3**700)])
def test_an_amount_that_could_not_be_read_again_is_refused(within: Fraction) -> None:
    with pytest.raises(InvalidValueError):
        target_from(within=within)


@pytest.mark.parametrize("name", REQUESTS)
def test_unknown_fields_are_refused(name: str) -> None:
    stored = json.loads(REQUESTS[name].text) | {"priority": 1}
    with pytest.raises(msgspec.ValidationError):
        request_from(json.dumps(stored))


# --- in a ledger ------------------------------------------------------------------------------------------------------


@pytest.fixture
def session(tmp_path: Path) -> dpnb.Session:
    return dpnb.Session(
        pd.DataFrame({"x": [1, 2, 3] * 30, "plan": ["free", "paid", "free"] * 30}),
        name="people",
        budget=dpnb.Budget.gdp(2),
        schema={"x": dpnb.Bounded(0, 9), "plan": dpnb.Categories(["free", "paid"])},
        ledger=tmp_path / "people.dpnb",
    )


def scanned(session: dpnb.Session) -> None:
    scan = session.above_threshold(20, name="many", epsilon=0.1, monotonic=True)
    scan.ask(session.frame.count())
    scan.close()


WAYS: dict[str, Callable[[dpnb.Session], object]] = {
    "release": lambda one: one.frame["x"].sum().release(mu=0.1),
    "batch": lambda one: one.plan([one.frame.groupby("plan").size(), one.frame.count()]).release(mu=0.1),
    "selection": lambda one: one.frame.groupby("plan").size().top(1).release(epsilon=0.1),
    "scan": scanned,
    "partition": lambda one: one.partition("plan", max_parts_per_unit=1),
    "noise reduction": lambda one: one.noise_reduction(one.frame.count(), max_mu=0.1).step(),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_row_of_a_request_has_its_struct(session: dpnb.Session, way: str) -> None:
    WAYS[way](session)
    rows = session.ledger.charges()
    assert rows
    for row in rows:
        request = request_from(row.request)
        assert request.text == row.request
        if not isinstance(request, BatchTable | CloseMechanism):
            assert row.request_key == request.key


@pytest.mark.parametrize("way", WAYS)
def test_the_identical_request_is_found(session: dpnb.Session, way: str) -> None:
    WAYS[way](session)
    before = session.ledger.charges()
    WAYS[way](session)
    assert session.ledger.charges() == before


def test_equal_requests_of_two_nodes_stay_two(session: dpnb.Session) -> None:
    parts = [session.delegate(dpnb.Budget.gdp(0.5), name=name) for name in ("ana", "bob")]
    for part in parts:
        part.frame["x"].sum().release(mu=0.1)
    one, other = session.ledger.charges()[2:]
    assert (one.request, one.request_key) == (other.request, other.request_key)
    assert one.node != other.node
    assert one.measurement != other.measurement


# --- the digest of an answer ------------------------------------------------------------------------------------------


def guessed(digest: str, guesses: list[str], digest_of: Callable[[str], str]) -> list[str]:
    """The answers that somebody who has only the digest cannot tell from the true one."""
    return [one for one in guesses if digest_of(one) == digest]


def test_an_answer_that_was_taken_out_cannot_be_guessed_from_its_digest(session: dpnb.Session, tmp_path: Path) -> None:
    session.frame.groupby("plan").size().top(1).release(epsilon=0.1)
    with closing(sqlite3.connect(tmp_path / "people.dpnb")) as file:
        ((result, words, salt, digest),) = file.execute("SELECT result, words, salt, answer_digest FROM events")
    guesses = [result.replace(one, other) for one in ("free", "paid") for other in ("free", "paid")]
    assert sealed(result, words, salt) == (salt, digest)
    assert guessed(digest, guesses, lambda one: str(sealed(one, words)[1])) == []

    def unsalted(one: str) -> str:
        return hashlib.sha256(f"{one} {words}".encode()).hexdigest()

    assert set(guessed(unsalted(result), guesses, unsalted)) == {result}, "a digest without a salt is guessed"


def test_salts_differ_also_of_equal_answers() -> None:
    salts = {sealed('{"above": true}', None)[0] for _ in range(100)}
    assert len(salts) == 100
    assert sealed(None, None) == (None, None)


@pytest.mark.parametrize("column_", ["result", "words", "salt", "answer_digest"])
def test_a_session_refuses_a_ledger_whose_answers_were_taken_out(
    session: dpnb.Session, tmp_path: Path, column_: str
) -> None:
    """It would otherwise answer the charge a second time, with other noise."""
    session.frame["x"].sum().release(mu=0.1)
    session.ledger.close()
    with closing(sqlite3.connect(tmp_path / "people.dpnb")) as file:
        file.execute(f"UPDATE events SET {column_} = NULL")
        file.commit()
    with pytest.raises(LedgerError, match="must be as dpnb left it"):
        dpnb.Session(
            pd.DataFrame({"x": [1], "plan": ["free"]}),
            name="people",
            budget=dpnb.Budget.gdp(2),
            schema={"x": dpnb.Bounded(0, 9), "plan": dpnb.Categories(["free", "paid"])},
            ledger=tmp_path / "people.dpnb",
        )
