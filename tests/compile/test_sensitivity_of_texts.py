"""No unit changes a query of texts or dates by more than is claimed, whatever its texts and dates are."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import pandas as pd
import pytest

from compile.neighbours import squared
from dpnb._backends.memory.execute import execute
from dpnb._backends.memory.group_discovery import present_groups
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._compile import linear_query
from dpnb._plan.expressions.nodes import (
    ChangeCase,
    Column,
    Compare,
    Cut,
    Expression,
    Literal,
    MatchText,
    Not,
    OnlyWhere,
    Or,
    Period,
    TextLength,
)
from dpnb._plan.measurements import Count, CountUnits, Discovery, Mean, QuantileTree, Sum
from dpnb._plan.plan import GroupLevel, Plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.schema import Bounded, Dates, Schema, Text
from pairwise import product

SCHEMA: Schema = {"x": Bounded(-3, 5), "t": Text(max_length=4), "d": Dates("2016-12-30", "2017-03-02")}
X, T, D = Column("x"), Column("t"), Column("d")
LOWER = ChangeCase("lower", T)
OTHERS = [("v", 2, "Ann", "2017-01-01"), ("w", 5, None, "2017-02-28"), ("w", -3, "bob", None)]
MENU = [
    (5, "ann", "2017-01-01"),
    (-3, "ANN", "2016-12-31T23:59:59"),
    (5, "x" * 10_000, "1066-01-01"),
    (None, "", "2999-01-01"),
    (5, None, "2017-02-01"),
    (5, "\ud800", "no date"),
    (5, 7, 7),
]
"""Rows of one unit: texts that become another's in lower case, too long, empty and none; dates of other periods."""

FAMILY = [rows for size in (1, 2, 3) for rows in itertools.combinations(MENU, size)]
UNITS = {
    "row": PrivacyUnit(),
    "three rows": PrivacyUnit("u", 3),
    "one group": PrivacyUnit("u", 3, ContributionBounds(max_groups=1)),
    "norm": PrivacyUnit("u", None, ContributionBounds(max_norm=1.5)),
}
ANN = MatchText("contains", LOWER, "ann")
PLANS: dict[str, Plan] = {
    "condition": Plan(Sum(X), Or(ANN, MatchText("startswith", T, "x"))),
    "negated condition": Plan(Count(), Not(ANN)),
    "length": Plan(Sum(TextLength(T))),
    "mean length": Plan(Mean(TextLength(LOWER))),
    "quantiles of lengths": Plan(QuantileTree(TextLength(T))),
    "by length": Plan(Count(), group_by=(GroupLevel("n", TextLength(T)),)),
    "by text in lower case": Plan(Sum(X), None, (GroupLevel("t", LOWER),), (("ann",), ("bob",), ("",))),
    **{
        f"by {unit}": Plan(Sum(X), None, (GroupLevel("d", Period(unit, D)),))  # type: ignore[arg-type]
        for unit in ("day", "week", "month", "quarter", "year")
    },
    "units by week": Plan(CountUnits(), None, (GroupLevel("d", Period("week", D)),)),
    "by month of some": Plan(
        Count(), None, (GroupLevel("d", Period("month", OnlyWhere(Compare(">", X, Literal(0)), D))),)
    ),
    "by bins of dates": Plan(
        Sum(X), None, (GroupLevel("d", Cut(D, (1483228800.0, 1485000000.0, 1488000000.0), ("a", "b"), dates=True)),)
    ),
}


@cache
def table(mine: tuple[tuple[Any, ...], ...], unit: PrivacyUnit) -> Any:
    rows = [*OTHERS[:1], *(("me", *row) for row in mine), *OTHERS[1:]]
    return prepare(pd.DataFrame(rows, columns=["u", "x", "t", "d"], dtype=object), SCHEMA, unit)


@pytest.mark.parametrize(("name", "unit"), product(PLANS, UNITS, together=1))
def test_one_units_texts_and_dates_change_sums_within_the_claim(name: str, unit: str) -> None:
    query = linear_query(PLANS[name], SCHEMA, UNITS[unit])
    before = execute(query, table((), UNITS[unit]), SCHEMA)
    changes = []
    for mine in FAMILY:
        if unit != "row" or len(mine) == 1:
            moved = execute(query, table(mine, UNITS[unit]), SCHEMA) - before
            changes.append(squared(moved[moved != 0]))
    assert 0 < max(changes) <= query.l2_sensitivity_squared


@pytest.mark.parametrize("node", [LOWER, ChangeCase("upper", T)], ids=["lower", "upper"])
def test_a_new_text_changes_no_group_but_those_of_its_unit(node: Expression) -> None:
    """Texts that become equal are one group; the order of the others does not depend on who else is there."""
    unit = PrivacyUnit("u", 3, ContributionBounds(max_groups=1))
    query = linear_query(Plan(Discovery("1e-9"), group_by=(GroupLevel("t", node),)), SCHEMA, unit)

    def groups(mine: tuple[tuple[Any, ...], ...]) -> dict[Any, int]:
        keys, sizes = present_groups(query, table(mine, unit), SCHEMA)
        assert keys == sorted(keys)
        return dict(zip(keys, sizes.tolist(), strict=True))

    before = groups(())
    for mine in FAMILY:
        after = groups(mine)
        moved = {key: after.get(key, 0) - before.get(key, 0) for key in {*before, *after}}
        assert sum(map(abs, moved.values())) <= 1
        assert min(moved.values()) >= 0
