"""A unit takes part only if its own budget pays: nobody spends too much, whatever the losses."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.individual import IndividualFilter, OnExhausted
from dpnb.errors import InvalidValueError
from rationals import fractions

MODES: list[OnExhausted] = ["skip", "drop", "clip"]
UNITS = 3
modes = st.sampled_from(MODES)
amounts = st.one_of(st.floats(0, 2), st.floats(0, 1e-300), st.floats(0, 1e300), st.sampled_from([0.0, 0.1, 0.3, 0.5]))
rows = st.lists(st.lists(amounts, min_size=UNITS, max_size=UNITS), max_size=8)
budgets = st.one_of(fractions(0, 5), st.floats(0, 5).map(Fraction))


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


@pytest.mark.parametrize("mode", MODES)
def test_a_filter_is_a_value(mode: OnExhausted) -> None:
    start = IndividualFilter(1, 2, mode)
    one, active = start.step([0.5, 0.25])
    same, _ = IndividualFilter(1, 2, mode).step([0.5, 0.25])
    assert start.spent.tolist() == [0, 0]
    assert one == same != start
    assert hash(one) == hash(same)
    active[:] = False
    assert one == same
    assert one.step([0.25, 0.25])[1].all()
    with pytest.raises(ValueError, match="read-only"):
        one.spent[0] = 0


def test_a_table_without_units_is_fine() -> None:
    state, active = IndividualFilter(1, 0).step([])
    assert len(active) == len(state.spent) == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: IndividualFilter(-1, 1),
        lambda: IndividualFilter(1, -1),
        lambda: IndividualFilter(1, True),
        lambda: IndividualFilter(1, 1, "stop"),  # type: ignore[arg-type]
    ],
)
def test_bad_settings_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidValueError):
        make()
