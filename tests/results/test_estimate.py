"""Noisy sums become estimates and intervals, and their errors can be foretold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from dpnb._compile.features import TreeFeature
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
from dpnb.accounting.intervals import fixed_radius
from dpnb.results.estimates import IntervalArrays, estimate
from dpnb.results.estimates.expected import half_widths, in_rank
from dpnb.results.estimates.quantiles import rank_scale
from dpnb.schema import Bounded, Categories, Schema
from statistical.noisy_sums import ALPHA, Asked, asked

X, Y = Column("x"), Column("y")
SCHEMA: Schema = {"x": Bounded(-2, 6), "y": Bounded(0, 5), "g": Categories(["a", "b", "c"])}
CHANCE = np.random.default_rng(3)
TABLE = pd.DataFrame(
    {"x": CHANCE.uniform(-2, 6, 600), "y": CHANCE.uniform(0, 5, 600), "g": CHANCE.choice(["a", "b"], 600)}
)
PAIR = Plan(Moments((X, Y)))
FITTED = np.linalg.lstsq(np.stack([np.ones(600), TABLE["x"]], axis=1), TABLE["y"], rcond=None)[0]
JOINT = Plan(
    JointAggregation(
        (WeightedAggregation(Count()), WeightedAggregation(Mean(X), 2.0), WeightedAggregation(Moments((Y,))))
    ),
    group_by=(column("g"),),
)
JOINT_VIEW = ColumnsView(
    (
        NamedColumn("n", 0),
        NamedColumn("m", 1),
        NamedColumn("rows", 1, MeanCountView()),
        NamedColumn("v", 2, MomentsView("var")),
    )
)


def ask(plan: Plan, view: AnyView = PlainView()) -> Asked:  # noqa: B008  (a frozen value)
    return asked(plan, view, TABLE, SCHEMA)


def shaped(question: Asked, sums: NDArray[np.float64], sigma: float) -> IntervalArrays:
    radius = fixed_radius([sigma], alpha=ALPHA)
    cells = np.ones(len(sums))
    return estimate(question.query, question.view, sums, sigma * cells, radius * cells, SCHEMA)


@pytest.mark.parametrize(
    ("plan", "view", "truth"),
    [
        (Plan(Count()), PlainView(), [600]),
        (Plan(CountUnits()), PlainView(), [600]),
        (Plan(Sum(X)), PlainView(), [TABLE["x"].sum()]),
        (Plan(Mean(X)), PlainView(), [TABLE["x"].mean()]),
        (Plan(Mean(X)), MeanCountView(), [600]),
        (Plan(Ratio(X, Y)), PlainView(), [TABLE["x"].sum() / TABLE["y"].sum()]),
        (Plan(Moments((X,))), MomentsView("count"), [600]),
        (Plan(Moments((X,))), MomentsView("mean"), [TABLE["x"].mean()]),
        (Plan(Moments((X,))), MomentsView("var"), [TABLE["x"].var(ddof=0)]),
        (Plan(Moments((X,))), MomentsView("std"), [TABLE["x"].std(ddof=0)]),
        (PAIR, MomentsView("cov", (0, 1)), [TABLE["x"].cov(TABLE["y"], ddof=0)]),
        (Plan(Moments((X,))), MomentsView("var", ddof=1), [TABLE["x"].var()]),
        (Plan(Moments((X,))), MomentsView("std", ddof=1), [TABLE["x"].std()]),
        (PAIR, MomentsView("cov", (0, 1), ddof=1), [TABLE["x"].cov(TABLE["y"])]),
        (PAIR, MomentsView("corr", (0, 1)), [TABLE["x"].corr(TABLE["y"])]),
        (PAIR, MomentsView("regression", (1, 0)), FITTED),
        (Plan(QuantileTree(Round(X, 0))), QuantilesView((0.5, 0.9)), TABLE["x"].round().quantile([0.5, 0.9])),
    ],
)
def test_with_hardly_any_noise_estimates_are_exact(plan: Plan, view: AnyView, truth: list[float]) -> None:
    question = ask(plan, view)
    result = shaped(question, question.sums, question.query.l2_sensitivity_squared**0.5 * 1e-7)
    assert result.value == pytest.approx(np.array([truth]), rel=1e-6)
    assert (result.low <= result.value).all()
    assert (result.value <= result.high).all()


def test_the_interval_of_a_mean_is_fiellers() -> None:
    """Every place whose deviation is within the radius is in the interval, and no other: scanned."""
    question = ask(Plan(Mean(X)))
    count, total = (float(1 / feature.unit) for feature in question.query.features)
    rows, shift, sigma = 40.0, 11.0 * 4, 2.0 * count
    result = shaped(question, np.array([[rows * count, shift * total]]), sigma)
    places = np.linspace(-4, 4, 400_001)
    z = fixed_radius([1.0], alpha=ALPHA)
    spread = np.hypot(sigma / total, places * sigma / count)
    inside = places[np.abs(shift - places * rows) <= z * spread]
    assert result.low[0, 0] == pytest.approx(2 + inside.min(), abs=1e-4)
    assert result.high[0, 0] == pytest.approx(2 + inside.max(), abs=1e-4)


def test_a_group_that_may_be_empty_says_nothing() -> None:
    """The third category has no row; its noise is all that its sums are."""
    question = ask(Plan(Mean(X), group_by=(column("g"),)))
    sigma = question.query.l2_sensitivity_squared**0.5 / 0.5
    noisy = question.sums + np.array([[0.0, 0.0], [0.0, 0.0], [-sigma, sigma]])
    result = shaped(question, noisy, sigma)
    assert (result.low[2, 0], result.high[2, 0]) == (-2, 6)
    assert np.isnan([result.value[2, 0], result.noise_scale[2, 0]]).all()
    assert (result.half_width[:2] < 1).all()


def test_a_deviation_of_which_nothing_can_be_told_has_no_limit_before_it_is_cut() -> None:
    question = ask(Plan(Moments((X,))), MomentsView("std"))
    result = shaped(question, np.zeros_like(question.sums), 10.0)
    assert (result.low[0, 0], result.high[0, 0]) == (0, 4)
    assert result.unclipped[2][0, 0] == np.inf


def test_a_count_is_never_below_zero_in_its_interval() -> None:
    result = shaped(ask(Plan(Count())), np.array([[-50.0]]), 10.0)
    assert (result.value[0, 0], result.low[0, 0], result.high[0, 0]) == (-50, 0, 0)


# --- errors foretold -------------------------------------------------------------------------------------------------


def foretold(
    question: Asked, sigma: float, *, known: NDArray[np.float64] | None = None, rows: object = None
) -> NDArray[np.float64] | None:
    cells = np.ones(question.query.cells)
    radius = fixed_radius([sigma], alpha=ALPHA)
    return half_widths(
        question.query,
        question.view,
        sigma * cells,
        radius * cells,
        SCHEMA,
        known=known,
        rows=None if rows is None else np.asarray(rows, np.float64),
    )


@pytest.mark.parametrize(
    ("plan", "view"),
    [
        (Plan(Count()), PlainView()),
        (Plan(CountUnits()), PlainView()),
        (Plan(Sum(X)), PlainView()),
        (Plan(Sum(X), group_by=(column("g"),)), PlainView()),
        (Plan(Mean(X)), MeanCountView()),
        (Plan(Moments((X,))), MomentsView("count")),
    ],
)
@pytest.mark.parametrize("mu", [10.0, 1.0])
def test_the_error_that_was_foretold_of_a_sum_is_the_error_that_comes(plan: Plan, view: AnyView, mu: float) -> None:
    question = ask(plan, view)
    sigma = question.query.l2_sensitivity_squared**0.5 / mu
    sums = question.sums + 100 * sigma
    expected = foretold(question, sigma)
    assert expected is not None
    assert shaped(question, sums, sigma).half_width == pytest.approx(expected)


@pytest.mark.parametrize("value", [-2.0, 0.0, 2.0, 5.0, 6.0])
@pytest.mark.parametrize(
    ("plan", "view"),
    [
        (Plan(Mean(X)), PlainView()),
        (Plan(Moments((X,))), MomentsView("mean")),
        (Plan(Moments((X,))), MomentsView("var")),
    ],
)
def test_the_error_foretold_of_a_mean_or_variance_is_not_too_small(plan: Plan, view: AnyView, value: float) -> None:
    """At the true count, whatever the column holds: half its rows at `value`, half at the upper bound."""
    table = pd.DataFrame({"x": np.repeat([value, 6.0], 2500), "y": 0.0, "g": "a"})
    question = asked(plan, view, table, SCHEMA)
    for mu in (10.0, 0.5, 0.1):
        sigma = question.query.l2_sensitivity_squared**0.5 / mu
        expected = foretold(question, sigma, rows=[5000])
        assert expected is not None
        assert shaped(question, question.sums, sigma).half_width[0, 0] <= expected[0, 0] * 1.001
        assert foretold(question, sigma) is None


@pytest.mark.parametrize("sizes", [(300, 300, 0), (598, 1, 1), (200, 200, 200)])
def test_the_error_foretold_of_shares_is_not_too_small(sizes: tuple[int, ...]) -> None:
    table = pd.DataFrame({"g": np.repeat(["a", "b", "c"], sizes), "x": 0.0, "y": 0.0})
    question = asked(Plan(Count(), group_by=(column("g"),)), Proportions(), table, SCHEMA)
    for mu in (10.0, 0.2):
        expected = foretold(question, 1 / mu, rows=sizes)
        assert expected is not None
        assert (shaped(question, question.sums, 1 / mu).half_width <= expected * 1.001).all()
        assert foretold(question, 1 / mu) is None


def test_the_error_of_a_quantile_is_foretold_in_rank() -> None:
    question = ask(Plan(QuantileTree(X)), QuantilesView((0.0, 0.5)))
    feature = question.query.features[0]
    assert isinstance(feature, TreeFeature)
    radius = fixed_radius([3.0], alpha=ALPHA)
    assert foretold(question, 3.0) == pytest.approx(np.array([[radius * rank_scale(feature, q) for q in (0.0, 0.5)]]))
    assert in_rank(question.view)
    assert not in_rank(PlainView())


def test_what_hangs_on_the_answer_is_foretold_at_what_is_known() -> None:
    question = ask(PAIR, MomentsView("corr", (0, 1)))
    sigma = question.query.l2_sensitivity_squared**0.5 / 5
    assert foretold(question, sigma) is None
    expected = foretold(question, sigma, known=question.sums)
    assert expected == pytest.approx(shaped(question, question.sums, sigma).half_width)


def test_each_statistic_of_a_joint_question_has_its_own_error() -> None:
    question = ask(JOINT, JOINT_VIEW)
    sigma = question.query.l2_sensitivity_squared**0.5 / 20
    rows = np.array([300.0, 300.0, 300.0])
    expected = foretold(question, sigma, rows=rows)
    assert expected is not None
    assert expected.shape == (3, 4)
    result = shaped(question, question.sums, sigma).half_width
    assert result[:2, [0, 2]] == pytest.approx(expected[:2, [0, 2]])
    assert (result[:2, [1, 3]] <= expected[:2, [1, 3]] * 1.1).all()
    known = foretold(question, sigma, known=question.sums)
    assert known is not None
    assert known[:2] == pytest.approx(result[:2])
    without_rows = foretold(question, sigma)
    assert without_rows is not None
    assert without_rows[:, [0, 2]] == pytest.approx(expected[:, [0, 2]])
    assert np.isinf(without_rows[:, [1, 3]]).all()  # unknown
