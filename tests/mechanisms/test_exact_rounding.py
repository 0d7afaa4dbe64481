"""The fall-back decides correctly however few digits it is given at a time."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import mpmath
import pytest

from dpnb.mechanisms import gaussian
from dpnb.mechanisms.gaussian import LazyUniform, lies_below, round_lower_normal
from mechanisms.oracles import normal_quantile, words_at_boundary


def supply(digits: int, bits: int, step: int) -> Callable[[], int]:
    """Give the `bits` digits from the top, `step` at a time; running out fails the test."""
    left = [digits >> shift & ((1 << step) - 1) for shift in range(bits - step, -1, -step)]

    def more() -> int:
        if not left:
            raise AssertionError("more digits were asked for than the decision needs")
        return left.pop(0)

    return more


@pytest.mark.parametrize("step", [1, 3, 8, 64])
def test_shrunken_bit_supply_rounds_like_the_inverse(step: int) -> None:
    """U starts with its first digit alone (always 0) and grows by `step` digits."""
    chance = random.Random(20260101 + step)
    for _ in range(150):
        digits = chance.getrandbits(191)  # of 192: the first is 0
        shift, scale = Fraction(chance.getrandbits(40), 2**38), Fraction(chance.uniform(0.3, 2.0**21))
        uniform = LazyUniform(0, 1, supply(digits << 1, 192, step), step)
        with mpmath.workprec(600):
            z = normal_quantile(mpmath.ldexp(mpmath.mpf(2 * digits + 1), -193), 192)
            exact = mpmath.mpf(shift.numerator) / shift.denominator + z * scale.numerator / scale.denominator
            expected = int(mpmath.nint(exact))
        assert round_lower_normal(shift, scale, uniform) == expected


def test_only_as_many_digits_are_drawn_as_the_decision_needs() -> None:
    drawn = []
    uniform = LazyUniform(2**61, 64, lambda: drawn.append(1) or 0)  # U near 1/8, Y near -1.15
    assert lies_below(uniform, Fraction(-1)) is True
    assert lies_below(uniform, Fraction(-2)) is False
    assert lies_below(uniform, Fraction(0)) is True
    assert drawn == []


@pytest.mark.parametrize("threshold", [Fraction(-1, 10**9), Fraction(-2, 3), Fraction(-3), Fraction(-55, 6)])
def test_digits_beside_a_threshold_are_decided_on_the_right_side(threshold: Fraction) -> None:
    first, second, third = words_at_boundary(threshold, 3)
    for shift, expected in ((1, False), (-1, True)):
        assert lies_below(LazyUniform(first, 64, supply(second + shift, 64, 64)), threshold) is expected
        # Two words agree with the threshold's own digits, the third tells.
        more = supply(second << 64 | (third + shift), 128, 64)
        assert lies_below(LazyUniform(first, 64, more), threshold) is expected


@pytest.mark.parametrize("start_error", [0.0, -3.0, 2.5, 1000.0])
def test_wrong_first_guess_costs_time_only(monkeypatch: pytest.MonkeyPatch, start_error: float) -> None:
    def rounded() -> int:
        return round_lower_normal(Fraction(1, 3), Fraction(2**20), LazyUniform(3**38, 64, lambda: 2**63))

    right = rounded()
    guess = LazyUniform.quantile_guess
    monkeypatch.setattr(LazyUniform, "quantile_guess", lambda self: guess(self) + start_error)
    assert rounded() == right


@pytest.mark.parametrize("bits", [64, 80, 300])
@pytest.mark.parametrize("tenths", [1, 7, 15, 40, 93, 200, 380])
def test_distribution_function_lies_inside_its_enclosure(tenths: int, bits: int) -> None:
    """Against the Taylor series of erf, summed far beyond the precision lost to cancellation."""
    low, high = gaussian._cdf_units(Fraction(-tenths, 10), bits)
    with mpmath.workprec(bits + 2600):
        x = mpmath.mpf(tenths) / 10 / mpmath.sqrt(2)
        term, total, n = x, mpmath.mpf(0), 0
        while abs(term) > mpmath.ldexp(1, -bits - 100):
            total += term / (2 * n + 1)
            n += 1
            term *= -x * x / n
        truth = mpmath.ldexp(mpmath.mpf(1) / 2 - total / mpmath.sqrt(mpmath.pi), bits)
        assert low + mpmath.mpf("0.9") < truth < high - mpmath.mpf("0.9")  # hardly any of the allowance is used
    assert high - low == 3
