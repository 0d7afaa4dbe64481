"""The work of a query follows from its plan; nothing is listed before it is known to be small enough."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

import dpnb
from dpnb._compile import linear_query, sensitivity
from dpnb._compile.work import MAX_UNITS, Work, WorkLimits, stored_bytes, work_of
from dpnb._compile.workload import workload_of
from dpnb._core import tables as core_tables
from dpnb._core.tables import PrivateTables
from dpnb._plan.expressions.nodes import Arithmetic, Column, Compare, Literal, Round
from dpnb._plan.measurements import (
    Count,
    CountUnits,
    Discovery,
    Gradient,
    JointAggregation,
    Mean,
    ModelLoss,
    Moments,
    QuantileTree,
    Ratio,
    RegressionModel,
    ScoreSums,
    Sum,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel, Plan, column
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb._plan.regression import RegressionDesign
from dpnb.accounting.losses import GDP
from dpnb.errors import PlanError
from dpnb.mechanisms import measure
from dpnb.mechanisms.gaussian import sigma_for
from dpnb.mechanisms.randomness import NotPrivateSeededSource
from dpnb.schema import Bounded, Categories, Schema, Text

X, N, G, H, T = map(Column, "xnght")
SCHEMA: Schema = {
    "x": Bounded(-3, 5),
    "n": Bounded(0, 30, integer=True),
    "g": Categories(["a", "b", "c"]),
    "h": Categories(list(range(10))),
    "t": Text(),
}
UNIT = PrivacyUnit("p", 6, ContributionBounds(max_rows=6))
MODEL = RegressionModel("linear", X, (N,), (G,))
STEPS = RegressionModel("poisson", N, (X,), (G, H))
AGGREGATIONS: list[Any] = [
    Count(),
    CountUnits(),
    Sum(X),
    Mean(N),
    Ratio(X, N),
    Moments((X,)),
    Moments((X, N, Arithmetic("*", X, N)), (G, H, Column("g"))),
    QuantileTree(X),
    QuantileTree(N),
    QuantileTree(X, graded=True),
    ModelLoss(MODEL, (0.0,) * 4),
    ScoreSums(STEPS, (0.0,) * 13, "score"),
    ScoreSums(STEPS, (0.0,) * 13, "information"),
    ScoreSums(STEPS, (0.0,) * 13, "products"),
    JointAggregation((WeightedAggregation(Mean(X)), WeightedAggregation(Moments((X, N), (H,))))),
]
GROUPS: list[dict[str, Any]] = [
    {},
    {"group_by": (column("g"), column("n"))},
    {"group_by": (GroupLevel("r", Round(N, -1)),)},
    {"group_by": (column("t"), column("g")), "group_keys": (("u", "a"), ("v", "b"))},
]


@pytest.mark.parametrize(("aggregation", "groups"), list(product(AGGREGATIONS, GROUPS)))
def test_the_work_is_that_of_the_compiled_query(aggregation: Any, groups: dict[str, Any]) -> None:
    plan = Plan(aggregation, **groups)
    work, query = work_of(plan, SCHEMA), linear_query(plan, SCHEMA, UNIT)
    assert (work.features, work.numbers, work.groups) == (len(query.features), query.numbers, query.cells)


def test_the_work_of_gradients_and_discoveries() -> None:
    gradient = Plan(Gradient(MODEL, ((0.0,) * 4, (1.0,) * 4), 1.0))
    for plan in (gradient, Plan(Discovery("1e-9"), group_by=(column("t"),))):
        query = linear_query(plan, SCHEMA, UNIT)
        assert (work_of(plan, SCHEMA).features, work_of(plan, SCHEMA).numbers) == (1, query.slots)


def test_the_work_of_products_of_what_a_unit_adds() -> None:
    """A number for each pair of terms, not for each pair of categories."""
    plan = Plan(ScoreSums(STEPS, (0.0,) * 13, "products", max_rows=6))
    query = linear_query(plan, SCHEMA, PrivacyUnit("p", 6))
    assert work_of(plan, SCHEMA).features == len(query.features) == query.slots == 13 * 14 // 2


@pytest.mark.parametrize("mu", [1e-12, 1e-6, 0.3, 1, 1e3, 1e6])
@pytest.mark.parametrize("sensitivity", [1, 2**31 - 1, 10**15])
def test_no_stored_answer_is_longer_than_stated(mu: float, sensitivity: int) -> None:
    loss = GDP(Fraction(mu))
    largest = MAX_UNITS * sensitivity
    sums = [largest, -largest, 0, 1] * 500
    sigma = sigma_for(sensitivity**2, loss)
    for number in (1, 2000):
        found = measure(sums[:number], sigma=sigma, source=NotPrivateSeededSource(3))
        assert len(json.dumps(found.to_json())) <= stored_bytes(number, loss)
    assert stored_bytes(2000, loss) < 1.5 * len(
        json.dumps(measure(sums, sigma=sigma, source=NotPrivateSeededSource(3)).to_json())
    )


WIDE = Plan(Moments(tuple(Arithmetic("+", X, Literal(number)) for number in range(400))))
NUMBERS = tuple(Arithmetic("*", X, Literal(number)) for number in range(1, 2001))
STEP = Plan(ScoreSums(RegressionModel("logistic", Compare(">", X, Literal(0)), NUMBERS), (), "information"))
MANY = Plan(QuantileTree(X), group_by=tuple(GroupLevel(f"g{number}", H) for number in range(6)))
LIMITS = WorkLimits(features=10_000, numbers=10**9, memory=10**9, answer=10**7)


def refused(*_: Any, **__: Any) -> Any:
    raise AssertionError("was listed before it was refused")


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (WIDE, "at most 10,000 features of a row; it has 80,601"),
        (STEP, "at most 10,000 features of a row; it has 2,003,001"),
        (MANY, "needs 5,460,000,000 noisy numbers at once"),
    ],
)
def test_a_query_is_refused_before_anything_of_it_is_listed(
    plan: Plan, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("features_of", "group_keys", "check_plan"):
        monkeypatch.setattr(sensitivity, name, refused)
    monkeypatch.setattr(RegressionDesign, "pairs_of_blocks", property(refused))
    with pytest.raises(PlanError, match=words) as error:
        linear_query(plan, SCHEMA, UNIT, limits=LIMITS)
    assert "nothing was charged" in str(error.value)
    assert len(str(error.value)) < 700
    with pytest.raises(AssertionError):  # the control
        linear_query(Plan(Mean(X)), SCHEMA, UNIT, limits=LIMITS)


def test_memory_is_bounded_by_the_plan() -> None:
    numbers = Plan(QuantileTree(X), group_by=(column("h"), column("n"), column("g")))
    limits = WorkLimits(memory=work_of(numbers, SCHEMA).memory - 1)
    with pytest.raises(PlanError, match=r"at most 1,\d\d\d MB of memory|at most \d+ MB of memory"):
        linear_query(numbers, SCHEMA, UNIT, limits=limits)
    assert linear_query(numbers, SCHEMA, UNIT, limits=WorkLimits(memory=limits.memory + 1)).cells == 930


def test_keys_that_are_not_all_combinations_are_refused_without_listing_these() -> None:
    levels = tuple(GroupLevel(f"t{number}", Arithmetic("+", N, Literal(number))) for number in range(6))
    plan = Plan(Count(), group_by=levels, group_keys=tuple((number,) * 6 for number in range(2000)))
    with pytest.raises(PlanError, match="must be all combinations"):
        workload_of([plan], SCHEMA)


def tables(**limits: int) -> PrivateTables:
    declared = PrivateTables.declared(
        {"x": dpnb.Bounded(0, 1), "h": dpnb.Categories(list(range(10)))},
        **{"several": False, "privacy_unit": None, "rows": None, "groups": None, "rows_per_group": None, "norm": None},
    )
    declared.work_limits = WorkLimits(**limits)
    return declared


def test_several_queries_share_the_limits() -> None:
    held, plan = tables(features=50), Plan(Moments((X,), (H,)))
    held.refuse_work([plan] * 10, "batch")
    with pytest.raises(PlanError, match="at most 50 features of a row; it has 55"):
        held.refuse_work([plan] * 11, "batch")


def test_large_compiled_queries_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_tables, "MAX_COMPILED_SIZE", 30)
    held = tables()
    for number in range(12):
        held.compile(Plan(Sum(Arithmetic("+", X, Literal(number))), group_by=(column("h"),)))
        assert sum(len(query.keys) + len(query.features) for query in held._compiled.values()) <= 30
    assert held._compiled


def test_works_add_up() -> None:
    assert Work(1, 2, 3, 4) + Work(10, 20, 30, 40) == Work(11, 22, 33, 44)
