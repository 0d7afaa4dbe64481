"""Neighbouring tables, all of a small family: one unit is added with all its rows, and the sums are compared."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import pandas as pd

from dpnb._backends.memory.execute import execute
from dpnb._backends.memory.prepare.prepared_table import PreparedTable, prepare
from dpnb._compile import LinearQuery, linear_query
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.schema import Bounded, Categories, Schema

Row = tuple[Any, ...]
"""x, y, g."""

SCHEMA: Schema = {"x": Bounded(-3, 5), "y": Bounded(0, 2), "g": Categories(["a", "b"])}
OTHERS = [("v", 2, 1, "a"), ("v", 5, None, "b"), ("w", -3, 0.5, "a")]
MENU: list[Row] = [(9, 2, "a"), (5, 2, "b"), (-3, 0, "a"), (None, 2, "a"), (5, None, "b"), (5, 2, None)]
"""Rows that matter: at both bounds, beyond one, in either group and in none, with and without a value."""

FAMILY = [
    *(rows for size in (1, 2) for rows in itertools.combinations_with_replacement(MENU, size)),
    *itertools.combinations_with_replacement(MENU[:4], 3),
    *itertools.combinations_with_replacement(MENU[:2], 4),
    (MENU[0], MENU[0], MENU[2], MENU[2]),
]

ROW = PrivacyUnit()
WITHOUT_NORM = {
    "row": ROW,
    "one row": PrivacyUnit("u", 1),
    "three rows": PrivacyUnit("u", 3),
    "two groups of two": PrivacyUnit("u", None, ContributionBounds(max_groups=2, max_rows_per_group=2)),
    "one group of three": PrivacyUnit("u", None, ContributionBounds(max_groups=1, max_rows_per_group=3)),
    "three rows, one group": PrivacyUnit("u", 3, ContributionBounds(max_groups=1)),
    "three rows, two in a group": PrivacyUnit("u", 3, ContributionBounds(max_rows_per_group=2)),
    "three rows, two groups of two": PrivacyUnit("u", 3, ContributionBounds(max_groups=2, max_rows_per_group=2)),
}
WITH_NORM = {
    "norm": PrivacyUnit("u", None, ContributionBounds(max_norm=1.5)),
    "norm of one row": PrivacyUnit("u", None, ContributionBounds(max_norm=1.0)),
    "norm and rows": PrivacyUnit("u", 3, ContributionBounds(max_norm=2.0)),
    "norm and all": PrivacyUnit("u", 3, ContributionBounds(2, 2, 2, 1.25)),
    "norm that is never reached": PrivacyUnit("u", 2, ContributionBounds(max_norm=3.0)),
}


def squared(change: Iterable[Any]) -> int:
    """The square of an integer vector's length."""
    return sum(int(part) ** 2 for part in change)


@cache
def table_with(mine: tuple[Row, ...], unit: PrivacyUnit) -> PreparedTable:
    """The others' rows with one unit's rows among them; none for the table without it."""
    rows = [*OTHERS[:1], *(("me", *row) for row in mine), *OTHERS[1:]]
    return prepare(pd.DataFrame(rows, columns=["u", "x", "y", "g"]).astype(object), SCHEMA, unit)


def changes(query: LinearQuery, family: Iterable[tuple[Row, ...]], unit: PrivacyUnit) -> Iterator[int]:
    """The square of the change of the sums when one unit is added, for each choice of its rows."""
    for moved in moves(query, family, unit):
        yield squared(moved[moved != 0])


def moves(query: LinearQuery, family: Iterable[tuple[Row, ...]], unit: PrivacyUnit) -> Iterator[Any]:
    """The change of the sums when one unit is added, for each choice of its rows."""
    before = execute(query, table_with((), unit), SCHEMA)
    for mine in family:
        if unit.column is not None or len(mine) == 1:
            yield execute(query, table_with(mine, unit), SCHEMA) - before


def worst(
    plan: Plan,
    unit: PrivacyUnit,
    family: Iterable[tuple[Row, ...]] = FAMILY,
    *,
    only: tuple[int, ...] | None = None,
) -> tuple[int, int]:
    """The largest squared change in the family, and what is claimed."""
    query = linear_query(plan, SCHEMA, unit, only)
    return max(changes(query, family, unit)), query.l2_sensitivity_squared
