"""An answer and its preview say which rows do not count, and which values are at a bound: from public facts alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.frame import Frame
from dpnb.notebook.picker_state import make_state
from dpnb.query.query import Query

BUDGET = dpnb.Budget(epsilon=1, delta=1e-6)
SCHEMA = {
    "age": dpnb.Bounded(0, 90, integer=True),
    "cost": dpnb.Bounded(0, 200),
    "plan": dpnb.Categories(["free", "paid"]),
    "day": dpnb.Dates("2020-01-01", "2021-12-31"),
}


def frame_of(**options: Any) -> Frame:
    limits = {"privacy_unit": "person", "max_rows_per_unit": 5, "schema": SCHEMA, **options}
    return dpnb.Session.rehearse(name="clinic", budget=BUDGET, **limits).frame


def not_counted(query: Query) -> str | None:
    said = dict(query.preview(mu=0.01).left_out).get("not counted")
    assert said == query.release(mu=0.01).uncounted
    return said


def test_rows_beyond_the_limit_are_said_in_captions_plots_previews_and_the_picker() -> None:
    query = frame_of().groupby("plan")["age"].sum()
    said = "rows beyond the 5th of one person are not counted"
    answer = query.release(mu=0.05)
    assert said in str(answer)
    assert said in answer._repr_html_()
    assert said in " ".join(re.sub("<[^>]*>", " ", answer.plot().layout.title.text).split())
    assert f"not counted: {said}" in " ".join(str(query.preview()).split())
    assert f"not counted: {said}" in " ".join(str(query.preview(mu=0.1)).split())
    assert f"not counted: {said}" in " ".join(str(query.explain()).split())
    assert f"Not counted: {said}." in make_state(query).facts
    assert answer["free"].uncounted == (answer / 2).uncounted == answer.sort_values().uncounted == said
    shown = dict(answer.warnings)
    assert shown["not-counted"] == said


LIMITS: dict[str, tuple[dict[str, Any], Callable[[Frame], Query], str | None]] = {
    "each row is a unit": ({"privacy_unit": None, "max_rows_per_unit": None}, lambda f: f.count(), None),
    "rows": ({}, lambda f: f.count(), "rows beyond the 5th of one person are not counted"),
    "one row": ({"max_rows_per_unit": 1}, lambda f: f.count(), "rows beyond the first of one person are not counted"),
    "persons": ({}, lambda f: f.count_units(), None),
    "persons with a row": (
        {}, lambda f: f[f["age"] > 3].count_units(), "rows beyond the 5th of one person are not counted"
    ),
    "fewer by the query": (
        {},
        lambda f: f.bound_contributions(max_rows_per_unit=2)["age"].mean(),
        "rows beyond the 2nd of one person are not counted",
    ),
    "more by the query": (
        {},
        lambda f: f.bound_contributions(max_rows_per_unit=9)["age"].mean(),
        "rows beyond the 5th of one person are not counted",
    ),
    "rows in a group": (
        {"max_rows_per_group": 1},
        lambda f: f.groupby("plan").size(),
        "rows beyond the 5th of one person, or beyond the first in a group, are not counted",
    ),
    "rows in the only group": (
        {"max_rows_per_group": 1}, lambda f: f.count(), "rows beyond the first of one person are not counted"
    ),
    "groups": (
        {"max_rows_per_unit": None, "max_groups_per_unit": 1, "max_rows_per_group": 23},
        lambda f: f.groupby("plan")["age"].sum(),
        "rows beyond the 23rd in a group of one person, or beyond the first group, are not counted",
    ),
    "a norm": (
        {"max_norm_per_unit": 2},
        lambda f: f["age"].sum(),
        "rows beyond the 5th of one person are not counted; what one person adds is scaled down to at most 2 times the "
        "longest row",
    ),
    "a row for each person": (
        {},
        lambda f: f.groupby("person")["age"].sum().mean(),
        "rows beyond the 5th of one person are not counted",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LIMITS)
def test_each_limit_that_has_an_effect_is_said(case: str) -> None:
    options, ask, said = LIMITS[case]
    assert not_counted(ask(frame_of(**options))) == said


def test_pairs_of_rows_name_the_limit_of_each_table() -> None:
    columns = {"age": dpnb.Bounded(0, 90)}
    two = dpnb.Session.rehearse(
        name="two",
        budget=BUDGET,
        privacy_unit="person",
        max_rows_per_unit={"visits": 2, "drugs": 12},
        schema={"visits": columns, "drugs": columns},
    )
    pairs = two.table("visits").merge(two.table("drugs"), on="person")
    said = "rows beyond the 2nd in visits of one person, or beyond the 12th in drugs, are not counted"
    assert not_counted(pairs.count()) == said
    assert not_counted(two.table("drugs").count()) == "rows beyond the 12th of one person are not counted"
    both = two.table("drugs").count().release(mu=0.01) - two.table("visits").count().release(mu=0.01)
    assert both.uncounted == (
        "rows beyond the 12th of one person are not counted; rows beyond the 2nd of one person are not counted"
    )


def test_a_part_says_in_how_many_parts_a_person_counts() -> None:
    session = dpnb.Session.rehearse(
        name="clinic", budget=BUDGET, privacy_unit="person", max_rows_per_unit=5, schema=SCHEMA
    )
    part = session.partition("plan", max_parts_per_unit=1)["free"]
    said = "rows beyond the 5th of one person, or beyond the first part, are not counted"
    assert not_counted(part.frame.count()) == said


def test_a_batch_says_it_of_all_its_answers() -> None:
    session = dpnb.Session.rehearse(
        name="clinic", budget=BUDGET, privacy_unit="person", max_rows_per_unit=5, schema=SCHEMA
    )
    df = session.frame
    batch = session.plan([df.groupby("plan").size(), df.groupby(df["age"] != 9).size()])
    said = "rows beyond the 5th of one person are not counted"
    preview, answer = batch.preview(mu=0.1), batch.release(mu=0.1)
    assert [heading for heading, _ in preview.left_out] == ["not counted", "other values", "missing values"]
    assert str(preview).count(said) == str(answer).count(said) == 1
    table = dpnb.crosstab(df["plan"], df["age"] > 40, margins=True).release(mu=0.1)
    assert said in str(table)


def test_a_selection_of_the_largest_groups_says_it() -> None:
    query = frame_of().groupby("plan").size()
    said = "rows beyond the 5th of one person are not counted"
    assert said in " ".join(str(query.idxmax().preview(epsilon=0.01)).split())
    assert said in " ".join(str(query.idxmax().release(epsilon=0.01)).split())
    persons = frame_of(max_rows_per_unit=2).groupby("plan").count_units()
    assert dict(persons.idxmax().preview(epsilon=0.01).left_out) == {
        "not counted": "rows beyond the 2nd of one person are not counted",
        "other values": "rows with other values of plan than declared are not counted",
    }


def test_the_title_says_where_a_group_counts_one_row_of_a_person() -> None:
    query = frame_of(max_rows_per_group=1).groupby("plan").size()
    title = "count of rows by plan (at most 1 row in a group)"
    assert query.description == query.preview(mu=0.1).description == query.release(mu=0.1).description == title
    assert str(query.explain()).startswith(title)
    assert frame_of(max_rows_per_group=2).groupby("plan").size().description == "count of rows by plan"
    asked = frame_of().bound_contributions(max_rows_per_group=1).groupby("plan").size()
    assert asked.description == asked.release(mu=0.1).description == title


# --- values at a declared bound ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def beyond(tmp_path_factory: pytest.TempPathFactory) -> Frame:
    chance = np.random.default_rng(7)
    table = pd.DataFrame(
        {
            "age": np.r_[chance.integers(20, 60, 4000), np.full(500, 120)],
            "cost": np.r_[chance.uniform(50, 100, 4000), np.full(500, 1e6)],
            "plan": "free",
            "day": pd.Timestamp("2031-05-05"),
        }
    )
    session = dpnb.Session(
        table,
        name="beyond",
        budget=dpnb.Budget(epsilon=50, delta=1e-6),
        schema=SCHEMA,
        ledger=tmp_path_factory.mktemp("beyond") / "beyond.dpnb",
        not_private_test_seed=1,
    )
    return session.frame


BOUNDS: dict[str, tuple[Callable[[Frame], Query], str | None]] = {
    "largest": (lambda f: f["age"].max(), "at the declared bound 90, as which larger values count"),
    "largest of real numbers": (lambda f: f["cost"].max(), "at the declared bound 200, as which larger values count"),
    "smallest": (lambda f: f["age"].min(), None),
    "smallest at a bound": (
        lambda f: (f["age"] - 120).clip(-40, 0).min(), "at the bound -40, as which smaller values count"
    ),
    "a quantile": (lambda f: f["age"].quantile(0.99), "at the declared bound 90, as which larger values count"),
    "median": (lambda f: f["age"].median(), None),
    "largest date": (lambda f: f["day"].max(), "at the declared bound 2021-12-31, as which larger values count"),
    "by group": (
        lambda f: f.groupby("plan")["age"].max(),
        "at the declared bound 90 in 1 of 2 groups, as which larger values count",
    ),
    "among others": (
        lambda f: f.agg(most=("age", "max"), least=("age", "min"), n=("age", "count")),
        "most: at the declared bound 90, as which larger values count",
    ),
    "mean": (lambda f: f["age"].mean(), None),
}  # fmt: skip


@pytest.mark.parametrize("case", BOUNDS)
def test_a_largest_value_says_that_it_is_at_the_declared_bound(case: str, beyond: Frame) -> None:
    ask, said = BOUNDS[case]
    answer = ask(beyond).release(mu=0.5)
    assert dict(answer.remarks).get("at-bound") == said
    assert said is None or said in str(answer)


# --- what would be lost -----------------------------------------------------------------------------------------------


def test_a_table_of_pandas_is_made_by_to_pandas_alone() -> None:
    answer = frame_of().groupby("plan")["age"].mean().release(mu=0.1)
    other = pd.DataFrame({"z": [1.0, 2.0]})
    makers: list[Callable[[], Any]] = [
        lambda: pd.DataFrame(answer),
        lambda: pd.Series(answer),
        lambda: pd.DataFrame({"a": answer}),
        lambda: other.assign(x=answer),
        lambda: other.__setitem__("x", answer),
    ]
    for make in makers:
        with pytest.raises(dpnb.errors.RequestError, match=r"^pandas: .*use \.to_pandas\(\), which has both"):
            make()
    assert pd.DataFrame(answer.to_pandas()).index.name == "plan"
    assert np.asarray(answer).shape == (2,)


def test_a_column_of_a_table_without_a_name_is_refused() -> None:
    session = dpnb.Session.rehearse(name="clinic", budget=BUDGET, schema=SCHEMA)
    df, kept = session.frame, [session.frame]
    with pytest.raises(dpnb.errors.PlanError, match=r"^\['x'\] = \.\.\.: would be lost, .* df = session\.frame"):
        session.frame["x"] = 1
    with pytest.raises(dpnb.errors.PlanError, match="would be lost"):
        session.table("")["x"] = df["age"] * 2
    with pytest.raises(dpnb.errors.PlanError, match="would be lost"):
        df[df["age"] > 3]["x"] = 1
    with pytest.raises(dpnb.errors.PlanError, match=r"^del \['age'\]: would be lost"):
        del session.frame["age"]
    df["x"] = 1
    kept[0]["x"] = 2
    (other := df.copy())["y"] = 3
    for table in (session.frame,):
        table["z"] = df["age"] * 2
    assert ("x" in df.columns, "x" in kept[0].columns, "y" in other.columns) == (True, True, True)
