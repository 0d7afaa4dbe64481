"""Names in a plan are free texts: the words that a curator reads say which columns they are made from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

import dpnb
from dpnb._plan import description
from dpnb._plan import plan as plan_module
from dpnb._plan.expressions import text
from dpnb._plan.expressions.nodes import (
    Column,
    Compare,
    Cut,
    Expression,
    IsIn,
    IsNull,
    Literal,
    Lookup,
    Not,
    renamed,
)
from dpnb._plan.expressions.text import MAX_LISTED, MAX_NAME
from dpnb._plan.measurements import (
    AnyView,
    BoundsView,
    ColumnsView,
    Count,
    CountActiveUnits,
    Discovery,
    Gradient,
    JointAggregation,
    LevelCounts,
    LevelShareView,
    Mean,
    Measured,
    Moments,
    MomentsView,
    NamedColumn,
    PlainView,
    Proportions,
    QuantileTree,
    Ratio,
    RegressionModel,
    Sum,
    TableOneView,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel, Join, PartSource, Plan, columns_read, describe_plan, shortened_words
from plan.test_expression_trees import conditions_of, trees

NOTE, CITY, AGE = Column("note"), Column("city"), Column("age")
CITY_OF_NOTE = Lookup("city", (NOTE,), (("hiv",), ("flu",)), ("a", "b"))
BY_CITY = GroupLevel("city", CITY)
HIDDEN = Compare("==", NOTE, Literal("hiv"))
LIE = "description of age, city"
OLD = Compare(">", AGE, Literal(65))
DECADES = Cut(AGE, (0.0, 10.0, 20.0), ("[0, 10]", "(10, 20]"))
BINS = Cut(AGE, (0.0, 18.0, 100.0), ("old", "young"))


def joint(view: AnyView, *parts: Any) -> tuple[JointAggregation, AnyView]:
    return JointAggregation(tuple(map(WeightedAggregation, parts))), view


def words(aggregation: Measured, view: AnyView | None = None, **changes: Any) -> str:
    return describe_plan(Plan(aggregation, **changes), view or PlainView())


LIES: dict[str, tuple[str, str]] = {
    "level": (
        words(Count(), group_by=(GroupLevel("city", NOTE),)),
        "count of rows by city (made from note)",
    ),
    "level of a condition": (
        words(Count(), group_by=(GroupLevel("city", HIDDEN),)),
        "count of rows by city (made from note == 'hiv')",
    ),
    "lookup": (
        words(Count(), where=Compare("==", CITY_OF_NOTE, Literal("a"))),
        "count of rows where city (made from note: {'hiv': 'a', 'flu': 'b'}) == 'a'",
    ),
    "lookup as a level": (
        words(Count(), group_by=(GroupLevel("city", CITY_OF_NOTE),)),
        "count of rows by city (made from note: {'hiv': 'a', 'flu': 'b'})",
    ),
    "lookup that matches": (
        words(Count(), where=Not(IsNull(CITY_OF_NOTE))),
        "count of rows where note.isin(['hiv', 'flu'])",
    ),
    "lookup of two columns": (
        words(Count(), where=IsIn(Lookup("city", (NOTE, AGE), (("hiv", 3),), ("a",)), ("a",))),
        "count of rows where city (made from note, age: {('hiv', 3): 'a'}).isin(['a'])",
    ),
    "lookup whose name is not like a column's": (
        words(Mean(Lookup("city where 1 == 1", (NOTE,), (("hiv",),), (1.0,), 1.0, 1.0))),
        "mean of note.map({'hiv': 1.0})",
    ),
    "level whose name is not like a column's": (
        words(Count(), group_by=(GroupLevel("city where age == 1", NOTE),)),
        "count of rows by 'city where age == 1' (made from note)",
    ),
    "variable of a table one": (
        words(
            *joint(
                TableOneView((NamedColumn("city: a", 0, LevelShareView(0)),), variables=("city",)), LevelCounts(HIDDEN)
            )
        ),
        "table one: shares of city (made from note == 'hiv')",
    ),
    "what a table one does not show": (
        words(*joint(TableOneView((NamedColumn("n", 0),), variables=("",)), Count(), LevelCounts(HIDDEN))),
        "table one: count of rows, counts of the values of note == 'hiv'",
    ),
    "weights": (
        words(Moments((AGE, NOTE), weights=CITY_OF_NOTE), MomentsView("regression", (0, 1), ("age", "note"))),
        "regression of age on note, weighted by city (made from note: {'hiv': 'a', 'flu': 'b'})",
    ),
    "labels of bins": (
        words(Count(), where=Compare("==", BINS, Literal("old"))),
        "count of rows where cut(age, [0, 18, 100], labels=['old', 'young']) == 'old'",
    ),
    "title": (
        words(*joint(ColumnsView((NamedColumn("age", 0),), LIE), Mean(NOTE))),
        "mean of note",
    ),
    "title of other columns": (
        words(
            *joint(
                ColumnsView((NamedColumn("age", 0, MomentsView("mean")),), LIE), Moments((NOTE,)), QuantileTree(NOTE)
            )
        ),
        "mean of note (also measured: quantiles of note)",
    ),
    "labels of a matrix": (
        words(Moments((NOTE, AGE)), MomentsView("corr matrix", (0, 1), ("city", "age"))),
        "correlations of city (made from note), age",
    ),
    "part that is not in the view": (
        words(*joint(ColumnsView((NamedColumn("n", 0),)), Count(), Mean(NOTE))),
        "count of rows (also measured: mean of note)",
    ),
    "moment that is not in the view": (
        words(Moments((AGE, NOTE)), MomentsView("var", (0,))),
        "variance of age (also measured: note)",
    ),
    "outcome of a regression": (
        words(Moments((NOTE, AGE)), MomentsView("regression", (0, 1), ("city", "age"))),
        "regression of city (made from note) on age",
    ),
    "shares within": (
        words(Count(), Proportions("age where city == 1", 2), group_by=(GroupLevel("city", NOTE), BY_CITY)),
        "shares of rows within 'age where city == 1' by city (made from note), city",
    ),
    "part": (
        words(Count(), source=PartSource("visits", GroupLevel("city", NOTE), "a where b")),
        "count of rows in visits, city (made from note) 'a where b'",
    ),
    "bounds": (
        words(Count(), BoundsView(()), group_by=(GroupLevel("city", Cut(NOTE, (0.0, 1.0), ("x",))),)),
        "bounds of note",
    ),
    "suffixes of a join": (
        words(Mean(Column("city")), source=Join("visits", "labs", ("_x", "ity"))),
        "mean of city in visits joined with labs (suffixes '_x' and 'ity')",
    ),
    "label of a count of active units": (
        words(CountActiveUnits("of city"), where=HIDDEN),
        "count of active privacy units, 'of city' where note == 'hiv'",
    ),
    "regression of many columns": (
        words(Gradient(RegressionModel("linear", AGE, tuple(Column(f"c{at}") for at in range(9)), (NOTE,)), (), 1.0)),
        "gradient of the linear regression of age on c0, c1, c2, c3, c4, c5, c6, c7, c8, note",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_name_that_is_not_the_column_says_what_it_is(lie: str) -> None:
    shown, expected = LIES[lie]
    assert shown == expected


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (Plan(Count(), HIDDEN, (BY_CITY,)), "count of rows by city where note == 'hiv'"),
        (Plan(Mean(AGE), group_by=(GroupLevel("age > 65", OLD),)), "mean of age by age > 65"),
        (Plan(Count(), source=PartSource("", BY_CITY, "x")), "count of rows in city x"),
        (Plan(Count(), group_by=(GroupLevel("age", DECADES),)), "count of rows by cut(age, [0, 10, 20])"),
    ],
)
def test_an_honest_name_stays_as_it_is(plan: Plan, expected: str) -> None:
    assert plan.words == expected


def test_keys_whose_value_is_compared_are_listed_first_and_the_others_counted() -> None:
    keys = tuple((f"k{at}",) for at in range(100))
    many = Lookup("city", (NOTE,), (*keys, ("hiv",)), (*("b",) * 100, "a"))
    shown = words(Count(), where=Compare("==", many, Literal("a")))
    assert shown.startswith("count of rows where city (made from note: {'hiv': 'a', 'k0': 'b', ")
    assert shown.endswith(f"and {101 - MAX_LISTED} more}}) == 'a'")
    assert words(Count(), where=IsIn(many, ("a", "c"))).startswith("count of rows where city (made from note: {'hiv': ")


def test_texts_of_a_plan_are_of_limited_length() -> None:
    long = Lookup("c" * 10_000, (NOTE,), (("k" * 10_000,),), ("v" * 10_000,))
    assert len(words(Count(), group_by=(GroupLevel("n" * 10_000, long),))) < 4 * MAX_NAME + 100
    plan = Plan(Count(), Compare("==", Column("city"), Literal("x" * 10_000)), (GroupLevel("city", NOTE),))
    shown = shortened_words(plan.words, plan)
    assert len(shown) <= plan_module.MAX_WORDS
    assert shown.endswith("...; reads note, city")


# --- frames ---------------------------------------------------------------------------------------------------------


def frame() -> dpnb.Frame:
    table = pd.DataFrame({"note": ["hiv", "flu"], "city": ["x", "y"], "age": [30.0, 40.0]})
    schema = {"note": dpnb.Categories(["hiv", "flu"]), "city": dpnb.Categories(["x", "y"]), "age": dpnb.Bounded(0, 100)}
    budget = dpnb.Budget(epsilon=1, delta=1e-6)
    return dpnb.Session(table, name="people", budget=budget, schema=schema, ledger=":memory:").frame


TOWNS = pd.DataFrame({"note": ["hiv", "flu"], "town": ["a", "b"]})
CITIES = TOWNS.rename(columns={"town": "city"})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            lambda df: df.assign(city=df["note"]).groupby("city").size(),
            "count of rows by city (made from note)",
        ),
        (
            lambda df: df.merge(TOWNS, on="note", how="left").groupby("town")["age"].mean(),
            "mean of age by town (made from note: {'hiv': 'a', 'flu': 'b'})",
        ),
        (
            lambda df: df.drop(columns="city").merge(CITIES, on="note").groupby("city").size(),
            "count of rows by city (made from note: {'hiv': 'a', 'flu': 'b'}) where note.isin(['hiv', 'flu'])",
        ),
        (
            lambda df: df[df.assign(city=df["note"].map({"hiv": "a"}))["city"] == "a"].count(),
            "count of rows where note.map({'hiv': 'a'}) == 'a'",
        ),
        (
            lambda df: df.assign(city=df["note"].map({"hiv": "a", "flu": "b"})).groupby("city").size(),
            "count of rows by city (made from note.map({'hiv': 'a', 'flu': 'b'}))",
        ),
        (
            lambda df: df.assign(age=df["note"].map({"hiv": 1, "flu": 0})).describe(),
            "description of note.map({'hiv': 1, 'flu': 0})",
        ),
        (
            lambda df: df.rename(columns={"note": "city", "city": "note"}).value_counts("city"),
            "count of rows by city (made from note)",
        ),
        (lambda df: df.groupby("city")["age"].mean(), "mean of age by city"),
        (lambda df: df[df["note"] == "hiv"].groupby("city").size(), "count of rows by city where note == 'hiv'"),
        (lambda df: df["age"].histogram([0, 18, 100]), "count of rows by cut(age, [0, 18, 100])"),
        (lambda df: df[["age"]].describe(), "description of age"),
    ],
)
def test_what_a_frame_makes_says_what_it_reads(query: Callable[[dpnb.Frame], Any], expected: str) -> None:
    assert query(frame()).description == expected


# --- any plan -------------------------------------------------------------------------------------------------------

FREE = st.sampled_from(["city", "age", "where", "city == 1", "by a", "n" * 200, "", "made from city", "'", "\n"])
"""Names that an analyst may choose; no column has one of them."""

NAMES = {name: f"Q{name}" for name in "xyzgkdt"}
READ = re.compile(r'"op":"column","name":"(Q[a-z])"')


def looked_up(node: Expression) -> st.SearchStrategy[Expression]:
    keys = st.sampled_from([(("a",),), (("a",), ("b",), ("c",))])
    return st.builds(lambda name, keys: Lookup(name, (node,), keys, (1.0,) * len(keys), 1.0, 1.0), FREE, keys)


@st.composite
def plans(draw: st.DrawFn) -> tuple[Plan, AnyView]:
    """Plans with free names everywhere; not all of them would be accepted."""

    def number() -> Expression:
        node = renamed(draw(trees), NAMES)
        return draw(st.one_of(st.just(node), looked_up(node), st.just(Cut(node, (0.0, 1.0), (draw(FREE),)))))

    def condition() -> Expression:
        return renamed(draw(conditions_of(st.just(number()))), NAMES)

    def levels() -> tuple[GroupLevel, ...]:
        return tuple(GroupLevel(draw(FREE), number()) for _ in range(draw(st.integers(0, 2))))

    one, other, label = number(), number(), draw(FREE)
    aggregation, view = draw(
        st.sampled_from(
            [
                (Count(), PlainView()),
                (Count(one), Proportions(label)),
                (CountActiveUnits(label), PlainView()),
                (Sum(one), PlainView()),
                (Ratio(one, other), PlainView()),
                (Moments((one,), (other,)), MomentsView("regression", (0, 1), (label, "b"))),
                (Moments((one, other)), MomentsView("cov matrix", (0, 1), (label, "b"))),
                (QuantileTree(one), PlainView()),
                (Discovery("1e-9"), PlainView()),
                (Gradient(RegressionModel("linear", one, (other,) * 8, (number(),)), (), 1.0), PlainView()),
                joint(ColumnsView((), f"description of {label}"), Moments((one,)), QuantileTree(other)),
                joint(ColumnsView((), label), Count(one), Mean(other)),
                joint(ColumnsView((NamedColumn(label, 0), NamedColumn(label, 9))), Count(one), Mean(other)),
                (Moments((one, other)), MomentsView("mean", (0,))),
                (Moments((one, other)), MomentsView("corr matrix", (1, 9), (label, label))),
            ]
        )
    )
    source = draw(st.sampled_from(["", "T", Join("T", "U", ("_l", label))]))
    source = PartSource(source, GroupLevel(label, number()), label) if draw(st.booleans()) else source
    where = condition() if draw(st.booleans()) else None
    return Plan(aggregation, where, levels(), None, source=source), view


def missing(made: tuple[Plan, AnyView]) -> set[str]:
    """The columns that a plan reads, by its JSON, and that the words of a curator do not name."""
    plan, view = made
    shown = shortened_words(describe_plan(plan, view), plan, 300)
    return set(READ.findall(plan.to_json())) - set(re.findall(r"\bQ[a-z]\b", shown))


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(plans())
def test_every_column_that_a_plan_reads_is_named(made: tuple[Plan, AnyView]) -> None:
    assert missing(made) == set()
    assert set(columns_read(made[0])) == set(READ.findall(made[0].to_json()))
    json.loads(made[0].to_json())


def test_words_that_believe_names_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: names as they were shown before."""
    for module in (plan_module, description):
        monkeypatch.setattr(module, "named", lambda name, node: name)
        monkeypatch.setattr(module, "explained", text.words)
    made = find(plans(), lambda made: bool(missing(made)), settings=settings(database=None, phases=[Phase.generate]))
    assert missing(made)
