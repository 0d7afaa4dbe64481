"""A column without bounds gets no noise.

Kind: sensitivity
Fault: If a column had no declared bounds, its sensitivity was unknown, and the sum was released without noise.
Reported: opendp/smartnoise-sdk#317
dpnb: What has no bounds cannot be summed: the query is refused when it is written, before any charge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import dpnb
from attacks.common import session

TABLE = pd.DataFrame({"x": [1.0, 2.0, 4.0], "declared": 0.0, "t": ["1", "2", "4"], "g": ["a", "b", "a"]})
EXACT_SUM = 7.0


def attack(total: Callable[[str], float]) -> list[str]:
    """Columns whose sum is given to the last bit."""
    found = []
    for column in ("x", "t", "g"):
        try:
            if total(column) == EXACT_SUM:
                found.append(column)
        except dpnb.errors.DpnbError:
            continue
    return found


def released(column: str) -> float:
    schema: dict[str, Any] = {
        "declared": dpnb.Bounded(0, 1),
        "t": dpnb.Text(),
        "g": dpnb.Categories(["a", "b"]),
    }
    return float(session(TABLE, schema).frame[column].sum().release(mu=1).estimate)


def noise_only_if_bounded(column: str) -> float:
    sensitivities: dict[str, float] = {"declared": 1.0}
    sensitivity = sensitivities.get(column)
    total = float(pd.to_numeric(TABLE[column], errors="coerce").sum())
    return total if sensitivity is None else total + sensitivity


def test_dpnb_resists() -> None:
    assert attack(released) == []


@pytest.mark.parametrize("column", ["x", "t", "g"])
def test_dpnb_refuses_and_charges_nothing(column: str) -> None:
    with pytest.raises(dpnb.errors.PlanError):
        released(column)


def test_the_control_is_caught() -> None:
    assert attack(noise_only_if_bounded) == ["x", "t"]
