"""The filter of Whitehouse et al. 2023, Theorem 8, against the best of all adversaries who use randomised response.

Nothing is sampled.  Every epsilon is a whole number of steps of 0.03, so the realised loss walks on a lattice and the
budget is a whole number of squared steps.  What an adversary can reach at best from each loss and each remainder of the
budget, choosing every epsilon and the moment to stop from what it has seen, is computed backwards from an empty budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpnb.accounting.filters import ApproxDPFilter
from dpnb.accounting.losses import PureDP

pytestmark = pytest.mark.statistical

EPSILON, DELTA = 2, 0.01
STEP = Decimal("0.03")

Array = NDArray[np.float64]


def _above(loss: Array) -> Array:
    """The realised loss is above epsilon; equality on the lattice is no violation."""
    return (loss > EPSILON + 1e-9).astype(np.float64)


def _needed_delta(loss: Array) -> Array:
    """Its mean is the smallest delta for which what was released is (epsilon, delta)-DP for these neighbours."""
    return np.maximum(-np.expm1(EPSILON - loss), 0)


@cache
def _filter() -> ApproxDPFilter:
    return ApproxDPFilter(EPSILON, conversion_delta=DELTA)


def _units() -> int:
    """How many losses of one step the filter admits: the budget in squared steps."""
    units = _filter().max_repetitions(PureDP(STEP))
    assert units is not None
    return units


def _answer(value: Array, k: int) -> Array:
    """The mean of `value` after an answer of epsilon = k steps, from every loss of the lattice.

    Beyond its ends the lattice is continued by its outermost values.
    """
    up = np.concatenate([value[k:], np.full(k, value[-1])])
    down = np.concatenate([np.full(k, value[0]), value[:-k]])
    truthful = 1 / (1 + math.exp(-k * float(STEP)))
    return truthful * up + (1 - truthful) * down


def _best(gain: Callable[[Array], Array], units: int, *, last: int = 0) -> float:
    """The largest mean gain that any adversary reaches.

    Parameters
    ----------
    gain : callable
        What a loss is worth at the moment of stopping.
    units : int
        The budget in squared steps.
    last : int
        The largest answer, in steps, that is admitted on top while anything at all is left; 0 for a right filter.
    """
    ends = gain(np.arange(-units, units + 1, dtype=np.float64) * float(STEP))
    values = np.empty((units + 1, len(ends)))
    for left in range(units + 1):
        values[left] = ends
        for k in range(1, math.isqrt(left) + 1):
            np.maximum(values[left], _answer(values[left - k * k], k), out=values[left])
        if last and left:
            np.maximum(values[left], _answer(ends, last), out=values[left])
    return float(values[units, units])


@given(st.lists(st.integers(1, 25), max_size=40))
def test_rule_of_this_programme_is_the_filters(choices: list[int]) -> None:
    state, left = _filter(), _units()
    for k in choices:
        loss = PureDP(k * STEP)
        assert state.admits(loss) is (k * k <= left)
        if k * k <= left:
            state, left = state.step(loss), left - k * k


def test_programme_knows_a_single_answer() -> None:
    """With a budget for one answer of one step, and epsilon far away, the best gain is what that answer gives."""
    step = float(STEP)
    assert _best(lambda loss: np.exp(-loss), 1) == pytest.approx(1, rel=1e-12)
    assert _best(lambda loss: (loss > 0).astype(float), 1) == pytest.approx(1 / (1 + math.exp(-step)), rel=1e-12)


def test_best_adversary_exceeds_epsilon_less_often_than_delta() -> None:
    assert 1e-3 < _best(_above, _units()) <= DELTA


def test_best_adversary_needs_less_than_delta() -> None:
    assert 1e-4 < _best(_needed_delta, _units()) <= DELTA


def test_control_a_filter_that_ignores_the_last_loss_is_caught() -> None:
    assert _best(_above, _units(), last=100) > 0.5
    assert _best(_needed_delta, _units(), last=100) > 0.5


def test_control_a_budget_that_is_too_large_is_caught() -> None:
    assert _best(_above, 2 * _units()) > 5 * DELTA
    assert _best(_needed_delta, 3 * _units()) > 2 * DELTA
