"""Rules that see released intervals and nothing else."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.errors import InvalidValueError
from dpnb.interactive import AbsoluteError, ExcludesValue, RelativeError

numbers = st.floats(-1e6, 1e6)


def met(rule: Any, *intervals: tuple[float, float]) -> bool:
    low, high = (np.array([[limit] for limit in limits]) for limits in zip(*intervals, strict=True))
    return rule.is_satisfied(low, high)


@given(ends=st.tuples(numbers, numbers), share=st.floats(0.001, 2), place=st.floats(0, 1))
def test_relative_error_holds_for_every_truth_in_the_interval(
    ends: tuple[float, float], share: float, place: float
) -> None:
    low, high = sorted(ends)
    if met(RelativeError(share), (low, high)):
        truth = min(low + place * (high - low), high)
        assert abs((low + high) / 2 - truth) <= share * abs(truth) * (1 + 1e-9)


def test_a_narrow_interval_far_from_zero_is_good_enough_and_a_wide_one_is_not() -> None:
    assert met(RelativeError(0.05), (96, 104))
    assert not met(RelativeError(0.05), (90, 110))
    assert not met(RelativeError(0.05), (-1, 1))
    assert met(RelativeError(Fraction(1, 20)), (-104, -96))


def test_every_number_must_meet_the_rule() -> None:
    assert met(AbsoluteError(2), (0, 4), (10, 11))
    assert not met(AbsoluteError(2), (0, 4), (10, 15))
    assert met(ExcludesValue(5), (6, 7), (1, 4))
    assert not met(ExcludesValue(5), (6, 7), (4, 6))


@pytest.mark.parametrize("rule", [RelativeError(10), AbsoluteError(1e300), ExcludesValue(0)])
def test_what_is_not_known_meets_no_rule(rule: Any) -> None:
    assert not met(rule, (float("nan"), float("nan")))
    assert not met(rule, (float("-inf"), float("inf")))


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "x", None])
def test_what_is_no_size_is_refused(bad: Any) -> None:
    for rule in (RelativeError, AbsoluteError):
        with pytest.raises(InvalidValueError):
            rule(bad)
