"""`within=`: the interval that comes is not wider than asked, and a smaller budget would not have reached it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._compile import linear_query
from dpnb._plan.expressions.nodes import Column
from dpnb._plan.measurements import Mean, MomentsView, PlainView
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.accounting.losses import GDP
from dpnb.errors import ErrorEstimateUnavailable, RequestError
from dpnb.results.answer import Answer
from dpnb.results.estimates.expected import half_widths
from dpnb.schema import Bounded, Schema

ROWS = 6000
LESS = Fraction(99, 100)

Ask = Callable[[Any], Any]


def table() -> pd.DataFrame:
    chance = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "p": np.arange(ROWS) // 3,
            "x": chance.gamma(2, 10, ROWS).clip(0, 100),
            "y": chance.normal(0, 1, ROWS),
            "g": chance.choice(["a", "b", "c"], ROWS, p=[0.6, 0.3, 0.1]),
        }
    )


def session(**changes: Any) -> dpnb.Session:
    arguments: dict[str, Any] = {
        "name": "within",
        "privacy_unit": "p",
        "max_rows_per_unit": 3,
        "budget": dpnb.Budget.gdp(1000),
        "schema": {"x": dpnb.Bounded(0, 100), "y": dpnb.Bounded(-10, 30), "g": dpnb.Categories(["a", "b", "c"])},
        "ledger": ":memory:",
        "not_private_test_seed": 3,
    }
    return dpnb.Session(table(), **{**arguments, **changes})


def widest(answer: Answer) -> float:
    return float(answer.arrays.half_width.max())


LINEAR: dict[str, tuple[Ask, float]] = {
    "count": (lambda f: f.count(), 40.0),
    "units": (lambda f: f.groupby("g").count_units(), 25.0),
    "sum": (lambda f: f["x"].sum(), 3000.0),
    "sum of either sign": (lambda f: f["y"].sum(), 500.0),
    "groups": (lambda f: f.groupby("g").count(), 30.0),
    "groups of sums": (lambda f: f[f["y"] > 0].groupby("g")["x"].sum(), 2500.0),
    "histogram": (lambda f: f.groupby(dpnb.cut(f["x"], [-1, 10, 20, 100])).count(), 50.0),
}
ARGUMENTS: list[dict[str, Any]] = [{}, {"final": True}, {"confidence": 0.99}, {"simultaneous": True}]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
@pytest.mark.parametrize("name", LINEAR)
def test_the_interval_that_comes_is_as_asked_and_no_budget_is_wasted(name: str, arguments: dict[str, Any]) -> None:
    ask, within = LINEAR[name]
    query = ask(session().frame)
    preview = query.preview(within=within, **arguments)
    answer = query.release(within=within, **arguments)
    assert within * (1 - 1e-6) <= widest(answer) <= within
    assert preview.half_widths == pytest.approx(answer.arrays.half_width, rel=1e-9)
    assert preview.cost == answer.cost
    cheaper = ask(session().frame).release(mu=Fraction(answer.cost.mu) * LESS, **arguments)
    assert widest(cheaper) > within


@pytest.mark.parametrize("name", LINEAR)
def test_a_refined_interval_is_as_asked_and_no_budget_is_wasted(name: str) -> None:
    """A refined interval is cut down to the first look's, so it may be narrower than foretold, never wider."""
    ask, within = LINEAR[name]
    query = ask(session().frame)
    first = query.release(within=2 * within)
    preview = query.preview(within=within)
    assert within * (1 - 1e-6) <= float(preview.half_widths.max()) <= within
    cheaper = query.preview(mu=Fraction(preview.total_loss.mu) * LESS)
    assert float(cheaper.half_widths.max()) > within
    answer = first.refine(within=within)
    assert answer.cost == preview.cost
    assert (answer.arrays.half_width <= preview.half_widths * (1 + 1e-9)).all()
    assert (answer.arrays.low >= first.arrays.low).all()
    assert (answer.arrays.high <= first.arrays.high).all()


def test_some_groups_are_refined_to_what_was_asked_of_them() -> None:
    query = session().frame.groupby("g").count()
    first = query.release(within=60)
    answer = first.refine(within=20, groups=["b"])
    was, now = first.arrays.half_width[:, 0], answer.arrays.half_width[:, 0]
    assert now[1] <= 20
    assert now[[0, 2]].tolist() == was[[0, 2]].tolist()


