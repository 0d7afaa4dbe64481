"""Intervals hold although the analyst decides from the answers what to refine and when to stop.

Seeds are fixed; each test states its false-alarm rate and holds a control that must fail.  The analysts here know the
truth, which is the worst stopping rule there is: they go on until an interval misses it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import dpnb
from dpnb._plan.expressions.nodes import Column
from dpnb._plan.measurements import Mean, PlainView
from dpnb._plan.plan import Plan
from dpnb.accounting.intervals import fixed_radius
from dpnb.errors import RequestError
from dpnb.results.estimates import estimate
from dpnb.results.observations import CombinedObservations
from dpnb.schema import Bounded, Schema
from statistical.analysts import LOOKS, Analysts, Mask, missed, missed_by_fixed_design
from statistical.noisy_sums import ALPHA, Asked, asked

pytestmark = pytest.mark.statistical

Array = NDArray[np.float64]


# --- one number, and one group among many ----------------------------------------------------------------------------


def test_refining_until_the_truth_is_missed_does_not_break_the_interval() -> None:
    """4,000 analysts; above 6.7% has probability below 1e-6 if 5% are missed.  The fixed-design interval is caught."""
    truth = np.full((4000, 1), 300.0)
    ours, control = Analysts(truth, 5), Analysts(truth, 5)
    ours.until(missed(truth))
    control.until(missed_by_fixed_design(truth))
    assert missed(truth)(ours.known).mean() < 0.067
    assert missed_by_fixed_design(truth)(control.known).mean() > 0.15


def test_the_first_look_alone_misses_four_fifths_of_the_error() -> None:
    """Within 1.2% of 4% of 10,000: 6 standard errors.  Nothing is kept for later looks at level 5%, which is caught."""
    truth = np.full((10_000, 1), 300.0)
    ours = Analysts(truth, 6)
    assert missed(truth)(ours.known).mean() == pytest.approx(0.04, abs=0.0095)
    values, scales = ours.known.combined
    assert np.mean(np.abs(values - truth)[:, 0] > fixed_radius([1.0], alpha=ALPHA) * scales) > 0.0495


def test_a_final_look_has_the_full_level() -> None:
    """Within 1.1% of 5% of 20,000: 7 standard errors.  A first look that may be refined misses 4%, and is caught."""
    truth = np.full((20_000, 1), 300.0)
    final, refined = Analysts(truth, 7, final=True), Analysts(truth, 7)
    assert final.known.radius(ALPHA)[0] == fixed_radius([1.0], alpha=ALPHA) < refined.known.radius(ALPHA)[0]
    share = missed(truth)(final.known).mean()
    assert share == pytest.approx(0.05, abs=0.011)
    assert missed(truth)(refined.known).mean() < share - 0.005


GROUPS, TABLES = 8, 400


def most_deviating_refined(alpha: Fraction) -> CombinedObservations:
    """Eight groups a table; only the two that are furthest off, of those not yet missed, are refined."""
    truth = np.full((TABLES * GROUPS, 1), 50.0)
    analysts = Analysts(truth, 9)

    def stopped(known: CombinedObservations) -> Mask:
        values, scales = known.combined
        off = (np.abs(values - truth)[:, 0] / scales).reshape(TABLES, GROUPS)
        off[missed(truth, alpha)(known).reshape(TABLES, GROUPS)] = -1
        second = np.sort(off, axis=1)[:, -2:-1]
        return np.asarray((off < second) | (off < 0)).ravel()

    analysts.until(stopped)
    return analysts.known


def test_groups_chosen_for_their_deviation_keep_their_intervals() -> None:
    """3,200 groups; above 7% has probability below 1e-6 if 5% are missed.  The fixed-design interval is caught."""
    known = most_deviating_refined(ALPHA)
    truth = np.full((TABLES * GROUPS, 1), 50.0)
    assert missed(truth)(known).mean() < 0.07
    assert len(known.observations) == LOOKS
    control = Analysts(truth, 9)
    control.until(missed_by_fixed_design(truth))
    assert missed_by_fixed_design(truth)(control.known).mean() > 0.15


def test_simultaneous_intervals_hold_for_all_groups_at_once() -> None:
    """400 tables of 8 groups; above 11% has probability below 1e-6 if 5% have a miss.

    Intervals that hold separately have one in far more of the tables, which is the control.
    """
    truth = np.full((TABLES * GROUPS, 1), 50.0)
    known = most_deviating_refined(ALPHA / GROUPS)
    at_once = missed(truth, ALPHA / GROUPS)(known).reshape(TABLES, GROUPS).any(axis=1)
    assert at_once.mean() < 0.11
    each = missed(truth)(most_deviating_refined(ALPHA)).reshape(TABLES, GROUPS).any(axis=1)
    assert each.mean() > 0.15


# --- what is not linear ----------------------------------------------------------------------------------------------


def mean_question() -> Asked:
    table = pd.DataFrame({"x": np.full(300, 9.5)})
    schema: Schema = {"x": Bounded(0, 10)}
    return asked(Plan(Mean(Column("x"))), PlainView(), table, schema)


@pytest.mark.parametrize("rows_over_noise", [150.0, 3.0], ids=["told", "nearly drowned"])
def test_a_mean_that_is_refined_until_it_is_missed_keeps_its_interval(rows_over_noise: float) -> None:
    """3,000 analysts; above 7% has probability below 1e-6 if 5% are missed.  The fixed-design interval is caught."""
    question, analysts = mean_question(), 3000
    sigma = float(question.query.l2_sensitivity_squared**0.5 * 300 / rows_over_noise)
    truth = np.repeat(question.sums, analysts, axis=0)

    def told(known: CombinedObservations, radius: Array) -> Mask:
        sums, scales = known.combined
        found = estimate(question.query, question.view, sums, scales, radius, question.schema)
        return np.asarray((found.low[:, 0] > 9.5 + 1e-6) | (found.high[:, 0] < 9.5 - 1e-6))

    def misses(known: CombinedObservations) -> Mask:
        return told(known, known.radius(ALPHA))

    def misses_by_fixed_design(known: CombinedObservations) -> Mask:
        return told(known, fixed_radius([1.0], alpha=ALPHA) * known.combined[1])

    ours, control = Analysts(truth, 11, sigma), Analysts(truth, 11, sigma)
    ours.until(misses)
    control.until(misses_by_fixed_design)
    assert misses(ours.known).mean() < 0.07
    assert misses_by_fixed_design(control.known).mean() > 0.12


def test_shares_are_not_told_after_some_groups_were_refined_by_themselves() -> None:
    """An analyst who stops at each group at will can bring the total as far off as they like: 82% missed once."""
    session = dpnb.Session(
        pd.DataFrame({"g": ["a", "a", "b", "c"] * 50}),
        name="shares",
        budget=dpnb.Budget.gdp(1000),
        schema={"g": dpnb.Categories(["a", "b", "c"])},
        ledger=":memory:",
    )
    counts = session.frame.groupby("g").count()
    answer = counts.release(mu=1)
    assert answer.proportions().estimate.sum() == pytest.approx(1)  # type: ignore[union-attr]
    apart = answer.refine(mu=2, groups=["a"])
    spent = session.spent
    for ask in (
        lambda: apart.proportions(),
        lambda: session.frame["g"].value_counts(normalize=True).release(mu=3),
        lambda: session.frame["g"].value_counts(normalize=True).preview(mu=3),
    ):
        with pytest.raises(RequestError, match="refined separately"):
            ask()
    assert session.spent == spent
