"""Arithmetic on arrays rounds to the very double that exact arithmetic names."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.exact import binary_down, binary_up, sqrt_down
from dpnb.accounting.individual.arrays import minus_down, plus_up, plus_up_within, root_down, squares_up
from rationals import fractions

doubles = st.one_of(st.floats(0, 1e300), st.floats(0, 2), st.floats(0, 1e-300))


@given(doubles, doubles)
def test_sums_and_differences_are_the_nearest_double_on_the_safe_side(a: float, b: float) -> None:
    x, y = Fraction(a), Fraction(b)
    assert plus_up(np.array([a]), np.array([b]))[0] == binary_up(x + y)
    assert minus_down(a, np.array([b]))[0] == binary_down(max(x - y, Fraction(0)))


@given(doubles)
def test_roots_are_the_largest_double_not_above(value: float) -> None:
    assert root_down(np.array([value]))[0] == sqrt_down(Fraction(value))


@given(st.one_of(st.floats(0, 1e150), st.floats(0, 2), st.floats(0, 1e-150)))
def test_squares_are_the_smallest_double_not_below(value: float) -> None:
    assert squares_up(np.array([value]))[0] == binary_up(Fraction(value) ** 2)


@given(doubles, fractions(Fraction(1, 10**9), 10**9))
def test_scaled_squares_are_never_below(value: float, factor: Fraction) -> None:
    assert squares_up(np.array([value]), factor)[0] >= binary_up(factor * Fraction(value) ** 2)


@given(st.integers(0, 2**26), st.floats(1e-9, 1e9))
def test_a_scaled_exact_square_is_the_smallest_double_not_below(value: int, factor: float) -> None:
    assert squares_up(np.array([float(value)]), Fraction(factor))[0] == binary_up(Fraction(factor) * value**2)


LARGEST, SMALLEST = float(np.finfo(np.float64).max), 5e-324
ENDS = [0.0, SMALLEST, 2.2250738585072014e-308, 1.0, 1.0 - 2**-53, 2.0**53, LARGEST]


@pytest.mark.parametrize("a", ENDS)
@pytest.mark.parametrize("b", ENDS)
def test_sums_and_differences_at_the_ends_of_the_doubles(a: float, b: float) -> None:
    x, y = Fraction(a), Fraction(b)
    above = np.inf if x + y > Fraction(LARGEST) else binary_up(x + y)
    assert plus_up(np.array([a]), np.array([b]))[0] == above
    assert minus_down(a, np.array([b]))[0] == binary_down(max(x - y, Fraction(0)))


@given(
    st.floats(0, 2), st.floats(0, 2), st.lists(st.tuples(st.floats(0, 2), st.floats(0, 2), st.booleans()), max_size=20)
)
def test_sums_above_the_limit_are_replaced(
    limit: float, otherwise: float, entries: list[tuple[float, float, bool]]
) -> None:
    one, other = np.array([entry[0] for entry in entries]), np.array([entry[1] for entry in entries])
    allowed = np.array([entry[2] for entry in entries], np.bool_)
    sums = plus_up(one, other)
    for mask in (None, allowed):
        expected = (sums <= limit) if mask is None else (sums <= limit) & mask
        found, within = plus_up_within(limit, one, other, otherwise, mask)
        assert within.tolist() == expected.tolist()
        assert found.tolist() == np.where(expected, sums, np.maximum(one, otherwise)).tolist()


@given(st.one_of(doubles, st.sampled_from([*ENDS, np.inf])), st.one_of(doubles, st.sampled_from([*ENDS, np.inf])))
def test_a_sum_at_the_ends_of_the_doubles_is_not_below(a: float, b: float) -> None:
    total = plus_up(np.array([a]), np.array([b]))[0]
    assert total == np.inf or Fraction(float(total)) >= Fraction(a) + Fraction(b)