def test_each_group_and_statistic_may_have_its_own_error() -> None:
    frame = session().frame
    frame.groupby("g").count().release(within={"a": 60, "b": 20})
    counts = frame.groupby("g").count().best.arrays.half_width[:, 0]
    assert counts.max() <= 20
    joint = frame.groupby("g").agg(n="count", s=("x", "sum"))
    answer = joint.release(within={"n": 50, "s": 40_000})
    assert (answer.arrays.half_width <= [50, 40_000]).all()
    fresh = session().frame.groupby("g").agg(n="count", s=("x", "sum"))
    assert float(fresh.preview(mu=Fraction(answer.total_loss.mu) * LESS).half_widths[:, 0].max()) > 50


@pytest.mark.parametrize("at", [0.0, 0.5, 0.95])
def test_a_quantile_is_as_near_in_rank_as_asked(at: float) -> None:
    """The half-width in rank, told before, is as asked, and the quantile that comes is about as near."""
    within = 150.0
    made = session()
    query = made.frame["x"].quantile(at)
    answer = query.release(within=within)
    at_this = made.frame["x"].quantile(at).preview(mu=answer.total_loss.mu)
    assert at_this.half_widths is not None
    assert at_this.error_unit == "rows of rank"
    assert within * (1 - 1e-6) <= float(at_this.half_widths.max()) <= within
    cheaper = session().frame["x"].quantile(at).preview(mu=Fraction(answer.total_loss.mu) * LESS)
    assert float(cheaper.half_widths.max()) > within
    rank = float((table()["x"] < float(answer)).sum())
    assert abs(rank - at * ROWS) <= 3 * within
    low, high = answer.interval  # one draw misses with probability 1%, and by its whole length never
    assert 2 * low - high <= table()["x"].quantile(at) <= 2 * high - low


NEEDS_COUNT: dict[str, tuple[Ask, float]] = {
    "mean": (lambda f: f["x"].mean(), 1.0),
    "means": (lambda f: f.groupby("g")["x"].mean(), 5.0),
}


@pytest.mark.parametrize("name", NEEDS_COUNT)
def test_a_mean_is_about_as_near_as_asked_given_the_count(name: str) -> None:
    """A released count stands for the true one; where the mean lies makes a factor of 1.19 either way."""
    ask, within = NEEDS_COUNT[name]
    made = session()
    query = ask(made.frame)
    with pytest.raises(ErrorEstimateUnavailable, match="count"):
        query.preview(within=within)
    (made.frame.groupby("g") if name == "means" else made.frame).count().release(mu=100)
    preview = query.preview(within=within)
    answer = query.release(within=within)
    assert float(preview.half_widths.max()) == pytest.approx(within, rel=1e-6)
    assert within / 1.2 <= widest(answer) <= within * 1.2


LOOKED_AT: dict[str, tuple[Ask, Any]] = {
    "mean": (lambda f: f["x"].mean(), 1.0),
    "var": (lambda f: f["x"].var(), 50.0),
    "std": (lambda f: f["x"].std(), 1.0),
    "ratio": (lambda f: f["x"].ratio(f["x"] + 10), 0.01),
    "regress": (lambda f: f.regress("x", on="y"), {"y": 1.0}),
}


@pytest.mark.parametrize("name", LOOKED_AT)
def test_after_a_look_a_target_is_met_by_what_the_look_told(name: str) -> None:
    ask, within = LOOKED_AT[name]
    made = session(budget=dpnb.Budget.gdp(10**5))
    query = ask(made.frame)
    with pytest.raises(ErrorEstimateUnavailable, match=r"release the count of|choose the budget instead"):
        query.preview(within=within)
    first = query.release(mu=300 if name == "regress" else 30)
    column = -1 if name == "regress" else 0
    wanted = first.arrays.half_width[0, column] / 3
    target = {"y": wanted} if name == "regress" else wanted
    assert query.preview(within=target).half_widths[0, column] == pytest.approx(wanted, rel=1e-6)
    answer = query.release(within=target)
    assert wanted / 1.4 <= answer.arrays.half_width[0, column] <= wanted * 1.1  # it lies within the first look's


