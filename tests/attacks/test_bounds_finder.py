"""Finding bounds discloses an extreme value.

Kind: noise
Fault: Values below the smallest bin, infinite values and NaN were not treated like others when bounds were searched
for, so one of them decided whether there was an answer, or what it was.
Reported: opendp/smartnoise-sdk#580 (for #572 and #574); IBM/differential-privacy-library#20 (bounds read from the
data)
dpnb: `find_bounds` counts rows in public bins that cover the declared bounds; one row changes one count by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from attacks.common import CONTAINERS, EXACT, in_container, told_apart

OTHERS = [20.0 + k % 30 for k in range(300)]
EXTREME = [0.0, -0.0, 5e-324, 1e-300, 1e6, -1e6, -1e308, 1e308, math.inf, -math.inf, math.nan]
Ratio = Callable[[list[float], list[float]], float]


def attack(ratio: Ratio, values: Sequence[float] = EXTREME) -> list[float]:
    """Values of one row that change the answer by more than the claim."""
    return [value for value in values if not ratio([*OTHERS, value], OTHERS) <= 1 + EXACT]


def released(container: str) -> Ratio:
    def ratio(rows: list[float], others: list[float]) -> float:
        tables = [in_container(pd.DataFrame({"x": part}), container) for part in (rows, others)]
        return told_apart(*tables, {"x": dpnb.Bounded(-1e6, 1e6)}, lambda frame: frame["x"].find_bounds())

    return ratio


def outermost_values(rows: list[float], others: list[float]) -> float:
    return float(np.ptp(rows) - np.ptp(others)) / 1000


def bins_without_ends(rows: list[float], others: list[float]) -> float:
    """Bins from 1 to 1,000,000, and an array that is one element too short for a value below them."""
    edges = 10.0 ** np.arange(7)
    counts: list[Any] = []
    for part in (rows, others):
        place = np.digitize(part, edges)
        counts.append(len(np.bincount(place[place > 0])) + 100 * bool((place == 0).any()))
    return abs(counts[0] - counts[1])


@pytest.mark.parametrize("container", CONTAINERS)
def test_dpnb_resists(container: str) -> None:
    pytest.importorskip(container.split()[-1])
    engine = container in ("lazy polars", "duckdb")
    assert attack(released(container), EXTREME[2::4] if engine else EXTREME) == []


@pytest.mark.parametrize("wrong", [outermost_values, bins_without_ends])
def test_the_control_is_caught(wrong: Ratio) -> None:
    assert attack(wrong)
