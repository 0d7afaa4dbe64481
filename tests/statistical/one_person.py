"""One person among forty rows of others, and how well many noisy releases tell that person.

For the attacks on mu.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

import dpnb
from statistical.attacks import Neighbours, noisy_shadows, seen_difference

__all__ = ["SCHEMA", "seen", "table"]

SCHEMA = {
    "x": dpnb.Bounded(-1, 3),
    "y": dpnb.Bounded(0, 10),
    "g": dpnb.Categories(["a", "b", "c", "d", "e"]),
    "d": dpnb.Dates("2020-01-01", "2020-12-31"),
    "t": dpnb.Text(),
}

WORST: dict[str, Any] = {"x": 3.0, "y": 10.0, "g": "a", "d": "2020-12-31", "t": "s"}
"""A row at the bounds."""

DRAWS = 6000


def table(rows: list[dict[str, Any]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Forty others, with and without the person."""
    chance = np.random.default_rng(7)
    others = pd.DataFrame(
        {
            "u": chance.integers(0, 20, 40),
            "x": chance.uniform(-2, 4, 40),
            "y": chance.uniform(-1, 11, 40),
            "g": chance.choice(["a", "b", "c", "z"], 40),
            "d": chance.choice(["2020-02-03", "2020-07-01"], 40),
            "t": chance.choice(["r", "s", "v"], 40),
        }
    )
    added = pd.DataFrame([{**WORST, "u": 99, **row} for row in rows])
    return pd.concat([others.iloc[:20], added, others.iloc[20:]], ignore_index=True), others


def seen(pair: Neighbours, sigma: float, scale: float = 1.0) -> tuple[float, float]:
    """Lower bound on mu, and the likeliest mu, from many releases with noise `sigma` (in a control times `scale`)."""
    direction = pair.difference
    shadows = [
        noisy_shadows(sums, direction, sigma=sigma, draws=DRAWS, seed=seed, scale=scale)
        for seed, sums in enumerate((pair.sums, pair.others))
    ]
    return seen_difference(*shadows, math.sqrt(sum(step**2 for step in direction)) / sigma)
