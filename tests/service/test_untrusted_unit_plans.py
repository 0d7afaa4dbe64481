"""Plans of values within units that no frame makes are refused before anything is charged, or change nothing else."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb._core import tables
from dpnb._plan import join
from dpnb._plan.expressions.nodes import Arithmetic, Column, Compare, Expression, Literal, WithinUnit
from dpnb._plan.measurements import (
    AnyView,
    Count,
    DeviationProducts,
    JointAggregation,
    Mean,
    MeanCountView,
    Measured,
    PlainView,
    QuantilesView,
    QuantileTree,
    SlopesView,
    StandardErrorView,
    Sum,
    UnitProducts,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel, Join, PartSource, PerUnit, Plan, TableSource
from dpnb._plan.privacy_unit import ContributionBounds
from dpnb._request import Release
from dpnb._target import Target
from dpnb.errors import ExecutionError, PlanError
from dpnb.interactive.calls import execute

PLAIN = PlainView()
TABLE = pd.DataFrame(
    {
        "u": [1, 1, 2, 2, 3],
        "x": [1.0, 2.0, 3.0, None, 5.0],
        "w": [1, 2, 3, 4, 5],
        "g": ["a", "b", "a", None, "b"],
        "t": ["p", "q", "r", "s", None],
        "d": pd.to_datetime(["2020-01-01"] * 5),
    }
)
SCHEMA = {
    "x": dpnb.Bounded(0, 9),
    "w": dpnb.Bounded(0, 9, integer=True),
    "g": dpnb.Categories(["a", "b"]),
    "t": dpnb.Text(),
    "d": dpnb.Dates("2019-01-01", "2021-01-01"),
}
X, W, G, T, D = map(Column, SCHEMA)
SINCE = Arithmetic("-", D, Literal("2020-01-01"))
UNITS: dict[str, dict[str, Any]] = {
    "rows": {"privacy_unit": "u", "max_rows_per_unit": 2},
    "groups": {"privacy_unit": "u", "max_groups_per_unit": 1, "max_rows_per_group": 2},
    "none": {},
}


def opened(unit: str, container: str = "pandas") -> dpnb.Session:
    table: Any = TABLE
    if container == "polars":
        table = pytest.importorskip("polars").from_pandas(TABLE).lazy()
    return dpnb.Session(
        table, name="units", budget=dpnb.Budget.gdp(10), schema=SCHEMA, ledger=":memory:", **UNITS[unit]
    )


@pytest.fixture(scope="module")
def untouched() -> dict[str, dpnb.Session]:
    """Sessions for plans that are refused before anything is charged."""
    return {unit: opened(unit) for unit in ("rows", "groups")}


def send(session: dpnb.Session, plan: Plan, view: AnyView = PLAIN) -> None:
    """As the service does with what a client sends."""
    received = Plan.from_json(plan.to_json())
    execute(session._mechanisms, Release(received, view, Target("mu", Fraction(1, 100))))


def level(name: str, node: Expression = X) -> GroupLevel:
    return GroupLevel(name, node)


def rows(*columns: GroupLevel, **options: Any) -> Plan:
    return Plan(Count(), source=PerUnit("", columns or (level("a"),), **options))


def total(function: Any, node: Expression = X, most: int | None = 2, **options: Any) -> Plan:
    return Plan(Sum(WithinUnit(function, node, most, **options)))


def squares(rows: int, node: Expression = X, **options: Any) -> Plan:
    return Plan(UnitProducts((node,), rows, squares=True), **options)


def beside(statistic: Any, *columns: Expression, rows: int = 2, **options: Any) -> Measured:
    products = UnitProducts(columns, rows, **options)
    return JointAggregation((WeightedAggregation(statistic), WeightedAggregation(products)))


def deep(levels: int) -> TableSource:
    return PerUnit(deep(levels - 1), (level("x"),)) if levels else ""


REFUSED = {
    "keys that are fractions": total("sum", keys=(X,)),
    "keys that are texts": rows(keys=(T,)),
    "keys that are numbers": rows(keys=(X,)),
    "keys that are dates": rows(keys=(D,)),
    "an order of texts": rows(order=(T,)),
    "rows selected by a number": rows(where=X),
    "no columns": Plan(Count(), source=PerUnit("", ())),
    "two columns with one name": rows(level("a"), level("a", W)),
    "a column without a name": rows(level("")),
    "a duration as a column": rows(level("a", SINCE)),
    "no rows": rows(rows=0),
    "too many rows": rows(rows=2**40),
    "more directions than orders": rows(order=(X,), descending=(True, False)),
    "directions without an order": rows(descending=(True,)),
    "a key that is a text": total("sum", keys=(T,)),
    "a key that is a date": total("sum", keys=(D,)),
    "a window in an order of texts": total("cumsum", order=(T,)),
    "a window with too many directions": total("cumsum", order=(X,), descending=(True, True)),
    "a window without an order": total("cumsum"),
    "a window of rows selected by a number": total("count", where=W),
    "a sum without the number of rows": total("sum", most=None),
    "a unit without rows": total("sum", most=0),
    "a unit with too many rows": total("sum", most=2**32),
    "a number with an offset": total("number", offset=1),
    "too many rows before": total("shift", order=(W,), offset=2**31 + 1),
    "a window of no rows": total("rolling_sum", order=(W,), offset=0, least=1),
    "a window that needs no value": total("rolling_sum", order=(W,), offset=1, least=0),
    "a sum of categories": total("sum", G),
    "the first text": Plan(Count(WithinUnit("first", T, 2, order=(W,)))),
    "a column that the backend makes": Plan(Sum(Arithmetic("+", Column("~0"), WithinUnit("sum", X, 2)))),
    "too many keys": total("sum", keys=(G,) * 100, order=(X,)),
    "too many tables": Plan(Count(), source=deep(21)),
    "far too many tables": Plan(Count(), source=deep(200)),
    "a join with itself": Plan(Count(), source=Join(PerUnit("", (level("g", G),)), "")),
    "a part that does not exist": Plan(Count(), source=PartSource(PerUnit("", (level("g", G),)), level("g", G), "z")),
    "deviations of one number": Plan(DeviationProducts((X,), 2)),
    "products of nothing": Plan(UnitProducts((), 2)),
    "products of too many numbers": Plan(beside(Sum(X), *(X,) * 501)),
    "products of a text": squares(2, T),
    "products of no rows": squares(0),
    "products of a negative number of rows": squares(-1),
    "products of more rows than the proof allows": squares(2**20 + 1),
    "products of as many rows as a limit can have": squares(2**31),
    "products of too many rows beside a mean": Plan(beside(Mean(X), X, rows=2**21)),
    "products of limited rows": squares(2, contribution_bounds=ContributionBounds(max_rows=1)),
    "products of a limited number of groups": squares(2, contribution_bounds=ContributionBounds(max_groups=1)),
    "deviations in groups": Plan(DeviationProducts((X, W), 2), group_by=(level("g", G),)),
}  # fmt: skip


@pytest.mark.parametrize("unit", ["rows", "groups"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_malformed_plan_of_units_is_refused_before_the_charge(
    name: str, unit: str, untouched: dict[str, dpnb.Session]
) -> None:
    with pytest.raises(PlanError):
        send(untouched[unit], REFUSED[name])
    assert untouched[unit].ledger.count == 0


def test_without_the_check_it_would_fail_after_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "check_per_unit", lambda source, schema: None)
    monkeypatch.setattr(tables, "check_windows", lambda query, schemas, units: None)
    session = opened("rows")
    with pytest.raises(ExecutionError):
        send(session, REFUSED["keys that are texts"])
    assert session.ledger.count == 1


ODD = {
    "fewer rows than units have": total("sum", most=1),
    "more rows than units have": total("sum", most=2**31),
    "far before": total("shift", order=(W,), offset=2**31),
    "far after": total("shift", order=(W,), offset=-(2**31)),
    "a row far from the end": total("nth", order=(W,), offset=-(2**31)),
    "a long window": total("rolling_mean", order=(W,), offset=2**31, least=2**31),
    "an offset that nothing uses": total("sum", offset=5, least=3),
    "directions that nothing uses": total("mean", order=(X,), descending=(True,)),
    "one key twice": total("sum", keys=(G, G)),
    "a constant key": total("count", keys=(Literal("a"),), order=(Literal(1),)),
    "no rows": total("count", where=Literal(False)),
    "a constant column": Plan(Sum(Column("a")), source=PerUnit("", (level("a", Literal(2)),))),
    "an order of durations": rows(order=(SINCE,)),
    "a text": Plan(Count(), Compare("==", Column("a"), Literal("p")), source=PerUnit("", (level("a", T),))),
    "a column named as the backend's": Plan(
        Sum(WithinUnit("sum", Column("~0"), 1)), source=PerUnit("", (level("~0", WithinUnit("max", X, 2)),))
    ),
    "many tables": Plan(Count(), source=deep(20)),
    "a part of a table of persons": Plan(
        Count(), source=PartSource(PerUnit("", (level("g", G),)), level("g", G), "a")
    ),
}  # fmt: skip


@pytest.mark.parametrize("unit", ["rows", "groups"])
@pytest.mark.parametrize("name", ODD)
def test_an_odd_plan_of_units_is_answered(name: str, unit: str) -> None:
    session = opened(unit)
    send(session, ODD[name])
    assert session.ledger.count == 1


PRODUCTS = {
    "products of single rows": squares(1),
    "products of as many rows as units have": squares(2),
    "products of very many rows": squares(2**20),
    "products of very many rows in groups": squares(2**20, group_by=(level("g", G),)),
    "products within products": squares(2, WithinUnit("sum", X, 2)),
    "products of rows per unit": squares(2, Column("a"), source=PerUnit("", (level("a"),))),
    "products of a constant": squares(2, Literal(1)),
    "products of a mean that are not its own": Plan(beside(Mean(X), W, X, rows=1)),
    "one product of a ratio": Plan(beside(Mean(X), X, squares=True)),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_odd_products_of_units_are_answered_where_all_rows_of_a_group_count(name: str) -> None:
    session = opened("rows")
    send(session, PRODUCTS[name])
    assert session.ledger.count == 1


def test_products_are_refused_where_a_limit_counts_some_rows_of_a_group() -> None:
    session = opened("groups")
    for rows in (2, 2**20):
        for aggregation in (squares(rows).aggregation, beside(Mean(X), X, rows=rows)):
            with pytest.raises(PlanError, match="no limit on the rows in a group"):
                send(session, Plan(aggregation))
    assert session.ledger.count == 0
    send(session, squares(1))  # of single rows


@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize(
    "plan",
    [total("max"), rows(), Plan(DeviationProducts((X, W), 1)), Plan(Count(), Compare(">", WithinUnit("max", X, 1), X))],
    ids=["value", "table", "deviations", "filter"],
)
def test_where_each_row_is_a_unit_there_is_nothing_within_one(plan: Plan, container: str) -> None:
    session = opened("none", container)
    send(session, Plan(Count(), Compare(">", X, Literal(1))))  # from whose compiled form a filter is computed
    with pytest.raises(PlanError, match="each row is a unit"):
        send(session, plan)
    assert session.ledger.count == 1


@pytest.mark.parametrize("unit", ["rows", "groups"])
def test_deviations_may_be_of_fewer_rows_than_units_have(unit: str) -> None:
    send(opened(unit), Plan(DeviationProducts((X, W), 1)), SlopesView(("x", "w"), "u"))


@pytest.mark.parametrize("view", [StandardErrorView(), MeanCountView()], ids=["standard error", "count"])
def test_a_product_of_the_wrong_statistic_has_no_view_of_a_mean(view: AnyView) -> None:
    session = opened("rows")
    for aggregation in (beside(Sum(X), X), beside(Count(), X), UnitProducts((X,), 2, squares=True)):
        with pytest.raises(PlanError):
            send(session, Plan(aggregation), view)
    assert session.ledger.count == 0


def test_a_median_of_persons_needs_no_number_of_rows() -> None:
    """Where groups limit a unit, a table of persons still has one row each."""
    source = PerUnit("", (level("a", WithinUnit("max", X, None)),))
    send(opened("groups"), Plan(QuantileTree(Column("a")), source=source), QuantilesView((0.5,), True))
