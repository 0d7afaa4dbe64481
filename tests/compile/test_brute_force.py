"""Sums agree with exact arithmetic."""

from __future__ import annotations

import operator
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpnb._backends.memory import execute as execution
from dpnb._backends.memory.execute import execute
from dpnb._backends.memory.kernels import CHUNK, cell_sums
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._compile import LinearQuery, grid, linear_query
from dpnb._compile.features import BRANCHING, CountFeature, TreeFeature, UnitFeature, ValueFeature
from dpnb._plan.expressions.nodes import And, Clip, Column, Compare, Expression, Literal, Not, Or, Round
from dpnb._plan.measurements import (
    Count,
    CountUnits,
    JointAggregation,
    Mean,
    Moments,
    QuantileTree,
    Ratio,
    Sum,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel, Plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.schema import Bounded, Categories, Schema, Text

SCHEMA: Schema = {"x": Bounded(-3, 5), "y": Bounded(0.1, 2), "g": Categories(["a", "b"])}
BOUNDS = {"x": (-3.0, 5.0), "y": (0.1, 2.0)}
OPERATORS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt}
X, Y, G = Column("x"), Column("y"), Column("g")

numbers = st.one_of(st.none(), st.integers(-6, 8), st.sampled_from([0.5, -2.25, 0.1, float("inf"), float("nan")]))
groups = st.sampled_from(["a", "b", "c", None])
rows = st.lists(st.tuples(numbers, numbers, groups), max_size=12)
comparisons = st.one_of(
    st.builds(
        Compare,
        st.sampled_from(["==", "!=", "<", "<=", ">"]),
        st.just(X),
        st.builds(Literal, st.sampled_from([-3, 0, 0.5, 2, 5])),
    ),
    st.builds(Compare, st.sampled_from(["==", "!="]), st.just(G), st.builds(Literal, st.sampled_from(["a", "b"]))),
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(st.builds(And, inner, inner), st.builds(Or, inner, inner), st.builds(Not, inner)),
    max_leaves=4,
)
LINEAR = [Count(), Count(X), Count(G), CountUnits(), Sum(X), Sum(Y), Mean(X), Mean(Y), Ratio(X, Y)]
joints = st.lists(
    st.builds(WeightedAggregation, st.sampled_from(LINEAR), st.sampled_from([1.0, 0.1, 7.0])), min_size=1, max_size=4
)
plans = st.builds(
    Plan,
    st.one_of(st.sampled_from(LINEAR), joints.map(lambda parts: JointAggregation(tuple(parts)))),
    st.one_of(st.none(), conditions),
    st.sampled_from([(), (GroupLevel("g", G),)]),
)


def seen(value: Any, column: str) -> Any:
    """A value as the schema sees it: clamped, or None."""
    if column == "g":
        return value if value in ("a", "b") else None
    if value is None or not np.isfinite(value):
        return None
    low, high = BOUNDS[column]
    return min(max(float(value), low), high)


def truth(condition: Expression, row: dict[str, Any]) -> bool | None:
    """Kleene's three values, written out."""
    match condition:
        case Compare(name, Column(left), Literal(right)):
            value = row[left]
            return None if value is None else bool(OPERATORS[name](value, right))
        case Not(inner):
            inside = truth(inner, row)
            return None if inside is None else not inside
        case And(left, right) | Or(left, right):
            decisive = isinstance(condition, Or)
            sides = [truth(left, row), truth(right, row)]
            return decisive if decisive in sides else None if None in sides else not decisive
    raise TypeError(type(condition).__name__)


def on_grid(value: float, column: str) -> Fraction:
    """Toward zero."""
    step = Fraction(2) ** grid.exponent(SCHEMA[column])  # type: ignore[arg-type]
    return Fraction(int(Fraction(value) / step)) * step


def sum_of(table: list[dict[str, Any]], column: str) -> Fraction:
    return sum((on_grid(row[column], column) for row in table), Fraction(0))


