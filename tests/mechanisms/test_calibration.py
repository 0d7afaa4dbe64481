"""The noise scale is the smallest that keeps the declared loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.losses import GDP
from dpnb.errors import ConversionError, DpnbError, InvalidValueError
from dpnb.mechanisms.gaussian import sigma_for
from rationals import fractions

positive = fractions(Fraction(1, 10**9), 10**9, max_denominator=10**9).filter(lambda x: x > 0)
wide = st.builds(lambda x, e: x * Fraction(2) ** e, positive, st.integers(-900, 900))


@given(squared=wide, mu_squared=wide)
def test_scale_keeps_the_loss_and_the_next_smaller_double_does_not(squared: Fraction, mu_squared: Fraction) -> None:
    sigma = sigma_for(squared, GDP.from_mu_squared(mu_squared))
    assert squared / Fraction(sigma) ** 2 <= mu_squared
    assert squared / Fraction(math.nextafter(sigma, 0.0)) ** 2 > mu_squared


@given(mu=st.floats(1e-6, 50), squared=st.integers(1, 10**40))
def test_written_decimal_mu_is_never_exceeded(mu: float, squared: int) -> None:
    loss = GDP(mu)
    sigma = sigma_for(squared, loss)
    assert squared / Fraction(sigma) ** 2 <= Fraction(repr(mu)) ** 2
    assert sigma == pytest.approx(math.sqrt(squared) / mu, rel=1e-15)


def test_exact_roots_are_met_exactly() -> None:
    assert sigma_for(9, GDP("0.5")) == 6.0
    assert sigma_for(Fraction(1, 4), GDP(2)) == 0.25


def test_binary_value_of_the_scale_counts() -> None:
    # 1/0.1 would be 10 exactly; 1/0.3 is not a double and must be rounded up.
    sigma = sigma_for(1, GDP("0.3"))
    assert Fraction(sigma) > Fraction(10, 3)
    assert sigma == math.nextafter(10 / 3, math.inf) or Fraction(10 / 3) > Fraction(10, 3)


def test_tiny_scale_is_still_sharp_among_subnormal_doubles() -> None:
    squared, mu_squared = Fraction(1, 2**2140), Fraction(3)
    sigma = sigma_for(squared, GDP.from_mu_squared(mu_squared))
    assert 0 < sigma < 2.3e-308
    assert squared / Fraction(sigma) ** 2 <= mu_squared


@pytest.mark.parametrize(
    ("squared", "loss", "error", "text"),
    [
        (1, GDP(0), InvalidValueError, "mu must be > 0"),
        (0, GDP(1), InvalidValueError, "must be > 0; got 0"),
        (-1, GDP(1), InvalidValueError, "must be > 0; got -1"),
        (Fraction(-1, 3), GDP(1), InvalidValueError, "got -1/3"),
        (1.0, GDP(1), InvalidValueError, "exact number"),
        (True, GDP(1), InvalidValueError, "exact number"),
        (float("nan"), GDP(1), InvalidValueError, "exact number"),
        ("4", GDP(1), InvalidValueError, "exact number"),
        (10**700, GDP(1), InvalidValueError, "largest double"),
        (1, 0.5, ConversionError, "float"),
        (1, None, ConversionError, "NoneType"),
    ],
)
def test_impossible_calibration_is_a_typed_error(squared: Any, loss: Any, error: type[DpnbError], text: str) -> None:
    with pytest.raises(error, match=text):
        sigma_for(squared, loss)


def test_scale_beyond_the_doubles_is_refused_for_a_tiny_mu() -> None:
    with pytest.raises(InvalidValueError, match="largest double"):
        sigma_for(1, GDP.from_mu_squared(Fraction(1, 10**700)))


def test_any_loss_with_an_exact_mu_can_be_calibrated() -> None:
    @dataclass(frozen=True)
    class Other:
        mu_squared: Fraction

    assert sigma_for(4, Other(Fraction(1))) == 2.0
    with pytest.raises(ConversionError, match="Other"):
        sigma_for(4, Other(0.5))  # a float mu^2 is not exact
