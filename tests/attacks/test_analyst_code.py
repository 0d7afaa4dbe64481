"""Code of the analyst that runs on rows.

Kind: beyond
Fault: Where a query contains code of the analyst, this code can keep what it sees, take longer, or spend more for
some rows. A constant is such code if its class is the analyst's: a comparison calls its methods with the values of
rows.
Reported: https://www.usenix.org/conference/usenix-security-11/differential-privacy-under-fire (Haeberlen, Pierce and
Narayan 2011, on PINQ and Airavat)
dpnb: Functions are called once, with a column and never with a value; a plan holds instances of Python's own types
only.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._backends.memory.execute import execute
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._compile import linear_query
from dpnb._plan.expressions.nodes import Column, Compare, Expression, IsIn, Literal, Lookup
from dpnb._plan.measurements import Count
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.schema import Schema

SCHEMA: Schema = {
    "x": dpnb.Bounded(0, 8, integer=True),
    "t": dpnb.Text(max_length=20),
    "c": dpnb.Categories(["u", "v"]),
    "d": dpnb.Dates("2017-01-01", "2017-03-31"),
}
HEARD: list[object] = []


class _Listening:
    def __eq__(self: Any, other: object) -> bool:
        HEARD.append(other)
        return str.__eq__(self, other)

    def __hash__(self: Any) -> int:
        return str.__hash__(self)

    def __str__(self) -> Any:
        return self  # `str(x)` may return an instance of a subclass

    def __repr__(self) -> str:
        return "'a constant'"

    def translate(self, table: object) -> Any:
        return self

    lower = casefold = __str__


class Subclass(_Listening, str):
    pass


class Member(_Listening, str, enum.Enum):  # noqa: UP042  (`StrEnum` has a `__str__` of its own)
    ALICE = "alice"
    U = "u"


class Number(int, enum.Enum):
    """Stored as 1, and computed with as 3."""

    ONE = 1

    def __new__(cls, value: int) -> Number:
        number = int.__new__(cls, 3)
        number._value_ = value
        return number


class Float(float):
    def __float__(self) -> float:
        return 3.0


class Day(datetime):
    def isoformat(self, *_: Any) -> Any:
        return Member.ALICE

    def date(self) -> Any:
        return self


chosen: Any = np.where  # of columns of dpnb, which numpy's annotations do not know

TEXTS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": lambda f, v: f[f["t"] == v].count(),
    "different": lambda f, v: f[f["t"].ne(v)].count(),
    "listed": lambda f, v: f[f["t"].isin([v, "bob"])].count(),
    "key of a map": lambda f, v: f["t"].map({v: 1, "bob": 2}).sum(),
    "key of groups": lambda f, v: f.groupby("t", keys=[v, "bob"]).count(),
    "found": lambda f, v: f[f["t"].str.contains(v, case=False)].count(),
    "starts": lambda f, v: f[f["t"].str.startswith((v, "b"))].count(),
    "joined": lambda f, v: f.merge(pd.DataFrame({"t": pd.Series([v], dtype=object), "z": [3]}), on="t").count(),
    "new category": lambda f, v: f["c"].map({"u": v, "v": "w"}).value_counts(),
    "replaced": lambda f, v: f["c"].replace("u", v).value_counts(),
    "filled": lambda f, v: f["c"].fillna(v).value_counts(),
    "chosen": lambda f, v: chosen(f["x"] > 1, v, "w").value_counts(),
    "label": lambda f, v: dpnb.cut(f["x"], [0, 4, 8], labels=[v, "w"]).value_counts(),
}


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "x": [0, 1, 3, 8] * 30,
            "t": ["alice", "bob", "eve", "alice"] * 30,
            "c": ["u", "v", "u", "v"] * 30,
            "d": pd.to_datetime(["2017-01-01", "2017-02-03"] * 60),
        }
    )


@pytest.fixture
def session(tmp_path: Path) -> dpnb.Session:
    HEARD.clear()
    return dpnb.Session(
        table(),
        name="own",
        budget=dpnb.Budget(epsilon=200, delta=1e-6),
        schema=SCHEMA,
        ledger=tmp_path / "own.dpnb",
        not_private_test_seed=7,
    )


def attack(run: Callable[[], Any]) -> list[str]:
    """What the methods of a constant were called with while rows were read."""
    HEARD.clear()  # the public list may be compared before
    run()
    return [str(text) for text in HEARD]


@pytest.mark.parametrize("constant", [Subclass("alice"), Member.ALICE, Day(2017, 1, 1, 5)], ids=["str", "enum", "date"])
@pytest.mark.parametrize("query", TEXTS)
def test_dpnb_resists(session: dpnb.Session, query: str, constant: Any) -> None:
    try:
        built = TEXTS[query](session.frame, constant)
    except dpnb.errors.DpnbError:
        assert isinstance(constant, Day)  # texts are not looked for by a date
        return
    assert attack(lambda: built.release(mu=0.1)) == []


def test_dpnb_calls_a_function_once_and_never_with_a_value(session: dpnb.Session) -> None:
    seen: list[object] = []

    def spy(value: Any) -> Any:
        seen.append(value)
        return value * 2

    query = session.frame["x"].apply(spy).sum()
    query.release(mu=0.1)
    assert [type(value) for value in seen] == [type(session.frame["x"])]


def test_a_constant_counts_as_the_value_that_is_recorded(session: dpnb.Session) -> None:
    frame = session.frame
    for own, plain in ((Number.ONE, 3), (Float(1.0), 1.0)):
        queries: tuple[Callable[[Any, Any], Any], ...] = (
            lambda f, v: f[f["x"] == v].count(),
            lambda f, v: f["x"].clip(upper=v).sum(),
            lambda f, v: f["x"].map({1: v, 3: 4}).sum(),
            lambda f, v: chosen(f["x"] > 1, v, 2).sum(),
            lambda f, v: f["x"].fillna(v).mean(),
        )
        for query in queries:
            assert query(frame, own).plan == query(frame, plain).plan
            assert query(frame, own).plan.to_json() == query(frame, plain).plan.to_json()
    assert frame[frame["c"] == Member.U].count().plan == frame[frame["c"] == "u"].count().plan
    assert frame[frame["x"] == Number.ONE].count().release(mu=0.5).estimate == pytest.approx(30, abs=12)


def test_a_fraction_with_its_own_arithmetic_pays_what_it_states(session: dpnb.Session) -> None:
    class Cheap(Fraction):
        def __pow__(self, *_: Any) -> Any:
            return Fraction(1, 10**9)

        __mul__ = __rmul__ = __pow__

    session.frame.count().release(mu=Cheap(1, 2))
    session.frame["x"].sum().release(mu=Fraction(1, 2))
    first, second = session.ledger.charges()
    assert first.loss == second.loss


ALICE = Member.ALICE


@pytest.mark.parametrize(
    "condition",
    [
        Compare("==", Column("t"), Literal(ALICE)),
        IsIn(Column("t"), (ALICE,)),
        Compare("==", Lookup("m", (Column("t"),), ((ALICE,),), (1,), 1.0, 1.0), Literal(1)),
    ],
    ids=["equal", "listed", "map"],
)
def test_the_control_is_caught(condition: Expression) -> None:
    """A constant that keeps its class is put into a plan directly; it learns whether anybody has this text."""
    query = linear_query(Plan(Count(), condition), SCHEMA, PrivacyUnit())
    rows, others = (prepare(one, SCHEMA, PrivacyUnit()) for one in (table(), table().replace({"t": {"alice": "ann"}})))
    assert "alice" in attack(lambda: execute(query, rows, SCHEMA))
    assert attack(lambda: execute(query, others, SCHEMA)) == []
