"""One Renyi order and (epsilon, delta): linear in each other, so closed forms."""

from __future__ import annotations

import math

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accounting.conversions.oracles import epsilon_at, is_just_above, log_delta_at, real
from dpnb.accounting.conversions import (
    delta_from_rdp,
    epsilon_from_rdp,
    epsilon_from_rho,
    rdp_from_epsilon,
    rdp_from_mu,
)
from dpnb.accounting.exact import Number, exact
from dpnb.errors import InvalidValueError

orders = st.floats(-6, 6).map(lambda x: 1 + 10**x)
rdps = st.floats(-12, 4).map(lambda x: 10**x)
epsilons = st.floats(-9, 3).map(lambda x: 10**x)
deltas = st.floats(-300, -1e-2).map(lambda x: 10**x)
methods = st.sampled_from(["tight", "simple"])


@given(order=orders, rdp=rdps, delta=deltas)
@example(order=1.0000001, rdp=1e4, delta=1e-300)
@example(order=1e6, rdp=1e-12, delta=0.9)
def test_epsilon_is_the_printed_figure_rounded_up(order: float, rdp: float, delta: float) -> None:
    with mpmath.workdps(80):
        a, r, d = real(exact(order)), real(exact(rdp)), real(exact(delta))
        tight, simple = epsilon_at(a, r, d), r + mpmath.log(1 / d) / (a - 1)
        assert is_just_above(epsilon_from_rdp(order, rdp, delta=delta), max(tight, mpmath.mpf(0)))
        assert is_just_above(epsilon_from_rdp(order, rdp, delta=delta, method="simple"), simple)


@given(order=orders, rdp=rdps, epsilon=epsilons)
@example(order=1.0000001, rdp=1.0, epsilon=1.0)
def test_delta_is_the_printed_figure_rounded_up(order: float, rdp: float, epsilon: float) -> None:
    with mpmath.workdps(80):
        a, r, e = real(exact(order)), real(exact(rdp)), real(exact(epsilon))
        for method, log_delta in (("tight", log_delta_at(a, r, e)), ("simple", (a - 1) * (r - e))):
            delta = delta_from_rdp(order, rdp, epsilon=epsilon, method=method)
            if log_delta < -700:
                assert 0 < delta < 1e-300
            else:
                assert is_just_above(delta, mpmath.exp(min(log_delta, mpmath.mpf(0))))


@given(order=orders, more=epsilons, delta=deltas, method=methods)
def test_a_budget_of_one_order_keeps_what_it_was_made_from(
    order: float, more: float, delta: float, method: str
) -> None:
    epsilon = epsilon_from_rdp(order, 0, delta=delta, method=method) + more  # below that there is no budget
    rdp = rdp_from_epsilon(epsilon, order=order, delta=delta, method=method)
    assert rdp >= 0
    back = epsilon_from_rdp(order, rdp, delta=delta, method=method)
    # What cancels between rdp and the conversion is lost from the digits of epsilon.
    assert back <= epsilon * (1 + 1e-15)
    assert back >= epsilon - 1e-15 * (epsilon + rdp)


def test_an_order_that_shows_nothing_has_a_negative_budget() -> None:
    assert rdp_from_epsilon(1, order=2, delta=1e-6) < 0
    assert rdp_from_epsilon(1, order=2, delta=0) == -math.inf


@given(a=rdps, b=rdps, order=orders, delta=deltas, method=methods)
def test_more_divergence_promises_less(a: float, b: float, order: float, delta: float, method: str) -> None:
    small, large = sorted((a, b))
    low = epsilon_from_rdp(order, small, delta=delta, method=method)
    assert low <= epsilon_from_rdp(order, large, delta=delta, method=method)
    assert low <= epsilon_from_rdp(order, small, delta=delta, method="simple")


@given(rho=st.floats(-6, 2).map(lambda x: 10**x), order=orders, delta=deltas)
def test_one_order_of_zcdp_is_never_better_than_all_of_them(rho: float, order: float, delta: float) -> None:
    rdp = exact(rho) * exact(order)
    assert epsilon_from_rho(rho, delta=delta) <= epsilon_from_rdp(order, rdp, delta=delta)


def test_gaussian_divergence_is_order_times_half_of_mu_squared() -> None:
    assert rdp_from_mu(0.3, order=1.5) == 0.0675
    assert rdp_from_mu(0, order=8) == 0.0


@pytest.mark.parametrize("order", [1, 0.5, -2, 0, math.nan, math.inf, None, True, "two"])
def test_order_out_of_range_is_refused(order: Number) -> None:
    for call in (
        lambda: epsilon_from_rdp(order, 1, delta=1e-6),
        lambda: delta_from_rdp(order, 1, epsilon=1),
        lambda: rdp_from_epsilon(1, order=order, delta=1e-6),
        lambda: rdp_from_mu(1, order=order),
    ):
        with pytest.raises(InvalidValueError, match=r"^order must .*got"):
            call()


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, None, True, "one"])
def test_other_numbers_out_of_range_are_refused(bad: Number) -> None:
    for call in (
        lambda: epsilon_from_rdp(2, bad, delta=1e-6),
        lambda: epsilon_from_rdp(2, 1, delta=bad),
        lambda: delta_from_rdp(2, 1, epsilon=bad),
        lambda: rdp_from_epsilon(bad, order=2, delta=1e-6),
        lambda: rdp_from_mu(bad, order=2),
    ):
        with pytest.raises(InvalidValueError, match=r"^(rdp|delta|epsilon|mu) must .*got"):
            call()
