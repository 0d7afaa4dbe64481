"""The mixture odometer: the contract, and what is its own."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.odometers import OdometerContract
from dpnb.accounting.exact import Number
from dpnb.accounting.losses import GDP
from dpnb.accounting.odometers import MixtureOdometer, Sided
from dpnb.errors import ConversionError, InvalidValueError

SIDES: list[Sided] = ["one", "two"]
deltas = st.builds(lambda x: Fraction(10) ** -int(x) / 3, st.integers(0, 299)) | st.fractions(
    min_value=Fraction(1, 10**9), max_value=1 - Fraction(1, 10**12)
)
scales = st.floats(1e-12, 1e12)


class TestOneSidedMixture(OdometerContract):
    def fresh(self) -> MixtureOdometer:
        return MixtureOdometer.tuned(1, delta=1e-6)

    def loss(self, size: Fraction) -> GDP:
        return GDP.from_squared(size)


class TestTwoSidedMixture(OdometerContract):
    def fresh(self) -> MixtureOdometer:
        return MixtureOdometer("0.02", delta=1e-6, sided="two")

    def loss(self, size: Fraction) -> GDP:
        return GDP.from_squared(size)


def _boundary(v: Fraction, gamma: float, delta: Fraction, sided: Sided) -> mpmath.mpf:
    """The formula at 60 digits."""
    with mpmath.workdps(60):
        big_v, g = mpmath.mpf(v.numerator) / v.denominator, mpmath.mpf(gamma)
        q = mpmath.sqrt((big_v + g) / g) * delta.denominator / delta.numerator
        inside = (1 + q) / 2 if sided == "one" else q
        return mpmath.sqrt(2 * (big_v + g) * mpmath.log(inside)) + big_v / 2


@pytest.mark.parametrize("sided", SIDES)
@given(v=scales, gamma=scales, delta=deltas)
def test_bound_is_never_below_the_formula_and_hardly_above(
    sided: Sided, v: float, gamma: float, delta: Fraction
) -> None:
    odometer = MixtureOdometer(Fraction(gamma), delta, sided)
    truth = _boundary(Fraction(v), gamma, delta, sided)
    bound = odometer.bound_at(Fraction(v))
    assert truth <= bound <= truth * (1 + mpmath.mpf(10) ** -13)


@given(v=scales, gamma=scales, delta=deltas)
def test_one_sided_bound_is_never_above_the_printed_one(v: float, gamma: float, delta: Fraction) -> None:
    one, two = (MixtureOdometer(gamma, delta, sided).bound_at(v) for sided in SIDES)
    assert one <= two


@pytest.mark.parametrize("sided", SIDES)
@given(v=st.floats(1e-9, 1e9), delta=deltas.filter(lambda d: d < Fraction(9, 10)), factor=st.floats(0.01, 100))
def test_tuned_odometer_is_the_best_at_its_v(sided: Sided, v: float, delta: Fraction, factor: float) -> None:
    tuned = MixtureOdometer.tuned(v, delta, sided)
    other = MixtureOdometer(tuned.gamma * factor, delta, sided)
    assert tuned.bound_at(v) <= other.bound_at(v) * (1 + 1e-13)


def test_bound_stays_a_number_where_powers_would_overflow() -> None:
    odometer = MixtureOdometer(1e-300, delta=1e-300)
    assert math.isfinite(odometer.bound_at(1e300))
    assert odometer.bound_at(1e300) > 1e300 / 2
    assert odometer.bound_at("1e400") == math.inf
    assert "too large" in odometer.step(GDP("1e200")).statement()


def test_bound_at_agrees_with_the_bound_that_is_reached() -> None:
    odometer = MixtureOdometer.tuned(1, delta=1e-6).step(GDP(0.3)).step(GDP(0.4))
    assert odometer.v == Fraction(1, 4)
    assert odometer.bound == MixtureOdometer.tuned(1, delta=1e-6).bound_at(0.25)


def test_one_release_lies_well_above_its_mean_loss_and_below_nothing() -> None:
    odometer = MixtureOdometer.tuned(1, delta=1e-6).step(GDP(1))
    # Pointwise, a normal loss of variance 1 needs 1/2 + 4.75 for one in a million; at all times at once, more.
    assert 0.5 + 4.75 < odometer.bound < 6.1


@pytest.mark.parametrize(
    ("delta", "confidence"),
    [
        (0.05, "95%"),
        (1e-6, "99.9999%"),
        ("1.5e-6", "99.99985%"),
        (0.3, "70%"),
        ("1e-30", "1 - 1e-30"),
        ("1/3", "66.6%"),
    ],
)
def test_statement_gives_confidence_and_bound_in_words(delta: Number, confidence: str) -> None:
    odometer = MixtureOdometer("0.02", delta).step(GDP(0.1))
    said = odometer.statement()
    assert said.startswith(f"With confidence {confidence}, the privacy loss so far is at most ")
    assert said.endswith(", at whatever moment you look.")


@given(mu=st.floats(1e-9, 1e9), delta=st.floats(1e-40, 0.99))
def test_numbers_in_a_statement_never_flatter(mu: float, delta: float) -> None:
    odometer = MixtureOdometer.tuned(1, delta).step(GDP(mu))
    confidence, bound = odometer.statement().split(", ")[:2]
    assert float(bound.rsplit(" ", 1)[1]) >= odometer.bound
    said = confidence.removeprefix("With confidence ")
    if said.endswith("%"):
        assert Fraction(said[:-1]) / 100 <= 1 - odometer.delta
    else:
        assert Fraction(said.removeprefix("1 - ")) >= odometer.delta


@pytest.mark.parametrize(
    ("gamma", "delta", "sided"),
    [
        (0, 0.1, "one"), (-1, 0.1, "one"), (math.nan, 0.1, "one"), ("1e400", 0.1, "one"), (1, 0, "one"), (1, 1, "one"),
        (1, 2, "one"), (1, -0.1, "one"), (1, "1e-301", "one"), (1, math.nan, "one"), (1, 0.1, "both"), (1, 0.1, 1),
    ],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(gamma: Number, delta: Number, sided: Sided) -> None:
    with pytest.raises(InvalidValueError, match=r"^(gamma|delta|sided) must .*got"):
        MixtureOdometer(gamma, delta, sided)


@pytest.mark.parametrize("v", [0, -1, math.inf])
def test_tuning_needs_a_positive_aim(v: Number) -> None:
    with pytest.raises(InvalidValueError, match=r"^v must"):
        MixtureOdometer.tuned(v, 1e-6)


def test_bound_at_a_negative_v_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"^v must not be negative"):
        MixtureOdometer(1, 1e-6).bound_at(-1)


def test_loss_with_a_delta_is_refused_because_nothing_is_set_aside_for_it() -> None:
    with pytest.raises(ConversionError, match="without a delta"):
        MixtureOdometer(1, 1e-6).step(GDP(0.1, delta=1e-9))
