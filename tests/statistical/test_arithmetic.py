"""Arithmetic between answers covers: differences and ratios of answers of independent noise.

Nominal 95%; asked is 93%, since square-and-add is approximate.  For an interval that covers exactly 95%, less than 93%
of 5,000 draws has probability 2e-10, and there are some 600 such checks: 1e-7.  The control shrinks both operands by a
fifth.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import dpnb
from dpnb._plan.expressions.nodes import Column
from dpnb._plan.measurements import Count, Mean, Moments, MomentsView, PlainView, Sum
from dpnb._plan.plan import Plan
from dpnb.accounting.intervals import fixed_radius
from dpnb.mechanisms.randomness import NotPrivateSeededSource
from dpnb.mechanisms.selection import least_named, named
from dpnb.results.estimates import IntervalArrays
from dpnb.results.estimates.estimate import named_groups
from dpnb.results.observations import CombinedObservations
from dpnb.results.tables.table import Estimates
from dpnb.schema import Bounded
from statistical.analysts import Analysts, Mask
from statistical.noisy_sums import ALPHA, asked, covered

pytestmark = pytest.mark.statistical

REPETITIONS, LEAST = 5000, 0.93
ROWS = 200
X = Column("x")
Array = NDArray[np.float64]

# What is asked, of which constant column (for a deviation, half of it negative), and n * mu.
OPERANDS: dict[str, tuple[Count | Sum | Mean | Moments, float, float]] = {
    "count": (Count(), 1.0, 1000.0),
    "nearly drowned count": (Count(), 1.0, 2.0),
    "drowned count": (Count(), 1.0, 0.5),
    "sum": (Sum(X), -4.0, 1000.0),
    "drowned sum": (Sum(X), 3.0, 0.5),
    "mean": (Mean(X), 5.0, 3000.0),
    "mean near its bound": (Mean(X), 9.5, 100.0),
    "mean at its bound": (Mean(X), 10.0, 100.0),
    "rough mean at its bound": (Mean(X), 10.0, 12.0),
    "drowned mean": (Mean(X), 5.0, 1.0),
    "drowned mean at its bound": (Mean(X), 10.0, 1.0),
    "deviation": (Moments((X,)), 5.0, 3000.0),
    "nearly drowned deviation": (Moments((X,)), 1.0, 300.0),
    "drowned deviation": (Moments((X,)), 0.1, 100.0),
}


def figures(found: IntervalArrays, ledger: int) -> Estimates:
    """As if every repetition were another number of one answer."""
    return Estimates(
        description=f"answer {ledger}",
        names=(),
        keys=((),),
        outputs=("i", tuple(range(len(found.value)))),
        arrays=turned(found),
        confidence=0.95,
        measurement_ids=(frozenset({(ledger, 0)}),),
    )


def turned(found: IntervalArrays) -> IntervalArrays:
    value, low, high = (array.T for array in found.unclipped)
    return IntervalArrays(found.value.T, found.low.T, found.high.T, found.noise_scale.T, (value, low, high))


@cache
def operand(name: str, ledger: int, shrink: float = 1.0) -> tuple[Estimates, float]:
    """An answer, with noise of its own, and what is true."""
    aggregation, value, told = OPERANDS[name]
    spread = isinstance(aggregation, Moments)
    table = pd.DataFrame({"x": np.resize([value, -value if spread else value], ROWS)})
    view = MomentsView("std") if spread else PlainView()
    question = asked(Plan(aggregation), view, table, {"x": Bounded(-10, 10)})
    truth = {Count: ROWS, Sum: ROWS * value, Mean: value, Moments: value}[type(aggregation)]
    found = question.estimates(told / ROWS, REPETITIONS, ledger, shrink=shrink)
    return figures(found, ledger), float(truth)


def coverage(combine: Callable[[Estimates, Estimates], Estimates], one: str, other: str, shrink: float = 1.0) -> float:
    (a, true_a), (b, true_b) = operand(one, 1, shrink), operand(other, 2, shrink)
    return float(covered(turned(combine(a, b).arrays), np.array([[combine(true_a, true_b)]]))[0, 0])  # type: ignore[arg-type]


@pytest.mark.parametrize("combine", [operator.sub, operator.add, operator.truediv], ids=["-", "+", "/"])
@pytest.mark.parametrize("one", OPERANDS)
def test_arithmetic_covers(combine: Callable[[Estimates, Estimates], Estimates], one: str) -> None:
    told = {other: coverage(combine, one, other) for other in OPERANDS}
    assert not {other: share for other, share in told.items() if share < LEAST}


@pytest.mark.parametrize("combine", [operator.sub, operator.truediv], ids=["-", "/"])
def test_operands_that_are_a_fifth_too_narrow_are_caught(combine: Callable[[Estimates, Estimates], Estimates]) -> None:
    for one in ("count", "sum", "mean"):
        assert coverage(combine, one, "count", 0.8) < 0.9


def test_an_empty_groups_count_can_be_compared() -> None:
    """The count's interval is cut at 0, but its noise is not."""
    table = pd.DataFrame({"x": np.zeros(0)})
    question = asked(Plan(Count()), PlainView(), table, {"x": Bounded(-10, 10)})
    empty = figures(question.estimates(1.0, 20_000, 3), 3)
    full = figures(
        asked(Plan(Count()), PlainView(), pd.DataFrame({"x": np.ones(50)}), {"x": Bounded(-10, 10)}).estimates(
            1.0, 20_000, 4
        ),
        4,
    )
    # 20,000 draws at 95% give less than 94.2% with probability below 1e-6.
    assert covered(turned((empty - full).arrays), np.array([[-50.0]]))[0, 0] > 0.942
    assert covered(turned((full - empty).arrays), np.array([[50.0]]))[0, 0] > 0.942


