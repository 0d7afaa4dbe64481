"""The squared norms of units do not depend on the way in which they are computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpnb._backends.memory import execute
from dpnb._backends.memory import unit_contributions as unit_norms
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._compile import linear_query
from dpnb._plan.expressions.nodes import Column, Compare, Literal
from dpnb._plan.measurements import Count, CountUnits, Mean, QuantileTree, Sum
from dpnb._plan.plan import GroupLevel, Plan
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.accounting.individual import IndividualFilter, UnitAdmission, UnitChargeTerms
from dpnb.schema import Bounded, Categories, Schema
from pairwise import product

X, Y, G = Column("x"), Column("y"), Column("g")
SCHEMA: Schema = {"x": Bounded(-3, 5), "y": Bounded(0, 20, integer=True), "g": Categories(["a", "b", "c"])}
BY: list[tuple[GroupLevel, ...]] = [(), (GroupLevel("g", G),)]
UNITS = [PrivacyUnit(), PrivacyUnit("unit", max_rows=1), PrivacyUnit("unit", max_rows=7)]


def frame(rows: int = 600) -> pd.DataFrame:
    chance = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "unit": chance.integers(0, rows // 3, rows),
            "x": chance.choice([*np.linspace(-4, 6, 41), np.nan], rows),
            "y": chance.choice([*range(-2, 24), np.nan], rows),
            "g": chance.choice(np.array(["a", "b", "c", "undeclared", None], object), rows),
        }
    )


@pytest.mark.parametrize(("tree", "by"), product([QuantileTree(X), QuantileTree(Y)], BY))
def test_pairs_of_rows_and_sorted_rows_have_the_same_nodes(
    monkeypatch: pytest.MonkeyPatch, tree: Any, by: tuple[GroupLevel, ...]
) -> None:
    query = linear_query(Plan(tree, group_by=by), SCHEMA, UNITS[2])
    found = []
    for most in (0, 16):
        monkeypatch.setattr(unit_norms, "MAX_COMPARED", most)
        owners, squares = execute.affected_units(query, prepare(frame(), SCHEMA, UNITS[2]), SCHEMA)
        found.append((owners.tolist(), squares.tolist()))
    assert len(set(found[0][1])) > 10
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("aggregation", "where", "by"),
    product(
        [Count(), CountUnits(), Count(X), Sum(X), Mean(Y), QuantileTree(X)],
        [None, Compare(">", X, Literal(0)), Compare(">", X, Literal(4.9))],
        BY,
    ),
)
def test_all_rows_and_only_those_that_add_something(
    monkeypatch: pytest.MonkeyPatch, aggregation: Any, where: Any, by: tuple[GroupLevel, ...]
) -> None:
    """If rows are units, the others have a norm of 0, cost nothing, and change no sum."""
    query = linear_query(Plan(aggregation, where, by), SCHEMA, UNITS[0], divisible=True)
    terms = UnitChargeTerms(3.0 * 2**20, query.l2_sensitivity_squared, False, clips=True)
    found = []
    for share in (0, 10**9):
        monkeypatch.setattr(execute, "MIN_SHARE", share)
        table = prepare(frame(), SCHEMA, UNITS[0])
        owners, squares = execute.affected_units(query, table, SCHEMA)
        admission = UnitAdmission(IndividualFilter(1, table.rows), terms)
        sums = execute.execute(query, table, SCHEMA, admission.active)
        norms = dict(zip(owners.tolist(), squares.tolist(), strict=True))
        kept = {unit: norm for unit, norm in norms.items() if norm}
        assert len(norms) == (len(kept) if share == 0 else table.rows)
        found.append((kept, sums.tolist(), admission.units.spent.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("aggregation", "divisible", "by", "unit"),
    product([Count(), CountUnits(), QuantileTree(Y), Mean(Y)], [False, True], BY, UNITS),
)
def test_losses_that_are_looked_up_are_those_that_are_computed(
    aggregation: Any, divisible: bool, by: tuple[GroupLevel, ...], unit: PrivacyUnit
) -> None:
    query, table = linear_query(Plan(aggregation, None, by), SCHEMA, unit, divisible=divisible), frame()
    owners, squares = execute.affected_units(query, prepare(table, SCHEMA, unit), SCHEMA)
    assert query.l2_sensitivity_squared >= 2**53 or not (squares % query.norm_step).any()
    found = []
    for step in (1, query.norm_step):
        terms = UnitChargeTerms(12345.678, query.l2_sensitivity_squared, False, norm_step=step)
        admission = UnitAdmission(IndividualFilter(10**30, len(table)), terms)
        admission.active(owners, squares)
        found.append(admission.units.spent.tolist())
    assert found[0] == found[1]
    assert any(found[0])
