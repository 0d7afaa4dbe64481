"""Low-order bits of floating-point noise.

Kind: noise
Fault: A double plus a double of noise is rounded to the grid of the larger one, so which doubles can come out depends
on the sum; one answer may tell for certain which of two tables it was computed from.
Reported: https://www.microsoft.com/en-us/research/wp-content/uploads/2012/10/lsbs.pdf (Mironov 2012);
IBM/differential-privacy-library#94; meta-pytorch/opacus#616; prestodb/presto#23002; opendp/opendp#941
dpnb: Sums are integers, and the noise is rounded exactly to one grid that the noise scale alone decides.
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
from attacks.common import Floats, answer

pytestmark = [pytest.mark.statistical, pytest.mark.smoke]

ALARM = 1e-7
CELLS = 4000
Release = Callable[[float, int], Floats]
"""Answers to one sum in each of many groups, all of which have the same rows: their value, and a seed."""


def possible(answer: float, total: float) -> bool:
    """Whether some double z gives ``total + z == answer``; the double nearest to the difference is the best one."""
    return total + float(Fraction(answer) - Fraction(total)) == answer


def attack(release: Release, truth: float, other: float) -> float:
    """Share of the answers about `truth` that a sum of `other` could not have given."""
    given = [float(one) for one in release(truth, 1)]
    return float(np.mean([possible(one, truth) and not possible(one, other) for one in given]))


def textbook(value: float, seed: int) -> Floats:
    """Doubles plus doubles."""
    return value + np.random.default_rng(seed).normal(0, 1, CELLS)


def released(value: float, seed: int) -> Floats:
    """The same through a session, at the same noise: one row of this value in every group, C = 1 and mu = 1."""
    keys = list(range(CELLS))
    table = pd.DataFrame({"g": keys, "x": value})
    schema = {"g": dpnb.Categories(keys), "x": dpnb.Bounded(0, 1)}
    found = answer(table, schema, lambda frame: frame.groupby("g")["x"].sum(), not_private_test_seed=seed)
    return np.asarray(found.estimate, np.float64)


PAIRS = [(0.0, 1.0), (1.0, 0.0), (0.0, 0.75), (1 / 3, 1.0)]


@pytest.mark.parametrize(("truth", "other"), PAIRS)
def test_dpnb_resists(truth: float, other: float) -> None:
    """Whatever the seed: sums and answers are on coarser grids than any double in between."""
    assert attack(released, truth, other) == 0


@pytest.mark.parametrize(("truth", "other"), PAIRS[:1] + PAIRS[2:])
def test_the_control_is_caught(truth: float, other: float) -> None:
    assert attack(textbook, truth, other) > 0.1


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


def test_noise_never_runs_out_of_values_near_a_sum() -> None:
    """With a seed in common, the answers to two sums differ by these sums, to one step of the grid.

    A sampler that went through the sum's own doubles would repeat itself less exactly.
    """
    difference = released(1.0, 3) - released(0.25, 3)
    assert np.abs(difference - 0.75).max() <= 2.0**-20
