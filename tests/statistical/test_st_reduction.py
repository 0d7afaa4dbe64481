"""Adaptive answers made from one draw are what they should be: the reduction behind the Gaussian filter.

Seeds are fixed, so a test passes always or never.  Each of some 100 checks would raise a false alarm at a fresh seed
with probability below ALARM.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from statistical.st_reduction import last_row, lower_triangle

pytestmark = pytest.mark.statistical

ALARM = 1e-7
PATHS, MU0 = 200_000, 1.7
REFERENCE = Path(__file__).parent.parent / "accounting" / "reference" / "cases.json"
CASES = json.loads(REFERENCE.read_text())["groups"]["st_cholesky"]

Floats = NDArray[np.float64]


# --- the rows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: case["id"])
def test_rows_are_the_reference_figures(case: dict) -> None:  # type: ignore[type-arg]
    expected = case["expected"]
    rows = lower_triangle([Fraction(value) for value in case["args"]["m"]])
    for i, row in enumerate(expected):
        np.testing.assert_allclose(rows[i, : len(row)], [float(value) for value in row], rtol=1e-12, atol=0)


def test_diagonal_is_the_square_root_that_the_footnote_omits() -> None:
    """For m = (0.6, 0.6) the second answer has variance 0.36 + 0.64; without the root 0.36 + 0.3939."""
    m = [Fraction(3, 5), Fraction(3, 5)]
    right, printed = lower_triangle(m), lower_triangle(m, printed=True)
    assert (right @ right.T)[1, 1] == pytest.approx(0.64, rel=1e-14)
    assert (printed @ printed.T)[1, 1] == pytest.approx(0.3939, abs=5e-5)


@pytest.mark.parametrize(
    "m", [[1, 0, 0], [0.6, 0.8, 0.0, 0.0], [Fraction(3, 5), Fraction(4, 5), Fraction(0)], [0, -1, 0]]
)
def test_once_everything_is_spent_later_answers_are_pure_noise(m: list[float]) -> None:
    rows = lower_triangle(m)
    np.testing.assert_array_equal(rows[-1], [0.0] * (len(m) - 1) + [1.0])
    vector = np.array(m, dtype=float)
    np.testing.assert_allclose(rows @ rows.T, np.eye(len(m)) - np.outer(vector, vector), atol=1e-15)


def test_more_than_everything_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 1"):
        last_row([0.8, 0.7])


@given(st.lists(st.fractions(-1, 1, max_denominator=1000), min_size=1, max_size=7), st.fractions(0, 1))
def test_rows_are_a_factor_of_what_is_missing_and_look_at_no_later_m(draw: list[Fraction], share: Fraction) -> None:
    # Scaled so that the squares add up to `share` of what is allowed, but for the rounding of the root.
    norm = Fraction(math.isqrt(int(10**24 * sum(x * x for x in draw))) + 1, 10**12)
    m = [share * x / norm for x in draw]
    rows, vector = lower_triangle(m), np.array(m, dtype=float)
    np.testing.assert_allclose(rows @ rows.T, np.eye(len(m)) - np.outer(vector, vector), atol=1e-12)
    for i in range(1, len(m)):
        np.testing.assert_array_equal(lower_triangle(m[:i]), rows[:i, :i])


# --- adaptive answers -------------------------------------------------------------------------------------------------


def _answers(b: int, *, printed: bool = False) -> tuple[Floats, Floats]:
    """Six answers a path, each mu chosen from the answer before; the fifth takes what is left, the sixth costs nothing.

    Returns
    -------
    answers, mu : ndarray, shape (PATHS, 6)
    """
    rng = np.random.default_rng(20_220_613 + b)
    w0 = rng.normal(b * MU0, 1, PATHS)
    v = rng.standard_normal((PATHS, 6))
    m, answers = np.zeros((PATHS, 0)), np.zeros((PATHS, 0))
    for i in range(6):
        left = np.sqrt(np.maximum(1 - np.sum(m * m, axis=1), 0))
        share = 0.2 + 0.7 / (1 + np.exp(-2 * answers[:, -1])) if i else np.full(PATHS, 0.3)
        m = np.column_stack([m, left * (share if i < 4 else float(i == 4))])
        noise = np.sum(last_row(m, printed=printed) * v[:, : i + 1], axis=1)
        answers = np.column_stack([answers, m[:, -1] * w0 + noise])
    return answers, m * MU0


def _strays(values: Floats) -> bool:
    """Whether the mean is further from 0 than chance lets it be."""
    return bool(abs(values.mean()) > stats.norm.isf(ALARM / 2) * values.std() / math.sqrt(len(values)))


def _alarms(answers: Floats, mu: Floats, b: int) -> list[str]:
    """Which answers are not standard normal around b mu, or go together with what came before."""
    z = answers - b * mu
    found = []
    for i in range(z.shape[1]):
        if stats.kstest(z[:, i], "norm").pvalue < ALARM or _strays(z[:, i] ** 2 - 1):
            found.append(f"shape of {i}")
        seen = [np.ones(len(z)), mu[:, i] - mu[:, i].mean()]
        seen += [f for j in range(i) for f in (z[:, j], np.tanh(answers[:, j]), mu[:, j], np.abs(z[:, j]) - 0.8)]
        if any(_strays(z[:, i] * f) or _strays((z[:, i] ** 2 - 1) * f) for f in seen):
            found.append(f"dependence of {i}")
    return found


@pytest.mark.parametrize("b", [0, 1])
def test_adaptive_answers_are_fresh_standard_normals_around_their_means(b: int) -> None:
    answers, mu = _answers(b)
    assert _alarms(answers, mu, b) == []
    np.testing.assert_allclose(np.sum(mu * mu, axis=1), MU0**2, rtol=1e-12)
    assert mu[:, 1].std() > 0.1  # adaptive in earnest


@pytest.mark.parametrize("b", [0, 1])
def test_control_the_footnotes_diagonal_is_caught(b: int) -> None:
    answers, mu = _answers(b, printed=True)
    assert {"shape of 1", "shape of 2", "shape of 3"} <= set(_alarms(answers, mu, b))


def test_control_another_mean_is_caught() -> None:
    """Shrinking mu0 to 1 before drawing, and not b mu0 itself, would leave the wrong means."""
    answers, mu = _answers(1)
    assert "dependence of 1" in _alarms(answers, mu / MU0, 1)