@pytest.mark.parametrize("name", ["var", "std", "ratio", "regress"])
def test_a_look_that_is_mostly_noise_is_refused_as_a_ground_for_a_target(name: str) -> None:
    ask, within = LOOKED_AT[name]
    made = session()
    query = ask(made.frame)
    query.release(mu="0.02")
    with pytest.raises(ErrorEstimateUnavailable, match="are not yet precise enough"):
        query.release(within=within)
    assert made.spent == GDP("0.02")


def test_what_is_known_well_enough_costs_nothing() -> None:
    made = session()
    query = made.frame.count()
    first = query.release(within=20)
    assert query.preview(within=25).cost == GDP(0)
    assert query.release(within=25).arrays.half_width == first.arrays.half_width
    assert made.spent == first.cost


@pytest.mark.parametrize("within", [1e-6, 1e9])
def test_a_target_far_from_any_noise_is_met_too(within: float) -> None:
    preview = session(budget=dpnb.Budget.gdp(10**12)).frame.count().preview(within=within)
    assert float(preview.half_widths.max()) == pytest.approx(within, rel=1e-6)
    assert preview.cost.mu == pytest.approx(3 * 2.0537489 / within, rel=1e-6)
    assert math.isfinite(preview.cost_fraction)


@pytest.mark.parametrize("within", [0.004, 0.001])
def test_a_share_refined_in_one_group_still_has_the_noise_of_all_others(within: float) -> None:
    """A share depends on all groups: what is foretold of one is not less than what comes, however well it is known."""
    values = list("abcdefgh")
    rows = pd.DataFrame({"g": np.repeat(values, [3000, *[500] * 7])})
    made = dpnb.Session(
        rows,
        name="shares",
        budget=dpnb.Budget.gdp(1000),
        schema={"g": dpnb.Categories(values)},
        ledger=":memory:",
        not_private_test_seed=1,
    )
    query = made.frame["g"].value_counts(normalize=True)
    first = query.release(mu="0.1")
    assert (query.preview(mu="0.1").half_widths >= 0.97 * first.arrays.half_width).all()
    try:
        answer = query.release(within=within, groups=["a"])
    except RequestError:
        return  # to say that it cannot be reached is right too
    assert answer.cells.half_width[0, 0] <= 1.03 * within


def test_the_preview_of_a_quantile_states_the_width_of_a_leaf() -> None:
    frame = session().frame
    said = repr(frame["x"].median().preview(mu=1))
    assert "rows of rank at 95% (noise), and up to the width of a bin in value (at most 1.6% of the value)" in said
    columns = repr(frame.groupby("g").agg(n="count", middle=("y", "median")).preview(mu=1))
    assert re.search(r"middle ± [\d,.]+ rows of rank at 95% \(noise\), and up to the width of a bin in value", columns)
    assert "leaf" not in repr(frame["x"].sum().preview(mu=1))


def test_what_can_be_forecast_is_forecast_beside_what_cannot() -> None:
    """Of a description the count and the ranks are known beforehand, and an error in them can be asked for."""
    made = session()
    described = made.frame["x"].describe()
    said = described.preview(mu=1)
    assert said.half_widths is not None
    known = dict(zip(said.outputs[1], np.isfinite(said.half_widths[0]).tolist(), strict=True))  # type: ignore[index]
    unknown = {"mean", "std"}
    assert {name for name, is_known in known.items() if not is_known} == unknown
    assert re.search(r"std +unknown", repr(said))
    spent = made.spent
    for name in unknown:
        with pytest.raises(ErrorEstimateUnavailable):
            described.release(within={name: 1})
    assert made.spent == spent
    answer = described.release(within={"50%": 200, "count": 100})
    assert answer.arrays.half_width[0, 0] <= 100
    again = described.preview(mu=2 * answer.total_loss.mu)
    assert np.isfinite(again.half_widths).all()  # from the sums that were released


def test_a_view_of_a_mean_without_a_forecast_of_its_own_is_not_taken_for_the_mean() -> None:
    """Its forecast is unknown before it is released, as of any view that is not named."""
    ones = np.ones(1)
    schema: Schema = {"x": Bounded(0, 10)}
    query = linear_query(Plan(Mean(Column("x"))), schema, PrivacyUnit())
    rows = np.full(1, 100.0)
    assert half_widths(query, PlainView(), ones, ones, schema, rows=rows) is not None
    assert half_widths(query, MomentsView("std"), ones, ones, schema, rows=rows) is None
