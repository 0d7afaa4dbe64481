"""Sums agree with exact arithmetic, and no unit changes them by more than is claimed."""

from __future__ import annotations

import itertools
import operator
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.query import grid
from dpnb.query.execute import CHUNK, cell_sums, execute
from dpnb.query.expressions import And, Column, Compare, Condition, Literal, Not, Or
from dpnb.query.linear import linear_query
from dpnb.query.plan import Count, Mean, Plan, Sum, Units
from dpnb.query.prepare import prepare
from dpnb.query.schema import Bounded, Categories, PrivacyUnit

SCHEMA = {"x": Bounded(-3, 5), "g": Categories(["a", "b"])}
OPERATORS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt}

numbers = st.one_of(st.none(), st.integers(-6, 8), st.sampled_from([0.5, -2.25, 0.1, float("inf"), float("nan")]))
groups = st.sampled_from(["a", "b", "c", None])
rows = st.lists(st.tuples(numbers, groups), max_size=12)
comparisons = st.one_of(
    st.builds(
        Compare,
        st.sampled_from(["==", "!=", "<", "<=", ">"]),
        st.just(Column("x")),
        st.builds(Literal, st.sampled_from([-3, 0, 0.5, 2, 5])),
    ),
    st.builds(
        Compare, st.sampled_from(["==", "!="]), st.just(Column("g")), st.builds(Literal, st.sampled_from(["a", "b"]))
    ),
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(st.builds(And, inner, inner), st.builds(Or, inner, inner), st.builds(Not, inner)),
    max_leaves=4,
)
aggregations = st.sampled_from([Count(), Count("x"), Count("g"), Units(), Sum("x"), Mean("x")])
plans = st.builds(Plan, aggregations, st.one_of(st.none(), conditions), st.sampled_from([(), ("g",)]))


def seen(value: Any, column: str) -> Any:
    """A value as the schema sees it: clamped, or None."""
    if column == "g":
        return value if value in ("a", "b") else None
    if value is None or not np.isfinite(value):
        return None
    return min(max(float(value), -3.0), 5.0)


def truth(condition: Condition, row: dict[str, Any]) -> bool | None:
    """Kleene's three values, written out."""
    match condition:
        case Compare(name, left, right):
            value = row[left.name]
            return None if value is None else bool(OPERATORS[name](value, right.value))  # type: ignore[union-attr]
        case Not(inner):
            inside = truth(inner, row)
            return None if inside is None else not inside
        case And(left, right) | Or(left, right):
            decisive = isinstance(condition, Or)
            sides = [truth(left, row), truth(right, row)]
            return decisive if decisive in sides else None if None in sides else not decisive


def expected(plan: Plan, table: list[dict[str, Any]]) -> list[Fraction]:
    """The quantities that the integer sums stand for."""
    kept = [row for row in table if plan.where is None or truth(plan.where, row) is True]
    column = getattr(plan.aggregation, "column", None)
    kept = [row for row in kept if column is None or row[column] is not None]
    cells = [[row for row in kept if row["g"] == key] for key in ("a", "b")] if plan.by else [kept]
    step = Fraction(2) ** grid.exponent(SCHEMA["x"])  # type: ignore[arg-type]
    totals: list[Fraction] = []
    for cell in cells:
        if isinstance(plan.aggregation, Count | Units):
            totals.append(Fraction(len(cell)))
            continue
        values = [Fraction(int(Fraction(row["x"]) / step)) * step for row in cell]
        if isinstance(plan.aggregation, Sum):
            totals.append(sum(values, Fraction(0)))
        else:
            totals += [Fraction(len(cell)), sum(values, Fraction(0)) - len(cell)]  # centred on 1
    return totals


@given(plans, rows)
def test_sums_agree_with_exact_arithmetic(plan: Plan, content: list[tuple[Any, Any]]) -> None:
    frame = pd.DataFrame(content, columns=["x", "g"]).astype(object)
    unit = PrivacyUnit()
    query = linear_query(plan, SCHEMA, unit)
    sums = execute(query, prepare(frame, SCHEMA, unit), SCHEMA)
    units = [feature.unit for feature in query.features] * query.cells
    table = [{"x": seen(x, "x"), "g": seen(g, "g")} for x, g in content]
    assert [total * size for total, size in zip(sums, units, strict=True)] == expected(plan, table)


@given(plans)
def test_a_plan_survives_json(plan: Plan) -> None:
    again = Plan.from_json(plan.to_json())
    assert again == plan
    assert again.to_json() == plan.to_json()


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 10**8])
@pytest.mark.parametrize("value", [2**32, -(2**32), 2**32 - 1])
def test_sums_are_exact_for_any_number_of_rows(size: int, value: int) -> None:
    values = np.broadcast_to(np.int64(value), (size,))
    assert cell_sums(values, np.broadcast_to(np.int64(0), (size,)), 1) == [size * value]


@pytest.mark.parametrize("value", [2**32, -(2**32 - 1)])
def test_grouped_sums_are_exact_where_doubles_would_not_be(value: int) -> None:
    size = 3 * CHUNK + 7  # the total is beyond 2**53
    cells = np.arange(size) % 2
    sums = cell_sums(np.broadcast_to(np.int64(value), (size,)), cells, 3)
    assert sums == [value * ((size + 1) // 2), value * (size // 2), 0]


# Every table of one unit's rows: up to three, from the values that matter.
ROWS = list(itertools.product([None, -9, -3, 1, 5, 9], ["a", "b", None]))
OTHERS = [("v", 2, "a"), ("v", 5, "b"), ("w", -3, "a")]
FILTERS = [None, Compare(">", Column("x"), Literal(0)), Not(Compare("==", Column("g"), Literal("a")))]


def sums_of(plan: Plan, content: list[tuple[Any, Any, Any]], unit: PrivacyUnit) -> list[int]:
    frame = pd.DataFrame(content, columns=["u", "x", "g"]).astype(object)
    return execute(linear_query(plan, SCHEMA, unit), prepare(frame, SCHEMA, unit), SCHEMA)


@pytest.mark.parametrize("by", [(), ("g",)], ids=["", "by g"])
@pytest.mark.parametrize("aggregation", [Count(), Count("x"), Units(), Sum("x"), Mean("x")], ids=repr)
@pytest.mark.parametrize("most", [0, 1, 2], ids=["row unit", "one row", "two rows"])
def test_no_unit_changes_the_sums_by_more_than_claimed_and_some_unit_by_as_much(
    aggregation: Any, by: tuple[str, ...], most: int
) -> None:
    unit = PrivacyUnit("u", most) if most else PrivacyUnit()
    worst = 0
    for where in FILTERS:
        plan = Plan(aggregation, where, by)
        claimed = linear_query(plan, SCHEMA, unit).l2_sensitivity_squared
        without = sums_of(plan, OTHERS, unit)
        for size in range(1, most + 2 if most else 2):
            # One row more than may count, where three are not too many to enumerate: the surplus must not count.
            for mine in itertools.combinations_with_replacement(ROWS[:: 1 if size < 3 else 3], size):
                added = [("me", x, g) for x, g in mine]
                change = np.array(sums_of(plan, [*added, *OTHERS], unit), object) - np.array(without, object)
                moved = int((change * change).sum())
                assert moved <= claimed
                worst = max(worst, moved if where is None else 0)
    assert worst == linear_query(Plan(aggregation, None, by), SCHEMA, unit).l2_sensitivity_squared
