"""No unit changes a join, the groups that are found, or very large sums by more than is claimed."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compile.neighbours import squared
from dpnb._backends.memory.execute import execute
from dpnb._backends.memory.group_discovery import present_groups
from dpnb._backends.memory.memory_backend import join
from dpnb._backends.memory.prepare.prepared_table import PreparedTable, prepare, prepare_all
from dpnb._compile import linear_query
from dpnb._plan.expressions.nodes import Arithmetic, Column, Compare, Expression, Literal
from dpnb._plan.join import schema_of, unit_of
from dpnb._plan.measurements import (
    Count,
    CountUnits,
    CumulativeCount,
    Discovery,
    JointAggregation,
    Mean,
    Moments,
    QuantileTree,
    Sum,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel, Join, Plan, TableSource
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.accounting.prefix_sums import largest_norm_squared, square_root_of_prefix_sums
from dpnb.errors import PlanError
from dpnb.schema import Bounded, Categories, Schema, Text
from pairwise import product

# --- joins -----------------------------------------------------------------------------------------------------------

SCHEMAS: dict[str, Schema] = {
    "visits": {"x": Bounded(-3, 5), "g": Categories(["a", "b"])},
    "bills": {"x": Bounded(0, 4), "h": Categories([1, 2])},
    "loans": {"x": Bounded(0, 4), "h": Categories([1, 2])},
}
BOTH = Join("visits", "bills")
THREE = Join(BOTH, "loans", ("", "_again"))
VISITS = [(5, "a"), (-3, "b"), (None, "a")]
BILLS = [(4, 1), (0, 2)]
UNITS = {
    "rows": dict.fromkeys(SCHEMAS, PrivacyUnit("u", 2)),
    "groups": {
        **dict.fromkeys(SCHEMAS, PrivacyUnit("u", 1)),
        "visits": PrivacyUnit("u", 2, ContributionBounds(max_groups=1)),
    },
    "norm": {
        **dict.fromkeys(SCHEMAS, PrivacyUnit("u", 2)),
        "bills": PrivacyUnit("u", 2, ContributionBounds(max_norm=2.5)),
    },
}


def small(size: int, menu: list[Any]) -> list[tuple[Any, ...]]:
    return [rows for count in range(size + 1) for rows in itertools.combinations_with_replacement(menu, count)]


@cache
def prepared(limits: str, visits: Any, bills: Any) -> dict[str, PreparedTable]:
    """All tables, with the rows of one unit among those of others; loans are bills once more."""
    tables = {
        "visits": pd.DataFrame(
            [("v", 2, "a"), *(("me", *row) for row in visits), ("v", 1, "b"), ("w", 0, "a")], columns=["u", "x", "g"]
        ),
        "bills": pd.DataFrame([("w", 1, 1), *(("me", *row) for row in bills), ("v", 3, 2)], columns=["u", "x", "h"]),
    }
    tables["loans"] = tables["bills"]
    return prepare_all({name: table.astype(object) for name, table in tables.items()}, SCHEMAS, UNITS[limits])


def rows_of(source: TableSource, tables: dict[str, PreparedTable]) -> PreparedTable:
    if isinstance(source, str):
        return tables[source]
    left, right = rows_of(source.left, tables), rows_of(source.right, tables)
    return join(left, right, (schema_of(source.left, SCHEMAS), schema_of(source.right, SCHEMAS)), source)


SOURCES = {"two tables": BOTH, "three": THREE}
BY: dict[str, tuple[GroupLevel, ...]] = {
    "whole": (),
    "by g and h": (GroupLevel("g", Column("g")), GroupLevel("h", Column("h"))),
}


@pytest.mark.parametrize(("limits", "tables", "by"), product(UNITS, SOURCES, BY))
def test_a_unit_in_both_tables_changes_a_join_by_no_more_than_is_claimed(limits: str, tables: str, by: str) -> None:
    units, source = UNITS[limits], SOURCES[tables]
    unit, schema = unit_of(source, units, SCHEMAS), schema_of(source, SCHEMAS)
    joint = JointAggregation(
        (WeightedAggregation(Mean(Column("x_y"))), WeightedAggregation(CountUnits()), WeightedAggregation(Count(), 0.1))
    )
    found: dict[Any, int] = {Count(): 0, Sum(Column("x_x")): 0, CountUnits(): 0, joint: 0}
    where = Compare(">=", Column("x_x"), Literal(-3))
    queries = {
        aggregation: linear_query(Plan(aggregation, where, BY[by], source=source), schema, unit)
        for aggregation in found
    }
    table = rows_of(source, prepared(limits, (), ()))
    before = {aggregation: execute(query, table, schema) for aggregation, query in queries.items()}
    for visits, bills in itertools.product(small(3, VISITS[:2]), small(3, BILLS)):
        after = rows_of(source, prepared(limits, visits, bills))
        for aggregation, query in queries.items():
            if limits == "norm" and aggregation == CountUnits():
                continue  # test_sensitivity.py asks it
            moved = squared(execute(query, after, schema) - before[aggregation])
            assert moved <= query.l2_sensitivity_squared
            found[aggregation] = max(found[aggregation], moved)
    if limits == "rows":
        assert found[Count()] == queries[Count()].l2_sensitivity_squared
        assert found[Sum(Column("x_x"))] == queries[Sum(Column("x_x"))].l2_sensitivity_squared


@pytest.mark.parametrize(("limits", "tables", "by"), product(["rows", "groups"], SOURCES, ["g", "h"]))
def test_a_unit_changes_cumulative_counts_of_a_join_by_no_more_than_is_claimed(
    limits: str, tables: str, by: str
) -> None:
    """Of what is measured.  The rows of a unit are its pairs, in several groups; at most all of them in the first."""
    units, source = UNITS[limits], SOURCES[tables]
    schema = schema_of(source, SCHEMAS)
    level = GroupLevel(by, Column(by))
    query = linear_query(
        Plan(CumulativeCount(), None, (level,), source=source), schema, unit_of(source, units, SCHEMAS)
    )
    before = execute(query, rows_of(source, prepared(limits, (), ())), schema)
    found = 0
    for visits, bills in itertools.product(small(3, VISITS[:2]), small(3, BILLS)):
        after = execute(query, rows_of(source, prepared(limits, visits, bills)), schema)
        found = max(found, squared(square_root_of_prefix_sums(after - before)))
    assert found <= query.l2_sensitivity_squared
    if limits == "rows":
        assert found == query.l2_sensitivity_squared
    of_one_table = largest_norm_squared(2, rows=2, rows_in_step=2)
    assert found > of_one_table or limits == "groups", "control: the limit of one table alone"


def test_cumulative_counts_of_a_join_are_refused_under_a_norm() -> None:
    units, by = UNITS["norm"], (GroupLevel("g", Column("g")),)
    with pytest.raises(PlanError, match="a limit of rows"):
        linear_query(
            Plan(CumulativeCount(), None, by, source=BOTH), schema_of(BOTH, SCHEMAS), unit_of(BOTH, units, SCHEMAS)
        )


def test_a_join_holds_every_pair_of_rows_of_a_unit_and_no_other() -> None:
    rows = rows_of(BOTH, prepared("rows", tuple(VISITS[:2]), tuple(BILLS)))
    pairs = sorted(zip(rows.numbers["x_x"].tolist(), rows.numbers["x_y"].tolist(), strict=True))
    mine = itertools.product([5.0, -3.0], [4.0, 0.0])
    assert pairs == sorted([*mine, (2.0, 3.0), (1.0, 3.0), (0.0, 1.0)])


# --- discovery -------------------------------------------------------------------------------------------------------

TEXTS: Schema = {"t": Text(), "g": Categories(["a", "b"]), "x": Bounded(-3, 5)}
PLACES = [("new", "a", 1), ("old", "a", 5), ("old", "b", 5), (None, "a", 2), ("aaa", None, 2)]


@cache
def texts_with(unit: PrivacyUnit, mine: tuple[Any, ...]) -> PreparedTable:
    rows = [("v", "old", "a", 1), *(("me", *row) for row in mine), ("w", "old", "a", 5), ("w", "zzz", "b", 5)]
    return prepare(pd.DataFrame(rows, columns=["u", "t", "g", "x"]).astype(object), TEXTS, unit)


def groups_with(plan: Plan, unit: PrivacyUnit, mine: tuple[Any, ...]) -> Counter[Any]:
    found, sizes = present_groups(linear_query(plan, TEXTS, unit), texts_with(unit, mine), TEXTS)
    return Counter(dict(zip(found, sizes.tolist(), strict=True)))


@pytest.mark.parametrize(
    ("unit", "names", "where"),
    product(
        [
            PrivacyUnit(),
            PrivacyUnit("u", 2),
            PrivacyUnit("u", 3, ContributionBounds(max_groups=2)),
            PrivacyUnit("u", None, ContributionBounds(None, 1, 2)),
        ],
        ["t", "tg", "gt", "tx"],
        [None, Compare(">", Column("x"), Literal(1))],
    ),
    ids=lambda value: getattr(value, "words", str(value)),
)
def test_a_unit_is_in_no_more_of_the_groups_than_is_claimed(
    unit: PrivacyUnit, names: str, where: Expression | None
) -> None:
    plan = Plan(Discovery("1e-9"), where, tuple(GroupLevel(name, Column(name)) for name in names))
    if "x" in names:
        plan = Plan(
            Discovery("1e-9"),
            where,
            (GroupLevel("t", Column("t")), GroupLevel("big", Compare(">", Column("x"), Literal(2)))),
        )
    claimed = linear_query(plan, TEXTS, unit).l2_sensitivity_squared
    before = groups_with(plan, unit, ())
    most = 0
    for mine in small(3, PLACES):
        if mine and (unit.column is not None or len(mine) == 1):
            after = groups_with(plan, unit, mine)
            assert all(after[group] >= size for group, size in before.items())
            most = max(most, squared((after - before).values()))
    assert most <= claimed
    if where is None and names == "t":
        assert most == min(claimed, 3)


def test_a_new_text_changes_no_group_but_its_own() -> None:
    """As many columns of texts as it takes for the number of combinations to pass 2**63."""
    names = "abcdefgh"
    schema: Schema = {name: Text() for name in names}
    plan = Plan(Discovery("1e-9"), None, tuple(GroupLevel(name, Column(name)) for name in names))

    def found(units: int) -> set[Any]:
        table = pd.DataFrame({name: [f"{i:03d}" for i in range(units)] for name in names})
        unit = PrivacyUnit()
        return set(present_groups(linear_query(plan, schema, unit), prepare(table, schema, unit), schema)[0])

    before, after = found(299), found(300)
    assert len(before - after) + len(after - before) == 1


# --- what does not fit a machine's integers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits", [ContributionBounds(), ContributionBounds(max_norm=2.0)], ids=["as it is", "scaled down"]
)
def test_heavy_weights_do_not_overflow(limits: ContributionBounds) -> None:
    """A unit must not carry a sum past what 64 bits hold: the wrapped sum would be another world."""
    schema: Schema = {"x": Bounded(-3, 5.1), "y": Bounded(0, 77)}
    heavy = 2.0**40
    parts = (
        WeightedAggregation(Count(), heavy),
        WeightedAggregation(Sum(Column("x"))),
        WeightedAggregation(Sum(Column("y")), 3.0),
    )
    unit = PrivacyUnit("u", 3, limits)
    query = linear_query(Plan(JointAggregation(parts)), schema, unit)
    heaviest = max(feature.limit for feature in query.features)
    size = 2**63 // heaviest + 10
    assert 20 < size < 100_000
    table = pd.DataFrame({"u": range(size), "x": 5.0, "y": 77.0})
    sums = [execute(query, prepare(table[:rows], schema, unit), schema) for rows in range(size - 20, size + 1)]
    for before, after in itertools.pairwise(sums):
        moved = [int(new) - int(old) for new, old in zip(after, before, strict=True)]
        assert squared(moved) <= query.l2_sensitivity_squared
    assert int(sums[-1][0]) == pytest.approx(size * query.features[0].weight, rel=1e-6)


def test_a_unit_with_very_many_rows_is_scaled_down_like_any_other() -> None:
    schema: Schema = {"x": Bounded(0, 77)}
    unit = PrivacyUnit("u", None, ContributionBounds(max_norm=2.0))
    rows = 50_000
    table = pd.DataFrame({"u": 1, "x": 77.0}, index=range(rows))
    for aggregation in (Sum(Column("x")), Mean(Column("x")), QuantileTree(Column("x"))):
        query = linear_query(Plan(aggregation), schema, unit)
        moved = squared(execute(query, prepare(table, schema, unit), schema))
        assert query.l2_sensitivity_squared / 2 < moved <= query.l2_sensitivity_squared


numbers = st.one_of(st.none(), st.floats(-4, 6, allow_nan=False), st.sampled_from([-3.0, 5.0]))
groups = st.sampled_from(["a", "b", None])


@given(
    st.lists(st.tuples(numbers, groups), min_size=1, max_size=40),
    st.sampled_from([0.25, 1.0, 1.5, 3.0, 20.0]),
    st.sampled_from([(), (GroupLevel("g", Column("g")),)]),
)
def test_a_vector_is_scaled_down_without_being_turned(mine: list[Any], norm: float, by: tuple[GroupLevel, ...]) -> None:
    schema = SCHEMAS["visits"]
    x = Column("x")
    aggregation = JointAggregation(
        (
            WeightedAggregation(Mean(x)),
            WeightedAggregation(Sum(Arithmetic("*", x, x)), 0.3),
            WeightedAggregation(Moments((x,))),
        )
    )
    frame = pd.DataFrame([("me", *row) for row in mine], columns=["u", "x", "g"]).astype(object)
    bounded, whole = PrivacyUnit("u", None, ContributionBounds(max_norm=norm)), PrivacyUnit("u", 40)
    query, full = (linear_query(Plan(aggregation, group_by=by), schema, unit) for unit in (bounded, whole))
    found = [int(part) for part in execute(query, prepare(frame, schema, bounded), schema)]
    assert squared(found) <= query.l2_sensitivity_squared
    sums = [int(part) for part in execute(full, prepare(frame, schema, whole), schema)]
    weights = [Fraction(one.weight, other.weight) for one, other in zip(query.features, full.features, strict=True)]
    exact = [float(part * weight) for part, weight in zip(sums, weights * query.cells, strict=True)]
    length = math.hypot(*exact)
    scale = min(1.0, math.sqrt(query.l2_sensitivity_squared) / length) if length else 1.0
    for part, wanted in zip(found, exact, strict=True):
        assert part == pytest.approx(wanted * scale, rel=1e-9, abs=2)
        assert abs(part) <= abs(wanted) * (1 + 1e-12)
