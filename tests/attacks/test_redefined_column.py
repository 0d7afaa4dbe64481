"""Limits per group that outlive the groups.

Kind: sensitivity
Fault: Rows are limited to one per person and group, for a limited number of groups. Afterwards the column of the
groups is redefined, all groups become one, and the claim still is that of many groups: the root of what one person
can add.
Reported: opendp/opendp#2949
dpnb: Limits belong to the query: they are applied to its own groups, after every column is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import dpnb
from attacks.common import EXACT, told_apart

GROUPS = 25
ROWS = pd.DataFrame({"u": [1] * GROUPS + [2] * GROUPS, "g": list(range(GROUPS)) * 2, "x": 1.0})
OTHERS = ROWS[ROWS["u"] == 2].reset_index(drop=True)
SCHEMA = {"g": dpnb.Categories(list(range(GROUPS))), "x": dpnb.Bounded(0, 1)}
LIMITS: dict[str, dict[str, Any]] = {
    "groups": {"max_groups_per_unit": GROUPS, "max_rows_per_group": 1},
    "rows": {"max_rows_per_unit": GROUPS},
    "norm": {"max_norm_per_unit": 5.0},
}
CONSTANT = dict.fromkeys(range(GROUPS), "all")
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "as declared": lambda frame: frame.groupby("g").count(),
    "merged": lambda frame: frame.groupby(frame["g"].map(CONSTANT)).count(),
    "redefined": lambda frame: frame.assign(g=frame["g"].map(CONSTANT)).groupby("g").count(),
    "none": lambda frame: frame.count(),
    "sum": lambda frame: frame.assign(g=frame["g"].map(CONSTANT)).groupby("g")["x"].sum(),
    "limited again": lambda frame: (
        frame.bound_contributions(max_groups_per_unit=GROUPS, max_rows_per_group=1)
        .assign(g=frame["g"].map(CONSTANT))
        .groupby("g")
        .count()
    ),
}
Ratio = Callable[[pd.DataFrame, pd.DataFrame], float]


def attack(ratio: Ratio) -> float:
    """How well one person with a row in every group is told, as a multiple of the claim."""
    return ratio(ROWS, OTHERS)


def released(limits: dict[str, Any], ask: Callable[[Any], Any]) -> Ratio:
    return lambda rows, others: told_apart(rows, others, SCHEMA, ask, privacy_unit="u", **limits)


def limited_then_merged(rows: pd.DataFrame, others: pd.DataFrame) -> float:
    """As reported: at most one row in each of 25 groups, so the claim is the root of 25."""
    counts = [len(table.groupby(["u", "g"]).head(1).assign(g=0)) for table in (rows, others)]
    return abs(counts[0] - counts[1]) / math.sqrt(GROUPS)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("ask", QUESTIONS)
def test_dpnb_resists(ask: str, limits: str) -> None:
    assert attack(released(LIMITS[limits], QUESTIONS[ask])) <= 1 + EXACT


def test_the_control_is_caught() -> None:
    assert attack(limited_then_merged) == 5
