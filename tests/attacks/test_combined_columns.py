"""The sensitivity of two columns together.

Kind: sensitivity
Fault: The sum of two columns was given the sensitivity of one of them; half of an odd whole number was rounded down.
Reported: opendp/smartnoise-sdk#320; opendp/opendp#314
dpnb: Bounds are carried through every expression, and sensitivities are exact rational numbers, rounded up once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import dpnb
from attacks.common import EXACT, told_apart

SCHEMA = {"x": dpnb.Bounded(0, 3, integer=True), "y": dpnb.Bounded(-2, 5, integer=True)}
OTHERS = pd.DataFrame({"x": [1] * 20, "y": [0] * 20})
WORST = [(x, y) for x in (0, 3) for y in (-2, 5)]
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "added": lambda frame: (frame["x"] + frame["y"]).sum(),
    "subtracted": lambda frame: (frame["x"] - frame["y"]).sum(),
    "multiplied": lambda frame: (frame["x"] * frame["y"]).sum(),
    "half": lambda frame: (frame["x"] / 2).sum(),
    "half of a whole number": lambda frame: (frame["y"] // 2).sum(),
    "chosen": lambda frame: frame["x"].where(frame["y"] > 0, frame["y"]).sum(),
}
Ratio = Callable[[int, int], float]


def attack(ratio: Ratio) -> float:
    """How well a row at the bounds is told, as a multiple of the claim."""
    return max(ratio(x, y) for x, y in WORST)


def released(ask: Callable[[Any], Any]) -> Ratio:
    def ratio(x: int, y: int) -> float:
        rows = pd.concat([OTHERS, pd.DataFrame({"x": [x], "y": [y]})], ignore_index=True)
        return told_apart(rows, OTHERS, SCHEMA, ask)

    return ratio


def claim_of_one_column(x: int, y: int) -> float:
    return abs(x + y) / max(3, 5)


def half_rounded_down(x: int, y: int) -> float:
    return (x / 2) / (3 // 2)


@pytest.mark.parametrize("ask", QUESTIONS)
def test_dpnb_resists(ask: str) -> None:
    assert attack(released(QUESTIONS[ask])) <= 1 + EXACT


@pytest.mark.parametrize("wrong", [claim_of_one_column, half_rounded_down])
def test_the_control_is_caught(wrong: Ratio) -> None:
    assert attack(wrong) > 1.4
