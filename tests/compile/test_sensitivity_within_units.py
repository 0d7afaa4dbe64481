"""No unit changes sums of values within units, or of rows per unit, by more than is claimed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from compile.neighbours import MENU, OTHERS, SCHEMA, Row, squared
from contracts.unit_plans import FUNCTIONS, UnitPlans
from dpnb._backends import MemoryBackend
from dpnb._backends.memory.expressions import NumpyEvaluator
from dpnb._compile import LinearQuery, linear_query
from dpnb._plan.expressions.nodes import Column, Compare, Literal, WithinUnit
from dpnb._plan.join import schema_of, unit_of
from dpnb._plan.measurements import Count, DeviationProducts, Sum
from dpnb._plan.plan import GroupLevel, Join, PerUnit, Plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.errors import PlanError
from dpnb.schema import Schema
from pairwise import product

X, Y, G = Column("x"), Column("y"), Column("g")
UNITS = {
    "one row": PrivacyUnit("u", 1),
    "three rows": PrivacyUnit("u", 3),
    "three rows, two in a group": PrivacyUnit("u", 3, ContributionBounds(max_rows_per_group=2)),
    "three rows, two groups": PrivacyUnit("u", 3, ContributionBounds(max_groups=2)),
    "norm": PrivacyUnit("u", 3, ContributionBounds(max_norm=1.5)),
}
SCHEMAS: dict[str, Schema] = {"": SCHEMA}
FAMILY: list[tuple[Row, ...]] = [
    (MENU[1],),
    (MENU[0], MENU[0], MENU[0]),
    (MENU[0], MENU[2], MENU[1]),
    (MENU[2], MENU[3], MENU[4], MENU[5]),
    (*MENU, *MENU),
]
"""Rows of the unit that is added: single ones, equal ones, and more than count."""


@cache
def tables(mine: tuple[Row, ...], unit: str, *, several: bool = False) -> MemoryBackend:
    """The others' rows with one unit's rows among them; none for the table without it."""
    rows = [*OTHERS[:1], *(("me", *row) for row in mine), *OTHERS[1:]]
    table = pd.DataFrame(rows, columns=["u", "x", "y", "g"]).astype(object)
    names = ("visits", "bills") if several else ("",)
    schemas, units = (dict.fromkeys(names, one) for one in (SCHEMA, UNITS[unit]))
    return MemoryBackend.read(dict.fromkeys(names, table), schemas, units)


def compiled(plan: Plan, unit: str) -> LinearQuery:
    units = {"": UNITS[unit]}
    return linear_query(plan, schema_of(plan.source, SCHEMAS), unit_of(plan.source, units, SCHEMAS))


def changes(query: LinearQuery, unit: str) -> Iterator[int]:
    """The square of the change of the sums when one unit is added, for each choice of its rows."""
    before = tables((), unit).sums(query)
    for mine in FAMILY:
        moved = tables(mine, unit).sums(query) - before
        yield squared(moved[moved != 0])


def excess(unit: str, seed: int) -> list[str]:
    """The plans whose sums one unit changes by more than is claimed, and the number of those it changes at all."""
    most = UNITS[unit].max_rows or 1
    faults, moving = [], 0
    for plan in UnitPlans(SCHEMAS, most, seed).plans(len(FUNCTIONS)):
        try:
            query = compiled(plan, unit)
        except PlanError as error:
            assert re.search("no limit on the rows in a group|bounds .* must be at least", str(error)), error  # noqa: PT017
            continue
        found = max(changes(query, unit))
        moving += found > 0
        if found > query.l2_sensitivity_squared:
            faults.append(plan.to_json())
    assert moving > len(FUNCTIONS) / 3
    return faults


@pytest.mark.parametrize(("unit", "seed"), product(UNITS, [1, 2, 3], together=1))
def test_a_unit_changes_no_random_plan_by_more_than_is_claimed(unit: str, seed: int) -> None:
    assert excess(unit, seed) == []


@pytest.mark.parametrize("unit", ["one row", "three rows"])
def test_a_window_that_crosses_units_is_caught(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: every row has the same unit while values within it are computed; the claim stays."""
    monkeypatch.setattr(NumpyEvaluator, "short_units", property(lambda rows: np.zeros(len(rows.everywhere), np.int32)))
    tables.cache_clear()
    try:
        assert excess(unit, 1) != []
    finally:
        tables.cache_clear()


