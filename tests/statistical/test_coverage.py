"""Intervals of everything that is read off noisy sums cover the noise, from tiny to so large that the count drowns.

Nominal level 95%; asked is 93% at every noise level, since what is not linear is approximate.  For an interval that
covers exactly 95%, less than 93% of 5,000 draws has probability 2e-10, and there are about 1,500 such checks: 3e-7.
Shrinking the intervals by a fifth brings them to 88%, and is caught.  Only n * mu counts, not n alone.

Nominal level 99.9%: asked is that at most 0.4% of 20,000 draws miss.  Where the count is barely clear of the noise
0.23% of variances miss, and more than 0.4% then has probability 2e-6; elsewhere 0.1% miss.  99% intervals are caught.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from dpnb._plan.expressions.nodes import Column, Round
from dpnb._plan.measurements import (
    AnyView,
    ColumnsView,
    Count,
    CountUnits,
    JointAggregation,
    Mean,
    MeanCountView,
    Moments,
    MomentsView,
    NamedColumn,
    PlainView,
    Proportions,
    QuantilesView,
    QuantileTree,
    Ratio,
    Sum,
    WeightedAggregation,
)
from dpnb._plan.plan import Plan, column
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.accounting.intervals import fixed_radius
from dpnb.results.estimates import estimate
from dpnb.results.estimates.moments import MomentSums
from dpnb.schema import Bounded, Categories, Schema
from statistical.noisy_sums import ALPHA, Asked, asked, covered

pytestmark = pytest.mark.statistical

Array = NDArray[np.float64]
ROWS, REPETITIONS, LEAST = 200, 5000, 0.93
# n * mu, from a noise that hardly shows to one in which the count drowns.
TOLD = (1e4, 3000, 1000, 500, 300, 200, 100, 50, 30, 20, 15, 12, 10, 9, 8, 6, 4, 1, 0.1)
X, Y = Column("x"), Column("y")
RARE, RARE_DRAWS, RARE_MISSES = Fraction(1, 1000), 20_000, 0.004


def shapes() -> dict[str, tuple[Array, Array, Bounded, Bounded]]:
    """Two columns with their bounds, already clamped."""
    chance = np.random.default_rng(1)
    z, w = chance.normal(0, 1, (2, ROWS))
    e, f = chance.exponential(1, (2, ROWS))
    often, seldom = chance.random((2, ROWS)) < [[0.9], [0.1]]
    usual, ten = Bounded(-2, 6), Bounded(0, 10)
    return {
        "even": (chance.uniform(-2, 6, ROWS), chance.uniform(-2, 6, ROWS), usual, usual),
        "linked": (np.clip(2 + z, -2, 6), np.clip(2 + 0.8 * z + 0.6 * w, -2, 6), usual, usual),
        "skewed": (np.minimum(e, 10), np.minimum(e * f, 20), ten, Bounded(0, 20)),
        "almost constant": (np.where(np.arange(ROWS) == 0, 3.1, 3.0), np.full(ROWS, 7.0), ten, ten),
        "bounds too wide": (np.clip(z, -10, 10), np.clip(z + 0.1 * w, -20, 30), Bounded(-10, 10), Bounded(-20, 30)),
        "bounds far too wide": (z, z + 0.1 * w, Bounded(-1000, 1000), Bounded(-1000, 1000)),
        "one bound far too wide": (np.clip(z, -3, 3), 0.9 * z + 0.4 * w, Bounded(-3, 3), Bounded(-100, 100)),
        "incomes": (45 + 15 * np.clip(z, -3, 3), np.exp(10.4 + 0.6 * z + 0.3 * w), Bounded(0, 120), Bounded(0, 1e6)),
        "near one bound": (np.clip(9 + 0.3 * z, 0, 10), np.clip(9 + 0.3 * z, 0, 10), ten, ten),
        "at the bounds": (np.where(often, 10.0, 0.0), np.where(seldom, 10.0, 0.0), ten, ten),
        "all at one bound": (np.full(ROWS, 10.0), np.full(ROWS, 0.0), ten, ten),
    }


def least_squares(x: Array, y: Array) -> list[float]:
    return [float(number) for number in np.linalg.lstsq(np.stack([np.ones_like(x), x], axis=1), y, rcond=None)[0]]


def correlation(x: Array, y: Array) -> list[float]:
    return [np.corrcoef(x, y)[0, 1]] if np.ptp(x) * np.ptp(y) else []


PAIR = Plan(Moments((X, Y)))
# What is asked, and what is true; a statistic that the data do not have is left out.
STATISTICS: dict[str, tuple[Plan, AnyView, Callable[[Array, Array], list[float]]]] = {
    "mean": (Plan(Mean(X)), PlainView(), lambda x, y: [x.mean()]),
    "ratio": (Plan(Ratio(X, Y)), PlainView(), lambda x, y: [x.sum() / y.sum()] if y.any() else []),
    "mean of moments": (Plan(Moments((X,))), MomentsView("mean"), lambda x, y: [x.mean()]),
    "var": (Plan(Moments((X,))), MomentsView("var"), lambda x, y: [x.var()]),
    "std": (Plan(Moments((X,))), MomentsView("std"), lambda x, y: [x.std()]),
    "sample var": (Plan(Moments((X,))), MomentsView("var", ddof=1), lambda x, y: [x.var(ddof=1)]),
    "cov": (PAIR, MomentsView("cov", (0, 1)), lambda x, y: [np.cov(x, y, ddof=0)[0, 1]]),
    "corr": (
        PAIR,
        MomentsView("corr", (0, 1)),
        lambda x, y: [np.corrcoef(x, y)[0, 1]] if np.ptp(x) * np.ptp(y) else [],
    ),
    "regression": (PAIR, MomentsView("regression", (1, 0)), lambda x, y: least_squares(x, y) if np.ptp(x) else []),
}
CASES = [(statistic, shape) for statistic in STATISTICS for shape in shapes()]


def case(statistic: str, shape: str) -> tuple[Asked, Array]:
    x, y, of_x, of_y = shapes()[shape]
    plan, view, true = STATISTICS[statistic]
    schema: Schema = {"x": of_x, "y": of_y}
    return asked(plan, view, pd.DataFrame({"x": x, "y": y}), schema), np.array([true(x, y)])


@pytest.mark.parametrize(("statistic", "shape"), CASES)
def test_intervals_cover_at_every_noise_level(statistic: str, shape: str) -> None:
    question, truth = case(statistic, shape)
    if truth.size:
        shares = {told: covered(question.estimates(told / ROWS, REPETITIONS, 7), truth).min() for told in TOLD}
        assert not {told: share for told, share in shares.items() if not share >= LEAST}


@pytest.mark.parametrize("statistic", STATISTICS)
def test_intervals_that_are_a_fifth_too_narrow_are_caught(statistic: str) -> None:
    question, truth = case(statistic, "even")
    assert covered(question.estimates(1e4 / ROWS, REPETITIONS, 7, shrink=0.8), truth).max() < 0.9


@pytest.mark.parametrize("shape", ["even", "linked", "skewed", "one bound far too wide", "incomes"])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_intervals_at_a_high_level_miss_as_rarely(statistic: str, shape: str) -> None:
    question, truth = case(statistic, shape)
    found = {n: question.estimates(n / ROWS, RARE_DRAWS, 8, alpha=RARE) for n in (1e4, 3000, 1000, 300, 100, 10)}
    misses = {n: 1 - covered(one, truth).min() for n, one in found.items()}
    assert not {n: share for n, share in misses.items() if share > RARE_MISSES}


@pytest.mark.parametrize("statistic", STATISTICS)
def test_intervals_for_another_level_are_caught(statistic: str) -> None:
    question, truth = case(statistic, "even")
    found = question.estimates(1e4 / ROWS, RARE_DRAWS, 8, alpha=Fraction(1, 100))
    assert 1 - covered(found, truth).max() > RARE_MISSES


def test_a_correlation_linearised_near_a_variance_of_zero_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The root of a product of variances has too small a slope where a variance of almost 0 is overestimated."""
    monkeypatch.setattr(MomentSums, "_remaining", lambda self, column: np.ones(len(self._sums)))
    question, truth = case("corr", "one bound far too wide")
    assert covered(question.estimates(1000 / ROWS, REPETITIONS, 7), truth).min() < LEAST
    rarely = question.estimates(1000 / ROWS, RARE_DRAWS, 8, alpha=RARE)
    assert 1 - covered(rarely, truth).min() > RARE_MISSES


