"""Whatever a tree is made of: its bounds hold, it survives JSON, and it reads like what an analyst wrote."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dpnb._backends.memory.expressions import NumpyEvaluator
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._plan.expressions.dtypes import Numeric
from dpnb._plan.expressions.nodes import (
    And,
    Apply,
    Arithmetic,
    AsNumber,
    ChangeCase,
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
    Lookup,
    MatchText,
    Not,
    OnlyWhere,
    Or,
    Period,
    Round,
    Seconds,
    TextLength,
    Where,
)
from dpnb._plan.expressions.rules import dtype_of, public_keys_of
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import (
    AnyView,
    ColumnsView,
    Count,
    CountUnits,
    Discovery,
    JointAggregation,
    Mean,
    MeanCountView,
    Moments,
    MomentsView,
    NamedColumn,
    PlainView,
    Proportions,
    QuantilesView,
    QuantileTree,
    Ratio,
    Sum,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel, Join, Plan, describe_plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.errors import PlanError
from dpnb.schema import Bounded, Categories, Dates, Schema, Text

SCHEMA: Schema = {
    "x": Bounded(-3, 5),
    "y": Bounded(0.25, 2),
    "z": Bounded(-1e6, -0.5),
    "g": Categories(["a", "b"]),
    "k": Categories([10, -20, 2.5]),
    "d": Dates("1960-03-01", "2020-02-29"),
    "t": Text(max_length=4),
}
ENDS = {"x": [-3, 5, 0, -0.0, 0.5, np.nan], "y": [0.25, 2, 1, np.nan], "z": [-1e6, -0.5, -7, np.nan]}


def made(size: int = 120) -> pd.DataFrame:
    chance = np.random.default_rng(9)
    columns: dict[str, Any] = {}
    for name, ends in ENDS.items():
        low, high = min(ends[:2]), max(ends[:2])
        columns[name] = np.where(chance.random(size) < 0.6, chance.choice(ends, size), chance.uniform(low, high, size))
    columns["g"] = chance.choice(np.array(["a", "b", None], object), size)
    columns["t"] = chance.choice(np.array(["", "Zoë", "zoë\0", "a longer one", None], object), size)
    columns["k"] = chance.choice([10, -20, 2.5, np.nan], size)
    first, last = pd.Timestamp("1960-03-01"), pd.Timestamp("2020-02-29")
    columns["d"] = [first, last, pd.NaT, *(first + (last - first) * part for part in chance.random(size - 3))]
    return pd.DataFrame(columns)


ROWS = NumpyEvaluator(prepare(made(), SCHEMA, PrivacyUnit()), SCHEMA)

x, y, g = Column("x"), Column("y"), Column("g")
constants = st.one_of(st.integers(-5, 7), st.sampled_from([0.5, -0.25, 1e-3, 1e4, 2.5]))
literals = st.builds(Literal, constants)
positive = st.builds(Literal, st.sampled_from([0.3, 1, 2, 2.5, 7]))
days = ExtractDatePart("days", Arithmetic("-", Column("d"), Literal("1999-12-31")))
leaves: st.SearchStrategy[Expression] = st.one_of(
    st.sampled_from(
        [Column("x"), Column("y"), Column("z"), AsNumber(Column("k")), days, ExtractDatePart("month", Column("d"))]
    ),
    st.sampled_from(
        [
            Lookup("n", (Column("g"),), (("a",), ("b",)), (1.5, -4), -4.0, 1.5),
            ExtractDatePart("year", Column("d")),
            Arithmetic("/", Seconds(Column("d")), Literal(1e8)),
            ExtractDatePart("minute", Column("d")),
            TextLength(ChangeCase("lower", Column("t"))),
        ]
    ),
)


texts = st.sampled_from([Column("t"), ChangeCase("lower", Column("t")), ChangeCase("upper", Column("t"))])


def conditions_of(numbers: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    compared = st.builds(
        Compare, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), numbers, st.one_of(literals, numbers)
    )
    listed = st.builds(IsIn, numbers, st.lists(constants, min_size=1, max_size=3).map(tuple))
    matched = st.builds(
        MatchText, st.sampled_from(["startswith", "endswith", "contains"]), texts, st.sampled_from("aë\0")
    )
    category = st.just(Compare("==", Column("g"), Literal("a")))
    simple = st.one_of(compared, listed, st.builds(IsNull, numbers), category, matched)
    joined = st.one_of(st.builds(And, simple, simple), st.builds(Or, simple, simple), st.builds(Not, simple))
    return st.one_of(simple, joined)


def larger(numbers: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    limits = st.tuples(constants, constants).map(lambda pair: sorted(map(float, pair)))
    return st.one_of(
        st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "/"]), numbers, st.one_of(literals, numbers)),
        st.builds(Arithmetic, st.sampled_from(["-", "/", "*"]), literals, numbers),
        st.builds(Arithmetic, st.sampled_from(["//", "%", "**"]), numbers, positive),
        st.builds(Apply, st.sampled_from(["abs", "log1p", "exp", "log", "log2", "log10"]), numbers),
        st.builds(Round, numbers, st.integers(-2, 3)),
        st.builds(lambda node, pair: Clip(node, *pair), numbers, limits),
        st.builds(Clip, numbers, st.none(), constants.map(float)),
        st.builds(FillNull, numbers, constants),
        st.builds(Where, conditions_of(numbers), numbers, st.one_of(literals, numbers)),
        st.builds(AsNumber, conditions_of(numbers)),
    )


trees = st.recursive(leaves, larger, max_leaves=6)


def kind_or_nothing(node: Expression) -> Numeric:
    try:
        kind = dtype_of(node, SCHEMA)
    except PlanError:
        assume(False)
        raise
    assert isinstance(kind, Numeric)
    return kind


@settings(
    max_examples=6 * settings.default.max_examples,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(trees)
def test_values_lie_within_the_bounds_and_are_whole_if_that_is_said(node: Expression) -> None:
    """But for rounding: a bound may be too small by as much as one operation rounds, and values are clamped to it."""
    kind = kind_or_nothing(node)
    with np.errstate(all="ignore"):
        values = ROWS.numbers(node)
    values = values[~np.isnan(values)]
    assert math.isfinite(kind.low)
    assert math.isfinite(kind.high)
    assert kind.low <= kind.high
    slack = 1e-12 * kind.magnitude
    assert (values >= kind.low - slack).all()
    assert (values <= kind.high + slack).all()
    if kind.whole:
        assert (values == np.floor(values)).all()


@settings(
    max_examples=2 * settings.default.max_examples,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(trees)
def test_a_row_has_a_value_unless_something_in_it_is_missing(node: Expression) -> None:
    kind_or_nothing(node)
    complete = ROWS.present(Column("d"))
    for name in ("x", "y", "z", "g", "k", "t"):
        complete = complete & ROWS.present(Column(name))
    with np.errstate(all="ignore"):
        assert ROWS.present(node)[complete].all()


@settings(
    max_examples=2 * settings.default.max_examples,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(trees, st.data())
def test_a_plan_survives_json(node: Expression, data: st.DataObject) -> None:
    where = data.draw(st.one_of(st.none(), conditions_of(st.just(node))))
    parts = (
        WeightedAggregation(Mean(node), 2.5),
        WeightedAggregation(Moments((node, Column("x")))),
        WeightedAggregation(QuantileTree(node)),
        WeightedAggregation(CountUnits()),
    )
    aggregation = data.draw(
        st.sampled_from(
            [Count(), Count(node), Sum(node), Ratio(node, Column("y")), JointAggregation(parts), Discovery("1e-9")]
        )
    )
    plan = Plan(
        aggregation,
        where,
        (
            GroupLevel("bin", Cut(node, (0.0, 0.5, 2.0), ("low", 1), False)),
            GroupLevel("g", Column("g")),
            GroupLevel("month", Period("month", OnlyWhere(Compare(">", x, Literal(1)), Column("d")))),
        ),
        data.draw(st.sampled_from([None, (("low", "a", "1999-12"), (1, "b", "2000-01"))])),
        data.draw(
            st.sampled_from([ContributionBounds(), ContributionBounds(2, None, 1), ContributionBounds(max_norm=1.5)])
        ),
        data.draw(st.sampled_from(["", "visits", Join("a", Join("b", "c"), ("_l", "_r"))])),
    )
    again = Plan.from_json(plan.to_json())
    assert again == plan
    assert again.to_json() == plan.to_json()


@pytest.mark.parametrize(
    "view",
    [
        PlainView(),
        Proportions(),
        MeanCountView(),
        MomentsView("corr", (0, 1)),
        MomentsView("var"),
        MomentsView("var", ddof=1),
        QuantilesView((0.1, 0.5)),
        QuantilesView((0.5,), single=True),
        ColumnsView(
            (
                NamedColumn("n", 0),
                NamedColumn("m", 1, MomentsView("mean")),
                NamedColumn("q", 2, QuantilesView((0.25,), True)),
            )
        ),
    ],
    ids=repr,
)
def test_a_view_survives_json(view: Any) -> None:
    assert msgspec.json.decode(msgspec.json.encode(view), type=AnyView) == view


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"aggregation":{"of":"everything"}}', "null"])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="to_json"):
        Plan.from_json(text)


@pytest.mark.parametrize(
    ("node", "keys"),
    [
        (Arithmetic("%", Round(Column("x")), Literal(3)), (0, 1, 2)),
        (Arithmetic("//", Round(Column("x")), Literal(4)), (-1, 0, 1)),
        (Round(Arithmetic("*", Column("x"), Literal(10)), -1), (-30, -20, -10, 0, 10, 20, 30, 40, 50)),
        (ExtractDatePart("quarter", Column("d")), (1, 2, 3, 4)),
    ],
    ids=words,
)
def test_groups_of_whole_numbers_are_those_that_a_row_can_have(node: Expression, keys: tuple[int, ...]) -> None:
    """A group that nothing can be in costs nothing, but it is noise to look at."""
    assert public_keys_of(node, SCHEMA) == keys


LARGEST = float(np.finfo(np.float64).max)
"""What an infinite edge is kept as: JSON has no infinity."""


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (Compare(">", x, Literal(1)), "x > 1"),
        (And(Compare(">", x, Literal(1)), Not(Compare("==", g, Literal("a")))), "(x > 1) & ~(g == 'a')"),
        (Arithmetic("*", Arithmetic("+", x, y), Literal(2)), "(x + y) * 2"),
        (Arithmetic("-", Literal(0), Arithmetic("+", x, y)), "-(x + y)"),
        (Apply("log1p", Clip(x, 0.0, None)), "log1p(x.clip(0, None))"),
        (Apply("abs", Arithmetic("-", x, y)), "(x - y).abs()"),
        (Round(x), "x.round()"),
        (Round(x, 2), "x.round(2)"),
        (Not(IsNull(x)), "x.notna()"),
        (FillNull(x, 0), "x.fillna(0)"),
        (Where(Compare("==", g, Literal("a")), x, Literal(0)), "x.where(g == 'a', 0)"),
        (IsIn(g, ("a", "b")), "g.isin(['a', 'b'])"),
        (IsIn(x, tuple(range(50))), "x.isin([0, 1, 2, 3, 4, 5, ...])"),
        (Cut(x, (0.0, 1.0), ("in",)), "cut(x, [0, 1])"),
        (ExtractDatePart("days", Arithmetic("-", Column("d"), Literal("2020-01-01"))), "(d - '2020-01-01').dt.days"),
        (AsNumber(Column("k")), "k.astype(float)"),
        (Apply("log", Arithmetic("+", x, Literal(4))), "log(x + 4)"),
        (Where(Compare(">", x, Literal(1)), Literal("a"), Literal("b")), "where(x > 1, 'a', 'b')"),
        (OnlyWhere(Compare(">", x, Literal(1)), x), "x.where(x > 1)"),
        (OnlyWhere(Compare(">", x, Literal(1)), Literal(3)), "where(x > 1, 3)"),
        (MatchText("contains", ChangeCase("lower", Column("t")), "a"), "t.str.lower().str.contains('a')"),
        (TextLength(Column("t")), "t.str.len()"),
        (Seconds(Column("d")), "d"),
        (Period("week", Column("d")), "d.dt.to_period('W')"),
        (Cut(Column("d"), (0.0, 86400.5), ("in",), dates=True), "cut(d, ['1970-01-01', '1970-01-02T00:00:00.500000'])"),
        (Cut(x, (-LARGEST, 0.5, LARGEST), ("low", "high")), "cut(x, [-inf, 0.5, inf])"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_a_tree_reads_like_what_was_written(node: Expression, text: str) -> None:
    assert words(node) == text


@pytest.mark.parametrize(
    ("plan", "view", "text"),
    [
        (Plan(Count()), PlainView(), "count of rows"),
        (Plan(Count(), group_by=(GroupLevel("g", g),)), Proportions(), "shares of rows by g"),
        (Plan(Mean(x), Compare(">", y, Literal(1)), (GroupLevel("g", g),)), PlainView(), "mean of x by g where y > 1"),
        (Plan(Moments((x,))), MomentsView("std"), "standard deviation of x"),
        (Plan(Moments((x,))), MomentsView("std", ddof=1), "sample standard deviation of x"),
        (Plan(Moments((x, y))), MomentsView("corr", (0, 1)), "correlation of x and y"),
        (Plan(Moments((x, y))), MomentsView("regression", (1, 0)), "regression of y on x"),
        (Plan(QuantileTree(x)), QuantilesView((0.5,), True), "median of x"),
        (Plan(QuantileTree(x)), QuantilesView((0.1, 0.9)), "quantiles 0.1, 0.9 of x"),
        (Plan(Ratio(x, y)), PlainView(), "ratio of x to y"),
        (Plan(CountUnits(), source=Join("a", "b")), PlainView(), "count of privacy units in a joined with b"),
        (
            Plan(Sum(x), contribution_bounds=ContributionBounds(max_rows=2, max_groups=1)),
            PlainView(),
            "sum of x (at most 2 rows, in at most 1 group)",
        ),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_a_question_reads_like_what_was_asked(plan: Plan, view: Any, text: str) -> None:
    assert describe_plan(plan, view) == text
