"""pandas' spelling builds the plans that are meant, and never changes a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._plan.expressions.nodes import (
    And,
    Apply,
    Arithmetic,
    AsNumber,
    Clip,
    Column,
    Compare,
    Cut,
    Expression,
    ExtractDatePart,
    FillNull,
    IsIn,
    IsNull,
    Literal,
    Not,
    Or,
    Round,
    Where,
)
from dpnb._plan.measurements import (
    Count,
    CountUnits,
    Discovery,
    Mean,
    MeanCountView,
    Moments,
    MomentsView,
    PlainView,
    Proportions,
    QuantilesView,
    QuantileTree,
    Ratio,
    Sum,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel, Plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.errors import PlanError
from dpnb.frame import Frame
from dpnb.frame.view import TableView
from dpnb.schema import Bounded, Categories, Dates, Schema, Text

SCHEMA: Schema = {
    "x": Bounded(0, 20),
    "y": Bounded(-1, 3),
    "g": Categories(["a", "b", "c"]),
    "t": Text(),
    "d": Dates("2020-01-01", "2021-12-31"),
}
SCHEMAS: dict[str, Schema] = {"": SCHEMA}
x, y, g, t, d = (Column(name) for name in "xygtd")

Asked = tuple[Plan, Any]


def table(schemas: dict[str, Schema] = SCHEMAS, name: str = "") -> Frame:
    return Frame(
        TableView(
            name,
            schemas,
            dict.fromkeys(schemas, PrivacyUnit("u", 5)),
            lambda plan, view: (plan, view),
            lambda delta: str(delta or "1e-9"),
        )
    )


@pytest.fixture
def f() -> Frame:
    return table()


POSITIVE = Compare(">", x, Literal(1))

NODES: dict[str, tuple[Callable[[Any], Any], Expression]] = {
    "arithmetic": (
        lambda f: (f["x"] + f["y"]) * 2 - 1,
        Arithmetic("-", Arithmetic("*", Arithmetic("+", x, y), Literal(2)), Literal(1)),
    ),
    "reflected": (lambda f: 1 - f["x"], Arithmetic("-", Literal(1), x)),
    "reflected quotient": (lambda f: 3 / (f["x"] + 1), Arithmetic("/", Literal(3), Arithmetic("+", x, Literal(1)))),
    "minus": (lambda f: -f["x"], Arithmetic("-", Literal(0), x)),
    "numpy on the left": (lambda f: np.float64(2) - f["x"], Arithmetic("-", Literal(2.0), x)),
    "numpy compares": (lambda f: np.int64(2) < f["x"], Compare(">", x, Literal(2))),
    "log1p": (lambda f: np.log1p(f["x"]), Apply("log1p", x)),
    "sqrt": (lambda f: np.sqrt(f["x"]), Arithmetic("**", x, Literal(0.5))),
    "abs": (lambda f: abs(f["y"]), Apply("abs", y)),
    "round": (lambda f: round(f["x"], 1), Round(x, 1)),
    "clip": (lambda f: f["x"].clip(upper=3), Clip(x, None, 3.0)),
    "and, or, not": (
        lambda f: (f["x"] > 1) & ~(f["g"] == "a") | f["d"].isna(),
        Or(And(POSITIVE, Not(Compare("==", g, Literal("a")))), IsNull(d)),
    ),
    "between": (
        lambda f: f["x"].between(1, 4, inclusive="left"),
        And(Compare(">=", x, Literal(1)), Compare("<", x, Literal(4))),
    ),
    "isin": (lambda f: f["g"].isin(np.array(["a", "b"])), IsIn(g, ("a", "b"))),
    "fillna": (lambda f: f["x"].fillna(0), FillNull(x, 0)),
    "where": (lambda f: f["x"].where(f["x"] > 1, f["y"]), Where(POSITIVE, x, y)),
    "mask": (lambda f: f["x"].mask(f["x"] > 1, 0), Where(Not(POSITIVE), x, Literal(0))),
    "condition as number": (lambda f: (f["x"] > 1).astype(int), AsNumber(POSITIVE)),
    "condition in a sum": (lambda f: (f["x"] > 1) + f["y"], Arithmetic("+", AsNumber(POSITIVE), y)),
    "date": (lambda f: f["d"] >= pd.Timestamp("2020-05-01"), Compare(">=", d, Literal("2020-05-01T00:00:00Z"))),
    "date parts": (lambda f: f["d"].dt.month, ExtractDatePart("month", d)),
    "span": (
        lambda f: (f["d"] - pd.Timestamp("2020-01-01")).dt.days,
        ExtractDatePart("days", Arithmetic("-", d, Literal("2020-01-01T00:00:00Z"))),
    ),
    "cut": (lambda f: dpnb.cut(f["x"], [0, 5, 20], labels=["few", "many"]), Cut(x, (0.0, 5.0, 20.0), ("few", "many"))),
    "cut in parts": (lambda f: dpnb.cut(f["y"], 2), Cut(y, (-1.0, 1.0, 3.0), ("[-1, 1]", "(1, 3]"))),
    "text": (lambda f: f["t"] == "foo", Compare("==", t, Literal("foo"))),
}


@pytest.mark.parametrize("name", NODES)
def test_an_expression_is_what_was_written(f: Frame, name: str) -> None:
    written, node = NODES[name]
    assert written(f)._node == node


BY_G = (GroupLevel("g", g),)
QUESTIONS: dict[str, tuple[Callable[[Any], Any], Plan, Any]] = {
    "count": (lambda f: f.count(), Plan(Count()), PlainView()),
    "units": (lambda f: f.count_units(), Plan(CountUnits()), PlainView()),
    "count of a column": (lambda f: f["t"].count(), Plan(Count(t)), PlainView()),
    "mask": (lambda f: f[f["x"] > 1]["y"].sum(), Plan(Sum(y), POSITIVE), PlainView()),
    "two masks": (
        lambda f: f[f["x"] > 1][f["g"] == "a"].count(),
        Plan(Count(), And(POSITIVE, Compare("==", g, Literal("a")))),
        PlainView(),
    ),
    "mask of a column": (lambda f: f["y"][f["x"] > 1].mean(), Plan(Mean(y), POSITIVE), PlainView()),
    "proportion": (lambda f: (f["x"] > 1).mean(), Plan(Mean(AsNumber(POSITIVE))), PlainView()),
    "groupby": (lambda f: f.groupby("g")["x"].mean(), Plan(Mean(x), group_by=BY_G), PlainView()),
    "groupby several": (
        lambda f: f.groupby(["g", f["d"].dt.year, f["x"] > 1]).count(),
        Plan(
            Count(),
            group_by=(*BY_G, GroupLevel("d.dt.year", ExtractDatePart("year", d)), GroupLevel("x > 1", POSITIVE)),
        ),
        PlainView(),
    ),
    "groupby with keys": (
        lambda f: f.groupby("t", keys=["foo", "bar"]).count_units(),
        Plan(CountUnits(), group_by=(GroupLevel("t", t),), group_keys=(("foo",), ("bar",))),
        PlainView(),
    ),
    "groupby with a table of keys": (
        lambda f: f.groupby(["t", "g"], keys=pd.DataFrame({"g": ["a", "b"], "t": ["foo", "bar"]})).count(),
        Plan(Count(), group_by=(GroupLevel("t", t), *BY_G), group_keys=(("foo", "a"), ("bar", "b"))),
        PlainView(),
    ),
    "assigned groups": (
        lambda f: f.assign(old=f["x"] > 1).groupby("old").count(),
        Plan(Count(), group_by=(GroupLevel("old", POSITIVE),)),
        PlainView(),
    ),
    "assign": (
        lambda f: f.assign(z=lambda v: v["x"] * 2, w=lambda v: v["z"] + 1)["w"].sum(),
        Plan(Sum(Arithmetic("+", Arithmetic("*", x, Literal(2)), Literal(1)))),
        PlainView(),
    ),
    "assign over a column": (
        lambda f: f.assign(x=f["y"])["x"].mean(),
        Plan(Mean(y)),
        PlainView(),
    ),
    "limit": (
        lambda f: f.bound_contributions(max_rows_per_unit=3).bound_contributions(max_rows_per_unit=5).count(),
        Plan(Count(), contribution_bounds=ContributionBounds(3)),
        PlainView(),
    ),
    "var": (lambda f: f["x"].var(), Plan(Moments((x,))), MomentsView("var", ddof=1)),
    "var over the count": (lambda f: f["x"].var(ddof=0), Plan(Moments((x,))), MomentsView("var")),
    "std by group": (
        lambda f: f.groupby("g")["x"].std(),
        Plan(Moments((x,)), group_by=BY_G),
        MomentsView("std", ddof=1),
    ),
    "size of groups": (lambda f: f.groupby("g").size(), Plan(Count(), group_by=BY_G), PlainView()),
    "median": (lambda f: f["x"].median(), Plan(QuantileTree(x, graded=True)), QuantilesView((0.5,), True)),
    "min": (lambda f: f["x"].min(), Plan(QuantileTree(x, graded=True)), QuantilesView((0.0,), True)),
    "max": (lambda f: f["x"].max(), Plan(QuantileTree(x, graded=True)), QuantilesView((1.0,), True)),
    "quantiles": (lambda f: f["x"].quantile([0.1, 0.9]), Plan(QuantileTree(x, graded=True)), QuantilesView((0.1, 0.9))),
    "corr": (lambda f: f["y"].corr(f["x"]), Plan(Moments((x, y))), MomentsView("corr", (0, 1))),
    "cov": (lambda f: f["x"].cov(f["y"]), Plan(Moments((x, y))), MomentsView("cov", (0, 1), ddof=1)),
    "ratio": (lambda f: f["x"].ratio(f["y"]), Plan(Ratio(x, y)), PlainView()),
    "value_counts": (lambda f: f["g"].value_counts(), Plan(Count(), group_by=BY_G), PlainView()),
    "shares": (lambda f: f["g"].value_counts(normalize=True), Plan(Count(), group_by=BY_G), Proportions()),
    "value_counts of texts": (
        lambda f: f["t"].value_counts(keys=["foo"]),
        Plan(Count(), group_by=(GroupLevel("t", t),), group_keys=(("foo",),)),
        PlainView(),
    ),
    "histogram": (
        lambda f: f["x"].histogram([0, 10, 20]),
        Plan(Count(), group_by=(GroupLevel("x", Cut(x, (0.0, 10.0, 20.0), ("[0, 10)", "[10, 20]"), False)),)),
        PlainView(),
    ),
    "discover": (
        lambda f: f[f["x"] > 1].discover("t"),
        Plan(Discovery("1e-9"), POSITIVE, (GroupLevel("t", t),)),
        PlainView(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_verb_builds_the_plan_that_is_meant(f: Frame, name: str) -> None:
    written, plan, view = QUESTIONS[name]
    assert written(f) == (plan, view)


Column_ = tuple[Any, float, Any]
"""What is measured, with which weight, and what is read off it."""

AGGREGATED: dict[str, tuple[dict[str, Any], dict[str, Column_]]] = {
    "several": (
        {"n": "count", "u": "units", "s": ("x", "sum"), "q": ("y", "median")},
        {
            "n": (Count(), 1, PlainView()),
            "u": (CountUnits(), 1, PlainView()),
            "s": (Sum(x), 1, PlainView()),
            "q": (QuantileTree(y, graded=True), 1, QuantilesView((0.5,), True)),
        },
    ),
    "a count is read off a mean": (
        {"m": ("x", "mean"), "n": ("x", "count"), "rows": "count"},
        {"m": (Mean(x), 2, PlainView()), "n": (Mean(x), 2, MeanCountView()), "rows": (Count(), 1, PlainView())},
    ),
    "counts and means are read off moments": (
        {"n": ("x", "count"), "m": ("x", "mean"), "v": ("x", "var"), "s": ("x", "std"), "other": ("y", "mean")},
        {
            **{
                name: (Moments((x,)), 4, MomentsView(statistic, ddof=ddof))
                for name, statistic, ddof in (("n", "count", 0), ("m", "mean", 0), ("v", "var", 1), ("s", "std", 1))
            },
            "other": (Mean(y), 1, PlainView()),
        },
    ),
    "quantiles are read off one tree": (
        {"low": ("x", "min"), "mid": ("x", "median"), "u": "units", "weights": {"u": 4}},
        {
            "low": (QuantileTree(x, graded=True), 1, QuantilesView((0.0,), True)),
            "mid": (QuantileTree(x, graded=True), 1, QuantilesView((0.5,), True)),
            "u": (CountUnits(), 2, PlainView()),
        },
    ),
    "expressions": (
        {"s": (table()["x"] > 1, "mean"), "t": (table()["t"], "count")},
        {"s": (Mean(AsNumber(POSITIVE)), 1, PlainView()), "t": (Count(t), 1, PlainView())},
    ),
}


@pytest.mark.parametrize("name", AGGREGATED)
def test_what_columns_of_agg_have_in_common_is_measured_once_with_all_their_weights(f: Frame, name: str) -> None:
    written, columns = AGGREGATED[name]
    for plan, view in (f.agg(**written), f.groupby("g").agg(**written)):
        parts = plan.aggregation.parts
        found = {
            named.name: (parts[named.part].aggregation, parts[named.part].weight, named.view) for named in view.columns
        }
        assert found == columns
        assert len(parts) == len({part for part, _, _ in columns.values()})


def test_describe_leaves_conditions_out_as_in_pandas(f: Frame) -> None:
    flagged = f.assign(flag=f["x"] > 1)
    assert flagged[["x", "flag"]].describe() == f[["x"]].describe()
    assert flagged[["flag"]].describe() != f[["x"]].describe()


def test_describe_shares_its_charge_between_moments_and_quantiles(f: Frame) -> None:
    plan, view = f["x"].describe()
    tree = QuantileTree(x, graded=True)
    assert set(plan.aggregation.parts) == {WeightedAggregation(Moments((x,))), WeightedAggregation(tree)}
    assert [named.name for named in view.columns] == ["count", "mean", "std", "min", "25%", "50%", "75%", "max"]


def test_regress_names_the_outcome_first_whatever_the_order_that_it_is_measured_in(f: Frame) -> None:
    plan, view = f.regress("y", on=["x", "g", f["x"] > 1])
    measured = (*plan.aggregation.columns, *plan.aggregation.categories)
    assert [measured[place] for place in view.columns] == [y, x, g, POSITIVE]
    assert view.labels == ("y", "x", "g == 'b'", "g == 'c'", "x > 1")
    assert f.regress("x", on=["y", f["x"] > 1, "g"])[0] == plan


def test_no_verb_changes_the_view_it_is_called_on(f: Frame) -> None:
    public = pd.DataFrame({"g": ["a"], "x": [1], "size": [3]})
    before = (f.columns, repr(f), f.count())
    f[f["x"] > 1]
    f.assign(x=f["y"], z=f["x"] + 1)
    f.bound_contributions(max_rows_per_unit=1)
    f.merge(public, on="g")
    f.groupby("g").agg(n="count")
    f["x"].clip(0, 1)
    assert (f.columns, repr(f), f.count()) == before


@pytest.mark.parametrize("ddof", [2, -1, 0.5, None, "1", True])
def test_a_divisor_that_is_not_computed_is_refused(f: Frame, ddof: Any) -> None:
    for ask in (f["x"].var, f["x"].std, lambda ddof: f["x"].cov(f["y"], ddof=ddof)):
        with pytest.raises(PlanError, match=r"^ddof: must be 0 \(divide by the count\) or 1"):
            ask(ddof=ddof)