PAIRS, IN_EACH = 2000, 400


@pytest.mark.parametrize("combine", [operator.sub, operator.truediv], ids=["-", "/"])
def test_arithmetic_covers_although_the_answers_were_refined_until_it_missed(
    combine: Callable[[Estimates, Estimates], Estimates],
) -> None:
    """2,000 analysts with two counts each refine the less mistaken one, until the difference or ratio misses.

    What is left is then mostly the error of the other one, which was good enough before.  Above 7.7% has probability
    below 1e-6 if 5% are missed.  The control has the intervals that one count alone would have at its first look.
    """
    half = PAIRS * IN_EACH
    names = tuple(range(PAIRS))
    table = pd.DataFrame({"i": np.tile(np.repeat(names, IN_EACH), 2), "side": np.repeat([0.0, 1.0], half)})
    session = dpnb.Session(
        table,
        name="pairs",
        budget=dpnb.Budget.gdp(1000),
        schema={"i": dpnb.Categories(list(names)), "side": dpnb.Bounded(0, 1)},
        ledger=":memory:",
        not_private_test_seed=21,
    )
    frame = session.frame
    answers = [frame[frame["side"] == side].groupby("i").count().release(mu=1) for side in (0, 1)]
    right = combine(1.0 * IN_EACH, 1.0 * IN_EACH)  # type: ignore[arg-type]

    def missed() -> Mask:
        found = combine(answers[0], answers[1]).arrays
        return np.asarray((found.low[:, 0] > right) | (found.high[:, 0] < right))

    assert missed().mean() < 0.065
    for mu in (8, 64):
        off = np.abs([(answer.arrays.value - IN_EACH)[:, 0] / answer.arrays.noise_scale[:, 0] for answer in answers])
        open_ = ~missed()
        for side, chosen in enumerate((open_ & (off[0] < off[1]), open_ & (off[0] >= off[1]))):
            answers[side] = answers[side].refine(mu=mu, groups=[(int(i),) for i in np.flatnonzero(chosen)])
    errors = [(answer.arrays.value - IN_EACH)[:, 0] for answer in answers]
    scales = [answer.arrays.noise_scale[:, 0] for answer in answers]
    assert np.mean(np.abs(errors[0] - errors[1]) > 1.96 * np.hypot(*scales)) > 0.077
    assert missed().mean() < 0.077


FIXED, SCALE = 3000, 50.0


def final_answer() -> tuple[IntervalArrays, float]:
    """Of a count of 1,000 that is never refined."""
    value = 1000 + np.random.default_rng(41).normal(0, SCALE, FIXED)
    reach = fixed_radius([SCALE], alpha=ALPHA)
    return IntervalArrays.of(value, value - reach, value + reach, np.full(FIXED, SCALE)), 1000.0


def discovered_group() -> tuple[IntervalArrays, float]:
    """Of groups of 264, half a standard deviation above the number from which they are named."""
    delta, source = Fraction(1, 10**6), NotPrivateSeededSource(42)
    _, found = named(np.full(2 * FIXED, 264), sigma=SCALE, groups=1, delta=delta, source=source)
    found = replace(found, values=found.values[:FIXED])
    return named_groups(found, least_named(SCALE, 1, delta, found.exponent), float(ALPHA)), 264.0


@pytest.mark.parametrize(
    ("fixed", "combine"),
    [  # a final answer's noise is as likely up as down, so its sum is its difference again
        pytest.param(final_answer, operator.sub, id="final answer-"),
        pytest.param(discovered_group, operator.sub, id="discovered group-"),
        pytest.param(discovered_group, operator.add, id="discovered group+"),
    ],
)
def test_arithmetic_covers_although_the_other_answer_was_refined_until_it_missed(
    fixed: Callable[[], tuple[IntervalArrays, float]], combine: Callable[[Estimates, Estimates], Estimates]
) -> None:
    """3,000 analysts with an answer that cannot be refined refine a count of 1,500 until what they compute misses.

    That is not proved, and not quite true: about 6% are missed.  More than 8.5% has probability below 1e-6 if it is
    6.2%.
    The control has the interval of one fixed look.
    """
    cells, true = fixed()
    first = replace(figures(cells, 1), anytime_arrays=turned(cells))
    right = combine(true, 1500.0)  # type: ignore[arg-type]

    def missed(known: CombinedObservations, *, control: bool) -> Mask:
        values, scales = known.combined

        def read(radius: Array) -> IntervalArrays:
            value = values[:, 0]
            return turned(IntervalArrays.of(value, value - radius, value + radius, scales))

        plain = read(fixed_radius([1.0], alpha=ALPHA) * scales)
        now, always = (plain, plain) if control else (read(known.radius(ALPHA)), read(known.anytime_radius(ALPHA)))
        second = replace(figures(cells, 2), arrays=now, anytime_arrays=always, is_refined=len(known.observations) > 1)
        found = combine(first, second).arrays
        return np.asarray((found.low[0] > right) | (found.high[0] < right))

    def share(control: bool) -> float:
        analysts = Analysts(np.full((FIXED, 1), 1500.0), 43, SCALE)
        analysts.until(lambda known: missed(known, control=control))
        return float(missed(analysts.known, control=control).mean())

    assert share(control=False) < 0.085 < share(control=True)
