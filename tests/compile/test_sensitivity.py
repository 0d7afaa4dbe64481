"""No unit changes the sums by more than is claimed, and where it is said, some unit changes them by just as much."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from compile.neighbours import FAMILY, MENU, SCHEMA, WITH_NORM, WITHOUT_NORM, changes, moves, worst
from dpnb._compile import linear_query
from dpnb._compile.sensitivity import cells_of_unit, clips, max_norm_squared, rows_squared
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
    FillNull,
    IsIn,
    IsNull,
    Literal,
    Lookup,
    Not,
    OnlyWhere,
    Or,
    Round,
    Where,
)
from dpnb._plan.measurements import (
    Count,
    CountUnits,
    CumulativeCount,
    JointAggregation,
    LevelCounts,
    Mean,
    Moments,
    QuantileTree,
    Ratio,
    Sum,
    WeightedAggregation,
    WeightedMean,
)
from dpnb._plan.plan import GroupLevel, Plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.accounting.prefix_sums import square_root_of_prefix_sums
from dpnb.errors import PlanError
from pairwise import product

X, Y, G = Column("x"), Column("y"), Column("g")
POSITIVE: Expression = Compare(">", X, Literal(0))
BY = {"whole": (), "by g": (GroupLevel("g", G),)}
TIGHT = {
    "count": Count(),
    "count of x": Count(X),
    "sum": Sum(X),
    "mean": Mean(X),
    "ratio": Ratio(X, Y),
    "weighted mean and levels": JointAggregation(
        (WeightedAggregation(WeightedMean(X, Clip(Y, 0.0, 2.0))), WeightedAggregation(LevelCounts(G), 2.0))
    ),
    "moments": Moments((X,)),
    "weighted moments with conditions": Moments((X,), (POSITIVE,), Clip(Y, 0.0, 2.0)),
    "moments of two": Moments((X, Y)),
    "moments with conditions": Moments((X,), (POSITIVE, Compare(">", Y, Literal(1)))),
    "tree of whole numbers": QuantileTree(Round(X)),
    "tree": QuantileTree(Clip(X, 0.0, 5.0)),
    "joint": JointAggregation(
        (
            WeightedAggregation(Count()),
            WeightedAggregation(Mean(X), 3.0),
            WeightedAggregation(QuantileTree(Round(X)), 0.5),
        )
    ),
    "joint of two moments": JointAggregation((WeightedAggregation(Moments((X,))), WeightedAggregation(Sum(Y), 0.1))),
}
"""Rows that are equal and at their bounds reach every feature's limit at once."""


@pytest.mark.parametrize(("aggregation", "unit", "by"), product(TIGHT, WITHOUT_NORM, BY))
def test_the_most_that_a_unit_changes_is_what_is_claimed(aggregation: str, unit: str, by: str) -> None:
    found, claimed = worst(Plan(TIGHT[aggregation], None, BY[by]), WITHOUT_NORM[unit])
    assert found == claimed


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("unit", {**WITHOUT_NORM, **WITH_NORM})
def test_moments_with_categories_stay_within_their_claim(unit: str, by: str) -> None:
    """Not as tight where the category makes the groups: one of them is always without its indicator."""
    plan = Plan(Moments((X,), (G, POSITIVE)), None, BY[by])
    found, claimed = worst(plan, {**WITHOUT_NORM, **WITH_NORM}[unit])
    assert claimed / 2 < found <= claimed


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("unit", WITHOUT_NORM)
def test_a_unit_is_counted_once_in_each_of_its_groups(unit: str, by: str) -> None:
    found, claimed = worst(Plan(CountUnits(), None, BY[by]), WITHOUT_NORM[unit])
    assert found == claimed


@pytest.mark.parametrize("aggregation", [CumulativeCount(), CumulativeCount(X)], ids=["rows", "x"])
@pytest.mark.parametrize("unit", WITHOUT_NORM)
def test_the_most_that_a_unit_adds_to_cumulative_counts_is_what_is_claimed(aggregation: Any, unit: str) -> None:
    """Of what is measured, not of the counts in groups; almost, where the most rows of a group do not divide all."""
    query = linear_query(Plan(aggregation, None, BY["by g"]), SCHEMA, WITHOUT_NORM[unit])
    measured = [square_root_of_prefix_sums(moved) for moved in moves(query, FAMILY, WITHOUT_NORM[unit])]
    found, claimed = max(sum(part**2 for part in change) for change in measured), query.l2_sensitivity_squared
    counts = [int(np.sum(moved.astype(object) ** 2)) for moved in moves(query, FAMILY, WITHOUT_NORM[unit])]
    assert (
        claimed / 2 < found < claimed if unit == "three rows, two in a group" else found == claimed or "groups" in unit
    )
    assert found <= claimed
    assert max(counts) << 60 < claimed, "control: the change of the counts themselves is less"


