"""Averaging the answers to one query.

Kind: budget
Fault: Each repetition of a query draws new noise and the sum of their losses is not limited, so the mean of many
answers is as exact as anybody likes.
Reported: SmartNoise SQL 1.0.10 (no limit is enforced; an odometer reports, tried by hand 2026-11-21)
dpnb: A repeated query returns the recorded answer at no charge, in every spelling and after a restart; a new draw is
charged, and a filter refuses what exceeds the budget.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpnb
from attacks.common import session

TRUTH, TIMES = 1000, 400
TABLE = pd.DataFrame({"x": [1.0] * TRUTH})
SCHEMA = {"x": dpnb.Bounded(0, 1)}
BUDGET = dpnb.Budget.gdp(1)
SPELLINGS: list[Callable[[Any], Any]] = [
    lambda frame: frame.count(),
    lambda frame: frame[["x"]].count(),
    lambda frame: frame.copy().count(),
    lambda frame: frame.sort_values("x").count(),
    lambda frame: frame.assign(y=frame["x"]).count(),
    lambda frame: frame[frame["x"] >= 0].count(),
    lambda frame: frame["x"].count(),
]


def attack(ask: Callable[[int], list[float]]) -> bool:
    """Whether the mean of many answers is much nearer to the truth than the whole budget allows for one answer."""
    answers = np.array(ask(TIMES))
    return len(set(answers.tolist())) > TIMES / 2 and bool(abs(answers.mean() - TRUTH) < 5 * 10 / np.sqrt(TIMES))


def released(times: int) -> list[float]:
    """Each answer has a hundredth of the budget; when it is used up, no more answers come."""
    made = session(TABLE, SCHEMA, budget=BUDGET)
    answers = []
    for number in range(times):
        query = SPELLINGS[number % len(SPELLINGS)](made.frame)
        try:
            answers.append(float(query.release(mu="0.1").estimate))
        except dpnb.errors.BudgetExceeded:
            break
    assert made.spent.mu <= 1
    return answers


def new_noise_each_time(times: int) -> list[float]:
    return (TRUTH + np.random.default_rng(1).normal(0, 10, times)).tolist()


def test_dpnb_resists() -> None:
    assert not attack(released)


def test_dpnb_repeats_an_answer_after_a_restart(tmp_path: Path) -> None:
    answers, spent = set(), set()
    for _ in range(3):
        made = session(TABLE, SCHEMA, ledger=tmp_path / "attacked.dpnb")
        for _ in range(2):
            answers.add(float(made.frame.count().release(mu="0.1").estimate))
        spent.add(made.spent.mu)
    assert len(answers) == len(spent) == 1


def test_dpnb_answers_a_hundred_draws_and_no_more() -> None:
    """Every draw is charged: a finer target each time, as another query would be."""
    made = session(TABLE, SCHEMA, budget=BUDGET)
    for draw in range(100):
        made.frame[made.frame["x"] > draw / 1000].count().release(mu="0.1")
    assert made.spent.mu == 1
    try:
        made.frame[made.frame["x"] > 0.5001].count().release(mu="0.1")
    except dpnb.errors.BudgetExceeded:
        return
    raise AssertionError("the filter admits more than the budget")


def test_the_control_is_caught() -> None:
    assert attack(new_noise_each_time)
