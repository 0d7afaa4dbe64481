"""Several noisy numbers, each of which gets the whole budget.

Kind: sensitivity
Fault: A step that releases two noisy numbers shares one slice of the budget between them, as if it were one.
Reported: IBM/differential-privacy-library#104 (centring of features and target, item 2)
dpnb: All numbers of a query or a batch are one vector, whose sensitivity is that of all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from attacks.common import EXACT, session

SCHEMA = {"x": dpnb.Bounded(0, 10), "y": dpnb.Bounded(0, 5), "g": dpnb.Categories(["a", "b"])}
OTHERS = pd.DataFrame({"x": [1.0] * 30, "y": [2.0] * 30, "g": ["a", "b"] * 15})
ROWS = pd.concat([OTHERS, pd.DataFrame({"x": [10.0], "y": [5.0], "g": ["a"]})], ignore_index=True)
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "two sums": lambda frame: frame.agg(a=("x", "sum"), b=("y", "sum")),
    "counts and sums": lambda frame: frame.groupby("g").agg(n="count", a=("x", "sum"), b=("y", "sum")),
    "sums of all columns": lambda frame: frame[["x", "y"]].sum(),
}
Numbers = Callable[[pd.DataFrame], tuple[Any, Any, float]]
"""From a table to values, noise scales and the mu that was charged."""


def attack(numbers: Numbers) -> float:
    """How well all numbers together tell a row at all bounds, as a multiple of the mu that was charged."""
    (one, scales, mu), (other, _, _) = numbers(ROWS), numbers(OTHERS)
    return float(np.sqrt(np.sum(((np.ravel(one) - np.ravel(other)) / np.ravel(scales)) ** 2)) / mu)


def released(ask: Callable[[Any], Any]) -> Numbers:
    def numbers(table: pd.DataFrame) -> tuple[Any, Any, float]:
        found = ask(session(table, SCHEMA).frame).release(mu=1).to_pandas()
        return found["estimate"].to_numpy(float), found["noise_scale"].to_numpy(float), 1.0

    return numbers


def batch(table: pd.DataFrame) -> tuple[Any, Any, float]:
    """Two questions from one charge."""
    made = session(table, SCHEMA)
    frame = made.frame
    answers = made.plan([frame["x"].sum(), frame["y"].sum(), frame.groupby("g").count()]).release(mu=1)
    found = [answer.to_pandas() for answer in answers]
    assert made.spent.mu == pytest.approx(1)
    return (
        np.concatenate([each["estimate"].to_numpy(float) for each in found]),
        np.concatenate([each["noise_scale"].to_numpy(float) for each in found]),
        1.0,
    )


def the_whole_budget_for_each(table: pd.DataFrame) -> tuple[Any, Any, float]:
    return table[["x", "y"]].sum().to_numpy(), np.array([10.0, 5.0]), 1.0


@pytest.mark.parametrize("ask", QUESTIONS)
def test_dpnb_resists(ask: str) -> None:
    assert 0.9 < attack(released(QUESTIONS[ask])) <= 1 + EXACT


def test_dpnb_resists_in_a_batch() -> None:
    assert 0.5 < attack(batch) <= 1 + EXACT


def test_the_control_is_caught() -> None:
    assert attack(the_whole_budget_for_each) == pytest.approx(math.sqrt(2))