@pytest.mark.parametrize("unit", WITH_NORM)
def test_cumulative_counts_are_refused_under_a_norm(unit: str) -> None:
    with pytest.raises(PlanError, match="a limit of rows"):
        linear_query(Plan(CumulativeCount(), None, BY["by g"]), SCHEMA, WITH_NORM[unit])


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("unit", {**WITHOUT_NORM, **WITH_NORM})
def test_a_joint_question_of_units_and_rows_stays_within_its_claim(unit: str, by: str) -> None:
    """Not as tight: a unit with many rows in one group is in no other."""
    parts = (WeightedAggregation(CountUnits()), WeightedAggregation(Mean(X)), WeightedAggregation(Count(), 0.25))
    found, claimed = worst(Plan(JointAggregation(parts), None, BY[by]), {**WITHOUT_NORM, **WITH_NORM}[unit])
    assert claimed / 4 < found <= claimed


@pytest.mark.parametrize(("aggregation", "unit", "by"), product(TIGHT, WITH_NORM, BY))
def test_a_vector_that_is_scaled_down_has_almost_the_length_that_is_claimed(
    aggregation: str, unit: str, by: str
) -> None:
    """Almost: it is scaled toward zero.  Much less would be noise for nothing, and units that do not count."""
    found, claimed = worst(Plan(TIGHT[aggregation], None, BY[by]), WITH_NORM[unit])
    assert claimed * (1 - 1e-3) <= found <= claimed


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("unit", WITH_NORM)
def test_units_can_be_counted_under_a_norm(unit: str, by: str) -> None:
    found, claimed = worst(Plan(CountUnits(), None, BY[by]), WITH_NORM[unit])
    assert found == claimed


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("unit", {**WITHOUT_NORM, **WITH_NORM})
@pytest.mark.parametrize("aggregation", [Count(), Count(X), CountUnits()], ids=["count", "count of x", "units"])
def test_a_unit_raises_no_count_by_more_than_is_claimed_and_lowers_none(aggregation: Any, unit: str, by: str) -> None:
    """What a selection among groups assumes."""
    declared = {**WITHOUT_NORM, **WITH_NORM}[unit]
    query = linear_query(Plan(aggregation, None, BY[by]), SCHEMA, declared)
    found = np.array(list(moves(query, FAMILY, declared)))
    assert found.min() >= 0
    assert query.max_count_change * (1 - 1e-3) <= found.max() <= query.max_count_change


@pytest.mark.parametrize(
    "aggregation", [Sum(X), Mean(X), QuantileTree(X), Moments((X,))], ids=lambda of: type(of).__name__
)
def test_of_what_a_unit_may_lower_no_change_of_a_count_is_claimed(aggregation: Any) -> None:
    assert linear_query(Plan(aggregation, None, BY["by g"]), SCHEMA, PrivacyUnit("u", 3)).max_count_change is None


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("aggregation", TIGHT)
def test_a_unit_that_is_within_the_norm_counts_in_full(aggregation: str, norm: float) -> None:
    plan = Plan(TIGHT[aggregation])
    full, clipped = PrivacyUnit("u", int(norm)), PrivacyUnit("u", None, ContributionBounds(max_norm=norm))
    mine = (MENU[0],) * int(norm)
    (expected,) = changes(linear_query(plan, SCHEMA, full), [mine], full)
    (found,) = changes(linear_query(plan, SCHEMA, clipped), [mine], clipped)
    assert found >= expected * (1 - 1e-3)


@pytest.mark.parametrize(
    ("aggregation", "where", "unit", "by"),
    product(
        ["count of x", "mean", "moments of two", "tree of whole numbers", "joint"],
        [POSITIVE, Not(Compare("==", G, Literal("a"))), IsNull(Y)],
        ["three rows", "three rows, two groups of two", "norm and all"],
        BY,
    ),
    ids=str,
)
def test_a_filter_does_not_make_a_unit_count_for_more(aggregation: str, where: Expression, unit: str, by: str) -> None:
    found, claimed = worst(Plan(TIGHT[aggregation], where, BY[by]), {**WITHOUT_NORM, **WITH_NORM}[unit])
    assert found <= claimed


@pytest.mark.parametrize(
    "asked",
    [
        ContributionBounds(max_rows=2),
        ContributionBounds(max_groups=1),
        ContributionBounds(max_rows_per_group=1),
        ContributionBounds(2, 1, 1),
    ],
    ids=repr,
)
@pytest.mark.parametrize("aggregation", ["count of x", "mean", "moments", "tree of whole numbers"])
def test_limits_of_one_question_bound_a_unit_like_those_of_the_session(
    aggregation: str, asked: ContributionBounds
) -> None:
    loose = PrivacyUnit("u", 3, ContributionBounds(max_groups=2))
    plan = Plan(TIGHT[aggregation], POSITIVE, BY["by g"], contribution_bounds=asked)
    found, claimed = worst(plan, loose)
    without = linear_query(Plan(plan.aggregation, group_by=plan.group_by), SCHEMA, loose).l2_sensitivity_squared
    # Three rows can all be in the one group, so that groups alone take nothing off.
    assert found == claimed < without or (asked == ContributionBounds(max_groups=1) and found == claimed == without)