def single(aggregation: Any, cell: list[dict[str, Any]]) -> list[Fraction]:
    """What one aggregation's sums of one cell stand for."""
    names = [
        node.name for node in (getattr(aggregation, "column", None), getattr(aggregation, "denominator", None)) if node
    ]
    cell = [row for row in cell if all(row[name] is not None for name in names)]
    match aggregation:
        case Count() | CountUnits():
            return [Fraction(len(cell))]
        case Sum(Column(name)):
            return [sum_of(cell, name)]
        case Mean(Column(name)):
            low, high = (on_grid(end, name) for end in BOUNDS[name])
            step = Fraction(2) ** grid.exponent(SCHEMA[name])  # type: ignore[arg-type]
            return [Fraction(len(cell)), sum_of(cell, name) - len(cell) * ((low + high) / 2 // step) * step]
        case Ratio(Column(top), Column(bottom)):
            return [sum_of(cell, top), sum_of(cell, bottom)]
    raise TypeError(type(aggregation).__name__)


def expected(plan: Plan, table: list[dict[str, Any]]) -> list[Fraction]:
    """The quantities that the integer sums stand for."""
    kept = [row for row in table if plan.where is None or truth(plan.where, row) is True]
    cells = [[row for row in kept if row["g"] == key] for key in ("a", "b")] if plan.group_by else [kept]
    parts = (
        plan.aggregation.parts
        if isinstance(plan.aggregation, JointAggregation)
        else (WeightedAggregation(plan.aggregation),)
    )  # type: ignore[arg-type]
    return [total for cell in cells for part in parts for total in single(part.aggregation, cell)]


def sums_of(query: LinearQuery, frame: pd.DataFrame, unit: PrivacyUnit) -> list[Fraction]:
    """The sums in the units that they stand for."""
    units = [feature.unit for feature in query.features for _ in range(feature.slots)] * query.cells
    sums = execute(query, prepare(frame, SCHEMA, unit), SCHEMA)
    return [int(total) * size for total, size in zip(sums, units, strict=True)]


@given(plans, rows)
def test_sums_agree_with_exact_arithmetic(plan: Plan, content: list[tuple[Any, Any, Any]]) -> None:
    frame = pd.DataFrame(content, columns=["x", "y", "g"]).astype(object)
    unit = PrivacyUnit()
    found = sums_of(linear_query(plan, SCHEMA, unit), frame, unit)
    table = [{"x": seen(x, "x"), "y": seen(y, "y"), "g": seen(g, "g")} for x, y, g in content]
    assert found == expected(plan, table)


@given(rows, st.sampled_from([(), (GroupLevel("g", G),)]))
def test_moments_agree_with_exact_arithmetic(content: list[tuple[Any, Any, Any]], by: tuple[GroupLevel, ...]) -> None:
    """Of x and y brought to -1 to 1: count, sums and products, less the middle of what they can be."""
    unit = PrivacyUnit()
    query = linear_query(Plan(Moments((X, Y)), None, by), SCHEMA, unit)
    found = np.array(sums_of(query, pd.DataFrame(content, columns=["x", "y", "g"]).astype(object), unit))
    table = [{"x": seen(x, "x"), "y": seen(y, "y"), "g": seen(g, "g")} for x, y, g in content]
    for key, sums in zip(("a", "b") if by else (None,), found.reshape(query.cells, 6), strict=True):
        cell = [
            row for row in table if row["x"] is not None and row["y"] is not None and (key is None or row["g"] == key)
        ]
        z = [((row["x"] - 1) / 4, (row["y"] - 1.05) / 0.95) for row in cell]
        wanted = [1.0 * len(z), sum(a for a, _ in z), sum(b for _, b in z)]
        wanted += [sum(a * a - 0.5 for a, _ in z), sum(a * b for a, b in z), sum(b * b - 0.5 for _, b in z)]
        assert [float(total) for total in sums] == pytest.approx(wanted, abs=1e-7)


@given(rows)
def test_moments_with_categories_agree_with_exact_arithmetic(content: list[tuple[Any, Any, Any]]) -> None:
    """Sums of x and of the indicators of "b" and of x > 1, and of their products."""
    unit = PrivacyUnit()
    plan = Plan(Moments((X,), (G, Compare(">", X, Literal(1)))))
    found = sums_of(
        linear_query(plan, SCHEMA, unit), pd.DataFrame(content, columns=["x", "y", "g"]).astype(object), unit
    )
    cell = [(seen(x, "x"), seen(g, "g")) for x, _, g in content]
    z = [((x - 1) / 4, float(g == "b"), float(x > 1)) for x, g in cell if x is not None and g is not None]
    wanted = [1.0 * len(z), sum(a for a, _, _ in z), sum(a * a - 0.5 for a, _, _ in z)]
    wanted += [sum(b for _, b, _ in z), sum(c for _, _, c in z)]
    wanted += [sum(a * b for a, b, _ in z), sum(a * c for a, _, c in z), sum(b * c for _, b, c in z)]
    assert [float(total) for total in found] == pytest.approx(wanted, abs=1e-7)


@given(rows, st.sampled_from([Round(X), Clip(X, 0.5, 4.5)]), st.sampled_from([(), (GroupLevel("g", G),)]))
def test_a_tree_counts_each_row_once_on_each_level(
    content: list[tuple[Any, Any, Any]], node: Expression, by: tuple[GroupLevel, ...]
) -> None:
    unit = PrivacyUnit()
    query = linear_query(Plan(QuantileTree(node), None, by), SCHEMA, unit)
    nodes = query.features[0]
    assert isinstance(nodes, TreeFeature)
    found = sums_of(query, pd.DataFrame(content, columns=["x", "y", "g"]).astype(object), unit)
    wanted: list[int] = []
    for key in ("a", "b") if by else (None,):
        kept = [seen(x, "x") for x, _, g in content if key is None or g == key]
        values = [round(x) if isinstance(node, Round) else min(max(x, 0.5), 4.5) for x in kept if x is not None]
        leaves = [min(int((value - nodes.low) / nodes.width), nodes.leaves - 1) for value in values]
        for level in range(1, nodes.levels + 1):
            counts = [0] * BRANCHING**level
            for leaf in leaves:
                counts[leaf // BRANCHING ** (nodes.levels - level)] += 1
            wanted += counts
    assert found == wanted


def test_whole_numbers_have_a_leaf_each() -> None:
    nodes = linear_query(Plan(QuantileTree(Round(X))), SCHEMA, PrivacyUnit()).features[0]
    assert isinstance(nodes, TreeFeature)
    assert (nodes.low, nodes.width, nodes.levels, nodes.whole) == (-3, 1, 2, True)


def test_the_slots_of_a_cell_follow_each_other_feature_by_feature() -> None:
    parts = (
        WeightedAggregation(Mean(X)),
        WeightedAggregation(CountUnits(), 2.0),
        WeightedAggregation(QuantileTree(Round(X))),
    )
    unit = PrivacyUnit("u", 2)
    query = linear_query(Plan(JointAggregation(parts), None, (GroupLevel("g", G),)), SCHEMA, unit)
    assert [type(feature) for feature in query.features] == [CountFeature, ValueFeature, UnitFeature, TreeFeature]
    assert query.slots == 3 + 4 + 16
    frame = pd.DataFrame([(1, 5, 1, "b"), (1, 5, 1, "b"), (2, 1, 1, "b"), (3, 2, 1, "a")], columns=["u", "x", "y", "g"])
    first, second = np.array(sums_of(query, frame, unit)).reshape(2, query.slots)
    assert first[:3].tolist() == [1, 1, 1]
    assert second[:3].tolist() == [3, 4 + 4 + 0, 2]
    assert (first[3:].sum(), second[3:].sum()) == (2, 6)
    some = linear_query(query.plan, SCHEMA, unit, (1,))
    every = execute(query, prepare(frame, SCHEMA, unit), SCHEMA)
    assert execute(some, prepare(frame, SCHEMA, unit), SCHEMA).tolist() == every[query.slots :].tolist()


@pytest.mark.parametrize("limits", [ContributionBounds(), ContributionBounds(max_norm=1.5)], ids=["", "scaled down"])
def test_a_table_without_rows_gives_zeros(limits: ContributionBounds) -> None:
    unit = PrivacyUnit("u", 3, limits)
    frame = pd.DataFrame({"u": [], "x": [], "y": [], "g": []})
    for aggregation in (
        *LINEAR[1:3],
        *LINEAR[4:],
        Moments((X, Y)),
        QuantileTree(X),
        JointAggregation((WeightedAggregation(Mean(X)), WeightedAggregation(CountUnits()))),
    ):
        query = linear_query(Plan(aggregation, group_by=(GroupLevel("g", G),)), SCHEMA, unit)
        assert not any(execute(query, prepare(frame, SCHEMA, unit), SCHEMA).tolist())


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 10**8])
@pytest.mark.parametrize("value", [2**32, -(2**32), 2**32 - 1])
def test_sums_are_exact_for_any_number_of_rows(size: int, value: int) -> None:
    values = np.broadcast_to(np.int64(value), (size,))
    assert cell_sums(values, None, np.broadcast_to(np.True_, (size,)), 1).tolist() == [size * value]


@pytest.mark.parametrize("value", [2**32, -(2**32 - 1)])
def test_grouped_sums_are_exact_where_doubles_would_not_be(value: int) -> None:
    size = 3 * CHUNK + 7  # the total is beyond 2**53
    cells = np.arange(size) % 2
    sums = cell_sums(np.broadcast_to(np.int64(value), (size,)), cells, np.broadcast_to(np.True_, (size,)), 3)
    assert sums.tolist() == [value * ((size + 1) // 2), value * (size // 2), 0]


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=4), st.integers(1, 2**70))
@example([0, 0], 2**70)
def test_a_weight_never_makes_a_sum_wrap(sums: list[int], weight: int) -> None:
    found = execution._weighted(np.array(sums, np.int64)[:, None], (CountFeature(weight=weight),)).ravel()
    assert [int(total) for total in found] == [total * weight for total in sums]


def test_a_question_whose_sums_need_more_than_64_bits_is_exact() -> None:
    parts = (WeightedAggregation(Count(), 2.0**40), WeightedAggregation(Sum(X)), WeightedAggregation(Sum(Y), 3.0))
    unit = PrivacyUnit()
    query = linear_query(Plan(JointAggregation(parts)), SCHEMA, unit)
    rows = 2**63 // query.features[0].weight + 1
    frame = pd.DataFrame({"x": 5.0, "y": 2.0, "g": "a"}, index=range(rows))
    assert sums_of(query, frame, unit) == [rows, 5 * rows, 2 * rows]
    assert max(map(int, execute(query, prepare(frame, SCHEMA, unit), SCHEMA))) > 2**63


def test_keys_of_several_levels_take_no_room_for_what_is_not_asked() -> None:
    """There are far more combinations of the levels' values than keys, and than memory."""
    schema: Schema = {name: Text() for name in "abcd"}
    keys = tuple((str(place),) * 4 for place in range(3000))
    plan = Plan(Count(), group_by=tuple(GroupLevel(name, Column(name)) for name in "abcd"), group_keys=keys)
    frame = pd.DataFrame({name: ["7", "7", "2999", "x"] for name in "abcd"})
    frame.loc[0, "d"] = "8"
    sums = execute(linear_query(plan, schema, PrivacyUnit()), prepare(frame, schema, PrivacyUnit()), schema)
    assert np.flatnonzero(sums).tolist() == [7, 2999]
