"""A session takes the data frames of other libraries, and answers as it does on the same table of pandas."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import dpnb
from session.bad_input import assert_refused

SEED = 20_240_613
COLUMNS: dict[str, list[Any]] = {
    "person": [f"p{i % 90}" if i % 17 else None for i in range(400)],
    "visits": [i * 7 % 13 if i % 5 else None for i in range(400)],
    "income": [float(i % 31) - 3 for i in range(400)],
    "town": [("north", "south", "north\0")[i % 3] for i in range(400)],
    "smoker": [bool(i % 2) for i in range(400)],
    "seen": [datetime.datetime(2010, 1 + i % 12, 3, 23) for i in range(400)],
    "street": [("elm", "elm\0", "oak")[i // 2 % 3] for i in range(400)],
}
SCHEMA = {
    "visits": dpnb.Bounded(0, 10),
    "income": dpnb.Bounded(0, 20),
    "town": dpnb.Categories(["north", "south"]),
    "smoker": dpnb.Categories([True, False]),
    "seen": dpnb.Dates("2010-01-01", "2010-12-31"),
    "street": dpnb.Text(),
}
QUESTIONS: list[Callable[[Any], Any]] = [
    lambda f: f.count(),
    lambda f: f.count_units(),
    lambda f: f["visits"].sum(),
    lambda f: f.groupby("town")["income"].mean(),
    lambda f: f.groupby(["smoker", "town"])["visits"].median(),
    lambda f: f.groupby(f["seen"].dt.month).count(),
    lambda f: f[f["street"] == "elm"].count(),
    lambda f: f.discover("street"),
]


def of_pandas() -> Any:
    return pd.DataFrame(COLUMNS)


def of_polars() -> Any:
    return pytest.importorskip("polars").DataFrame(COLUMNS)


def of_pyarrow() -> Any:
    return pytest.importorskip("pyarrow").table(COLUMNS)


def session_on(table: Any, **changes: Any) -> dpnb.Session:
    arguments: dict[str, Any] = {
        "name": "clinic",
        "privacy_unit": "person",
        "max_rows_per_unit": 3,
        "budget": dpnb.Budget(epsilon=500, delta=1e-3, discovery_delta=5e-4),
        "schema": SCHEMA,
        "ledger": ":memory:",
        "not_private_test_seed": SEED,
    }
    return dpnb.Session(table, **{**arguments, **changes})


def answers(session: dpnb.Session) -> list[pd.DataFrame]:
    return [ask(session.frame).release(mu=4).to_pandas() for ask in QUESTIONS]


@pytest.mark.parametrize("make", [of_polars, of_pyarrow])
def test_same_seed_gives_the_same_answers_to_the_last_digit_as_pandas(make: Callable[[], Any]) -> None:
    expected, found = answers(session_on(of_pandas())), answers(session_on(make()))
    for one, other in zip(found, expected, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


@pytest.mark.parametrize("make", [of_polars, of_pyarrow])
def test_tables_of_several_libraries_are_joined(make: Callable[[], Any]) -> None:
    def joined(left: Any) -> Any:
        schema = {"old": SCHEMA, "new": SCHEMA}
        session = session_on({"old": left, "new": of_pandas()}, schema=schema)
        return session.table("old").merge(session.table("new"), on="person")["visits_x"].sum().release(mu=1)

    assert joined(make()).estimate == joined(of_pandas()).estimate


@pytest.mark.parametrize("make", [of_polars, of_pyarrow])
def test_a_column_that_is_missing_is_named_and_those_that_are_there_are_not(make: Callable[[], Any]) -> None:
    assert_refused(lambda: session_on(make(), schema={"hight": dpnb.Bounded(0, 1)}), "'hight': is not in the table")
    assert_refused(lambda: session_on(make(), privacy_unit="persn"), "'persn': is not in the table")


def test_a_column_that_pyarrow_has_twice_is_refused() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    twice = pyarrow.Table.from_arrays([pyarrow.array([1])] * 2, names=["visits", "visits"])
    schema = {"visits": dpnb.Bounded(0, 1)}
    assert_refused(
        lambda: session_on(twice, schema=schema, privacy_unit=None, max_rows_per_unit=None), "more than once"
    )


@pytest.mark.parametrize("name", ["column_names", "columns", "shape"])
def test_a_column_may_be_called_like_what_frames_have(name: str) -> None:
    table = pd.DataFrame({name: [1, 2, 3]})
    schema = {name: dpnb.Bounded(0, 10)}
    session = session_on(table, schema=schema, privacy_unit=None, max_rows_per_unit=None)
    assert session.frame[name].sum().release(mu=20).estimate == pytest.approx(6, abs=3)
