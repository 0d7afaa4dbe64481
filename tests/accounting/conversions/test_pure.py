"""epsilon-DP in other terms: what randomised response attains, no more and no less."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accounting.conversions.oracles import is_just_above, real
from dpnb.accounting.conversions import (
    epsilon_from_pure,
    mu_from_pure,
    pointwise_delta,
    rdp_from_pure,
    rho_from_pure,
)
from dpnb.accounting.exact import Number, exact
from dpnb.errors import InvalidValueError

epsilons = st.floats(-9, 3).map(lambda x: 10**x)
deltas = st.floats(-300, -1e-2).map(lambda x: 10**x)
orders = st.floats(-4, 4).map(lambda x: 1 + 10**x)


@given(epsilon=epsilons)
def test_rho_is_the_mean_loss_of_randomised_response(epsilon: float) -> None:
    with mpmath.workdps(80):
        e = real(exact(epsilon))
        p = mpmath.exp(e) / (1 + mpmath.exp(e))
        assert is_just_above(rho_from_pure(epsilon), p * e - (1 - p) * e)
        assert is_just_above(rho_from_pure(epsilon, "simple"), e * e / 2)
    assert rho_from_pure(epsilon) <= rho_from_pure(epsilon, method="simple")


@given(epsilon=epsilons, order=orders)
@example(epsilon=1e-9, order=1.0001)
@example(epsilon=1e3, order=1e4)
def test_rdp_is_the_divergence_of_randomised_response(epsilon: float, order: float) -> None:
    with mpmath.workdps(200):
        e, a = real(exact(epsilon)), real(exact(order))
        p, q = 1 / (1 + mpmath.exp(-e)), 1 / (1 + mpmath.exp(e))
        truth = mpmath.log(p * (p / q) ** (a - 1) + q * (q / p) ** (a - 1)) / (a - 1)
        assert is_just_above(rdp_from_pure(epsilon, order=order), truth)
    # No order shows more than order times rho, nor more than epsilon.
    assert rdp_from_pure(epsilon, order=order) <= min(epsilon, order * rho_from_pure(epsilon) * (1 + 1e-15))


@given(epsilon=epsilons)
@example(epsilon=0.99)
@example(epsilon=1.0)
@example(epsilon=1e3)
def test_mu_is_the_smallest_whose_curve_is_below_the_kink(epsilon: float) -> None:
    mu = mu_from_pure(epsilon)
    with mpmath.workdps(600):

        def error(m: float) -> mpmath.mpf:  # the error of either kind where the test between N(0, 1), N(m, 1) is fair
            return mpmath.erfc(real(exact(m)) / 2 / mpmath.sqrt(2)) / 2

        kink = 1 / (1 + mpmath.exp(real(exact(epsilon))))
        assert error(mu) <= kink < error(math.nextafter(math.nextafter(mu, 0), 0))


@given(epsilon=epsilons, delta=deltas)
@example(epsilon=1.0, delta=0.4621171572600097)
@example(epsilon=1.0, delta=0.46)
def test_epsilon_for_a_delta_is_where_randomised_response_exceeds_it(epsilon: float, delta: float) -> None:
    smaller = epsilon_from_pure(epsilon, delta=delta)
    with mpmath.workdps(900):
        e, d = real(exact(epsilon)), real(exact(delta))
        p, q = 1 / (1 + mpmath.exp(-e)), 1 / (1 + mpmath.exp(e))

        def excess(x: float) -> mpmath.mpf:
            return p - mpmath.exp(real(exact(x))) * q

        assert excess(smaller) <= d
        assert smaller == 0 or excess(math.nextafter(math.nextafter(smaller, 0), 0)) > d


@given(epsilon=epsilons, delta=deltas)
def test_pointwise_delta_is_attained_by_three_atoms(epsilon: float, delta: float) -> None:
    # P(loss >= 2 epsilon) = x, where P puts x and Q puts x e^(-2 epsilon) on the first atom; all other mass of P has
    # the loss -2 epsilon or 0, as in the proof of the corrected lemma.
    got = pointwise_delta(epsilon, delta=delta)
    with mpmath.workdps(80):
        e, d = real(exact(epsilon)), real(exact(delta))
        truth = min(d * (1 + mpmath.exp(-2 * e)) / (1 - mpmath.exp(-e)), mpmath.mpf(1))
        assert is_just_above(got, truth)
        printed = 2 * d / (e * mpmath.exp(e))
        assert truth == 1 or printed < truth


def test_the_pointwise_delta_in_print_is_below_what_three_atoms_have() -> None:
    # epsilon = 1, delta = 0.01.  Atoms 1 and 2 have the losses 2 and -2; P(atom 1) = x, Q(atom 2) = x, and atom 3 holds
    # the rest of both, with the loss 0 by symmetry.
    e, d = 1.0, 0.01
    x = d / (1 - math.exp(-e))
    p, q = (x, x * math.exp(-2 * e)), (x * math.exp(-2 * e), x)
    rest = 1 - sum(p)
    # It is (1, 0.01)-DP: what P has above e^epsilon Q is delta, in both directions.
    assert max(p[0] - math.exp(e) * q[0], 0) + max(rest - math.exp(e) * rest, 0) == pytest.approx(d)
    beyond = p[0] + p[1]
    assert beyond == pytest.approx(0.017961, abs=1e-6)
    assert pointwise_delta(e, delta=d) == pytest.approx(beyond)
    assert 2 * d / (e * math.exp(e)) < beyond / 2


@pytest.mark.parametrize("epsilon", [1, 2, 10])
@pytest.mark.parametrize("digits", [20, 58, 70, 200])
def test_epsilon_is_not_zero_where_the_delta_is_a_hair_too_small(epsilon: int, digits: int) -> None:
    with mpmath.workdps(300):
        variation = mpmath.tanh(mpmath.mpf(epsilon) / 2)
        delta = Fraction(int(mpmath.floor(variation * mpmath.mpf(10) ** digits)), 10**digits)
    assert epsilon_from_pure(epsilon, delta=delta) > 0
    assert epsilon_from_pure(epsilon, delta=delta + Fraction(2, 10**digits)) == 0


def test_ends_of_the_range() -> None:
    assert rho_from_pure(0) == mu_from_pure(0) == rdp_from_pure(0, order=2) == epsilon_from_pure(0, delta=0) == 0.0
    assert epsilon_from_pure(2, delta=0) == 2.0
    assert epsilon_from_pure(1, delta=0.5) == 0.0
    assert pointwise_delta(0, delta=0.1) == 1.0
    assert pointwise_delta(1, delta=0) == 0.0
    assert pointwise_delta(0.001, delta=0.9) == 1.0
    for huge in (10**6, 10**12):
        assert rho_from_pure(huge) == huge
        assert rdp_from_pure(huge, order=2) == huge
        assert Fraction(2828, 1000) * huge**0.5 < mu_from_pure(huge) < Fraction(2829, 1000) * huge**0.5


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, None, True, "one"])
def test_numbers_out_of_range_are_refused(bad: Number) -> None:
    for call in (
        lambda: rho_from_pure(bad),
        lambda: mu_from_pure(bad),
        lambda: rdp_from_pure(bad, order=2),
        lambda: epsilon_from_pure(bad, delta=0.1),
        lambda: epsilon_from_pure(1, delta=bad),
        lambda: pointwise_delta(bad, delta=0.1),
        lambda: pointwise_delta(1, delta=bad),
    ):
        with pytest.raises(InvalidValueError, match=r"^(epsilon|delta) must .*got"):
            call()
    with pytest.raises(InvalidValueError, match="method must be 'tight' or 'simple'"):
        rho_from_pure(1, "best")
