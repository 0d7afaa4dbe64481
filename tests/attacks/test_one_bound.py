"""A sensitivity that is computed from one of two bounds.

Kind: sensitivity
Fault: The sensitivity of a square was computed from the lower bound twice, so for values from 0 to 100 it was 0, and
the sum of squares got no noise.
Reported: IBM/differential-privacy-library#104; IBM/differential-privacy-library#105
dpnb: The sensitivity follows from both bounds of the expression; it is compared with all small tables in the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import dpnb
from attacks.common import EXACT, told_apart

BOUNDS = [(0, 100), (-100, 0), (-1, 100), (-100, 1), (5, 6)]
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda frame: frame["x"].sum(),
    "square": lambda frame: (frame["x"] ** 2).sum(),
    "product": lambda frame: (frame["x"] * frame["x"]).sum(),
    "difference": lambda frame: (3 - frame["x"]).sum(),
    "absolute": lambda frame: frame["x"].abs().sum(),
}
Ratio = Callable[[float, tuple[float, float]], float]


def attack(ratio: Ratio) -> float:
    """How well a row at a bound is told, as a multiple of the claim."""
    return max(ratio(value, bounds) for bounds in BOUNDS for value in bounds)


def released(ask: Callable[[Any], Any]) -> Ratio:
    def ratio(value: float, bounds: tuple[float, float]) -> float:
        others = pd.DataFrame({"x": [float(bounds[0])] * 20})
        rows = pd.concat([others, pd.DataFrame({"x": [float(value)]})], ignore_index=True)
        return told_apart(rows, others, {"x": dpnb.Bounded(*bounds)}, ask)

    return ratio


def from_the_lower_bound(value: float, bounds: tuple[float, float]) -> float:
    claim = max(abs(bounds[0]), abs(bounds[0])) ** 2
    return value**2 / claim if claim else float("inf" if value else 0)


@pytest.mark.parametrize("ask", QUESTIONS)
def test_dpnb_resists(ask: str) -> None:
    assert attack(released(QUESTIONS[ask])) <= 1 + EXACT


def test_the_control_is_caught() -> None:
    assert attack(from_the_lower_bound) == float("inf")
