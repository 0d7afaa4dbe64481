"""A float means its shortest decimal, and directed rounding never rounds the other way."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpnb.accounting import exact as numbers
from dpnb.accounting.exact import exact, from_text, positive, to_text
from dpnb.errors import InvalidValueError
from rationals import fractions

LARGEST = sys.float_info.max
finite = st.floats(allow_nan=False, allow_infinity=False)
mantissas = fractions(Fraction(1, 10**6), 10**6)
# Every magnitude, and beyond the doubles on both sides.
anywhere = st.builds(lambda x, e: x * Fraction(2) ** e, mantissas, st.integers(-1200, 1100))


@pytest.mark.parametrize(
    "value",
    [0.1, "0.1", "1/10", "1e-1", Decimal("0.1"), Fraction(1, 10), np.float64(0.1), np.float32(0.1), np.float16(0.1)],
    ids=lambda value: f"{type(value).__name__}-{value}",
)
def test_a_tenth_is_a_tenth_however_written(value: numbers.Number) -> None:
    assert exact(value) == Fraction(1, 10)


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), 3.0, "3", np.longdouble(3)])
def test_whole_numbers_are_themselves(value: numbers.Number) -> None:
    assert exact(value) == 3


def test_fraction_of_a_double_is_the_double_taken_literally() -> None:
    assert exact(Fraction(0.1)) > Fraction(1, 10)


@pytest.mark.parametrize(
    "value",
    [
        math.nan, math.inf, -math.inf, np.float32("nan"), np.float64("inf"), Decimal("NaN"), Decimal("-Infinity"),
        True, np.True_, None, "", "nan", "inf", "a tenth", "1/0", 1j, [0.1], b"1", "1e999999999", Decimal("1e99999"),
        "9" * 5000,
    ],
    ids=lambda value: f"{type(value).__name__}-{str(value)[:12]}",
)  # fmt: skip
def test_what_is_no_finite_number_is_refused_by_name(value: numbers.Number) -> None:
    with pytest.raises(InvalidValueError, match=r"^epsilon must .*, got .*; "):
        exact(value, name="epsilon")


@pytest.mark.parametrize("text", ["1e__5", "1e_", "1e\u0669\u0669\u0669\u0669\u0669", "9" * 5000])
def test_hostile_text_is_refused_at_once(text: str) -> None:
    with pytest.raises(InvalidValueError, match="must"):
        exact(text)
    with pytest.raises(InvalidValueError, match="must read like"):
        from_text(text)


@pytest.mark.parametrize("value", [0, 0.0, -0.0, -1, "-1e-300"])
def test_positive_refuses_zero_and_less(value: numbers.Number) -> None:
    with pytest.raises(InvalidValueError, match=r"^mu must be greater than 0, got"):
        positive(value, name="mu")


@given(finite)
def test_decimal_rounding_gives_back_what_was_written(x: float) -> None:
    assert numbers.decimal_up(exact(x)) == x == numbers.decimal_down(exact(x))


@given(finite)
def test_binary_rounding_gives_back_the_literal_double(x: float) -> None:
    assert numbers.binary_up(Fraction(x)) == x == numbers.binary_down(Fraction(x))


def _meaning(kind: str, x: float) -> Fraction:
    return exact(x) if kind == "decimal" else Fraction(x)


@pytest.mark.parametrize("kind", ["decimal", "binary"])
@given(x=anywhere, sign=st.sampled_from([1, -1]))
@example(x=Fraction(3, 10), sign=1)
@example(x=Fraction(10**400), sign=-1)
@example(x=Fraction(1, 10**400), sign=-1)
@example(x=Fraction(LARGEST) + 1, sign=1)
@example(x=Fraction(5, 10**324), sign=1)
def test_rounding_is_directed_and_sharp(kind: str, x: Fraction, sign: int) -> None:
    x *= sign
    up, down = getattr(numbers, f"{kind}_up")(x), getattr(numbers, f"{kind}_down")(x)
    assert up == math.inf or _meaning(kind, up) >= x
    assert down == -math.inf or _meaning(kind, down) <= x
    for inside in (math.nextafter(up, -math.inf), math.nextafter(down, math.inf)):
        # One double closer is on the wrong side, or there is none.
        assert math.isfinite(inside) or abs(x) > Fraction(LARGEST) * Fraction(99, 100)
    below, above = math.nextafter(up, -math.inf), math.nextafter(down, math.inf)
    assert below == -math.inf or _meaning(kind, below) < x
    assert above == math.inf or _meaning(kind, above) > x


@pytest.mark.parametrize(
    ("up", "down", "kind"),
    [
        (numbers.decimal_sqrt_up, numbers.decimal_sqrt_down, "decimal"),
        (numbers.sqrt_up, numbers.sqrt_down, "binary"),
    ],
    ids=["decimal", "binary"],
)
@given(x=st.one_of(anywhere, anywhere.map(lambda x: x**2)))
@example(x=Fraction(9, 100))
@example(x=Fraction(10**800))
@example(x=Fraction(1, 10**800))
@example(x=Fraction(0.1) ** 2)
def test_roots_are_directed_and_sharp(
    up: Callable[[Fraction], float], down: Callable[[Fraction], float], kind: str, x: Fraction
) -> None:
    high, low = up(x), down(x)
    assert high == math.inf or _meaning(kind, high) ** 2 >= x
    assert _meaning(kind, low) ** 2 <= x
    assert low >= 0
    below, above = math.nextafter(high, -math.inf), math.nextafter(low, math.inf)
    assert _meaning(kind, below) ** 2 < x or below < 0
    assert above == math.inf or _meaning(kind, above) ** 2 > x


def test_roots_of_written_squares_are_what_was_written() -> None:
    assert numbers.decimal_sqrt_up(Fraction(9, 100)) == 0.3 == numbers.decimal_sqrt_down(Fraction(9, 100))
    assert numbers.sqrt_up(Fraction(9, 100)) > numbers.sqrt_down(Fraction(9, 100))
    assert numbers.sqrt_up(Fraction(0)) == 0.0 == numbers.decimal_sqrt_down(Fraction(0))


def test_root_beyond_the_doubles_is_infinite_up_and_the_largest_double_down() -> None:
    assert numbers.sqrt_up(Fraction(10) ** 700) == math.inf
    assert numbers.sqrt_down(Fraction(10) ** 700) == LARGEST
    assert numbers.decimal_sqrt_up(Fraction(1, 10**900)) == 5e-324
    assert numbers.decimal_sqrt_down(Fraction(1, 10**900)) == 0.0


def test_root_of_a_negative_number_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="at least 0"):
        numbers.sqrt_up(Fraction(-1))


@pytest.mark.parametrize("rounded", [numbers.decimal_down(Fraction(0)), numbers.binary_down(Fraction(0))])
def test_zero_has_no_sign(rounded: float) -> None:
    assert math.copysign(1, rounded) == 1


@given(st.fractions())
def test_text_gives_the_number_back(x: Fraction) -> None:
    assert from_text(to_text(x)) == x


def test_numbers_beyond_pythons_decimal_texts_are_written_and_shown_all_the_same() -> None:
    for x in (Fraction(10**6000 + 1, 3**9000), -Fraction(7**9000, 10**6000)):
        assert from_text(to_text(x)) == x
    with pytest.raises(InvalidValueError, match="got a number of thousands of digits"):
        positive(-Fraction(7**9000, 10**6000))


def test_text_is_readable() -> None:
    assert to_text(Fraction(9, 100)) == "9/100"
    assert to_text(Fraction(-2)) == "-2"


@pytest.mark.parametrize("text", ["", "0.1", "1/0", "1/-2", " 1", "1e5", "1/2/3", "+1", None, 1])
def test_text_that_nobody_stored_is_refused(text: object) -> None:
    with pytest.raises(InvalidValueError, match="a stored number must read like"):
        from_text(text)
