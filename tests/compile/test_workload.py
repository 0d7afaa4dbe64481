"""Tables of a batch: the same rows count in each, and together they change by at most what is charged."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpnb
from compile.neighbours import FAMILY, SCHEMA, changes, table_with
from dpnb._backends.memory.execute import execute
from dpnb._compile import linear_query
from dpnb._compile.workload import complete_rows_of, workload_of
from dpnb._core.pricing.batch_design import BatchDesign, PlannedBatch, design_batch
from dpnb._plan.expressions.nodes import Column, FillNull
from dpnb._plan.measurements import Count, CountUnits, Mean, PlainView, QuantileTree, Sum
from dpnb._plan.plan import GroupLevel, Plan, column
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb._target import target_of
from dpnb.errors import PlanError

H = GroupLevel("h", FillNull(Column("g"), "a"))
"""Groups in which every row is."""

COUNTS = [Plan(Count(), group_by=(column("g"),)), Plan(Count()), Plan(Count(), group_by=(H,))]
MEANS = [Plan(Mean(Column("x")), group_by=(column("g"),)), Plan(Mean(Column("x")))]
BATCHES = {
    "counts": COUNTS,
    "sums and means": [Plan(Sum(Column("x")), group_by=(column("g"),)), Plan(Sum(Column("x"))), *MEANS],
    "counts and quantiles": [*COUNTS, Plan(QuantileTree(Column("y")), group_by=(column("g"),))],
}


def session_of(unit: PrivacyUnit) -> dpnb.Session:
    arguments: dict[str, Any] = {} if unit.column is None else {"privacy_unit": "u", "max_rows_per_unit": unit.max_rows}
    schema = {"x": dpnb.Bounded(-3, 5), "y": dpnb.Bounded(0, 2), "g": dpnb.Categories(["a", "b"])}
    return dpnb.Session.rehearse(name="batch", budget=dpnb.Budget(epsilon=1, delta=1e-6), schema=schema, **arguments)


def design_of(plans: list[Plan], unit: PrivacyUnit) -> BatchDesign:
    core = session_of(unit)._core
    workload = workload_of(plans, SCHEMA)
    queries = [(plan, PlainView()) for plan in workload.queries]
    planned = PlannedBatch(workload, (PlainView(),) * len(queries), tuple(queries))
    return design_batch(core.pricer, planned, [target_of("mu", 1)] * len(queries))


def largest_change(design: BatchDesign, unit: PrivacyUnit) -> Fraction:
    """The largest squared change of all tables together, each over its noise, when one unit is added."""
    family = [mine for mine in FAMILY if unit.column is not None or len(mine) == 1]
    total = [Fraction(0)] * len(family)
    for table in design.tables:
        each = changes(linear_query(table.plan, SCHEMA, unit), family, unit)
        total = [sum_ + change / Fraction(table.sigma) ** 2 for sum_, change in zip(total, each, strict=True)]
    return max(total)


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit("u", 1), PrivacyUnit("u", 3)], ids=["row", "one", "three"])
@pytest.mark.parametrize("batch", BATCHES)
def test_all_tables_together_change_by_at_most_what_is_charged(batch: str, unit: PrivacyUnit) -> None:
    design = design_of(BATCHES[batch], unit)
    change = largest_change(design, unit)
    assert change <= design.loss.mu_squared <= 1
    assert change >= design.loss.mu_squared * Fraction(9, 10)  # the family attains the bound, nearly where rows round


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit("u", 3)], ids=["row", "three"])
@pytest.mark.parametrize("forgotten", range(3))
def test_check_detects_a_charge_that_forgets_a_table(forgotten: int, unit: PrivacyUnit) -> None:
    design = design_of(COUNTS, unit)
    assert len(design.tables) >= 3
    charged = design.loss.mu_squared - design.tables[forgotten].loss.mu_squared
    assert largest_change(design, unit) > charged


def test_complete_rows_have_a_group_at_every_level() -> None:
    workload = workload_of(COUNTS, SCHEMA)
    by_group, total, by_filled = workload.queries
    assert by_group == COUNTS[0]  # every row has a value of h
    assert total.words == "count of rows where g.notna()"
    assert by_filled.words == "count of rows by h (made from g.fillna('a')) where g.notna()"


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit("u", 2), PrivacyUnit("u", 3)])
def test_exact_sums_of_tables_add_up(unit: PrivacyUnit) -> None:
    for plans in BATCHES.values():
        workload = workload_of(plans, SCHEMA)
        for measure in workload.measures:
            queries = [linear_query(plan, SCHEMA, unit) for plan in measure.tables.values()]
            for mine in FAMILY if unit.column else FAMILY[:6]:
                totals = []
                for query in queries:
                    sums = execute(query, table_with(mine, unit), SCHEMA).reshape(query.cells, query.slots)
                    totals.append(sums.sum(axis=0).tolist())
                assert all(total == totals[0] for total in totals)


def test_tables_do_not_add_up_where_groups_limit_a_unit() -> None:
    limits = ContributionBounds(max_rows_per_group=1)
    unit = PrivacyUnit("u", 3)
    mine = ((9, 2, "a"), (5, 2, "b"))
    sums = []
    for plan in (Plan(Count(), group_by=(column("g"),)), Plan(Count())):
        query = linear_query(Plan(plan.aggregation, group_by=plan.group_by, contribution_bounds=limits), SCHEMA, unit)
        sums.append(int(np.sum(execute(query, table_with(mine, unit), SCHEMA))))
    assert sums[0] != sums[1]  # so such a batch is refused
    session = session_of(unit)
    bounded = session.frame.bound_contributions(max_rows_per_group=1)
    with pytest.raises(PlanError, match="bound units by max_rows_per_unit= alone"):
        session.plan([bounded.groupby("g").size(), bounded.count()]).preview(mu=0.1)


def test_queries_about_other_rows_are_refused() -> None:
    filtered = Plan(Count(), where=COUNTS[0].where, contribution_bounds=ContributionBounds(max_rows=1))
    with pytest.raises(PlanError, match="must be about the same rows"):
        workload_of([COUNTS[0], filtered], SCHEMA)


def test_counts_of_units_are_refused() -> None:
    with pytest.raises(PlanError, match="do not add up"):
        workload_of([Plan(CountUnits(), group_by=(column("g"),)), Plan(CountUnits())], SCHEMA)


def test_other_keys_of_one_level_are_refused() -> None:
    some = Plan(Count(), group_by=(column("g"),), group_keys=(("a",),))
    with pytest.raises(PlanError, match="must be the same in all queries"):
        workload_of([COUNTS[0], some], SCHEMA)


def test_same_rows_are_recognised_however_they_are_written() -> None:
    by_group, total, _ = workload_of(COUNTS, SCHEMA).queries
    assert complete_rows_of(by_group, SCHEMA) == complete_rows_of(total, SCHEMA)
    assert complete_rows_of(by_group, SCHEMA) != complete_rows_of(COUNTS[1], SCHEMA)
