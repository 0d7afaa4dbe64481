"""Less noise costs less.

Kind: budget
Fault: The charge fell when the noise was made smaller, so exact answers were nearly free.
Reported: OpenMined/PySyft#6914
dpnb: The charge is (sensitivity / noise scale)^2, rounded up, for every query: half the noise costs four times as
much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from attacks.common import session

SCHEMA = {"x": dpnb.Bounded(0, 10), "g": dpnb.Categories(["a", "b"])}
TABLE = pd.DataFrame({"x": [1.0, 5.0] * 20, "g": ["a", "b"] * 20})
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "count": lambda frame: frame.count(),
    "sum": lambda frame: frame["x"].sum(),
    "groups": lambda frame: frame.groupby("g")["x"].sum(),
}
SENSITIVITY = {"count": 1, "sum": 10, "groups": 10}
Ask = Callable[[float], tuple[float, float]]
"""From an error to the charge, mu^2, and the noise scale in sensitivities."""


def attack(ask: Ask) -> bool:
    """Whether a charge is below what its noise is worth, or does not grow as the noise shrinks."""
    charges, scales = zip(*map(ask, (4.0, 2.0, 1.0, 0.5)), strict=True)
    too_little = any(cost * scale**2 < 1 - 1e-9 for cost, scale in zip(charges, scales, strict=True))
    return too_little or list(charges) != sorted(charges) or list(scales) != sorted(scales, reverse=True)


def released(name: str) -> Ask:
    def ask(error: float) -> tuple[float, float]:
        found = QUESTIONS[name](session(TABLE, SCHEMA).frame).release(within=error * SENSITIVITY[name])
        return found.cost.mu**2, float(np.min(found.noise_scale)) / SENSITIVITY[name]

    return ask


def the_wrong_way_round(error: float) -> tuple[float, float]:
    return error**2, error


@pytest.mark.parametrize("name", QUESTIONS)
def test_dpnb_resists(name: str) -> None:
    assert not attack(released(name))


def test_the_control_is_caught() -> None:
    assert attack(the_wrong_way_round)
