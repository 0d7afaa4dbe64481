"""Nothing of anybody is shown, in no text, error or warning; and what is no double is rounded up to one."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpnb.accounting.individual import IndividualFilter, NormFilter, OnExhausted, losses_of_linear_query, remaining_of
from dpnb.errors import InvalidValueError

MODES: list[OnExhausted] = ["skip", "drop", "clip"]
ACTIONS: list[Callable[[Any], object]] = [
    IndividualFilter(1, 2).step,
    NormFilter(1, 1, 2).step,
    lambda x: losses_of_linear_query(x, sigma=1),
    lambda x: remaining_of(x, budget=1),
]


@pytest.mark.parametrize("mode", MODES)
def test_text_and_hash_of_a_filter_are_the_same_whatever_units_did(mode: OnExhausted) -> None:
    fresh, norms = IndividualFilter(1, 2, mode), NormFilter(1, 4, 2)
    used, _ = fresh.step([0.5, 7.0])
    clipped, _ = norms.step([5.0, 0.25])
    assert repr(used) == repr(fresh) == repr(IndividualFilter(1, 99, mode))
    assert str(clipped) == repr(norms) == repr(NormFilter(1, 4, 99))
    assert hash(used) == hash(fresh)
    assert hash(clipped) == hash(norms)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(
    "bad",
    [
        [0.5, math.nan],
        [math.inf, 0.0],
        [-0.125, 71.25],
        ["71.25", "Alice"],
        [71.25, None],
        [Fraction(285, 4), math.nan],
        [Fraction(-285, 4), 0],
        [10**400, 0],
        [71.25 + 1j, 0],
        np.array(["1971-07-11", "NaT"], dtype="datetime64[D]"),
        np.array([71, math.nan], dtype=np.longdouble),
        [[71.25], [71.25, 7]],
    ],
)
def test_bad_entries_give_one_error_that_shows_no_data(action: Callable[[Any], object], bad: object) -> None:
    with pytest.raises(InvalidValueError) as caught:
        action(bad)
    assert not any(character.isdigit() for character in str(caught.value))
    assert "Alice" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_wrong_number_of_units_is_not_quoted() -> None:
    for units in (71.0, "71", -71):
        with pytest.raises(InvalidValueError) as caught:
            NormFilter(1, 1, units)  # type: ignore[arg-type]
        assert "7" not in str(caught.value)


def test_a_wrong_shape_is_refused() -> None:
    for losses in ([0.1], [[0.1, 0.1]], 0.1, [0.1] * 7):
        with pytest.raises(InvalidValueError, match="one entry for each unit") as caught:
            IndividualFilter(1, 2).step(losses)
        assert "7" not in str(caught.value)


def test_numpy_warns_and_raises_nothing_whatever_its_settings() -> None:
    extreme = np.array([1.7e308, 1e-300, 5e-324, 0.0])
    with np.errstate(all="raise"):
        state, active = IndividualFilter(Fraction(2) ** 999, 4).step(extreme)
        state, _ = state.step(extreme)
        clipped, _ = NormFilter(1, "1e-320", 4).step(extreme)
        assert active.tolist() == [False, True, True, True]
        assert len(state.remaining) == len(clipped.radius) == 4
        losses_of_linear_query(extreme, sigma=1e-300)
        losses_of_linear_query(extreme, sigma=1e300)
        for action in ACTIONS:
            with pytest.raises(InvalidValueError):
                action([math.nan, math.inf])


@pytest.mark.parametrize(
    "losses",
    [
        [Fraction(1, 3)],
        [Decimal("0.3")],
        ["0.3"],
        [0, Fraction(1, 3)],
        [2**53 + 1],
        [2**53 + 1, 0.5],
        [2**70 + 1],
        np.array([2**63 + 1], dtype=np.uint64),
        np.array([np.longdouble(1) + np.finfo(np.longdouble).eps]),
    ],
)
def test_what_is_no_double_is_charged_rounded_up(losses: Any) -> None:
    state, _ = IndividualFilter(10**30, len(losses)).step(losses)
    for loss, spent in zip(losses, state.spent.tolist(), strict=True):
        truth = Fraction(int(loss)) if isinstance(loss, np.integer) else _literal(loss)
        assert truth <= Fraction(spent) <= truth * (1 + Fraction(1, 2**51))


def _literal(loss: Any) -> Fraction:
    return Fraction(*loss.as_integer_ratio()) if isinstance(loss, np.floating) else Fraction(loss)


def test_whole_numbers_and_narrow_floats_are_charged_as_they_are() -> None:
    for losses in (np.array([3, 5]), np.array([0.1, 0.5], dtype=np.float32), [True, False], [3, 0.1]):
        state, _ = IndividualFilter(9, 2).step(losses)
        assert state.spent.tolist() == [float(loss) for loss in losses]


def test_a_mask_exempts_nobody() -> None:
    losses = np.ma.masked_array([0.5, 7.0], [True, True])
    state, active = IndividualFilter(1, 2).step(losses)
    assert type(active) is np.ndarray
    assert state.spent.tolist() == [0.5, 0]
    assert active.tolist() == [True, False]
