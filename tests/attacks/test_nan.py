"""One NaN or infinity changes the answer about everybody.

Kind: sums
Fault: Clamping keeps NaN, and a sum with NaN is NaN, so one row makes the answer NaN; or noise is added to 0 in its
place, so the answer forgets all other rows. A filler for missing values may bring NaN back in.
Reported: opendp/opendp#2935; opendp/opendp#2936; opendp/smartnoise-sdk#580 (bounds from NaN and infinite values)
dpnb: What is not a finite number counts as missing, alone; a filler must be a finite number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from attacks.common import EXACT, answer

CLEAN = [float(k % 7) for k in range(200)]
BOUND = 6
POISON = [math.nan, math.inf, -math.inf, None, "nan", "inf", "-inf", "1e999", 10**400, pd.NA, pd.NaT, -0.0]
Total = Callable[[list[Any]], float]


def attack(total: Total, value: Any) -> float:
    """How far one such row moves the answer, as a multiple of the claim."""
    moved = abs(total([*CLEAN, value]) - total(CLEAN)) / BOUND
    return moved if math.isfinite(moved) else math.inf


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda frame: frame["x"].sum(),
    "filled": lambda frame: frame["x"].fillna(3).sum(),
    "clipped": lambda frame: frame["x"].clip(1, 5).sum(),
    "chosen": lambda frame: frame["x"].where(frame["x"] > 1, 2).sum(),
}


def released(ask: Callable[[Any], Any]) -> Total:
    def total(rows: list[Any]) -> float:
        table = pd.DataFrame({"x": pd.Series(rows, dtype=object)})
        return float(answer(table, {"x": dpnb.Bounded(0, BOUND)}, ask).estimate)

    return total


def clamped_and_added(rows: list[Any]) -> float:
    return float(np.sum(np.clip(np.array(rows, float), 0, BOUND)))


def with_noise_on_zero_instead(rows: list[Any]) -> float:
    total = clamped_and_added(rows)
    return 0.0 if math.isnan(total) else total


@pytest.mark.parametrize("value", POISON, ids=repr)
@pytest.mark.parametrize("ask", QUESTIONS)
def test_dpnb_resists(ask: str, value: Any) -> None:
    assert attack(released(QUESTIONS[ask]), value) <= 1 + EXACT


@pytest.mark.parametrize("filler", [math.nan, math.inf, -math.inf], ids=repr)
def test_dpnb_refuses_a_filler_that_is_no_number(filler: float) -> None:
    with pytest.raises(dpnb.errors.DpnbError):
        answer(pd.DataFrame({"x": CLEAN}), {"x": dpnb.Bounded(0, BOUND)}, lambda frame: frame["x"].fillna(filler).sum())


@pytest.mark.parametrize("total", [clamped_and_added, with_noise_on_zero_instead])
def test_the_control_is_caught(total: Total) -> None:
    assert attack(total, math.nan) > 50
