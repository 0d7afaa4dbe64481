"""A query that differs from an earlier one in its filter is compiled as if it were the first."""

from __future__ import annotations

from functools import partial

import pytest

import dpnb
from dpnb._core.tables import MAX_COMPILED, PrivateTables
from dpnb._plan.expressions.nodes import And, Column, Compare, Literal
from dpnb._plan.measurements import Count, Mean
from dpnb._plan.plan import Plan, column
from dpnb.errors import DpnbError, PlanError
from threads import at_once

SCHEMA = {"x": dpnb.Bounded(0, 100), "y": dpnb.Bounded(0, 200), "kind": dpnb.Categories(["a", "b"])}


def tables() -> PrivateTables:
    return PrivateTables.declared(
        SCHEMA, several=False, privacy_unit=None, rows=None, groups=None, rows_per_group=None, norm=None
    )


def above(limit: float) -> Compare:
    return Compare(">", Column("x"), Literal(limit))


@pytest.mark.parametrize("by", [(), (column("kind"),)], ids=["whole", "groups"])
@pytest.mark.parametrize("subset", [None, (0,)], ids=["all", "subset"])
def test_a_compiled_query_is_that_of_new_tables(by: tuple, subset: tuple[int, ...] | None) -> None:
    held = tables()
    filters = [
        above(1),
        above(1.0),
        None,
        And(above(1), above(2)),
        *map(above, range(3, 3 + 2 * MAX_COMPILED)),
        above(1),
    ]
    for aggregation in (Count(), Mean(Column("y"))):
        for where in filters:
            plan = Plan(aggregation, where, by)
            query, new = held.compile(plan, subset), tables().compile(plan, subset)
            assert query == new
            assert query.plan.to_json() == plan.to_json()
            assert query.required == new.required


@pytest.mark.parametrize(
    "where",
    [Column("y"), Compare(">", Column("absent"), Literal(1)), above(float("inf"))],
    ids=["number", "absent", "inf"],
)
def test_a_filter_is_refused_as_by_new_tables(where: object) -> None:
    held, plan = tables(), Plan(Count(), where)  # type: ignore[arg-type]
    held.compile(Plan(Count(), above(1)))
    with pytest.raises(DpnbError) as first:
        tables().compile(plan)
    with pytest.raises(PlanError) as later:
        held.compile(plan)
    assert str(later.value) == str(first.value)


@pytest.mark.usefixtures("many_switches")
def test_threads_that_compile_and_forget_queries_never_fail() -> None:
    """After its charge a query is compiled again, and a failure would show what other threads do."""
    held = tables()

    def compile_all(first: float) -> None:
        for number in range(200):
            held.compile(Plan(Count(), above(first + number)))

    assert at_once(*(partial(compile_all, number / 4) for number in range(4))) == []
