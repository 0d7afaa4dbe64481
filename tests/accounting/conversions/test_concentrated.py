"""rho-zCDP and (epsilon, delta): the best order, and no further than a double from its figure."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accounting.conversions.oracles import best_over_orders, epsilon_at, is_just_above, log_delta_at, real
from dpnb.accounting.conversions import (
    delta_from_rho,
    epsilon_from_mu,
    epsilon_from_rdp,
    epsilon_from_rho,
    optimal_order,
    rdp_from_epsilon,
    rho_from_epsilon,
)
from dpnb.accounting.exact import Number, exact
from dpnb.errors import InvalidValueError

rhos = st.floats(-12, 4).map(lambda x: 10**x)
epsilons = st.floats(-9, 3).map(lambda x: 10**x)
deltas = st.floats(-300, -1e-2).map(lambda x: 10**x)


@given(rho=rhos, delta=deltas)
@example(rho=1e-12, delta=1e-300)
@example(rho=1e4, delta=1e-300)
@example(rho=1e-12, delta=0.97)
@example(rho=1e4, delta=0.97)
def test_epsilon_is_the_figure_of_the_best_order(rho: float, delta: float) -> None:
    with mpmath.workdps(80):
        r, d = real(exact(rho)), real(exact(delta))
        truth = best_over_orders(lambda a: epsilon_at(a, a * r, d))
    assert is_just_above(epsilon_from_rho(rho, delta=delta), max(truth, mpmath.mpf(0)))


@given(rho=rhos, epsilon=epsilons)
@example(rho=0.5, epsilon=1e-9)
@example(rho=1e4, epsilon=9e3)
@example(rho=1e-6, epsilon=0.03)
def test_delta_is_the_figure_of_the_best_order(rho: float, epsilon: float) -> None:
    with mpmath.workdps(80):
        r, e = real(exact(rho)), real(exact(epsilon))
        log_delta = min(best_over_orders(lambda a: log_delta_at(a, a * r, e)), mpmath.mpf(0))
        truth = mpmath.exp(log_delta)
    delta = delta_from_rho(rho, epsilon=epsilon)
    if log_delta < -700:
        assert delta < 1e-300
        assert real(exact(delta)) >= truth
    else:
        assert is_just_above(delta, truth)


@given(epsilon=epsilons, delta=deltas)
@example(epsilon=1e-9, delta=0.9)
@example(epsilon=1e3, delta=1e-300)
def test_rho_is_the_largest_that_keeps_epsilon_and_delta(epsilon: float, delta: float) -> None:
    with mpmath.workdps(80):
        e, d = real(exact(epsilon)), real(exact(delta))
        truth = -best_over_orders(lambda a: (epsilon_at(a, mpmath.mpf(0), d) - e) / a)
    rho = rho_from_epsilon(epsilon, delta=delta)
    with mpmath.workdps(80):
        assert truth * (1 - mpmath.mpf(2) ** -51) <= real(exact(rho)) <= truth
    assert epsilon_from_rho(rho, delta=delta) <= epsilon * (1 + 1e-15)


@given(a=rhos, b=rhos, delta=deltas, epsilon=epsilons)
def test_a_larger_rho_promises_less(a: float, b: float, delta: float, epsilon: float) -> None:
    small, large = sorted((a, b))
    for method in ("tight", "simple"):
        assert epsilon_from_rho(small, delta=delta, method=method) <= epsilon_from_rho(
            large, delta=delta, method=method
        )
        assert delta_from_rho(small, epsilon=epsilon, method=method) <= delta_from_rho(
            large, epsilon=epsilon, method=method
        )


@given(rho=rhos, delta=deltas, epsilon=epsilons)
def test_the_tight_conversion_is_never_worse_than_the_simple_one(rho: float, delta: float, epsilon: float) -> None:
    assert epsilon_from_rho(rho, delta=delta) <= epsilon_from_rho(rho, delta=delta, method="simple")
    assert delta_from_rho(rho, epsilon=epsilon) <= delta_from_rho(rho, epsilon=epsilon, method="simple")
    assert rho_from_epsilon(epsilon, delta=delta) >= rho_from_epsilon(epsilon, delta=delta, method="simple")


@given(mu=st.floats(-6, 1.6).map(lambda x: 10**x), delta=deltas)
def test_a_gaussian_release_is_worth_less_as_zcdp_than_as_itself(mu: float, delta: float) -> None:
    assert epsilon_from_mu(mu, delta=delta) <= epsilon_from_rho(exact(mu) ** 2 / 2, delta=delta)


@given(epsilon=epsilons, delta=deltas)
def test_simple_round_trip_is_on_the_safe_side_and_loses_nothing_visible(epsilon: float, delta: float) -> None:
    rho = rho_from_epsilon(epsilon, delta=delta, method="simple")
    back = epsilon_from_rho(rho, delta=delta, method="simple")
    assert math.isclose(back, epsilon, rel_tol=1e-15)


@given(epsilon=st.floats(-3, 2).map(lambda x: 10**x), delta=st.floats(-15, -1).map(lambda x: 10**x))
def test_the_order_chosen_beforehand_loses_next_to_nothing_for_zcdp(epsilon: float, delta: float) -> None:
    order = optimal_order(epsilon, delta=delta)
    assert order > 1
    reached = exact(rdp_from_epsilon(epsilon, order=order, delta=delta)) / exact(order)
    best = exact(rho_from_epsilon(epsilon, delta=delta))
    assert best * Fraction(99999, 100000) <= reached <= best
    assert epsilon_from_rdp(order, reached * exact(order), delta=delta) <= epsilon * (1 + 1e-15)


def test_figures_of_the_papers_are_met() -> None:
    # rho = 1/2 at delta = 1e-6: the Gaussian curve itself, this conversion, and the simple one.
    assert f"{epsilon_from_mu(1, delta=1e-6):.4f}" == "4.8866"
    assert f"{epsilon_from_rho(0.5, delta=1e-6):.4f}" == "5.2215"
    assert f"{epsilon_from_rho(0.5, delta=1e-6, method='simple'):.4f}" == "5.7565"


def test_nothing_is_promised_without_delta_and_nothing_is_lost_without_rho() -> None:
    for method in ("tight", "simple"):
        assert epsilon_from_rho(1, delta=0, method=method) == math.inf
        assert rho_from_epsilon(1, delta=0, method=method) == 0.0
        assert epsilon_from_rho(0, delta=0, method=method) == 0.0
        assert delta_from_rho(0, epsilon=0, method=method) == 0.0
    assert delta_from_rho(5, epsilon=5, method="simple") == 1.0


@pytest.mark.parametrize("bad", [-1, "-1e-300", math.nan, math.inf, None, True, "one"])
def test_rho_and_epsilon_out_of_range_are_refused(bad: Number) -> None:
    for call in (
        lambda: epsilon_from_rho(bad, delta=1e-6),
        lambda: delta_from_rho(bad, epsilon=1),
        lambda: delta_from_rho(1, epsilon=bad),
        lambda: rho_from_epsilon(bad, delta=1e-6),
        lambda: optimal_order(bad, delta=1e-6),
    ):
        with pytest.raises(InvalidValueError, match=r"^(rho|epsilon) must .*got"):
            call()


@pytest.mark.parametrize("bad", [-1e-9, 1, 1.5, math.nan, None, "one"])
def test_delta_out_of_range_is_refused(bad: Number) -> None:
    for call in (lambda: epsilon_from_rho(1, delta=bad), lambda: rho_from_epsilon(1, delta=bad)):
        with pytest.raises(InvalidValueError, match=r"^delta must .*got"):
            call()


@pytest.mark.parametrize("method", ["best", "", None, 1, ["tight"]])
def test_unknown_method_is_refused_with_both_names(method: str) -> None:
    for call in (
        lambda: epsilon_from_rho(1, delta=1e-6, method=method),
        lambda: delta_from_rho(1, epsilon=1, method=method),
        lambda: rho_from_epsilon(1, delta=1e-6, method=method),
    ):
        with pytest.raises(InvalidValueError, match="method must be 'tight' or 'simple', got"):
            call()
