"""Which rows and groups of a unit count hangs on nothing but the unit's own rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb._backends.memory.execute import execute
from dpnb._backends.memory.group_discovery import present_groups
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._compile import linear_query
from dpnb._plan.expressions.nodes import Arithmetic, Column, Compare, Expression, ExtractDatePart, Literal
from dpnb._plan.measurements import CountUnits, Discovery, JointAggregation, Mean, Sum, WeightedAggregation
from dpnb._plan.plan import Plan, column
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.schema import Bounded, Categories, Dates, Schema, Text

SCHEMA: Schema = {"x": Bounded(0, 7), "g": Categories(["a", "b", "c"]), "t": Text()}
NAMES = ["ann", "bob", "cyd", "dot", "eve"]
rows = st.tuples(st.sampled_from([1.0, 2.5, 7.0, None]), st.sampled_from(["a", "b", "c", None]), st.sampled_from(NAMES))
mine = st.lists(rows, min_size=1, max_size=8)
others = st.lists(st.tuples(st.sampled_from([1, 2, 3, 4]), rows), max_size=12)
shuffles = st.randoms(use_true_random=False)
LIMITS = [
    ContributionBounds(max_rows=2),
    ContributionBounds(max_groups=1),
    ContributionBounds(max_groups=2),
    ContributionBounds(max_rows_per_group=1),
    ContributionBounds(max_rows=4, max_groups=2, max_rows_per_group=2),
    ContributionBounds(max_groups=2, max_norm=1.5),
]
BY_TEXT = (("ann",), ("cyd",), ("dot",), ("nobody",), ("eve",))
measured = JointAggregation((WeightedAggregation(Sum(Column("x"))), WeightedAggregation(CountUnits())))
POSITIVE: Expression = Compare(">", Column("x"), Literal(1))
plans = st.builds(
    lambda groups, where, limits: Plan(measured, where, (column(groups),), BY_TEXT if groups == "t" else None, limits),
    st.sampled_from(["g", "t"]),
    st.sampled_from([None, POSITIVE]),
    st.sampled_from(LIMITS),
)
sessions = st.sampled_from([PrivacyUnit("u", 3), PrivacyUnit("u", 20)])


def table_of(me: list[Any], them: list[Any], shuffle: Any, unit: PrivacyUnit) -> Any:
    content = [*((0, *row) for row in me), *((who, *row) for who, row in them)]
    shuffle.shuffle(content)
    return prepare(pd.DataFrame(content, columns=["u", "x", "g", "t"]).astype(object), SCHEMA, unit)


def added(plan: Plan, me: list[Any], them: list[Any], shuffle: Any, unit: PrivacyUnit) -> list[int]:
    """What one unit adds to the sums."""
    query = linear_query(plan, SCHEMA, unit)
    with_me, without = (execute(query, table_of(own, them, shuffle, unit), SCHEMA) for own in (me, []))
    return [int(part) for part in with_me - without]


@given(plans, sessions, mine, others, others, shuffles)
def test_what_a_unit_adds_does_not_depend_on_the_others_or_on_the_order(
    plan: Plan, unit: PrivacyUnit, me: list[Any], some: list[Any], more: list[Any], shuffle: Any
) -> None:
    alone = added(plan, me, [], shuffle, unit)
    assert added(plan, me, some, shuffle, unit) == alone
    assert added(plan, me, more, shuffle, unit) == alone


@given(st.sampled_from(["t", "g", "tg"]), st.sampled_from(LIMITS[1:]), mine, others, shuffles)
def test_which_groups_a_unit_is_found_in_does_not_depend_on_the_others(
    names: str, limits: ContributionBounds, me: list[Any], them: list[Any], shuffle: Any
) -> None:
    unit = PrivacyUnit("u", 20)
    plan = Plan(Discovery("1e-9"), None, tuple(column(name) for name in names), contribution_bounds=limits)
    query = linear_query(plan, SCHEMA, unit)

    def sizes(own: list[Any], rest: list[Any]) -> Counter[Any]:
        found, count = present_groups(query, table_of(own, rest, shuffle, unit), SCHEMA)
        return Counter(dict(zip(found, count.tolist(), strict=True)))

    assert sizes(me, them) - sizes([], them) == sizes(me, [])


@pytest.mark.parametrize(
    ("limits", "counted"),
    [
        (ContributionBounds(max_groups=1), 3),
        (ContributionBounds(max_groups=2), 6),
        (ContributionBounds(max_rows_per_group=2), 6),
        (ContributionBounds(None, 2, 1), 2),
    ],
    ids=repr,
)
def test_as_much_of_a_unit_counts_as_the_limits_let(limits: ContributionBounds, counted: int) -> None:
    unit = PrivacyUnit("u", 9)
    plan = Plan(Sum(Column("x")), None, (column("g"),), contribution_bounds=limits)
    query = linear_query(plan, SCHEMA, unit)
    content = [(0, 1.0, group, "ann") for group in "abc"] * 3
    sums = execute(query, prepare(pd.DataFrame(content, columns=["u", "x", "g", "t"]), SCHEMA, unit), SCHEMA)
    assert float(sum(map(int, sums)) * query.features[0].unit) == counted


def test_groups_are_chosen_among_those_that_the_question_asks_about() -> None:
    """A unit must not lose all of its rows because its first group is none of the keys."""
    unit = PrivacyUnit("u", 9)
    content = [(who, 1.0, "a", name) for who in range(20) for name in NAMES]
    table = prepare(pd.DataFrame(content, columns=["u", "x", "g", "t"]), SCHEMA, unit)
    query = linear_query(
        Plan(CountUnits(), None, (column("t"),), BY_TEXT, ContributionBounds(max_groups=1)), SCHEMA, unit
    )
    assert execute(query, table, SCHEMA).sum() == 20


def test_units_do_not_all_keep_the_same_group() -> None:
    unit = PrivacyUnit("u", 9)
    content = [(who, 1.0, group, "ann") for who in range(300) for group in "abc"]
    table = prepare(pd.DataFrame(content, columns=["u", "x", "g", "t"]), SCHEMA, unit)
    sums = execute(
        linear_query(
            Plan(CountUnits(), None, (column("g"),), contribution_bounds=ContributionBounds(max_groups=1)), SCHEMA, unit
        ),
        table,
        SCHEMA,
    )
    assert sums.sum() == 300
    assert sums.min() > 50


FINE: dict[str, tuple[Any, list[Any], Expression, float]] = {
    "numbers closer than a grid step": (Bounded(0, 2.0**40), [1.0, 1000.0], Column("v"), 500),
    "numbers on both sides of zero": (Bounded(-(2.0**40), 2.0**40), [-300.0, 300.0], Column("v"), 0),
    "times within a second": (
        Dates("2020-01-01", "2021-01-01"),
        ["2020-05-01T00:00:00.2", "2020-05-01T00:00:00.8"],
        ExtractDatePart("seconds", Arithmetic("-", Column("v"), Literal("2020-05-01T00:00:00.5"))),
        -1,
    ),
    "times 2**32 seconds apart": (
        Dates("1850-01-01", "2020-01-01"),
        [pd.Timestamp("1860-01-01"), pd.Timestamp("1860-01-01") + pd.Timedelta(seconds=2**32)],
        ExtractDatePart("year", Column("v")),
        1900,
    ),
}


@pytest.mark.parametrize("name", FINE)
def test_rows_that_differ_ever_so_little_are_told_apart_whatever_their_order(name: str) -> None:
    kind, values, node, threshold = FINE[name]
    schema: Schema = {"v": kind}
    unit = PrivacyUnit("u", 1)
    query = linear_query(Plan(CountUnits(), Compare(">", node, Literal(threshold))), schema, unit)
    counts = []
    for order in (values, values[::-1]):
        content = [(who, value) for who in range(40) for value in order]
        frame = pd.DataFrame(content, columns=["u", "v"]).astype(object)
        counts.append(execute(query, prepare(frame, schema, unit), schema).tolist())
    assert counts[0] == counts[1]


def test_neither_small_nor_large_values_come_first() -> None:
    unit = PrivacyUnit("u", 9)
    content = [(who, float(value), "abc"[value % 3], "ann") for who in range(400) for value in range(6)]
    table = prepare(pd.DataFrame(content, columns=["u", "x", "g", "t"]), SCHEMA, unit)
    for limits in (
        ContributionBounds(max_rows=2),
        ContributionBounds(max_rows_per_group=1),
        ContributionBounds(max_rows=1),
    ):
        query = linear_query(Plan(Mean(Column("x")), contribution_bounds=limits), SCHEMA, unit)
        count, total = map(int, execute(query, table, SCHEMA))
        value = query.features[1]
        mean = float(total * value.unit / (count * query.features[0].unit)) + value.middle  # type: ignore[union-attr]
        # 400 fair choices of one row from 0..5 have a standard error of 0.085.
        assert mean == pytest.approx(2.5, abs=0.4)
