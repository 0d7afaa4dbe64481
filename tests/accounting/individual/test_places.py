"""Charging some of the units, everybody without asking, and as much as each has left."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.individual import IndividualFilter, OnExhausted, losses_of_squares
from dpnb.accounting.individual.arrays import times_up, times_up_roughly
from rationals import fractions

MODES: list[OnExhausted] = ["skip", "drop", "clip"]
amounts = st.one_of(st.floats(0, 2), st.sampled_from([0.0, 0.1, 0.25, 0.3, 1.0]))
lists = st.lists(st.tuples(amounts, st.booleans()), min_size=5, max_size=5)


@given(st.lists(lists, max_size=6), st.sampled_from(MODES))
def test_units_that_a_question_does_not_touch_lose_nothing(history, mode) -> None:  # type: ignore[no-untyped-def]
    some = everywhere = IndividualFilter(1, 5, mode)
    for question in history:
        places = np.flatnonzero([touched for _, touched in question])
        losses = np.array([loss for loss, _ in question])
        some, active = some.step(losses[places], of=places)
        everywhere, among = everywhere.step(np.where([touched for _, touched in question], losses, 0.0))
        assert active.tolist() == among[places].tolist()
        assert some == everywhere


@given(st.lists(lists, max_size=6))
def test_losses_are_cut_to_what_is_left_and_no_budget_is_overdrawn(history) -> None:  # type: ignore[no-untyped-def]
    state, paid = IndividualFilter(1, 5, "clip"), [Fraction(0)] * 5
    for question in history:
        places = np.flatnonzero([touched for _, touched in question])
        losses = np.array([loss for loss, _ in question])[places]
        left = [1 - Fraction(one) for one in state.spent[places].tolist()]
        state, allowed = state.step_clipped(losses, of=places)
        for place, loss, cut, rest in zip(places.tolist(), losses.tolist(), allowed.tolist(), left, strict=True):
            assert cut == loss or Fraction(cut) <= rest < Fraction(loss)
            paid[place] += Fraction(cut)
        assert all(one <= Fraction(spent) <= 1 for one, spent in zip(paid, state.spent.tolist(), strict=True))


def test_in_full_or_not_at_all() -> None:
    state = IndividualFilter(1, 3, "clip").charge([0.5, 0.75, 0.0])
    state, active = state.step([0.5, 0.5, 0.5])
    assert active.tolist() == [True, False, True]
    assert state.spent.tolist() == [1.0, 0.75, 0.5]


def test_charging_everybody_asks_nobody_and_may_go_beyond_the_budget() -> None:
    for state in (IndividualFilter(1, 2, mode) for mode in MODES):
        full = state.charge([0.7, 3.0])
        assert full.spent.tolist() == [0.7, 3.0]
        assert state.spent.tolist() == [0.0, 0.0], "the filter before is unchanged"
        assert full.charge([0.0, 1e308]).charge([0.0, 1e308]).spent[1] < np.inf


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=5), fractions(Fraction(1, 10**9), 10**9))
def test_losses_of_squares_are_never_less_than_they_are(squares: list[float], sigma: Fraction) -> None:
    for rough in (False, True):
        for square, loss in zip(squares, losses_of_squares(squares, sigma=sigma, rough=rough).tolist(), strict=True):
            exact = min(Fraction(square) / sigma**2, Fraction(np.finfo(float).max))
            assert exact <= Fraction(loss) <= exact * (1 + Fraction(1, 10**14)) + Fraction(2) ** -1073


@pytest.mark.parametrize("size", [1, 16384, 40000])
def test_products_do_not_depend_on_who_else_is_there(size: int) -> None:
    """A block that holds something huge or tiny goes another way to the very same figures."""
    values = np.random.default_rng(1).random(size) * 1e6
    beside = np.r_[values, 1e-200, 1e200]
    for times in (times_up, times_up_roughly):
        if times is times_up:
            assert times(beside, Fraction(1, 3))[:size].tolist() == times(values, Fraction(1, 3)).tolist()
        assert (times(values, Fraction(1, 3)) >= values / 3).all()


def test_rough_and_exact_agree_where_rounding_is_needed_anyway() -> None:
    squares = [1.0, 3.0, 10.0]
    exact, rough = (losses_of_squares(squares, sigma=3, rough=rough) for rough in (False, True))
    assert (rough >= exact).all()
    assert rough == pytest.approx(exact, rel=1e-15)
    assert losses_of_squares([4.0], sigma=2)[0] == 1, "what is exact stays so"