KEYS: dict[str, tuple[Any, Any]] = {
    "one of two": ((GroupLevel("g", G),), (("b",),)),
    "two levels": (
        (GroupLevel("g", G), GroupLevel("positive", POSITIVE)),
        (("a", True), ("b", False), ("b", True)),
    ),
    "all of two levels": (
        (GroupLevel("positive", POSITIVE), GroupLevel("bin", Cut(Y, (0.0, 1.0, 2.0), ("low", "high")))),
        None,
    ),
    "whole numbers": ((GroupLevel("x", Round(X)),), ((5,), (-3,))),
}


@pytest.mark.parametrize(
    ("aggregation", "keys", "unit"),
    product(
        ["count of x", "mean", "tree of whole numbers"],
        KEYS,
        ["one row", "three rows, two in a group", "two groups of two"],
    ),
)
def test_keys_do_not_make_a_unit_count_for_more(aggregation: str, keys: str, unit: str) -> None:
    found, claimed = worst(Plan(TIGHT[aggregation], None, *KEYS[keys]), WITHOUT_NORM[unit])
    assert claimed == found


@pytest.mark.parametrize(
    ("aggregation", "unit", "only"),
    product(
        ["count of x", "mean", "moments", "tree of whole numbers", "joint"],
        [*WITHOUT_NORM, "norm and all"],
        [(0,), (1,), (0, 1)],
    ),
    ids=str,
)
def test_of_some_cells_no_more_is_claimed_than_a_unit_can_change_in_them(
    aggregation: str, unit: str, only: tuple[int, ...]
) -> None:
    limits = {**WITHOUT_NORM, **WITH_NORM}[unit]
    found, claimed = worst(Plan(TIGHT[aggregation], None, BY["by g"]), limits, only=only)
    assert found <= claimed
    if limits.contribution_bounds.max_norm is None:
        assert found == claimed


EXPRESSIONS: list[Expression] = [
    Arithmetic("-", Arithmetic("*", X, Literal(3)), Y),
    Arithmetic("/", X, Arithmetic("+", Y, Literal(1))),
    Arithmetic("**", X, Literal(3)),
    Arithmetic("%", X, Literal(2.5)),
    Arithmetic("//", X, Literal(2)),
    Apply("abs", X),
    Apply("log1p", Y),
    Apply("exp", X),
    Apply("log", Clip(X, 0.5, None)),
    Apply("log10", Arithmetic("+", Y, Literal(0.25))),
    OnlyWhere(POSITIVE, X),
    Lookup("n", (G,), (("a",), ("b",)), (-2.5, 4), -2.5, 4.0),
    Lookup("n", (POSITIVE,), ((True,), (False,)), (7, -1), -1.0, 7.0),
    Round(X, 1),
    Clip(X, None, 0.1),
    FillNull(X, 4.5),
    Where(And(POSITIVE, IsIn(G, ("a",))), X, Y),
    AsNumber(Or(POSITIVE, IsNull(Y))),
]


OF_COMPUTED = {
    "sum": Sum,
    "mean": Mean,
    "moments": lambda node: Moments((node, X)),
    "ratio": lambda node: Ratio(node, Y),
    "tree": QuantileTree,
}


@pytest.mark.parametrize(
    ("node", "aggregation", "unit"),
    product(EXPRESSIONS, OF_COMPUTED, ["row", "three rows", "norm and rows"]),
    ids=str,
)
def test_computed_columns_stay_within_the_claim(node: Expression, aggregation: str, unit: str) -> None:
    plan = Plan(OF_COMPUTED[aggregation](node))
    found, claimed = worst(plan, {**WITHOUT_NORM, **WITH_NORM}[unit], FAMILY[:27])
    assert found <= claimed


def distributions(cells: int, most: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(most + 1), repeat=cells))


@pytest.mark.parametrize("cells", [1, 2, 3, 4])
def test_rows_squared_is_the_largest_of_all_distributions(cells: int) -> None:
    every = np.array(distributions(cells, 5))
    sizes, groups, fullest = every.sum(axis=1), (every > 0).sum(axis=1), every.max(axis=1)
    some = [None, 1, 2, 3, 5]
    for rows, in_groups, per_group in itertools.product(some, some, some):
        limits = ContributionBounds(rows, in_groups, per_group)
        if rows is None and per_group is None:
            assert rows_squared(limits, cells) is None
            continue
        allowed = (sizes <= (rows or 99)) & (groups <= (in_groups or 99)) & (fullest <= (per_group or 99))
        assert rows_squared(limits, cells) == (every[allowed] ** 2).sum(axis=1).max()
        if rows is not None or in_groups is not None:
            assert cells_of_unit(limits, cells) >= groups[allowed].max()


@pytest.mark.parametrize(("norm", "expected"), [(1.5, 2.25), (2.9, 8.41), (3.0, 9), (50.0, 9)])
def test_a_norm_is_used_only_where_it_is_the_smaller_bound(norm: float, expected: float) -> None:
    limits = ContributionBounds(max_rows=3, max_norm=norm)
    assert float(max_norm_squared(limits, 5)) == pytest.approx(expected)
    assert clips(limits, 5) == (norm < 3)
