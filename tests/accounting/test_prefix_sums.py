"""The square-root factorisation of prefix sums: its coefficients, its sensitivity, and the way back."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.prefix_sums import (
    MAX_STEPS,
    prefix_sum_scales,
    prefix_sum_weights,
    prefix_sums_norm_squared,
    prefix_sums_of,
    square_root_coefficients,
    square_root_of_prefix_sums,
)
from dpnb.errors import InvalidValueError

UNIT = 2**30


def matrix(steps: int) -> np.ndarray:
    """The lower triangular Toeplitz matrix, in Python integers."""
    found = np.zeros((steps, steps), object)
    for row, column in itertools.product(range(steps), repeat=2):
        if row >= column:
            found[row, column] = square_root_coefficients(steps)[row - column]
    return found


def test_coefficients_are_those_of_the_square_root_rounded_down() -> None:
    for k, coefficient in enumerate(square_root_coefficients(200)):
        truth = Fraction(math.comb(2 * k, k), 4**k)
        assert coefficient == math.floor(truth * UNIT) > 0
    assert square_root_coefficients(7) == square_root_coefficients(200)[:7]


def test_square_of_the_matrix_is_that_of_prefix_sums() -> None:
    square = np.convolve(np.array(square_root_coefficients(100), float), square_root_coefficients(100))[:100] / UNIT**2
    assert square == pytest.approx(np.ones(100), abs=1e-7)


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=60))
def test_prefix_sums_of_exact_measurements_are_those_of_the_counts(counts: list[int]) -> None:
    measured = square_root_of_prefix_sums(counts)
    assert measured == (matrix(len(counts)) @ np.array(counts, object)).tolist()
    found = prefix_sums_of(np.array([float(number) for number in measured]))
    assert found == pytest.approx(np.cumsum(counts), abs=1e-3)


def test_the_way_back_is_exact_to_doubles_at_the_largest_horizon() -> None:
    measured = np.convolve(np.array(square_root_coefficients(MAX_STEPS), float), np.ones(MAX_STEPS))[:MAX_STEPS]
    assert prefix_sums_of(measured) == pytest.approx(np.arange(1.0, MAX_STEPS + 1), rel=1e-11)
    # the rounded coefficients once more would not do: they are the control
    control = np.convolve(np.array(square_root_coefficients(MAX_STEPS), float) / UNIT**2, measured)[:MAX_STEPS]
    assert np.abs(control - np.arange(1.0, MAX_STEPS + 1)).max() > 1e-4


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_no_unit_with_a_total_change_of_c_changes_the_measurements_by_more(steps: int) -> None:
    columns = matrix(steps)
    worst = 0
    for change in itertools.product(range(-3, 4), repeat=steps):
        if sum(map(abs, change)) <= 3:
            worst = max(worst, sum(int(part) ** 2 for part in columns @ np.array(change, object)))
    assert worst == 9 * prefix_sums_norm_squared(steps)


@pytest.mark.parametrize(("steps", "places"), [(4, 1), (5, 2), (6, 3), (6, 6), (3, 9)])
def test_no_unit_in_some_steps_changes_the_measurements_by_more_than_in_the_first(steps: int, places: int) -> None:
    columns = matrix(steps)
    worst = 0
    for change in itertools.product(range(3), repeat=steps):  # at most 2 in each
        if np.count_nonzero(change) <= places:
            worst = max(worst, sum(int(part) ** 2 for part in columns @ np.array(change, object)))
    assert worst == 4 * prefix_sums_norm_squared(steps, places)


def test_scales_are_those_of_independent_noise_carried_through() -> None:
    weights = prefix_sum_weights(50)
    back = np.array([[weights[row - column] if row >= column else 0 for column in range(50)] for row in range(50)])
    assert prefix_sum_scales(50) == pytest.approx(np.linalg.norm(back, axis=1))


def test_noise_is_less_than_of_a_tree_and_of_added_counts_where_it_should_be() -> None:
    """At mu = 1, for a row in one step; a binary tree of all levels shares the charge between them."""
    for steps, least in ((64, 2.7), (1024, 2.9)):
        levels = int(math.log2(steps)) + 1  # the root included, which is the last total
        largest = float(prefix_sum_scales(steps)[-1]) * math.sqrt(prefix_sums_norm_squared(steps))
        tree = math.sqrt(levels) * math.sqrt(levels - 1)  # a total of steps - 1 counts, of one node on each level
        assert tree / largest > least
        assert math.sqrt(steps) / largest > 3
    single = float(prefix_sum_scales(12)[0]) * math.sqrt(prefix_sums_norm_squared(12))
    assert 1.3 < single < 1.4, "the first total costs more than a count of its own"


@pytest.mark.parametrize("steps", [0, -1, MAX_STEPS + 1, True])
def test_horizons_out_of_range_are_refused(steps: int) -> None:
    with pytest.raises(InvalidValueError, match="steps"):
        square_root_coefficients(steps)
    with pytest.raises(InvalidValueError, match="places"):
        prefix_sums_norm_squared(3, 0)
