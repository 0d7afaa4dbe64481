"""A name that is not found as it is written is refused with what to write; others do not matter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.errors import SessionAttributeError
from session.bad_input import assert_refused

AGES = {"age": dpnb.Bounded(0, 100)}
PERSONS = {"privacy_unit": "person", "max_rows_per_unit": 2}


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., dpnb.Session]:
    def open_session(table: Any, **arguments: Any) -> dpnb.Session:
        return dpnb.Session(
            table,
            name="names",
            budget=dpnb.Budget(epsilon=20, delta=1e-6),
            ledger=tmp_path / "names.dpnb",
            not_private_test_seed=1,
            **{"schema": AGES, **arguments},
        )

    return open_session


def twice(columns: list[list[int]], library: str) -> Any:
    if library == "pandas":
        table = pd.DataFrame(np.array(columns).T)
        table.columns = ["age", "note", "note"]
        return table
    arrow = pytest.importorskip("pyarrow")
    return arrow.Table.from_arrays([arrow.array(column) for column in columns], names=["age", "note", "note"])


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_two_undeclared_columns_of_one_name_are_ignored(library: str, opened: Callable[..., dpnb.Session]) -> None:
    columns = [[*range(100)] * 20] * 3
    answer = opened(twice(columns, library)).frame["age"].mean().release(mu=0.5)
    low, high = answer.interval
    assert low < 49.5 < high
    both = {"age": dpnb.Bounded(0, 100), "note": dpnb.Bounded(0, 1)}
    assert_refused(lambda: opened(twice(columns, library), schema=both), "more than once")


def test_an_index_that_is_declared_says_how_it_becomes_a_column(opened: Callable[..., dpnb.Session]) -> None:
    table = pd.DataFrame({"person": [1, 2], "wave": [1, 1], "age": [30, 40]})
    for index in ("person", ["person", "wave"]):
        assert_refused(lambda index=index: opened(table.set_index(index), **PERSONS), "pass table.reset_index()")  # type: ignore[misc]
    assert_refused(lambda: opened(table.set_index("age")), "'age': is not in the table; it is the index")
    assert opened(table.set_index("wave"), **PERSONS).privacy_unit_description == "one person (at most 2 rows)"


def test_names_of_several_levels_say_how_they_are_flattened(opened: Callable[..., dpnb.Session]) -> None:
    table = pd.DataFrame({("first", "age"): [30.0], ("second", "age"): [31.0]})
    assert_refused(lambda: opened(table), "several levels: flatten them, as in table.columns = ")
    table.columns = ["_".join(map(str, levels)) for levels in table.columns]  # as the message says
    assert [*opened(table, schema={"first_age": dpnb.Bounded(0, 100)}).schema] == ["first_age"]


def of_duckdb() -> Any:
    return pytest.importorskip("duckdb").sql("SELECT 30 AS Age, 7::UBIGINT AS number")


def of_polars() -> Any:
    return pytest.importorskip("polars").LazyFrame({"Age": [30]})


@pytest.mark.parametrize("make", [of_duckdb, of_polars, lambda: pd.DataFrame({"Age": [30]})])
def test_another_spelling_of_a_column_is_proposed(make: Callable[[], Any], opened: Callable[..., dpnb.Session]) -> None:
    assert_refused(lambda: opened(make()), "column 'age': is not in the table; did you mean 'Age'?")
    assert_refused(lambda: opened(make(), schema={"ages": dpnb.Bounded(0, 1)}), "correct its name in the schema")


@pytest.mark.parametrize(
    "arguments",
    [
        {"schema": {"number": dpnb.Bounded(0, 9)}},
        {"schema": {"number": dpnb.Categories([1, 7])}},
        {"schema": {"number": dpnb.Text()}},
        {"schema": {"Age": dpnb.Bounded(0, 9)}, **PERSONS, "privacy_unit": "number"},
    ],
)
def test_an_engine_says_that_it_takes_no_unsigned_integers_of_64_bits(
    arguments: dict[str, Any], opened: Callable[..., dpnb.Session]
) -> None:
    assert_refused(lambda: opened(of_duckdb(), **arguments), "unsigned 64-bit integers are not offered")


# --- categories that are spelled otherwise ----------------------------------------------------------------------------


def test_a_name_that_a_session_does_not_have_leads_to_what_is_meant(opened: Callable[..., dpnb.Session]) -> None:
    session = opened(pd.DataFrame({"age": [30.0] * 9}), schema=AGES)
    meant = {"remaining": "headroom", "history": "log", "groupby": "frame", "methods": "report", "headrom": "headroom"}
    for tried, offered in meant.items():
        with pytest.raises(SessionAttributeError, match=rf"^\.{tried} of a session: is not offered; .*{offered}"):
            getattr(session, tried)
        assert hasattr(session, offered)
    assert not hasattr(session, "__array__")


ASKED: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "counts": (lambda f: f.groupby("sex").size(), True),
    "persons": (lambda f: f.groupby("sex").count_units(), True),
    "rows of one": (lambda f: f[f["sex"] == "male"].count(), True),
    "a condition": (lambda f: (f["sex"] == "male").sum(), True),
    "means": (lambda f: f.groupby("sex")["age"].mean(), True),
    "a regression": (lambda f: f.assign(half=f["age"] / 2).regress("half ~ age + C(sex)"), True),
    "all rows": (lambda f: f.count(), False),
    "few rows": (lambda f: f[f["age"] > 99].count(), False),
}


@pytest.mark.parametrize("declared", [["male", "female"], [0, 1]])
@pytest.mark.parametrize("case", ASKED)
def test_an_answer_without_rows_names_the_check(
    case: str, declared: list[Any], opened: Callable[..., dpnb.Session]
) -> None:
    ask, may_be_empty = ASKED[case]
    table = pd.DataFrame({"sex": [0, 1] * 2000, "age": 30.0})
    frame = opened(table, schema={"sex": dpnb.Categories(declared), **AGES}).frame
    if declared == [0, 1]:
        frame["sex"] = frame["sex"].map({0: "male", 1: "female"})
    answer = ask(frame).release(mu=0.3)
    said = "may be empty: whether the values of 'sex' are spelled as declared cannot be noticed without the rows; "
    assert (said in str(answer)) == (may_be_empty and declared != [0, 1])
    assert ("maybe-empty" in dict(answer.warnings)) == (may_be_empty and declared != [0, 1])