def within(function: Any, node: Any = X, rows: int = 3, **options: Any) -> WithinUnit:
    return WithinUnit(function, node, rows, **options)


TIGHT = {
    "sum": (Plan(Sum(Column("s")), source=PerUnit("", (GroupLevel("s", within("sum")),))), 3 * 5),
    "max": (Plan(Sum(Column("s")), source=PerUnit("", (GroupLevel("s", within("max")),))), 5),
    "persons": (Plan(Count(), source=PerUnit("", (GroupLevel("s", within("size")),))), 1),
    "persons by size": (
        Plan(Count(), group_by=(GroupLevel("s", Column("s")),), source=PerUnit("", (GroupLevel("s", within("size")),))),
        1,
    ),
    "one row of each": (Plan(Sum(X), source=PerUnit("", (GroupLevel("x", X),), order=(X,), descending=(True,))), 5),
    "two rows of each": (Plan(Count(), source=PerUnit("", (GroupLevel("x", X),), order=(X,), rows=2)), 2),
    "a row per key": (Plan(Count(), source=PerUnit("", (GroupLevel("x", X),), keys=(G,))), 2),
    "a row per person of a row per key": (
        Plan(
            Sum(Column("n")),
            source=PerUnit(
                PerUnit("", (GroupLevel("s", within("sum", keys=(G,))),), keys=(G,)),
                (GroupLevel("n", within("count", Column("s"), 2)),),
            ),
        ),
        2,
    ),
    "sum beside each row": (Plan(Sum(within("sum"))), 3 * 3 * 5),
    "number of the row": (Plan(Count(), Compare(">", within("number", order=(X,)), Literal(0))), 3),
}  # fmt: skip


@pytest.mark.parametrize("name", TIGHT)
def test_the_claim_for_rows_per_unit_is_what_a_unit_can_change(name: str) -> None:
    """In steps of the sums; at k rows, those of one row or of k."""
    plan, _ = TIGHT[name]
    query = compiled(plan, "three rows")
    found = max(changes(query, "three rows"))
    if name == "number of the row":  # at most two rows of three have a row before them
        assert found == query.l2_sensitivity_squared * 4 / 9
    else:
        assert found == query.l2_sensitivity_squared


@pytest.mark.parametrize("name", TIGHT)
def test_what_a_person_can_change_is_as_documented(name: str) -> None:
    plan, most = TIGHT[name]
    query = compiled(plan, "three rows")
    assert query.l2_sensitivity_squared**0.5 * float(query.features[0].unit) == pytest.approx(most, rel=1e-6)


def test_products_of_deviations_are_at_most_a_quarter_of_the_product_of_the_ranges() -> None:
    """Reached where half of a unit's rows are at either end; for three rows a unit comes within a ninth."""
    plan = Plan(DeviationProducts((X, Y), 3))
    query = compiled(plan, "three rows")
    found = max(changes(query, "three rows"))
    assert 0.75 * query.l2_sensitivity_squared < found <= query.l2_sensitivity_squared


def test_a_merge_of_rows_per_unit_has_the_product_of_the_limits() -> None:
    """One row of each person beside the rows of another table."""
    schemas = dict.fromkeys(("visits", "bills"), SCHEMA)
    units = dict.fromkeys(("visits", "bills"), UNITS["three rows"])
    for rows in (1, 2):
        one = PerUnit("visits", (GroupLevel("most", within("max")),), order=(X,), rows=rows)
        source = Join(one, "bills")
        unit = unit_of(source, units, schemas)
        assert unit.max_rows == rows * 3
        query = linear_query(Plan(Count(), source=source), schema_of(source, schemas), unit)
        before = tables((), "three rows", several=True).sums(query)
        found = [squared(tables(mine, "three rows", several=True).sums(query) - before) for mine in FAMILY]
        assert max(found) == query.l2_sensitivity_squared
