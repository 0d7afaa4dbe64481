"""A noise scale that depends on the table.

Kind: noise
Fault: The sensitivity of a mean is taken for the number of rows of this very table; or bounds that nobody stated are
the smallest and the largest value. Then the size of the noise tells that number, or those values.
Reported: opendp/smartnoise-core#356 (the number of rows); IBM/differential-privacy-library#20 (bounds)
dpnb: Noise scales, previews and costs follow from declaration, query and budget; there are no bounds without a
declaration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from attacks.common import session

SCHEMA = {"x": dpnb.Bounded(0, 100), "g": dpnb.Categories(["a", "b"])}
TABLES = [
    pd.DataFrame({"x": np.arange(size) % 10 + 20.0 * largest, "g": "a"})
    for size, largest in [(1000, 0), (999, 0), (10, 0), (1000, 4), (0, 0)]
]
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "count": lambda frame: frame.count(),
    "sum": lambda frame: frame["x"].sum(),
    "mean": lambda frame: frame["x"].mean(),
    "var": lambda frame: frame["x"].var(),
    "median": lambda frame: frame["x"].median(),
    "groups": lambda frame: frame.groupby("g")["x"].sum(),
    "bounds": lambda frame: frame["x"].find_bounds(),
}


def attack(scale: Callable[[pd.DataFrame], Any]) -> int:
    """How many noise scales there are for the same question to different tables."""
    return len({str(scale(table)) for table in TABLES})


def released(ask: Callable[[Any], Any], is_sum: bool) -> Callable[[pd.DataFrame], Any]:
    """The preview, the row of the ledger, and the noise scale.

    What the answer states as the noise scale of a mean or a median is computed from several noisy numbers.
    """

    def scale(table: pd.DataFrame) -> Any:
        made = session(table, SCHEMA)
        preview = str(ask(made.frame).preview(mu=1))
        answer = ask(made.frame).release(mu=1)
        log = made.log.drop(columns=["time", "estimate", "error"]).to_dict("list")
        return preview, log, np.ravel(answer.noise_scale).tolist() if is_sum else None

    return scale


def for_this_number_of_rows(table: pd.DataFrame) -> float:
    return 100 / max(len(table), 1)


def for_the_range_of_values(table: pd.DataFrame) -> float:
    return float(table["x"].max() - table["x"].min()) if len(table) else 0.0


@pytest.mark.parametrize("ask", QUESTIONS)
def test_dpnb_resists(ask: str) -> None:
    assert attack(released(QUESTIONS[ask], ask not in ("mean", "var", "median"))) == 1


@pytest.mark.parametrize("wrong", [for_this_number_of_rows, for_the_range_of_values])
def test_the_control_is_caught(wrong: Callable[[pd.DataFrame], float]) -> None:
    assert attack(wrong) > 1