def test_an_error_without_the_counts_noise_is_caught() -> None:
    """Why the joint noise: near a bound as much of a mean's error comes from the count as from the sum."""
    question, truth = case("mean", "near one bound")
    sigma = question.query.l2_sensitivity_squared**0.5 / (100 / ROWS)
    found = question.estimates(100 / ROWS, REPETITIONS, 7)
    feature = question.query.features[1]
    centred = question.noisy(sigma, REPETITIONS, 7)
    naive = 1.96 * sigma * float(feature.unit) / (centred[:, :1] * float(question.query.features[0].unit))
    assert np.mean(np.abs(found.value - truth) <= naive) < LEAST


@pytest.mark.parametrize(
    ("statistic", "everything"),
    [
        ("mean", (-2, 6)),
        ("mean of moments", (-2, 6)),
        ("var", (0, 16)),
        ("std", (0, 4)),
        ("cov", (-16, 16)),
        ("corr", (-1, 1)),
        ("regression", (-np.inf, np.inf)),
        ("ratio", (-np.inf, np.inf)),
    ],
)
def test_a_count_that_drowns_leaves_everything_possible(statistic: str, everything: tuple[float, float]) -> None:
    """Noise a thousand times the count: the interval is all that the statistic can be.

    But for the 2.5% of draws in which the count seems to stand clear (5% where a denominator may be negative).  With
    little noise it never is, which is the control.
    """
    question, _ = case(statistic, "linked")
    found = question.estimates(1e-3, REPETITIONS, 3)
    whole = np.isclose(found.low, everything[0]) & np.isclose(found.high, everything[1])
    assert whole.mean() > LEAST
    told = question.estimates(50.0, REPETITIONS, 3)
    assert not (np.isclose(told.low, everything[0]) & np.isclose(told.high, everything[1])).any()


