"""The tracker of one unit: the recursion of the paper, its bound, what it is worth, and that it shows nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpnb.accounting import GDP, RDPAccumulator, RenyiTracker
from dpnb.accounting.conversions import delta_from_mu
from dpnb.accounting.individual import IndividualFilter, UnitTracker
from dpnb.errors import InvalidValueError
from rationals import fractions

charges = st.lists(fractions(0, "1/4", max_denominator=200), max_size=20)


def after(charged: list[Fraction], increments: int = 20) -> UnitTracker:
    tracker = UnitTracker(1, increments)
    for charge in charged:
        tracker = tracker.step(charge)
    return tracker


@given(charged=charges, increments=st.integers(1, 4))
def test_it_is_algorithm_5_where_no_charge_exceeds_an_increment(charged: list[Fraction], increments: int) -> None:
    reading = increment = Fraction(1, increments)
    block = Fraction(0)
    for charge in charged:
        if block + charge <= increment:
            block += charge
        else:
            reading, block = reading + increment, charge
    assert after(charged, increments).bound == reading


@given(charged=charges, increments=st.integers(1, 40))
def test_the_bound_is_whole_increments_never_below_the_sum_nor_far_above_it(
    charged: list[Fraction], increments: int
) -> None:
    tracker, total = after(charged, increments), sum(charged, Fraction(0))
    number = tracker.bound / tracker.increment
    assert number.denominator == 1
    assert total <= tracker.bound <= 2 * total + tracker.increment
    bounds = [after(charged[:n], increments).bound for n in range(len(charged) + 1)]
    assert bounds == sorted(bounds)
    assert bounds[0] == tracker.increment


@given(charged=charges, order=fractions("11/10", 64, max_denominator=50))
def test_one_tracker_serves_every_order(charged: list[Fraction], order: Fraction) -> None:
    """With increments in proportion to the order, the paper's tracker of any order has the same blocks."""
    tracker, other = after(charged), RenyiTracker(order, order / 2 / 20)
    plain = RDPAccumulator(order)
    for charge in charged:
        other, plain = other.step(GDP.from_mu_squared(charge)), plain.step(GDP.from_mu_squared(charge))
    assert tracker.bound == Fraction(other.blocks, 20)
    assert plain.rho <= order * tracker.bound / 2


def test_what_the_filter_of_the_unit_admits_is_what_the_tracker_counts() -> None:
    """An excluded unit loses nothing; under "clip" it loses what was left."""
    for mode, expected in (("skip", Fraction(3, 5)), ("clip", Fraction(1))):
        state, tracker = IndividualFilter(1, 1, mode), UnitTracker(1)  # type: ignore[arg-type]
        for loss in (0.5, 0.75, 0.0625):
            before = Fraction(float(state.spent[0]))
            state = state.step_clipped([loss])[0] if mode == "clip" else state.step([loss])[0]
            tracker = tracker.step(Fraction(float(state.spent[0])) - before)
        assert tracker.bound == expected


# --- what it is worth -------------------------------------------------------------------------------------------------

LIMIT = Fraction(1, 2)
"""The d that was fixed beforehand, as mu squared."""


def _first_then(second: Callable[[float], Fraction], step: Callable[[UnitTracker, Fraction], UnitTracker]) -> Any:
    """Delta of the answers before the cut, for the tables with and without a unit, at an epsilon.

    The unit moves the first answer by mu with mu^2 = 0.04, and the second by what the analyst chose because of it; the
    answers are cut where the tracker's bound would exceed LIMIT.
    """
    charge = Fraction(4, 100)
    z = np.linspace(-9, 9, 4001)
    x = float(charge) / 2 + math.sqrt(charge) * z
    weight = stats.norm.pdf(z) * (z[1] - z[0])
    chosen = [second(float(one)) for one in x]
    start = step(UnitTracker(LIMIT), charge)
    kept = {one: step(start, one).bound <= LIMIT for one in set(chosen)}
    mus = np.sqrt(np.array([float(one) for one in chosen]))

    def delta(epsilon: float) -> float:
        left = epsilon - x
        both = stats.norm.cdf(mus / 2 - left / mus) - np.exp(left) * stats.norm.cdf(-mus / 2 - left / mus)
        alone = np.maximum(0.0, -np.expm1(left))
        return float(weight @ np.where([kept[one] for one in chosen], both, alone))

    return delta


def _bold_when_behind(x: float) -> Fraction:
    return Fraction(45, 100) if x < 0.05 else Fraction(4)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 2.0])
def test_answers_before_the_cut_are_within_every_budget_fixed_beforehand(epsilon: float) -> None:
    allowed = delta_from_mu(GDP.from_mu_squared(LIMIT).mu, epsilon=epsilon)
    assert _first_then(_bold_when_behind, UnitTracker.step)(epsilon) <= allowed
    whole = _first_then(lambda _: Fraction(45, 100), UnitTracker.step)(epsilon)
    assert 0.8 * allowed < whole <= allowed, "the cut leaves room for 0.04 and 0.45, which are 0.49"


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_control_one_increment_for_any_charge_is_not(epsilon: float) -> None:
    """The printed algorithm, applied to charges above the increment, for which it was not made."""

    def printed(tracker: UnitTracker, charge: Fraction) -> UnitTracker:
        inner = tracker._tracker
        fits = inner.block + charge <= inner.increment
        block = inner.block + charge if fits else charge
        return tracker._changed(_tracker=inner._changed(blocks=inner.blocks + (not fits), block=block))

    allowed = delta_from_mu(GDP.from_mu_squared(LIMIT).mu, epsilon=epsilon)
    assert _first_then(_bold_when_behind, printed)(epsilon) > 1.5 * allowed


# --- what it shows ----------------------------------------------------------------------------------------------------


def test_text_and_hash_do_not_depend_on_what_the_unit_lost() -> None:
    fresh, used = UnitTracker(1), after([Fraction(1, 4)] * 3)
    assert repr(fresh) == repr(used) == str(used) == "UnitTracker(increment=0.05)"
    assert used != after([Fraction(1, 4)] * 3), "equality would tell whether two units lost the same"


@pytest.mark.parametrize("charge", [-1, "-71.25", math.nan, math.inf, "Alice", None, 71.25 + 1j, "1e9999"])
def test_a_bad_charge_gives_one_error_that_shows_no_data(charge: Any) -> None:
    with pytest.raises(InvalidValueError) as caught:
        UnitTracker(1).step(charge)
    assert str(caught.value) == "charge: must be a finite number of at least 0; give it as mu squared"
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: UnitTracker(0), r"^budget must be greater than 0"),
        (lambda: UnitTracker("x"), r"^budget must be a finite number"),
        (lambda: UnitTracker(1, 0), r"^increments must be a whole number of at least 1, got 0"),
        (lambda: UnitTracker(1, 2.5), r"^increments must be"),  # type: ignore[arg-type]
        (lambda: UnitTracker(1, True), r"^increments must be"),
    ],
)
def test_parameters_out_of_range_are_refused(make: Callable[[], Any], match: str) -> None:
    with pytest.raises(InvalidValueError, match=match):
        make()
