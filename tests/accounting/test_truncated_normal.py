"""Means of observations that are seen only above a threshold: enclosed, whatever is observed."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.truncated_normal import _log_ratio, alpha_of_each, truncated_mean

EXCESSES = st.floats(2.0**-22, 60) | st.sampled_from([2.0**-22, 2.0**-21, 1e-3, 0.5, 8.0, 1e6])
LOG_TAILS = st.floats(-690, -1e-12) | st.sampled_from([math.log(0.5), math.log(0.025), math.log1p(-0.025), -1e-15])


def log_tail(mean: float, excess: float) -> mpmath.mpf:
    """log P(Y > excess | Y >= 0), with digits enough for means 50 standard deviations below."""
    m, y = mpmath.mpf(mean), mpmath.mpf(excess)
    return mpmath.log(mpmath.erfc((y - m) / mpmath.sqrt(2)) / mpmath.erfc(-m / mpmath.sqrt(2)))


@given(excess=EXCESSES, wanted=LOG_TAILS, least=st.floats(-46, 0))
def test_the_mean_is_enclosed(excess: float, wanted: float, least: float) -> None:
    below, above = (float(end[0]) for end in truncated_mean(np.array([excess]), wanted, least=least))
    assert least <= below <= above <= below + 1e-7 * max(1.0, abs(below))
    with mpmath.workprec(400):
        assert below == least or log_tail(below, excess) < wanted
        assert above == least or log_tail(above, excess) > wanted


@given(mean=st.floats(-46, 46), excess=st.floats(2.0**-22, 60))
def test_the_ratio_is_known_to_its_last_digits(mean: float, excess: float) -> None:
    with mpmath.workprec(400):
        exact = log_tail(mean, excess)
        assert abs(float(_log_ratio(np.array([mean]), np.array([excess]))[0]) - exact) <= 1e-14 * (1 + abs(exact))


@pytest.mark.parametrize("wanted", [-1e-15, math.log(0.025), math.log(0.5), -745.0, -math.inf])
def test_nothing_that_can_be_observed_fails(wanted: float) -> None:
    excess = np.array([0.0, 5e-324, 2.0**-22, 1.0, 37.0, 1e19, 1e300])
    for least in (-46.0, 0.0):
        below, above = truncated_mean(excess, wanted, least=least)
        assert (below >= least).all()
        assert (above >= below).all()
        assert np.isfinite(below).all()
        assert (np.diff(below) >= 0).all()
        assert (np.diff(above) >= 0).all()


@given(alpha=st.floats(1e-300, 0.999), seen=st.integers(1, 10**7))
def test_what_each_of_many_may_miss_is_exact_and_not_above(alpha: float, seen: int) -> None:
    with mpmath.workprec(1200):
        exact = -mpmath.expm1(mpmath.log1p(-mpmath.mpf(alpha)) / seen)
        each = mpmath.mpf(alpha_of_each(alpha, seen))
        assert exact * (1 - mpmath.mpf(10) ** -13) <= each <= exact


def test_each_may_miss_more_than_by_the_union_bound() -> None:
    assert alpha_of_each(0.05, 1) == pytest.approx(0.05)
    assert alpha_of_each(0.05, 100) > 0.05 / 100
    assert alpha_of_each(0.05, 0) == alpha_of_each(0.05, 1)
