"""Mironov's attack (2012, *On significance of the least significant bits for differential privacy*).

A double s plus a double z is rounded to the grid of the larger of them, so which doubles can come out depends on s, and
one answer may tell for certain which of two tables it was.  What dpnb releases is a multiple of one grid that the noise
scale alone decides.  Beside it stands the textbook mechanism, where the attack works.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

import dpnb

pytestmark = [pytest.mark.statistical, pytest.mark.smoke]

ALARM = 1e-7
CELLS = 4000
Floats = NDArray[np.float64]
Release = Callable[[float, int], Floats]
"""Answers to one sum in each of many groups, all of which have the same rows: their value, and a seed."""


def possible(answer: float, total: float) -> bool:
    """Whether some double z gives ``total + z == answer``; the double nearest to the difference is the best one."""
    return total + float(Fraction(answer) - Fraction(total)) == answer


def told_for_certain(answers: Floats, truth: float, other: float) -> float:
    """Share of answers that a sum of `other` could not have given."""
    given = [float(answer) for answer in answers]
    return float(np.mean([possible(one, truth) and not possible(one, other) for one in given]))


def textbook(value: float, seed: int) -> Floats:
    """Doubles plus doubles."""
    return value + np.random.default_rng(seed).normal(0, 1, CELLS)


def released(value: float, seed: int) -> Floats:
    """The same through a session, at the same noise: one row of this value in every group, C = 1 and mu = 1."""
    keys = list(range(CELLS))
    table = pd.DataFrame({"g": keys, "x": value})
    session = dpnb.Session(
        table,
        name="attacked",
        schema={"g": dpnb.Categories(keys), "x": dpnb.Bounded(0, 1)},
        budget=dpnb.Budget.gdp(10),
        ledger=":memory:",
        not_private_test_seed=seed,
    )
    estimate = session.frame.groupby("g")["x"].sum().release(mu=1).estimate
    return np.asarray(estimate, np.float64)


PAIRS = [(0.0, 1.0), (1.0, 0.0), (0.0, 0.75), (1 / 3, 1.0)]


@pytest.mark.parametrize(("truth", "other"), PAIRS)
def test_no_released_answer_tells_two_sums_apart_for_certain(truth: float, other: float) -> None:
    """Never, whatever the seed: sums and answers are on coarser grids than any double in between."""
    assert told_for_certain(released(truth, 1), truth, other) == 0


@pytest.mark.parametrize(("truth", "other"), [(0.0, 1.0), (0.0, 0.75), (1 / 3, 1.0)])
def test_control_many_textbook_answers_tell_two_sums_apart_for_certain(truth: float, other: float) -> None:
    assert told_for_certain(textbook(truth, 1), truth, other) > 0.1


def low_digits(answers: Floats, step: float, modulus: int) -> NDArray[np.int64]:
    """Last digits of the answers on a grid."""
    return np.array([math.floor(Fraction(float(one)) / Fraction(step)) % modulus for one in answers], np.int64)


def digits_differ(release: Release, step: float, modulus: int) -> bool:
    """Whether the last digits of answers tell a sum of 0 from a sum of 1; false alarms at most ALARM."""
    seen = [np.bincount(low_digits(release(value, seed), step, modulus), minlength=modulus)
            for seed, value in enumerate((0.0, 1.0))]  # fmt: skip
    table = np.array(seen)
    table = table[:, table.sum(axis=0) > 0]
    return table.shape[1] > 1 and bool(stats.chi2_contingency(table).pvalue < ALARM)


@pytest.mark.parametrize("modulus", [2, 8, 64])
@pytest.mark.parametrize("bits", [20, 30, 53])
def test_low_digits_of_released_answers_do_not_depend_on_the_sum(bits: int, modulus: int) -> None:
    """False alarm 1e-7 each, 1e-6 for the nine."""
    assert not digits_differ(released, 2.0**-bits, modulus)


@pytest.mark.parametrize("modulus", [2, 8, 64])
def test_control_low_digits_of_textbook_answers_depend_on_the_sum(modulus: int) -> None:
    assert digits_differ(textbook, 2.0**-54, modulus)


def test_all_released_answers_lie_on_one_grid_that_the_noise_decides() -> None:
    """Sigma is a little above 1, so the grid is 2**-20 exactly, for small sums and for large ones."""
    for value in (0.0, 1 / 3, 1.0):
        steps = released(value, 2) * 2.0**20
        assert (steps == np.round(steps)).all()


def test_control_textbook_answers_lie_on_grids_that_the_answer_decides() -> None:
    steps = textbook(0.0, 2) * 2.0**40
    assert not (steps == np.round(steps)).any()


def test_noise_never_runs_out_of_values_near_a_sum() -> None:
    """With a seed in common, the answers to two sums differ by these sums, to one step of the grid.

    A sampler that went through the sum's own doubles would repeat itself less exactly.
    """
    difference = released(1.0, 3) - released(0.25, 3)
    assert np.abs(difference - 0.75).max() <= 2.0**-20
