"""Refined answers: nothing is lost, and no interval is too short."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpnb.accounting.exact import Number
from dpnb.accounting.intervals import combine, confidence_sequence_radius, fixed_radius, tuned_tau
from dpnb.accounting.losses import GDP
from dpnb.errors import InvalidValueError

sigma_lists = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=8)
alphas = st.floats(1e-12, 0.999)


def _information(sigmas: list[float]) -> Fraction:
    return sum((1 / Fraction(s) ** 2 for s in sigmas), Fraction(0))


@given(sigma_lists, st.data())
def test_combined_value_is_the_inverse_variance_mean(sigmas: list[float], data: st.DataObject) -> None:
    values = data.draw(st.lists(st.floats(-1e9, 1e9), min_size=len(sigmas), max_size=len(sigmas)))
    truth = sum(Fraction(v) / Fraction(s) ** 2 for v, s in zip(values, sigmas, strict=True)) / _information(sigmas)
    value, _ = combine(values, sigmas)
    assert abs(Fraction(value) - truth) <= Fraction(1, 10**14) * max(abs(Fraction(v)) for v in [*values, 1e-300])


@given(sigma_lists)
def test_combined_sigma_is_never_below_the_truth(sigmas: list[float]) -> None:
    _, sigma = combine([0.0] * len(sigmas), sigmas)
    assert 1 <= Fraction(sigma) ** 2 * _information(sigmas) <= 1 + Fraction(1, 10**14)


@given(st.floats(-1e300, 1e300), st.floats(1e-300, 1e300))
def test_single_look_is_left_as_it_is(value: float, sigma: float) -> None:
    assert combine([value], [sigma]) == (value, sigma)


def test_cells_are_combined_one_by_one() -> None:
    looks = np.array([[10.0, 0.0, -4.0], [12.0, 3.0, -4.0]])
    values, sigma = combine(looks, [2.0, 1.0])
    assert values.shape == (3,)
    for cell in range(3):
        assert (values[cell], sigma) == pytest.approx(combine(list(looks[:, cell]), [2.0, 1.0]))


def test_large_common_offset_costs_no_digits() -> None:
    value, _ = combine([1e15, 1e15 + 1], [3.0, 7.0])
    assert value == pytest.approx(1e15 + 9 / 58, abs=0.13)


def test_refining_costs_what_asking_once_costs() -> None:
    # First mu = 0.3, then the missing part of 0.5, at sensitivity 1.
    first, rest = GDP("0.3"), GDP.from_mu_squared("0.16")
    assert first + rest == GDP("0.5")
    _, sigma = combine([0.0, 0.0], [1 / 0.3, 1 / 0.4])
    assert sigma == pytest.approx(1 / 0.5, rel=1e-14)


@given(sigma_lists, alphas)
def test_fixed_interval_covers_at_its_level(sigmas: list[float], alpha: float) -> None:
    radius = fixed_radius(sigmas, alpha=alpha)
    with mpmath.workdps(50):
        z = mpmath.mpf(radius) * mpmath.sqrt(
            mpmath.mpf(_information(sigmas).numerator) / _information(sigmas).denominator
        )
        missed = mpmath.erfc(z / mpmath.sqrt(2))
        assert missed <= alpha
        assert missed >= alpha * (1 - mpmath.mpf(10) ** -11)


@given(sigma_lists, alphas, st.floats(1e-9, 1e9))
def test_confidence_sequence_is_never_below_the_formula(sigmas: list[float], alpha: float, tau: float) -> None:
    radius = confidence_sequence_radius(sigmas, tau=Fraction(tau), alpha=Fraction(alpha))
    with mpmath.workdps(50):
        info = mpmath.mpf(_information(sigmas).numerator) / _information(sigmas).denominator
        truth = mpmath.sqrt((info + tau) * mpmath.log((info + tau) / (mpmath.mpf(alpha) ** 2 * tau))) / info
        assert truth <= radius <= truth * (1 + mpmath.mpf(10) ** -12)


@given(sigma_lists, alphas, st.floats(1e-9, 1e9))
def test_confidence_sequence_is_wider_than_the_fixed_interval(sigmas: list[float], alpha: float, tau: float) -> None:
    assert confidence_sequence_radius(sigmas, tau=tau, alpha=alpha) > fixed_radius(sigmas, alpha=alpha)


@given(st.floats(1e-9, 1e9), st.floats(1e-12, 0.99), st.floats(0.01, 100))
def test_tuned_tau_is_the_best_at_its_information(information: float, alpha: float, factor: float) -> None:
    sigma, tau = [information**-0.5], tuned_tau(information, alpha=alpha)
    best = confidence_sequence_radius(sigma, tau=tau, alpha=alpha)
    assert best <= confidence_sequence_radius(sigma, tau=tau * factor, alpha=alpha) * (1 + 1e-13)


@pytest.mark.parametrize("sigma", [1e-300, 1e300])
def test_extreme_scales_neither_overflow_nor_vanish(sigma: float) -> None:
    _, both = combine([0.0, 0.0], [sigma, sigma])
    assert both == pytest.approx(sigma / math.sqrt(2))
    assert fixed_radius([sigma, sigma], alpha=0.05) == pytest.approx(1.959964 * both)
    assert both < confidence_sequence_radius([sigma, sigma], tau=1, alpha=0.05)


def _combine(sigmas: object) -> object:
    return combine([0.0], sigmas)  # type: ignore[call-overload]


@pytest.mark.parametrize("sigmas", [[], [0.0], [-1.0], [math.nan], [math.inf], 1.0, [[1.0]]])
@pytest.mark.parametrize(
    "call",
    [_combine, lambda s: fixed_radius(s, alpha=0.05), lambda s: confidence_sequence_radius(s, tau=1, alpha=0.05)],
    ids=["combine", "fixed", "sequence"],
)
def test_noise_scales_that_are_none_are_refused(call: Callable[[object], object], sigmas: object) -> None:
    with pytest.raises(InvalidValueError, match=r"^sigmas must .*got"):
        call(sigmas)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, math.nan], [1.0, math.inf], [1.0, 2.0, 3.0], 1.0])
def test_values_that_do_not_fit_the_scales_are_refused(values: list[float]) -> None:
    with pytest.raises(InvalidValueError, match=r"^values must .*got"):
        combine(values, [1.0, 1.0])


@pytest.mark.parametrize("alpha", [0, 1, -0.05, 5, math.nan, "1e-400"])
def test_level_out_of_range_is_refused(alpha: Number) -> None:
    for call in (
        lambda: fixed_radius([1.0], alpha=alpha),
        lambda: confidence_sequence_radius([1.0], tau=1, alpha=alpha),
        lambda: tuned_tau(1, alpha=alpha),
    ):
        with pytest.raises(InvalidValueError, match=r"^alpha must .*got"):
            call()


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "1e400"])
def test_tau_and_information_out_of_range_are_refused(bad: Number) -> None:
    with pytest.raises(InvalidValueError, match=r"^tau must"):
        confidence_sequence_radius([1.0], tau=bad, alpha=0.05)
    with pytest.raises(InvalidValueError, match=r"^information must"):
        tuned_tau(bad, alpha=0.05)


def test_integer_answers_are_combined_too() -> None:
    answers: NDArray[np.int64] = np.array([[1], [3]])
    values, _ = combine(answers, [1.0, 1.0])
    assert values.tolist() == [2.0]