# --- several predictors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("twins", [False, True], ids=["apart", "nearly the same"])
def test_coefficients_of_several_predictors_are_covered(twins: bool) -> None:
    chance = np.random.default_rng(4)
    a, b, c = chance.uniform(0, 10, (3, ROWS))
    b = np.clip(a + 0.05 * b, 0, 10) if twins else b
    y = np.clip(2 + 0.3 * a - 0.5 * b + 0.2 * c, -5, 10)
    schema: Schema = {"a": Bounded(0, 10), "b": Bounded(0, 10), "c": Bounded(0, 10), "y": Bounded(-5, 10)}
    design = np.stack([np.ones(ROWS), a, b, c], axis=1)
    truth = np.linalg.lstsq(design, y, rcond=None)[0][None]
    plan = Plan(Moments(tuple(map(Column, "abcy"))))
    table = pd.DataFrame({"a": a, "b": b, "c": c, "y": y})
    question = asked(plan, MomentsView("regression", (3, 0, 1, 2)), table, schema)
    shares = {told: covered(question.estimates(told / ROWS, 2000, 9), truth).min() for told in TOLD[::2]}
    # 2,000 draws at 95% give less than 92% with probability 4e-9.
    assert not {told: share for told, share in shares.items() if not share >= 0.92}


# --- groups and joint questions --------------------------------------------------------------------------------------


def grouped() -> tuple[Asked, Array]:
    """Three groups of 200, 500 and 1,000 rows, three rows a person, seven statistics in one charge."""
    chance = np.random.default_rng(8)
    group = np.repeat(["a", "b", "c"], [200, 500, 1000])
    table = pd.DataFrame(
        {
            "p": np.arange(len(group)) // 3,
            "g": group,
            "x": np.minimum(chance.exponential(2, len(group)), 10),
            "k": chance.poisson(3, len(group)).clip(0, 15),
        }
    )
    schema: Schema = {"g": Categories(["a", "b", "c"]), "x": Bounded(0, 10), "k": Bounded(0, 15)}
    parts = (
        WeightedAggregation(Count()),
        WeightedAggregation(Mean(X)),
        WeightedAggregation(Moments((X,)), 3.0),
        WeightedAggregation(QuantileTree(Round(Column("k"), 0))),
    )
    view = ColumnsView(
        (
            NamedColumn("n", 0),
            NamedColumn("m", 1),
            NamedColumn("m count", 1, MeanCountView()),
            NamedColumn("sd", 2, MomentsView("std")),
            NamedColumn("median", 3, QuantilesView((0.5,), single=True)),
            NamedColumn("units", 4),
        )
    )
    by = table.groupby("g")
    truth = np.stack(
        [
            by.size(),
            by["x"].mean(),
            by.size(),
            by["x"].std(ddof=0),
            by["k"].quantile(0.5, interpolation="lower"),
            by["p"].nunique(),
        ],
        axis=1,
    ).astype(np.float64)
    plan = Plan(JointAggregation((*parts, WeightedAggregation(CountUnits()))), group_by=(column("g"),))
    return asked(plan, view, table, schema, PrivacyUnit("p", 3)), truth


