"""Sampling errors: of values within units, of units that may be excluded, in other sessions, and what they cost."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._compile import linear_query, products
from dpnb._plan.expressions.nodes import Arithmetic, Column, Expression, Literal
from dpnb._plan.measurements import JointAggregation, Sum, UnitProducts, WeightedAggregation
from dpnb._plan.plan import GroupLevel, Plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb._plan.structure import check_structure
from dpnb.accounting import GDP
from dpnb.errors import BudgetExceeded, PlanError, RequestError
from dpnb.ledger import MEMORY

CHANCE = np.random.default_rng(5)
UNITS = 800
PEOPLE = pd.DataFrame(
    {
        "u": np.arange(UNITS).repeat(3),
        "year": np.tile([1, 2, 3], UNITS),
        "x": CHANCE.normal(5, 1, UNITS).repeat(3) + CHANCE.normal(0, 1, 3 * UNITS),
    }
)
SCHEMA = {"x": dpnb.Bounded(0, 10), "year": dpnb.Bounded(1, 3, integer=True)}


def opened(table: pd.DataFrame = PEOPLE, **options: Any) -> dpnb.Session:
    usual: dict[str, Any] = {
        "name": "people",
        "budget": dpnb.Budget.gdp(1000),
        "schema": SCHEMA,
        "privacy_unit": "u",
        "max_rows_per_unit": 3,
        "ledger": MEMORY,
        "not_private_test_seed": 4,
    }
    return dpnb.Session(table, **{**usual, **options})


def changes(session: dpnb.Session) -> Any:
    """The change since the year before, in one year; the window reads rows that the filter leaves out."""
    frame = session.frame.sort_values("year")
    frame["change"] = frame.groupby("u")["x"].diff()
    return frame[frame["year"] == 2]["change"]


def test_windows_of_the_analyst_read_the_rows_that_the_filter_leaves_out() -> None:
    expected = PEOPLE.groupby("u")["x"].diff()[PEOPLE["year"] == 2].sem()
    error = changes(opened()).sem().release(mu=20).item()
    assert error == pytest.approx(expected, rel=0.05)


def test_a_failing_control_windows_that_are_rewritten_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    of_groups = products.of_groups

    def rewriting(node: Expression, required: Any, where: Any, keys: Any) -> Expression:
        return of_groups(node, (), where, keys)

    monkeypatch.setattr("dpnb._compile.within.of_groups", rewriting)
    assert changes(opened()).sem().release(mu=20).item() < 0.01


def test_units_that_may_be_excluded_have_no_sampling_error() -> None:
    session = opened(budget=dpnb.Budget.gdp(2), accounting="individual")
    before = session.frame["x"].mean().release(mu=1)
    session.frame["year"].sum().release(mu=1.7)
    with pytest.raises(BudgetExceeded, match="exclude units"):
        before.population(mu=0.5)
    after = session.frame["x"].sum().release(mu=0.9)
    assert after.excluded is not None
    spent = len(session.log)
    with pytest.raises(PlanError, match="where units may be excluded"):
        after.population(mu=0.1)
    assert (session.log["mu"] > 0).sum() == spent


def test_the_loss_of_the_squares_is_counted_once() -> None:
    answer = opened().frame["x"].mean().release(mu=1).population(mu="0.5")
    assert answer.total_loss.mu_squared == Fraction(5, 4)
    assert answer.population(mu="0.9").total_loss.mu_squared == 1 + Fraction(81, 100)
    assert answer.population(mu="0.5").total_loss == answer.total_loss
    refined = answer.refine(mu=2)
    assert refined.total_loss.mu_squared == 4 + Fraction(1, 4)
    assert refined.cost == GDP.from_mu_squared(Fraction(3))


def test_sessions_may_have_rows_of_the_same_units() -> None:
    """In quadrature the second would be as narrow as the first."""
    rows = PEOPLE[["x", "year"]].assign(x=PEOPLE["x"].round(3))
    one, other = (opened(rows, privacy_unit=None, max_rows_per_unit=None) for _ in range(2))

    def mean(session: dpnb.Session, year: int) -> Any:
        frame = session.frame
        return frame[frame["year"] == year]["x"].mean(population=True).release(mu=5)

    def width(answer: Any) -> float:
        low, high = answer.population_interval
        return float(high - low)

    other.frame.count().release(mu=1)  # the rows of two ledgers have the same numbers
    apart, dependent = mean(one, 1) + mean(one, 2), mean(one, 1) + mean(other, 2)
    assert width(dependent) == pytest.approx(2**0.5 * width(apart), rel=0.05)


def test_refining_does_not_widen_a_difference() -> None:
    frame = opened().frame
    answer = frame.groupby("year")["x"].mean(population=True).release(mu=0.3)
    finer = answer.refine(mu=1)

    def width(difference: Any) -> float:
        low, high = difference.population_interval
        return float(high - low)

    assert width(finer[1] - finer[2]) < width(answer[1] - answer[2])


def test_unknown_sampling_errors_stay_unknown_in_differences() -> None:
    frame = opened().frame
    one, other = (frame[name].agg(["mean", "var"]).release(mu=1) for name in ("x", "year"))
    ends = (one - other).population_interval.loc["var"]
    assert ends.isna().all()


def test_shares_of_units_allow_for_units_in_several_groups() -> None:
    """Every person is in every year, so that a share of persons varies more than that of as many independent units."""
    several = opened().frame.groupby("year").count_units().release(mu=5).proportions()
    one = opened(max_groups_per_unit=1).frame.groupby("year").count_units().release(mu=5).proportions()

    def width(answer: Any) -> float:
        return float(np.subtract(*answer.population_interval.loc[2, ["population_high", "population_low"]]))

    assert width(several) == pytest.approx(width(one), rel=0.1)  # of three times as many, each of a third of the weight


def test_tables_of_several_columns_have_their_sampling_errors_measured() -> None:
    answer = opened().frame[["x", "year"]].describe().release(mu=2).population(mu=1)
    ends = answer.population_interval
    assert ends.loc[("x", "std")].notna().all()
    assert ends.loc[("year", "mean")].notna().all()
    low, high = ends.loc[("x", "std")]
    assert low < PEOPLE["x"].std() < high


def test_where_noise_hides_the_denominator_nothing_is_left_out() -> None:
    frame = opened().frame
    for query in (frame["x"].mean(population=True), frame["x"].ratio(frame["year"], population=True)):
        answer = query.release(mu=1e-4)
        assert answer.population_interval == answer.interval
    assert answer.interval == (0, float("inf"))


def test_rows_are_sorted_by_the_ends_of_population_intervals() -> None:
    answer = opened().frame.groupby("year").size().release(mu=1)
    table = answer.to_pandas()
    found = answer.sort_values("population_low").to_pandas().index.tolist()
    assert found == table.sort_values("population_low").index.tolist()
    means = opened().frame.groupby("year")["x"].mean().release(mu=1)
    with pytest.raises(RequestError, match="no population intervals"):
        means.sort_values("population_low")


def test_texts_as_groups_of_persons_are_refused_in_words() -> None:
    table = PEOPLE.assign(place=np.tile(["a", "b", "c"], UNITS))
    session = opened(table, schema={**SCHEMA, "place": dpnb.Text()})
    with pytest.raises(PlanError, match="groups of texts"):
        session.frame.groupby("place", keys=["a"])["x"].mean(population=True)


def product(rows: int, node: Expression) -> UnitProducts:
    return UnitProducts((node,), rows, squares=True)


def test_products_of_units_need_plain_limits() -> None:
    """Under a norm, or a limit on rows in a group, a unit could add more than is claimed for some of the groups."""
    x = Column("x")
    parts = WeightedAggregation(Sum(x)), WeightedAggregation(product(3, x))
    plan = Plan(JointAggregation(parts), group_by=(GroupLevel("year", Column("year")),))
    for limits in (ContributionBounds(max_norm=1.0), ContributionBounds(max_rows_per_group=1)):
        with pytest.raises(PlanError, match="no limit on the rows in a group or on norms"):
            linear_query(plan, SCHEMA, PrivacyUnit("u", 3, limits), (0,))
    assert linear_query(plan, SCHEMA, PrivacyUnit("u", 3), (0,)).numbers == 2


def test_products_of_many_numbers_are_refused() -> None:
    parts = [product(3, Arithmetic("+", Column("x"), Literal(number))) for number in range(60)]
    with pytest.raises(PlanError, match="at most 100 values within units"):
        check_structure(Plan(JointAggregation(tuple(map(WeightedAggregation, parts)))))
    assert check_structure(Plan(JointAggregation(tuple(map(WeightedAggregation, parts[:50])))))
