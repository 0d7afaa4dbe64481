"""The curves of the time-uniform odometers, against 60 digits and against each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpnb.accounting.losses import GDP, RDP, ZCDP, ApproxDP, PureDP
from dpnb.accounting.odometers import (
    FilterOdometer,
    MixtureOdometer,
    RenyiOdometer,
    RogersOdometer,
    Sided,
    StitchedOdometer,
)
from dpnb.errors import InvalidValueError
from rationals import fractions

SIDES: list[Sided] = ["one", "two"]
deltas = st.builds(lambda x: Fraction(10) ** -int(x) / 3, st.integers(0, 299)) | fractions(
    Fraction(1, 10**9), 1 - Fraction(1, 10**12)
)
usual_deltas = deltas.filter(lambda delta: delta < Fraction(1, 10))
scales = st.floats(1e-12, 1e12)


def _mpf(x: Fraction | float) -> Any:
    number = Fraction(x)
    return mpmath.mpf(number.numerator) / number.denominator


def _between(bound: float, formula: Callable[[], Any]) -> None:
    """The bound is not below the formula at 60 digits, and at most 1e-12 above."""
    with mpmath.workdps(60):
        truth = formula()
        assert truth <= bound <= truth * (1 + mpmath.mpf(10) ** -12)


def _log_inverse(delta: Fraction) -> Any:
    return -mpmath.log(_mpf(delta))


def pointwise(v: float, delta: Fraction) -> float:
    """The curve that holds at one V fixed beforehand."""
    return math.sqrt(2 * v) * math.sqrt(math.log(1 / delta)) + v / 2


@pytest.mark.parametrize("sided", SIDES)
@given(v=scales, gamma=scales, delta=deltas)
def test_mixture_is_never_below_its_formula(sided: Sided, v: float, gamma: float, delta: Fraction) -> None:
    def formula() -> Any:
        g, big_v = _mpf(gamma), _mpf(v)
        q = mpmath.sqrt((big_v + g) / g) / _mpf(delta)
        return mpmath.sqrt(2 * (big_v + g) * mpmath.log((1 + q) / 2 if sided == "one" else q)) + big_v / 2

    _between(MixtureOdometer(Fraction(gamma), delta, sided).bound_at(Fraction(v)), formula)


@given(v=scales, epsilon=scales, delta=deltas)
def test_line_is_never_below_its_formula(v: float, epsilon: float, delta: Fraction) -> None:
    def formula() -> Any:
        root = mpmath.sqrt(2 * _log_inverse(delta))
        root_y = mpmath.sqrt(2 * _log_inverse(delta) + 2 * _mpf(epsilon)) - root
        return root * root_y / 2 + root / root_y * _mpf(v) / 2 + _mpf(v) / 2

    _between(FilterOdometer(Fraction(epsilon), delta).bound_at(Fraction(v)), formula)


@given(v=scales, v0=scales, delta=deltas)
def test_stitched_curve_is_never_below_its_formula(v: float, v0: float, delta: Fraction) -> None:
    def formula() -> Any:
        at = max(_mpf(v), _mpf(v0))
        inside = mpmath.log(mpmath.log(2 * at / _mpf(v0))) + mpmath.mpf(18) / 25 * mpmath.log(
            mpmath.mpf(26) / 5 / _mpf(delta)
        )
        return mpmath.mpf(17) / 10 * mpmath.sqrt(at * inside) + _mpf(v) / 2

    _between(StitchedOdometer(Fraction(v0), delta).bound_at(Fraction(v)), formula)


@example(epsilon=1.0, n=2, delta=Fraction(1, 10))
@example(epsilon=1 / 1024, n=1024, delta=Fraction(1, 10))
@given(
    epsilon=st.floats(1e-9, 100),
    n=st.integers(2, 10**9),
    delta=deltas.filter(lambda delta: delta < Fraction(36, 100)),
)
def test_rogers_curve_is_never_below_its_formula(epsilon: float, n: int, delta: Fraction) -> None:
    def formula() -> Any:
        e = _mpf(epsilon)
        log_d = mpmath.log(4 * mpmath.log(n, 2)) + _log_inverse(delta)
        if Fraction(1, n**2) <= Fraction(epsilon) ** 2 <= 1:
            deviation = 2 * mpmath.sqrt(e**2 * (1 + mpmath.log(3) / 2) * log_d)
        else:
            deviation = mpmath.sqrt(2 * (mpmath.mpf(1) / n**2 + e**2) * (1 + mpmath.log(1 + n**2 * e**2) / 2) * log_d)
        return e * (mpmath.exp(e) - 1) / 2 + deviation

    _between(RogersOdometer(n, delta).step(PureDP(Fraction(epsilon))).bound, formula)


@given(rho=scales, order=st.floats(1, 1e6, exclude_min=True), delta=deltas)
def test_renyi_odometer_is_never_below_its_formula(rho: float, order: float, delta: Fraction) -> None:
    def formula() -> Any:
        return _mpf(rho) + _log_inverse(delta) / (_mpf(order) - 1)

    exact_order = Fraction(order)
    _between(RenyiOdometer(exact_order, delta).step(RDP({exact_order: Fraction(rho)})).bound, formula)


@given(v=scales, at=st.floats(1e-3, 1e3), delta=usual_deltas)
def test_pointwise_curve_lies_below_every_time_uniform_odometer(v: float, at: float, delta: Fraction) -> None:
    read = [
        FilterOdometer.tuned(v * at, delta).bound_at(v),
        MixtureOdometer.tuned(v * at, delta, "one").bound_at(v),
        MixtureOdometer.tuned(v * at, delta, "two").bound_at(v),
        StitchedOdometer(v * at, delta).bound_at(v),
        RogersOdometer(1000, delta).step(ApproxDP(math.sqrt(v))).bound,
        RenyiOdometer(1 + at, delta).step(ZCDP(v / 2)).bound,
    ]
    assert min(read) >= pointwise(v, delta) * (1 - 1e-9)


@given(epsilon=scales, delta=deltas)
def test_y_solves_the_curve_for_epsilon_itself_not_for_half_of_it(epsilon: float, delta: Fraction) -> None:
    odometer = FilterOdometer(epsilon, delta)
    assert odometer.bound_at(Fraction(odometer.y)) == pytest.approx(epsilon, rel=1e-12)


def test_printed_y_of_the_line_is_valid_but_looser_at_its_target() -> None:
    twice_log = 2 * math.log(1e6)
    printed = FilterOdometer.tuned((math.sqrt(twice_log + 1) - math.sqrt(twice_log)) ** 2, 1e-6)
    ours = FilterOdometer(1, 1e-6)
    assert ours.bound_at(Fraction(ours.y)) == pytest.approx(1, rel=1e-12)
    assert printed.bound_at(Fraction(ours.y)) == pytest.approx(1.239, abs=5e-4)


@given(y=scales, delta=usual_deltas, factor=st.floats(1e-3, 1e3))
def test_line_touches_the_pointwise_curve_at_y_and_nowhere_else(y: float, delta: Fraction, factor: float) -> None:
    odometer = FilterOdometer.tuned(y, delta)
    assert odometer.bound_at(y) == pytest.approx(pointwise(y, delta), rel=1e-12)
    if abs(factor - 1) > 0.01:
        assert odometer.bound_at(y * factor) > pointwise(y * factor, delta)


@given(v=scales, factor=st.floats(0.01, 100), delta=deltas)
def test_tuned_line_is_the_lowest_line_at_its_v(v: float, factor: float, delta: Fraction) -> None:
    assert FilterOdometer.tuned(v, delta).bound_at(v) <= FilterOdometer.tuned(v * factor, delta).bound_at(v) * (
        1 + 1e-12
    )


@pytest.mark.parametrize("sided", SIDES)
@given(v=st.floats(1e-9, 1e9), delta=deltas.filter(lambda d: d < Fraction(9, 10)), factor=st.floats(0.01, 100))
def test_tuned_mixture_is_the_lowest_mixture_at_its_v(sided: Sided, v: float, delta: Fraction, factor: float) -> None:
    tuned = MixtureOdometer.tuned(v, delta, sided)
    other = MixtureOdometer(tuned.gamma * factor, delta, sided)
    assert tuned.bound_at(v) <= other.bound_at(v) * (1 + 1e-13)


@given(v=scales, gamma=scales, delta=deltas)
def test_one_sided_mixture_is_never_above_the_printed_one(v: float, gamma: float, delta: Fraction) -> None:
    one, two = (MixtureOdometer(gamma, delta, sided).bound_at(v) for sided in SIDES)
    assert one <= two


def test_renyi_odometer_of_the_lines_order_is_the_line() -> None:
    odometer, v = FilterOdometer.tuned("0.5", 1e-6), Fraction("0.3")
    order = 1 + math.sqrt(2 * math.log(1e6) / odometer.y)
    assert RenyiOdometer(order, 1e-6).step(ZCDP(v / 2)).bound == pytest.approx(odometer.bound_at(v), rel=1e-12)


def test_below_v0_the_stitched_curve_reads_its_value_at_v0_or_infinity_as_asked() -> None:
    finite, printed = StitchedOdometer(0.01, 1e-6), StitchedOdometer(0.01, 1e-6, below="infinity")
    assert finite.bound_at("0.004") == pytest.approx(finite.bound_at("0.01") - 0.003, rel=1e-12)
    assert printed.bound_at("0.009999") == math.inf
    # v0 itself belongs to the curve, also when it is no double.
    assert printed.bound_at("0.01") == finite.bound_at("0.01") < math.inf
    assert printed.bound == printed.bound_at(0) == 0
    assert "No number is known" in printed.step(GDP(0.01)).statement()


@given(epsilon=st.floats(1e-9, 100), n=st.integers(8, 10**6))
def test_rogers_curve_rises_across_its_branches(epsilon: float, n: int) -> None:
    def at(size: Fraction) -> float:
        return RogersOdometer(n, 1e-6).step(PureDP(size)).bound

    step = 1 + Fraction(1, 10**9)
    for size in (Fraction(epsilon), Fraction(1, n), Fraction(1)):
        assert at(size / step) <= at(size) <= at(size * step)


def test_curves_stay_numbers_where_powers_would_overflow() -> None:
    extreme = [
        MixtureOdometer(1e-300, delta=1e-300),
        FilterOdometer.tuned(1e300, 1e-300),
        StitchedOdometer(1e-300, 1e-300),
    ]
    for odometer in extreme:
        assert 1e300 / 2 < odometer.bound_at(1e300) < math.inf
        assert odometer.bound_at("1e400") == math.inf
        assert odometer.bound_at("1e-400") > 0
        assert "No number is known" in odometer.step(GDP("1e200")).statement()


@pytest.mark.parametrize("odometer", [MixtureOdometer(1, 1e-6), FilterOdometer(1, 1e-6), StitchedOdometer(1, 1e-6)])
def test_bound_at_agrees_with_the_bound_that_is_reached(odometer: Any) -> None:
    reached = odometer.step(GDP(0.3)).step(GDP(0.4))
    assert reached.v == Fraction(1, 4)
    assert reached.bound == odometer.bound_at(0.25)
    with pytest.raises(InvalidValueError, match=r"^v must not be negative"):
        odometer.bound_at(-1)


def test_one_release_lies_well_above_its_mean_loss_and_below_nothing() -> None:
    odometer = MixtureOdometer.tuned(1, delta=1e-6).step(GDP(1))
    # Pointwise, a normal loss of variance 1 needs 1/2 + 4.75 for one in a million; at all times at once, more.
    assert 0.5 + 4.75 < odometer.bound < 6.1
