"""Titles of answers say in words what the exact text of a query says in code."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb._plan.plan import describe_plan, in_words, spoken_title
from dpnb.render.tables import heading_of

EDGES = ["2024-01-01", "2024-04-01", "2024-07-01"]


@pytest.fixture(scope="module")
def df() -> Any:
    seen = pd.to_datetime(["2024-02-03 10:00", "2024-05-06 12:00"]).tz_localize("Europe/Vienna")
    table = pd.DataFrame({"docvis": [0.0, 3.0], "age": [30.0, 50.0], "year": [1984, 1985], "seen": seen})
    schema = {
        "docvis": dpnb.Bounded(0, 60),
        "age": dpnb.Bounded(25, 65),
        "year": dpnb.Categories([1984, 1985]),
        "seen": dpnb.Dates("2024-01-01", "2024-07-01", zone="Europe/Vienna"),
    }
    budget = dpnb.Budget.gdp(1)
    return dpnb.Session(table, name="t", budget=budget, schema=schema, ledger=":memory:", public_size=2).frame


SPOKEN = {
    "mean of docvis": lambda df: df["docvis"].mean(),
    "share of rows with docvis above 0, by year": lambda df: (df["docvis"] > 0).groupby(df["year"]).mean(),
    "count of rows with docvis at most 5": lambda df: (~(df["docvis"] > 5)).sum(),
    "mean of docvis where age from 30 to 39 and year = 1984": lambda df: df[
        (df["age"] >= 30) & (df["age"] <= 39) & (df["year"] == 1984)
    ]["docvis"].mean(),
    "count of rows where (docvis below 5 or age missing) and year in [1984]": lambda df: df[
        ((df["docvis"] < 5) | df["age"].isna()) & df["year"].isin([1984])
    ].count(),
    "mean of docvis (30 where docvis above 30)": lambda df: df["docvis"].mask(df["docvis"] > 30, 30).mean(),
    "mean of docvis limited to 0 to 30": lambda df: df["docvis"].clip(0, 30).mean(),
    "mean of docvis (2 where missing)": lambda df: df["docvis"].fillna(2).mean(),
    "mean of docvis, by month of seen (Europe/Vienna)": lambda df: df.groupby(df["seen"].dt.month)["docvis"].mean(),
    "count of rows, by seen in 2 ranges (Europe/Vienna)": lambda df: dpnb.cut(df["seen"], EDGES).value_counts(),
    "count of rows, by age in 8 ranges": lambda df: df["age"].plot.hist(bins=8),
    "median of docvis, by old (age in 2 ranges)": lambda df: (
        df.assign(old=dpnb.cut(df["age"], [25, 45, 65])).groupby("old")["docvis"].median()
    ),
}


@pytest.mark.parametrize("title", SPOKEN)
def test_a_title_is_in_words(df: Any, title: str) -> None:
    query = SPOKEN[title](df)
    assert spoken_title(query.plan, query.view) == title
    assert in_words(query.description, query.plan, query.view) == title


def test_an_answer_has_the_title_and_keeps_its_exact_description(df: Any) -> None:
    answer = (df["docvis"] > 0).groupby(df["year"]).mean().release(mu=0.1)
    assert answer.description == describe_plan(answer.plan, answer.view)
    assert heading_of(answer) in repr(answer)
    assert f'title="{answer.description.replace(">", "&gt;")}"' in answer._repr_html_()
    assert heading_of(answer.sort_values()).startswith("share of rows with docvis above 0, by year, ")


def test_a_lookup_keeps_the_text_that_says_what_it_is_made_from(df: Any) -> None:
    query = df.groupby(df["year"].map({1984: "first", 1985: "second"})).size()
    assert "1984: 'first'" in spoken_title(query.plan, query.view)


def test_bins_between_days_of_a_zone_are_named_by_the_days(df: Any) -> None:
    answer = dpnb.cut(df["seen"], EDGES).value_counts().release(mu=0.1)
    assert list(answer.index) == ["[2024-01-01, 2024-04-01]", "(2024-04-01, 2024-07-01]"]
    assert "seen (Europe/Vienna)" in repr(answer)
    named = dpnb.cut(df["seen"], EDGES, labels=["winter", "spring"]).value_counts()
    assert spoken_title(named.plan, named.view) == "count of rows, by seen in 2 ranges"
    hours = dpnb.cut(df["seen"], ["2024-01-01", "2024-04-01T12:00"]).value_counts().release(mu=0.1)
    assert "Vienna" not in repr(hours)  # each label states its distance from UTC
    assert list(hours.index) == ["[2024-01-01T00:00:00+01:00, 2024-04-01T12:00:00+02:00]"]
