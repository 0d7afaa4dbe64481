"""Figures of public numbers: exact, and rounded against us."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.exact import exact
from dpnb.accounting.individual import (
    IndividualFilter,
    losses_of_linear_query,
    norm_budget_radius,
    norm_budget_variance,
    rho_of_descent,
    rho_of_filtered_descent,
    worst_case_rounds,
)
from dpnb.errors import InvalidValueError

scales = st.floats(0.01, 100)


def test_noise_is_counted_once_and_not_divided_by_units() -> None:
    truth = Fraction(112, 2 * 170**2)
    for rho in (
        rho_of_descent(112, noise_multiplier=170),
        rho_of_filtered_descent(11200, noise_multiplier=170, clip=10),
    ):
        assert Fraction(repr(rho)) >= truth
        assert rho == pytest.approx(float(truth), rel=1e-15)


@given(st.integers(0, 1000), scales, scales)
def test_descent_costs_what_noise_of_the_double_itself_costs(count: int, sigma: float, clip: float) -> None:
    # A double below its decimal makes less noise than the decimal says.
    once = count / (2 * Fraction(sigma) ** 2)
    assert once <= exact(rho_of_descent(count, noise_multiplier=sigma)) <= once * (1 + Fraction(1, 2**50))
    rho = exact(rho_of_filtered_descent(count, noise_multiplier=sigma, clip=clip))
    assert once / Fraction(clip) ** 2 <= rho <= once / Fraction(clip) ** 2 * (1 + Fraction(1, 2**50))


def test_figures_of_a_norm_budget() -> None:
    assert norm_budget_variance(10, rho=Fraction(1, 2)) == 10
    radius = norm_budget_radius(10, rho=Fraction(1, 2), coordinates=5, delta=Fraction(0.05))
    with mpmath.workdps(50):
        truth = mpmath.sqrt(20 * mpmath.log(5 / mpmath.mpf(0.05)))
        assert truth <= mpmath.mpf(radius) <= truth * (1 + mpmath.mpf(2) ** -51)


def test_worst_case_rounds_are_counted_exactly() -> None:
    assert worst_case_rounds(Fraction(1, 2), sigma=10, clip=1) == 100
    assert worst_case_rounds("0.3", sigma=1, clip=1, order="0.2") == 3  # doubles give 2.9999999999999996
    assert worst_case_rounds(Fraction(1, 2) - Fraction(1, 10**30), sigma=10, clip=1) == 99


@pytest.mark.parametrize(
    ("budget", "sigma", "clip", "whole"),
    [
        ("0.5", 10.0, 1.0, True),
        ("0.5", 0.3, 0.1, False),
        ("50", 0.3, 1.0, False),
        ("0.45", 10.0, 1.0, True),
        ("0.7", 3.0, 0.9, False),
    ],
)
def test_everybody_pays_for_the_worst_case_rounds_but_perhaps_the_last(
    budget: str, sigma: float, clip: float, whole: bool
) -> None:
    rounds = worst_case_rounds(budget, sigma=sigma, clip=clip)
    losses = losses_of_linear_query([clip], sigma=sigma)
    state, paid = IndividualFilter(budget, 1), []
    for _ in range(rounds + 1):
        state, active = state.step(losses)
        paid.append(bool(active[0]))
    assert all(paid[: rounds - 1])
    assert paid[rounds - 1] or whole
    assert not paid[rounds]


@pytest.mark.parametrize(
    "make",
    [
        lambda: norm_budget_radius(1, rho=1, coordinates=1, delta=1),
        lambda: norm_budget_radius(1, rho=1, coordinates=0, delta="0.1"),
        lambda: norm_budget_variance(1, rho=0),
        lambda: worst_case_rounds(1, sigma=1, clip=0),
        lambda: rho_of_descent(-1, noise_multiplier=1),
    ],
)
def test_bad_settings_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidValueError):
        make()
