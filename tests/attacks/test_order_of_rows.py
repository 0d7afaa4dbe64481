"""The order of rows changes a sum.

Kind: sums
Fault: Floating-point addition is not associative, so the same rows in another order have another sum, by more than
one row can change it; where a table's order depends on a row, so does the sum.
Reported: arXiv:2207.10635 (Casacuberta et al. 2022); google/differential-privacy#127;
https://docs.tmlt.dev/core/latest/topic-guides/known-vulnerabilities.html (Tumult Core, "Stability imprecision bug")
dpnb: Each value is rounded alone, to an integer number of steps; integers of any size are added up exactly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import dpnb
from attacks.common import Floats, answer

CLAIM = 1.0
MANY, SMALL = 2**17, 2.0**-8
"""In single precision 2**17 + 2**-8 is 2**17: whether the small rows count depends on when they are added."""


def attack(total: Callable[[Floats], float], rows: Floats) -> float:
    """How far two orders of the same rows are apart."""
    return abs(total(rows) - total(rows[::-1].copy()))


def released(rows: Floats) -> float:
    table, schema = pd.DataFrame({"x": rows}), {"x": dpnb.Bounded(0, CLAIM)}
    return float(answer(table, schema, lambda frame: frame["x"].sum()).estimate)


def one_after_another(rows: Floats) -> float:
    """In the type of the column."""
    return float(np.cumsum(rows)[-1])


def with_small_ones(dtype: str, many: int, small: float) -> Floats:
    return np.r_[np.full(many, small), np.ones(many)].astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dpnb_resists(dtype: str) -> None:
    assert attack(released, with_small_ones(dtype, MANY, SMALL)) == 0


@pytest.mark.parametrize("seed", range(3))
def test_dpnb_resists_any_order_of_any_doubles(seed: int) -> None:
    chance = np.random.default_rng(seed)
    rows = np.exp(chance.normal(0, 20, 3000)) * chance.choice([-1, 1], 3000)
    assert released(rows) == released(chance.permutation(rows))


def test_the_control_is_caught() -> None:
    assert attack(one_after_another, with_small_ones("float32", MANY, SMALL)) > 500 * CLAIM
