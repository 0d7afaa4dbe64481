"""mu and (epsilon, delta): the exact curve, on the safe side of it, and no further than one double."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from accounting.conversions.oracles import delta_by_quadrature, delta_exceeds, delta_printed
from dpnb.accounting.conversions import delta_from_mu, epsilon_from_mu, mu_from_epsilon, rho_from_mu
from dpnb.accounting.exact import Number, exact
from dpnb.errors import InvalidValueError

mus = st.floats(-9, math.log10(50)).map(lambda x: 10**x)
epsilons = st.just(0.0) | st.floats(-9, 3).map(lambda x: 10**x)
deltas = st.floats(-300, -1e-3).map(lambda x: 10**x)


@given(mu=mus, epsilon=epsilons)
def test_delta_is_the_smallest_double_not_below_the_curve(mu: float, epsilon: float) -> None:
    assume(epsilon / mu - mu / 2 < 36)
    delta = delta_from_mu(mu, epsilon=epsilon)
    assert not delta_exceeds(mu, epsilon, delta)
    assert delta_exceeds(mu, epsilon, math.nextafter(delta, 0))


@given(mu=mus, delta=deltas)
@example(mu=1e-9, delta=1e-300)
@example(mu=50.0, delta=1e-300)
@example(mu=1e-6, delta=3.98e-7)
@example(mu=50.0, delta=1 - 1e-12)
def test_epsilon_is_the_smallest_double_that_keeps_delta(mu: float, delta: float) -> None:
    epsilon = epsilon_from_mu(mu, delta=delta)
    assert not delta_exceeds(mu, epsilon, delta)
    assert not epsilon or delta_exceeds(mu, math.nextafter(epsilon, 0), delta)


@given(epsilon=epsilons, delta=deltas)
@example(epsilon=0.0, delta=1e-300)
@example(epsilon=1e-9, delta=0.999)
@example(epsilon=1000.0, delta=1e-300)
@example(epsilon=1e-300, delta=1e-300)
def test_mu_is_the_largest_double_that_keeps_epsilon_and_delta(epsilon: float, delta: float) -> None:
    mu = mu_from_epsilon(epsilon, delta=delta)
    assert not delta_exceeds(mu, epsilon, delta)
    assert delta_exceeds(math.nextafter(mu, math.inf), epsilon, delta)


@pytest.mark.parametrize(
    ("mu", "epsilon"), [(1, 1), (1, 8), ("0.01", "0.05"), (5, 30), (5, 1), ("1e-6", "1e-6"), (3, 0)]
)
def test_curve_is_the_integral_of_its_slope(mu: Number, epsilon: Number) -> None:
    truth = delta_by_quadrature(exact(mu), exact(epsilon))
    assert math.isclose(delta_from_mu(mu, epsilon=epsilon), float(truth), rel_tol=1e-14)


@given(mu=mus, epsilon=epsilons)
def test_round_trip_through_delta_never_favours_the_analyst(mu: float, epsilon: float) -> None:
    delta = delta_from_mu(mu, epsilon=epsilon)
    assume(delta < 1)
    # delta was rounded up: it allows at least this mu, and no more epsilon than was asked.
    assert mu_from_epsilon(epsilon, delta=delta) >= mu
    assert epsilon_from_mu(mu, delta=delta) <= epsilon


@given(epsilon=epsilons, delta=deltas)
def test_round_trip_through_mu_keeps_the_promise(epsilon: float, delta: float) -> None:
    mu = mu_from_epsilon(epsilon, delta=delta)
    assert delta_from_mu(mu, epsilon=epsilon) <= delta
    assert epsilon_from_mu(mu, delta=delta) <= epsilon


@given(a=mus, b=mus, epsilon=epsilons, delta=deltas)
def test_a_larger_mu_promises_less(a: float, b: float, epsilon: float, delta: float) -> None:
    small, large = sorted((a, b))
    assert delta_from_mu(small, epsilon=epsilon) <= delta_from_mu(large, epsilon=epsilon)
    assert epsilon_from_mu(small, delta=delta) <= epsilon_from_mu(large, delta=delta)


@given(a=epsilons, b=epsilons, mu=mus, delta=deltas)
def test_more_epsilon_needs_less_delta_and_allows_more_mu(a: float, b: float, mu: float, delta: float) -> None:
    small, large = sorted((a, b))
    assert delta_from_mu(mu, epsilon=small) >= delta_from_mu(mu, epsilon=large)
    assert mu_from_epsilon(small, delta=delta) <= mu_from_epsilon(large, delta=delta)


def test_epsilon_is_zero_once_delta_covers_the_total_variation() -> None:
    # For mu = 0.1 the total variation is 0.039877...
    assert epsilon_from_mu("0.1", delta="0.03988") == 0.0
    assert epsilon_from_mu("0.1", delta="0.03987") > 0.0


def test_nothing_is_promised_without_delta() -> None:
    assert epsilon_from_mu(1, delta=0) == math.inf
    assert mu_from_epsilon(1, delta=0) == 0.0


def test_a_free_release_promises_everything() -> None:
    assert epsilon_from_mu(0, delta=0) == 0.0
    assert delta_from_mu(0, epsilon=0) == 0.0


def test_delta_below_every_double_is_not_rounded_away() -> None:
    assert delta_from_mu("0.01", epsilon=1) == 5e-324
    assert delta_from_mu(1e-9, epsilon=1e9) == 5e-324


def test_delta_is_never_above_one() -> None:
    assert delta_from_mu(1e9, epsilon=0) == 1.0
    assert delta_from_mu(1e300, epsilon=1) == 1.0


def test_deltas_below_every_double_can_be_asked_for() -> None:
    epsilon = epsilon_from_mu(1, delta="1e-3000")
    truth = delta_printed(Fraction(1), exact(epsilon), digits=60)
    with mpmath.workdps(60):
        assert truth <= mpmath.mpf(10) ** -3000 <= truth * (1 + mpmath.mpf(10) ** -12)


def test_what_no_double_can_tell_is_answered_at_once_on_the_safe_side() -> None:
    assert epsilon_from_mu(Fraction(1, 10**5000), delta=Fraction(1, 10**5001)) == math.inf
    assert 0 < epsilon_from_mu(Fraction(1, 10**5000), delta="1e-400") <= 1e-300
    assert epsilon_from_mu(Fraction(10**5000), delta=0.1) == math.inf
    assert 1e307 < mu_from_epsilon(Fraction(10**5000), delta=0.1) < math.inf
    assert mu_from_epsilon(0, delta=Fraction(1, 2**99000)) == 0.0


@pytest.mark.parametrize("mu", ["1e6", "1e30", "1e100"])
def test_enormous_mu_is_answered(mu: str) -> None:
    epsilon = epsilon_from_mu(mu, delta="1e-6")
    # (mu^2/2 + z mu): the normal loss at its quantile.
    assert exact(epsilon) >= exact(mu) ** 2 / 2
    assert exact(epsilon) <= (exact(mu) ** 2 / 2 + 5 * exact(mu)) * (1 + Fraction(1, 10**15))


def test_rho_is_half_of_mu_squared_rounded_up() -> None:
    assert rho_from_mu(0.2) == 0.02
    assert exact(rho_from_mu("0.12345678901234567")) >= exact("0.12345678901234567") ** 2 / 2


def test_the_decimal_that_was_written_is_what_is_converted() -> None:
    assert epsilon_from_mu(0.3, delta=0.01) == epsilon_from_mu("3/10", delta="1/100")


@pytest.mark.parametrize("bad", [-1, "-1e-300", math.nan, math.inf, None, True, "one"])
def test_mu_and_epsilon_out_of_range_are_refused(bad: Number) -> None:
    for call in (
        lambda: delta_from_mu(bad, epsilon=1),
        lambda: delta_from_mu(1, epsilon=bad),
        lambda: epsilon_from_mu(bad, delta=1e-6),
        lambda: mu_from_epsilon(bad, delta=1e-6),
        lambda: rho_from_mu(bad),
    ):
        with pytest.raises(InvalidValueError, match=r"^(mu|epsilon) must .*got"):
            call()


@pytest.mark.parametrize("bad", [-1e-9, 1, 1.5, math.nan, math.inf, None, True, "one"])
def test_delta_out_of_range_is_refused(bad: Number) -> None:
    for call in (lambda: epsilon_from_mu(1, delta=bad), lambda: mu_from_epsilon(1, delta=bad)):
        with pytest.raises(InvalidValueError, match=r"^delta must .*got"):
            call()
