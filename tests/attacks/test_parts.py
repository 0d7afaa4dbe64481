"""Parts of a table, and persons who are in several of them.

Kind: sensitivity
Fault: Queries of disjoint parts are charged like one query, although a person may have rows in several parts, or
although the guarantee of parallel composition does not extend to groups of rows.
Reported: https://docs.tmlt.dev/core/latest/topic-guides/known-vulnerabilities.html (Tumult Core, "Parallel
composition")
dpnb: A session is charged for as many of its largest parts as one unit can be in; with a smaller declared number a
unit's rows in other parts do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from attacks.common import EXACT, session

GROUPS = ["a", "b", "c", "d"]
OTHERS = pd.DataFrame({"u": list(range(10, 50)), "g": GROUPS * 10})
ROWS = pd.concat([pd.DataFrame({"u": 1, "g": GROUPS}), OTHERS], ignore_index=True)
Counts = Callable[[pd.DataFrame], tuple[Any, float]]
"""Counts of all parts, in noise scales, and the mu that was charged for all of them."""


def attack(counts: Counts) -> float:
    """How well one person in every part is told, as a multiple of the charge."""
    (one, mu), (other, _) = counts(ROWS), counts(OTHERS)
    return float(np.linalg.norm(np.array(one) - np.array(other)) / mu)


def released(rows: int | None, parts: int | None) -> Counts:
    def counts(table: pd.DataFrame) -> tuple[Any, float]:
        limits = {"privacy_unit": "u", "max_rows_per_unit": rows} if rows else {}
        made = session(table, {"g": dpnb.Categories(GROUPS)}, **limits)
        split = made.partition("g", max_parts_per_unit=parts)
        answers = [split[key].frame.count().release(mu=1) for key in GROUPS]
        return [float(answer.estimate) / answer.noise_scale for answer in answers], made.spent.mu

    return counts


def charged_like_one(table: pd.DataFrame) -> tuple[Any, float]:
    return table["g"].value_counts()[GROUPS].tolist(), 1.0


@pytest.mark.parametrize("parts", [None, 1, 2, 3])
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_dpnb_resists(rows: int, parts: int | None) -> None:
    assert attack(released(rows, parts)) <= 1 + EXACT


def test_the_control_is_caught() -> None:
    assert attack(charged_like_one) == 2
