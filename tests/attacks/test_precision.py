"""The precision of an answer depends on the sum.

Kind: noise
Fault: Even if noise is drawn perfectly, adding it to a double rounds the result to the grid of the largest number
that occurred on the way, so the last digits of an answer tell how large the sum was.
Reported: arXiv:2207.13793 (Haney et al. 2022, on diffprivlib, SmartNoise Core and OpenDP);
IBM/differential-privacy-library#94
dpnb: All answers to a query are multiples of one power of two, which follows from the noise scale.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pandas as pd

import dpnb
from attacks.common import Floats, answer

CELLS = 1000
Release = Callable[[float], Floats]


def finest(answers: Floats) -> Fraction:
    """The largest power of two of which all answers are multiples."""
    steps = [Fraction(float(one)) for one in answers if one]
    return min(Fraction(step.numerator & -step.numerator, step.denominator) for step in steps)


def attack(release: Release) -> bool:
    """Whether the grid of many answers tells a sum of 0 from a sum of 1."""
    return finest(release(0.0)) != finest(release(1.0))


def released(value: float) -> Floats:
    keys = list(range(CELLS))
    schema = {"g": dpnb.Categories(keys), "x": dpnb.Bounded(0, 1)}
    found = answer(pd.DataFrame({"g": keys, "x": value}), schema, lambda frame: frame.groupby("g")["x"].sum())
    return np.asarray(found.estimate, np.float64)


def textbook(value: float) -> Floats:
    return value + np.random.default_rng(3).normal(0, 1, CELLS)


def test_dpnb_resists() -> None:
    """A correct program fails with a probability below 2**-900: all answers to one sum would have to be even."""
    assert not attack(released)


def test_the_control_is_caught() -> None:
    assert attack(textbook)