@pytest.mark.parametrize("mu", [100.0, 3.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.01])
def test_groups_and_joint_statistics_are_covered(mu: float) -> None:
    question, truth = grouped()
    assert covered(question.estimates(mu, REPETITIONS, 5), truth).min() >= LEAST


def test_joint_statistics_that_are_a_fifth_too_narrow_are_caught() -> None:
    question, truth = grouped()
    shares = covered(question.estimates(1.0, REPETITIONS, 5, shrink=0.8), truth)
    assert (shares[:, [0, 1, 2, 5]] < 0.9).all()


# --- shares ----------------------------------------------------------------------------------------------------------


def shares_covered(question: Asked, truth: Array, mu: float) -> tuple[float, Array]:
    """Least coverage of a share, and mean widths; each repetition is an answer of its own, since groups share noise."""
    sigma = question.query.l2_sensitivity_squared**0.5 / mu
    sums = question.noisy(sigma, REPETITIONS, 7).reshape(REPETITIONS, *question.sums.shape)
    scale = np.full(len(truth), sigma)
    radius = np.full(len(truth), fixed_radius([sigma], alpha=ALPHA))
    found = [estimate(question.query, question.view, one, scale, radius, question.schema) for one in sums]
    low, high = (np.stack([getattr(one, name)[:, 0] for one in found]) for name in ("low", "high"))
    return float(((low <= truth) & (truth <= high)).mean(axis=0).min()), (high - low).mean(axis=0)


@pytest.mark.parametrize("mu", [1.0, 0.05, 0.01, 0.002])
def test_shares_are_covered(mu: float) -> None:
    sizes = np.array([20, 200, 900])
    table = pd.DataFrame({"g": np.repeat(["a", "b", "c"], sizes)})
    question = asked(Plan(Count(), group_by=(column("g"),)), Proportions(), table, {"g": Categories(["a", "b", "c"])})
    least, widths = shares_covered(question, sizes / sizes.sum(), mu)
    assert least >= LEAST
    if mu == 1.0:  # The control: a total taken for independent of its greatest group has 2.2 times the error.
        share = sizes[2] / sizes.sum()
        joint = 2 * 1.96 * np.sqrt((1 - share) ** 2 + 2 * share**2) / sizes.sum()
        assert widths[2] == pytest.approx(joint, rel=0.01)
        assert widths[2] < 0.8 * 2 * 1.96 * np.sqrt(1 + 3 * share**2) / sizes.sum()


@pytest.mark.parametrize(
    ("of_a", "of_b", "bounds"),
    [(-1.0, 3.0, Bounded(-5, 5)), (-1.0, -3.0, Bounded(-5, 0)), (1.0, 3.0, Bounded(0, 5))],
    ids=["of either sign", "negative", "positive"],
)
def test_shares_of_sums_are_covered(of_a: float, of_b: float, bounds: Bounded) -> None:
    """A group that lost has a negative share, and the others together more than all."""
    table = pd.DataFrame({"g": np.repeat(["a", "b"], 300), "x": np.repeat([of_a, of_b], 300)})
    schema: Schema = {"g": Categories(["a", "b"]), "x": bounds}
    question = asked(Plan(Sum(X), group_by=(column("g"),)), Proportions(), table, schema)
    truth = np.array([of_a, of_b]) / (of_a + of_b)
    assert shares_covered(question, truth, 10.0)[0] >= LEAST
