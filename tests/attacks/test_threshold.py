"""A threshold that is exceeded more often than its delta.

Kind: noise
Fault: Groups whose noisy count is at least the threshold were released, while delta was the probability of being
above it, so that the probability of the threshold itself was missing.
Reported: opendp/opendp#2922
dpnb: `discover` compares exactly as its delta is computed, for as many groups as one unit can have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpnb
from attacks.common import session

pytestmark = pytest.mark.statistical

ALARM = 1e-7
DELTA = Fraction(2, 100)
RUNS = 400
COMMON = pd.DataFrame({"u": range(60), "t": ["common"] * 30 + ["usual"] * 29 + ["rare"], "x": 1.0})
Runs = Callable[[int], int]
"""In how many of the given number of releases some group of one person alone is named."""


def attack(times: Runs, runs: int = RUNS) -> bool:
    """Whether it is named more often than delta allows; false alarm 1e-7."""
    return bool(stats.binomtest(times(runs), runs, float(DELTA), alternative="greater").pvalue < ALARM)


def discoveries(rows: pd.DataFrame, releases: int, **limits: Any) -> list[Any]:
    """Many discoveries of the same groups: each condition holds for every row and makes a question of its own."""
    found: list[Any] = []
    for seed in range(math.ceil(releases / 40)):
        budget = dpnb.Budget(epsilon=100, delta=0.9, discovery_delta=0.85)
        schema = {"t": dpnb.Text(), "x": dpnb.Bounded(0, 1)}
        made = session(rows, schema, budget=budget, privacy_unit="u", not_private_test_seed=seed, **limits)
        frame = made.frame
        questions = (frame[frame["x"] > -1 - k].discover("t", discovery_delta=float(DELTA)) for k in range(40))
        found += [question.release(mu=0.3) for question in questions]
    return found


def released(groups: int) -> Runs:
    """A person with this number of groups of their own, which are all that the limits allow."""

    def times(runs: int) -> int:
        person = pd.DataFrame({"u": 99, "t": [f"own{k}" for k in range(groups)], "x": 1.0})
        found = discoveries(pd.concat([person, COMMON], ignore_index=True), runs, max_rows_per_unit=groups)
        assert attack(lambda _: sum(("common",) in answer.keys for answer in found)), "a common group is named"
        return sum(any(str(key[0]).startswith("own") for key in answer.keys) for answer in found)

    return times


def at_least_the_threshold(runs: int) -> int:
    """Discrete Laplace noise of scale 1 on a count of 1; delta was computed for counts above the threshold."""
    chance, rate = np.random.default_rng(3), 1 - math.exp(-1)
    threshold = next(k for k in range(2, 99) if math.exp(-k) / (1 + math.exp(-1)) <= float(DELTA)) + 0
    noise = chance.geometric(rate, runs) - chance.geometric(rate, runs)
    return int(np.sum(1 + noise >= threshold))


@pytest.mark.parametrize("groups", [1, 3])
def test_dpnb_resists(groups: int) -> None:
    assert not attack(released(groups))


def test_a_discovery_that_names_nothing_is_an_answer_like_any_other() -> None:
    """Otherwise the table decides whether there is an error, and the charge has bought nothing."""
    found = discoveries(COMMON.iloc[:0], 40, max_rows_per_unit=3)
    assert all(answer.keys == () for answer in found)


def test_the_control_is_caught() -> None:
    assert attack(at_least_the_threshold, 100_000)
