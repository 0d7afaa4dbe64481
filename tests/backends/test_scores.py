"""Sums of the steps of logistic and Poisson regressions: what they are, and the most that a unit changes in them."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from backends.test_gradient import MODELS, SCHEMA, table
from compile.neighbours import OTHERS, squared
from compile.neighbours import SCHEMA as SMALL
from dpnb._backends import MemoryBackend
from dpnb._compile import LinearQuery, linear_query
from dpnb._plan.checks import check_plan, check_view
from dpnb._plan.expressions.nodes import Column, Compare, Literal
from dpnb._plan.measurements import JointAggregation, RegressionModel, ScoreSums, StepView, WeightedAggregation
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.errors import PlanError
from dpnb.results.estimates.estimate import estimate
from dpnb.schema import Bounded, Categories
from pairwise import pairwise, product

TERMS = ("Intercept", "a", "b", "c == 'q'", "c == 'r'")
AT = (0.3, -0.8, 0.5, 0.7, -0.2)
FAR = (9.0, -9.0, 9.0, 9.0, -9.0)
ROWS, PERSONS = PrivacyUnit(), PrivacyUnit("u", 3)
families = pytest.mark.parametrize("family", ["logistic", "poisson"])


def step(
    model: RegressionModel, at: tuple[float, ...] = AT, rows: int = 1, slope: float | None = None
) -> JointAggregation:
    parts = [
        ScoreSums(model, at, "score"),
        ScoreSums(model, at, "information", slope),
        ScoreSums(model, at, "products", max_rows=rows),
    ]
    return JointAggregation(tuple(map(WeightedAggregation, parts, (0.6, 0.25, 0.15))))


def released(
    model: RegressionModel,
    frame: pd.DataFrame,
    unit: PrivacyUnit,
    at: tuple[float, ...] = AT,
    slope: float | None = None,
) -> Any:
    """The sums without noise, in the order of their names."""
    query = linear_query(Plan(step(model, at, unit.max_rows or 1, slope)), SCHEMA, unit)
    sums = MemoryBackend.read({"": frame}, {"": SCHEMA}, {"": unit}).sums(query)
    one = np.ones(1)
    return estimate(query, StepView(TERMS, products=True), sums[None, :].astype(float), one, one, SCHEMA).value[0]


def by_hand(model: RegressionModel, frame: pd.DataFrame, at: tuple[float, ...], slope: float, *, persons: bool) -> Any:
    """The same, by numpy."""
    frame = frame[frame["c"].isin(["p", "q", "r"])].dropna(subset=["a", "b", "c", "y"])
    if persons:
        frame = frame.dropna()
    columns = [(frame["a"].clip(-3, 5) - 1) / 4, (frame["b"] - 5e5) / 5e5, frame["c"] == "q", frame["c"] == "r"]
    x = np.column_stack([np.ones(len(frame)), *columns]).astype(float)
    predictor = x @ at
    y = (frame["y"] > 10).to_numpy(float) if model.family == "logistic" else frame["y"].to_numpy(float)
    mean = 1 / (1 + np.exp(-predictor)) if model.family == "logistic" else np.minimum(np.exp(predictor), 20)
    weight = mean * (1 - mean) if model.family == "logistic" else np.where(mean < 20, mean, 0.0)
    score = x * (y - mean)[:, None]
    by_unit = pd.DataFrame(score).groupby(frame["u"].to_numpy()).sum().to_numpy() if persons else score
    upper = np.triu_indices(5)
    information = (x * np.minimum(weight, slope)[:, None]).T @ x
    return np.concatenate([score.sum(axis=0), information[upper], (by_unit.T @ by_unit)[upper]])


@pytest.mark.parametrize(("family", "persons", "slope"), product(["logistic", "poisson"], [False, True], [None, 0.2]))
def test_the_sums_are_those_of_the_formulas(family: str, persons: bool, slope: float | None) -> None:
    unit = PrivacyUnit("u", 20) if persons else ROWS
    frame = table(300)
    found = released(MODELS[family], frame, unit, slope=slope)
    expected = by_hand(MODELS[family], frame, AT, slope or math.inf, persons=persons)
    assert found == pytest.approx(expected, rel=1e-6, abs=0.02)  # the grid is of the bounds of a unit with 20 rows


@families
def test_nothing_that_a_row_has_makes_a_sum_undefined(family: str) -> None:
    """Missing values, infinities and values beyond all bounds count as nothing, or as a bound."""
    odd = [math.nan, math.inf, -math.inf, 1e300, -1e300, 0.0, 7.0]
    rows = [("me", a, b, c, y) for a, b, y in itertools.product(odd, repeat=3) for c in ("q", None)]
    frame = pd.DataFrame(rows, columns=["u", "a", "b", "c", "y"])
    for unit, at in itertools.product((ROWS, PERSONS), (AT, FAR)):
        assert np.isfinite(released(MODELS[family], frame, unit, at)).all()


# --- sensitivity ------------------------------------------------------------------------------------------------------


X, Y, G = Column("x"), Column("y"), Column("g")
SMALL_MODELS = {
    "logistic": RegressionModel("logistic", Compare(">", X, Literal(1)), (Y,), (G,)),
    "poisson": RegressionModel("poisson", Y, (X,), (G,)),
}
COEFFICIENTS = [(0.0, 0.0, 0.0), (0.4, -1.5, 0.8), (-2.0, 1.0, 3.0), (9.0, 9.0, 9.0)]
UNITS = {
    "row": ROWS,
    "one row": PrivacyUnit("u", 1),
    "three rows": PERSONS,
    "norm": PrivacyUnit("u", 3, ContributionBounds(max_norm=1.5)),
}


A, B, LOW, MISSING = (9, 2, "a"), (5, 2, "b"), (-3, 0, "a"), (None, 2, "a")
FAMILY = [(A,), (B,), (LOW,), (MISSING,), (A, A), (A, B, LOW), (B, B, B), (A, LOW, LOW, MISSING), (A, A, A, B)]
"""Rows that matter: at the bounds, beyond one, with each category, and without a value."""


@cache
def small(mine: tuple[Any, ...], unit: str) -> MemoryBackend:
    """The others' rows with one unit's rows among them."""
    rows = [*OTHERS[:1], *(("me", *row) for row in mine), *OTHERS[1:]]
    frame = pd.DataFrame(rows, columns=["u", "x", "y", "g"]).astype(object)
    return MemoryBackend.read({"": frame}, {"": SMALL}, {"": UNITS[unit]})


def worst(query: LinearQuery, unit: str) -> Fraction:
    """The largest squared change when one unit is added, as a part of what is claimed."""
    before = small((), unit).sums(query)
    family = [mine for mine in FAMILY if UNITS[unit].column is not None or len(mine) == 1]
    return max(
        Fraction(squared(small(mine, unit).sums(query) - before), query.l2_sensitivity_squared) for mine in family
    )


def excess() -> list[str]:
    """The steps whose sums one unit changes by more than is claimed."""
    found = []
    for unit, family, at, slope in pairwise(UNITS, SMALL_MODELS, COEFFICIENTS, [None, 0.1]):
        rows = 3 if [*UNITS][unit] == "three rows" else 1
        aggregation = step([*SMALL_MODELS.values()][family], COEFFICIENTS[at], rows, [None, 0.1][slope])
        query = linear_query(Plan(aggregation), SMALL, [*UNITS.values()][unit])
        if worst(query, [*UNITS][unit]) > 1:
            found.append(f"{unit} {family} {at} {slope}")
    return found


def test_no_unit_changes_a_step_by_more_than_is_claimed() -> None:
    assert excess() == []


@families
def test_the_control_a_smaller_claim_is_exceeded(family: str) -> None:
    """The bound of a score is nearly attained: a sensitivity that is claimed a fifth smaller would be refuted."""
    query = linear_query(Plan(ScoreSums(SMALL_MODELS[family], (0.0, 0.0, 0.0), "score")), SMALL, ROWS)
    assert worst(query, "row") > 0.8**2


@families
def test_the_control_rows_beyond_the_limit(family: str) -> None:
    """A claim for one row is refuted by a unit that adds three."""
    plan = Plan(ScoreSums(SMALL_MODELS[family], (0.0,) * 3, "score"))
    one, three = (linear_query(plan, SMALL, UNITS[unit]) for unit in ("one row", "three rows"))
    assert worst(three, "three rows") <= 1
    assert worst(replace(three, l2_sensitivity_squared=one.l2_sensitivity_squared), "three rows") > 1


# --- what is refused --------------------------------------------------------------------------------------------------


def checked(aggregation: Any, view: StepView | None, unit: PrivacyUnit) -> None:
    plan = Plan(aggregation)
    check_plan(plan, SCHEMA)
    linear_query(plan, SCHEMA, unit)
    if view is not None:
        check_view(plan, view, SCHEMA)


def refused(aggregation: Any, words: str, view: StepView | None = None, unit: PrivacyUnit = ROWS) -> None:
    with pytest.raises(PlanError, match=words):
        checked(aggregation, view, unit)


def test_steps_that_are_undefined_are_refused() -> None:
    logistic = MODELS["logistic"]
    refused(ScoreSums(MODELS["linear"], AT, "score"), "logistic or poisson")
    refused(ScoreSums(MODELS["multinomial"], AT, "score"), "logistic or poisson")
    refused(ScoreSums(logistic, AT[:4], "score"), "5 coefficients")
    refused(ScoreSums(logistic, (*AT[:4], math.nan), "score"), "at most 2")
    refused(ScoreSums(logistic, (*AT[:4], 1e9), "score"), "at most 2")
    refused(ScoreSums(logistic, AT, "information", 0.0), "max_slope")
    refused(ScoreSums(logistic, AT, "information", math.nan), "max_slope")
    refused(ScoreSums(logistic, AT, "products", max_rows=0), "rows of a unit")
    refused(ScoreSums(logistic, AT, "products", max_rows=2**40), "rows of a unit")
    many = RegressionModel("logistic", logistic.outcome, (), tuple(Column(f"w{number}") for number in range(61)))
    with pytest.raises(PlanError, match="at most 60 terms"):
        check_plan(
            Plan(ScoreSums(many, (0.0,) * 62, "score")),
            SCHEMA | {f"w{number}": Categories([0, 1]) for number in range(61)},
        )
    limits = PrivacyUnit("u", None, ContributionBounds(max_groups=1, max_rows_per_group=2))
    refused(step(logistic, AT, 3), "max_rows_per_unit", unit=limits)


@families
def test_coefficients_without_allowed_bounds_are_refused_before_rows_are_read(family: str) -> None:
    """As a client may write them; those that are compiled can be evaluated."""
    model = MODELS[family]
    tiny = (0.0, 5e-324, 0.0, 0.0, 0.0), (1e-300, 0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1e-310, 0.0)
    for at, part in itertools.product(tiny, ("score", "information", "products")):
        refused(ScoreSums(model, at, part), "between 1e-100 and 1e\\+100")
        refused(ScoreSums(model, at, part, max_rows=3), "between 1e-100 and 1e\\+100", unit=PERSONS)
    far = (2.0**20, -(2.0**20), 1e-100, 31.0, -1e-90)
    assert np.isfinite(released(model, table(50), ROWS, far, 2.0**-100)).all()


def test_windows_of_categories_are_counted_before_rows_are_read() -> None:
    """One for each value: the products of two steps at once would need a column of all rows for each of 120."""
    model = RegressionModel("logistic", MODELS["logistic"].outcome, (), (Column("c"),))
    two = [ScoreSums(model, (number, 0.0, 0.0), "products", max_rows=3) for number in (0.0, 1.0)]
    checked(two[0], None, PERSONS)
    refused(JointAggregation(tuple(map(WeightedAggregation, two))), "at most 100 values within units", unit=PERSONS)


@pytest.mark.parametrize("high", [1e-25, 1e-10, 1e13, 1e40])
def test_means_beyond_those_of_a_linear_predictor_are_refused(high: float) -> None:
    model, schema = MODELS["poisson"], {**SCHEMA, "y": Bounded(0, high)}
    with pytest.raises(PlanError, match="upper bound from 1e-09 to 1e\\+12"):
        check_plan(Plan(ScoreSums(model, AT, "score")), schema)
    check_plan(Plan(ScoreSums(model, AT, "score")), SCHEMA)


def test_views_of_other_sums_are_refused() -> None:
    logistic, view = MODELS["logistic"], StepView(TERMS, products=True)
    good = step(logistic)
    check_view(Plan(good), view, SCHEMA)
    words = "no such statistic"
    refused(good, words, StepView(TERMS))
    refused(good, words, StepView(TERMS[:4], products=True))
    refused(JointAggregation(good.parts[:2]), words, view)
    refused(JointAggregation(good.parts[::-1]), words, view)
    other = step(logistic, FAR)
    refused(JointAggregation((*good.parts[:2], other.parts[2])), words, view)
    refused(good.parts[0].aggregation, words, StepView(TERMS))
