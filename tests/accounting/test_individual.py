"""Individual accounting: nobody is under-charged, and nothing of anybody is shown."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.individual import (
    IndividualFilter,
    NormFilter,
    OnExhausted,
    losses_of_linear_query,
    norm_budget_radius,
    norm_budget_variance,
    remaining_of,
    rho_of_descent,
    rho_of_filtered_descent,
    worst_case_rounds,
)
from dpnb.errors import InvalidValueError

MODES: list[OnExhausted] = ["skip", "drop"]
UNITS = 3
modes = st.sampled_from(MODES)
amounts = st.one_of(st.floats(0, 2), st.floats(0, 1e-300), st.floats(0, 1e300), st.sampled_from([0.0, 0.1, 0.3, 0.5]))
rows = st.lists(st.lists(amounts, min_size=UNITS, max_size=UNITS), max_size=8)
budgets = st.one_of(st.fractions(0, 5), st.floats(0, 5).map(Fraction))


def _exact_losses(norms: list[float], sigma: float, order: int) -> list[Fraction]:
    return [order * Fraction(v) ** 2 / (2 * Fraction(sigma) ** 2) for v in norms]


@given(st.lists(st.floats(0, 1.7e308), max_size=6), st.floats(1e-300, 1e300), st.integers(1, 100))
def test_loss_of_a_linear_query_is_never_below_the_exact_one(norms: list[float], sigma: float, order: int) -> None:
    losses = losses_of_linear_query(norms, sigma=sigma, order=order)
    largest = np.finfo(np.float64).max
    for loss, truth in zip(losses.tolist(), _exact_losses(norms, sigma, order), strict=True):
        assert Fraction(loss) >= min(truth, Fraction(largest))
        assert Fraction(loss) <= truth * (1 + Fraction(1, 2**50)) + Fraction(math.ulp(0.0))


def test_loss_of_a_norm_of_one_at_sigma_one_is_exactly_a_half_times_the_order() -> None:
    assert losses_of_linear_query([1.0, 0.0, 2.0], sigma=1).tolist() == [0.5, 0.0, 2.0]
    assert losses_of_linear_query([1.0], sigma=0.5, order=3).tolist() == [6.0]


def test_a_capped_loss_is_never_affordable() -> None:
    losses = losses_of_linear_query([1e300], sigma=1e-300)
    assert np.isfinite(losses).all()
    _, active = IndividualFilter(Fraction(2) ** 999, units=1).step(losses)
    assert not active[0]
    with pytest.raises(InvalidValueError, match="below"):
        IndividualFilter(Fraction(2) ** 1000, units=1)


@given(budgets, modes, rows)
def test_no_unit_ever_spends_more_than_the_budget(
    budget: Fraction, mode: OnExhausted, history: list[list[float]]
) -> None:
    state = IndividualFilter(budget, UNITS, mode)
    paid = [Fraction(0)] * UNITS
    for losses in history:
        state, active = state.step(losses)
        paid = [p + Fraction(x) * int(a) for p, x, a in zip(paid, losses, active, strict=True)]
    for truth, spent, left in zip(paid, state.spent.tolist(), state.remaining.tolist(), strict=True):
        assert truth <= Fraction(spent) <= budget
        assert 0 <= Fraction(left) <= budget - truth


@given(st.integers(0, 64), modes, st.lists(st.lists(st.integers(0, 40), min_size=UNITS, max_size=UNITS), max_size=10))
def test_dyadic_losses_are_decided_as_by_exact_arithmetic(
    budget: int, mode: OnExhausted, history: list[list[int]]
) -> None:
    state = IndividualFilter(Fraction(budget, 32), UNITS, mode)
    spent, out = [Fraction(0)] * UNITS, [False] * UNITS
    for numerators in history:
        losses = [Fraction(n, 32) for n in numerators]
        pays = [s + x <= Fraction(budget, 32) for s, x in zip(spent, losses, strict=True)]
        if mode == "drop":
            out = [o or not p for o, p in zip(out, pays, strict=True)]
            pays = [not o for o in out]
        spent = [s + x * int(p) for s, x, p in zip(spent, losses, pays, strict=True)]
        state, active = state.step([float(x) for x in losses])
        assert active.tolist() == pays
        assert [Fraction(s) for s in state.spent.tolist()] == spent


@pytest.mark.parametrize(("mode", "expected"), [("skip", [True, False, True]), ("drop", [True, False, False])])
def test_a_skipped_unit_may_return_and_a_dropped_one_may_not(mode: OnExhausted, expected: list[bool]) -> None:
    state = IndividualFilter(1, 1, mode)
    seen = []
    for loss in (0.8, 0.5, 0.1):
        state, active = state.step([loss])
        seen.append(bool(active[0]))
    assert seen == expected


def test_skipping_units_reproduces_the_reference_run() -> None:
    history = [[0.75, 0.25, 0], [0.5, 0.25, 0.5], [0.125, 0.5, 0.5], [0.125, 0.25, 0.125], [0.125, 0, 0]]
    expected = [[0, 1, 2], [1, 2], [0, 1, 2], [0], [1, 2]]
    state = IndividualFilter(1, UNITS)
    for losses, who in zip(history, expected, strict=True):
        state, active = state.step(losses)
        assert np.flatnonzero(active).tolist() == who
    assert state.spent.tolist() == [1, 1, 1]


def test_a_tenth_taken_literally_fits_only_nine_times_into_one() -> None:
    state, times = IndividualFilter(1, 1), 0
    for _ in range(12):
        state, active = state.step([0.1])
        times += int(active[0])
    # Ten of the double 0.1 are above 1, though adding doubles to nearest gives 0.9999999999999999.
    assert sum([0.1] * 10) < 1 < 10 * Fraction(0.1)
    assert times == 9


def test_tiny_losses_are_not_lost_beside_a_large_one() -> None:
    state, _ = IndividualFilter(1, 1).step([1 - 2.0**-53])
    state, active = state.step([2.0**-80])
    assert active[0]
    assert state.spent[0] == 1
    _, active = state.step([2.0**-80])
    assert not active[0]


@given(st.floats(0.1, 3), st.floats(0.1, 9), rows)
def test_norms_stay_within_clip_and_budget(clip: float, budget: float, history: list[list[float]]) -> None:
    bound, limit = Fraction(clip), Fraction(budget)
    state = NormFilter(bound, limit, UNITS)
    paid = [Fraction(0)] * UNITS
    for norms in history:
        radii = state.radius.tolist()
        state, clipped = state.step(norms)
        for unit, (norm, radius) in enumerate(zip(norms, radii, strict=True)):
            assert clipped[unit] == min(norm, radius)
            assert Fraction(radius) <= bound
            assert Fraction(radius) ** 2 <= limit - paid[unit]
        paid = [p + Fraction(c) ** 2 for p, c in zip(paid, clipped.tolist(), strict=True)]
        assert all(p <= Fraction(s) <= limit for p, s in zip(paid, state.spent.tolist(), strict=True))


def test_clip_radius_is_the_square_root_of_what_is_left() -> None:
    norms, expected = [5, 0.5, 3, 0, 2, 2, 2, 2], [1, 0.5, 1, 0, 1, math.sqrt(0.75), 0, 0]
    state = NormFilter(1, 4, 1)
    for norm, figure in zip(norms, expected, strict=True):
        state, clipped = state.step([norm])
        assert clipped[0] == pytest.approx(figure, rel=1e-15, abs=0)
    assert NormFilter(2, 1, 1).radius.tolist() == [1]


def test_a_unit_is_active_only_while_its_radius_is_above_zero() -> None:
    state, _ = NormFilter(2, 2, 2).step([9.0, 0.0])
    assert state.active.tolist() == [False, True]


def test_noise_is_counted_once_and_not_divided_by_units() -> None:
    truth = Fraction(112, 2 * 170**2)
    for rho in (
        rho_of_descent(112, noise_multiplier=170),
        rho_of_filtered_descent(11200, noise_multiplier=170, clip=10),
    ):
        assert Fraction(repr(rho)) >= truth
        assert rho == pytest.approx(float(truth), rel=1e-15)


def test_figures_of_a_norm_budget() -> None:
    assert norm_budget_variance(10, rho=Fraction(1, 2)) == 10
    radius = norm_budget_radius(10, rho=Fraction(1, 2), coordinates=5, delta=Fraction(0.05))
    with mpmath.workdps(50):
        truth = mpmath.sqrt(20 * mpmath.log(5 / mpmath.mpf(0.05)))
        assert truth <= mpmath.mpf(radius) <= truth * (1 + mpmath.mpf(2) ** -51)


def test_certain_rounds_are_counted_exactly() -> None:
    assert worst_case_rounds(Fraction(1, 2), sigma=10, clip=1) == 100
    assert worst_case_rounds("0.3", sigma=1, clip=1, order="0.2") == 3  # doubles give 2.9999999999999996
    assert worst_case_rounds(Fraction(1, 2) - Fraction(1, 10**30), sigma=10, clip=1) == 99


def test_remaining_is_never_negative() -> None:
    assert remaining_of([0.25, 0.5, 0.75], budget=0.5).tolist() == [0.25, 0, 0]


@pytest.mark.parametrize("mode", MODES)
def test_text_of_a_filter_is_the_same_whatever_units_did(mode: OnExhausted) -> None:
    fresh, norms = IndividualFilter(1, 2, mode), NormFilter(1, 4, 2)
    used, _ = fresh.step([0.5, 7.0])
    clipped, _ = norms.step([5.0, 0.25])
    assert repr(used) == repr(fresh) == repr(IndividualFilter(1, 99, mode))
    assert str(clipped) == repr(norms) == repr(NormFilter(1, 4, 99))


@pytest.mark.parametrize("bad", [[0.5, math.nan], [math.inf, 0.0], [-0.125, 71.25], ["71.25", "Alice"]])
def test_bad_entries_give_one_error_that_shows_no_data(bad: list[float]) -> None:
    actions: list[Callable[[list[float]], object]] = [
        IndividualFilter(1, 2).step,
        NormFilter(1, 1, 2).step,
        lambda x: losses_of_linear_query(x, sigma=1),
    ]
    for action in actions:
        with pytest.raises(InvalidValueError) as caught:
            action(bad)
        assert not any(character.isdigit() for character in str(caught.value))
        assert "Alice" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


def test_a_wrong_shape_is_refused() -> None:
    for losses in ([0.1], [[0.1, 0.1]], 0.1):
        with pytest.raises(InvalidValueError, match="one entry for each unit"):
            IndividualFilter(1, 2).step(losses)


def test_bad_settings_are_refused() -> None:
    settings: list[Callable[[], object]] = [
        lambda: IndividualFilter(-1, 1),
        lambda: IndividualFilter(1, -1),
        lambda: IndividualFilter(1, 1, "clip"),  # type: ignore[arg-type]
        lambda: NormFilter(0, 1, 1),
        lambda: losses_of_linear_query([1.0], sigma=0),
        lambda: losses_of_linear_query([1.0], sigma=1, order=0.5),
        lambda: norm_budget_radius(1, rho=1, coordinates=1, delta=1),
    ]
    for make in settings:
        with pytest.raises(InvalidValueError):
            make()


def test_a_filter_is_a_value() -> None:
    start = IndividualFilter(1, 2)
    one, active = start.step([0.5, 0.25])
    same, _ = IndividualFilter(1, 2).step([0.5, 0.25])
    assert start.spent.tolist() == [0, 0]
    assert one == same != start
    assert hash(one) == hash(same)
    active[:] = False
    assert one == same
    with pytest.raises(ValueError, match="read-only"):
        one.spent[0] = 0
    assert NormFilter(1, 1, 2) == NormFilter(1, 1, 2) != NormFilter(1, 2, 2)


def test_a_table_without_units_is_fine() -> None:
    state, active = IndividualFilter(1, 0).step([])
    assert len(active) == len(state.spent) == 0
