"""One row changes how all other rows are rounded.

Kind: sums
Fault: A large value at the front makes every later addition round up, so one row changes a sum by its own value and
by one rounding error for each of the others, which exceeds the declared sensitivity.
Reported: arXiv:2207.10635 (Casacuberta et al. 2022, the rounding attacks); google/differential-privacy#127;
https://docs.tmlt.dev/core/latest/topic-guides/known-vulnerabilities.html (Tumult Core, "Stability imprecision bug")
dpnb: Each value is rounded alone, to an integer number of steps; integers of any size are added up exactly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import dpnb
from attacks.common import EXACT, Floats, answer

LARGE = 2.0**30
"""The bound of the column, and the claimed sensitivity."""


def attack(total: Callable[[Floats], float], others: Floats) -> float:
    """How far one row moves the sum, as a multiple of the claim."""
    rows = np.r_[others.dtype.type(LARGE), others]
    return abs(total(rows) - total(others)) / LARGE


def released(rows: Floats) -> float:
    schema = {"x": dpnb.Bounded(0, LARGE)}
    return float(answer(pd.DataFrame({"x": rows}), schema, lambda frame: frame["x"].sum()).estimate)


def one_after_another(rows: Floats) -> float:
    return float(np.cumsum(rows)[-1])


CASES = {"single": np.full(2**18, 96.0, np.float32), "double": np.full(2**18, 0.75 * 2.0**-22)}


@pytest.mark.parametrize("precision", CASES)
def test_dpnb_resists(precision: str) -> None:
    assert attack(released, CASES[precision]) <= 1 + EXACT


@pytest.mark.parametrize("precision", CASES)
def test_the_control_is_caught(precision: str) -> None:
    """In double precision by less, and still beyond the claim, which holds exactly."""
    assert attack(one_after_another, CASES[precision]) > 1
