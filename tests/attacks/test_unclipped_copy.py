"""Values are clipped, and the values before the clipping are used.

Kind: sensitivity
Fault: A covariance was computed from the table as it was, although a copy of it had been clipped and cleaned, so a
value far outside the bounds counted in full.
Reported: opendp/smartnoise-sdk#622; opendp/smartnoise-sdk#624
dpnb: Columns are clamped or dropped when they are prepared, once, and no query has access to other values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from attacks.common import CONTAINERS, in_container, session

SCHEMA = {"x": dpnb.Bounded(0, 10), "y": dpnb.Bounded(0, 10)}
CHANCE = np.random.default_rng(2)
OTHERS = pd.DataFrame({"x": CHANCE.uniform(0, 10, 200), "y": CHANCE.uniform(0, 10, 200)})
AT_THE_BOUNDS, FAR_OUTSIDE = {"x": 10.0, "y": 0.0}, {"x": 1e9, "y": -1e9}
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "covariance": lambda frame: frame[["x", "y"]].cov(),
    "correlation": lambda frame: frame["x"].corr(frame["y"]),
    "regression": lambda frame: frame.regress("y", on=["x"]),
    "variance": lambda frame: frame["x"].var(),
    "product": lambda frame: (frame["x"] * frame["y"]).sum(),
    "median": lambda frame: frame["x"].median(),
}
Statistic = Callable[[pd.DataFrame], Any]


def attack(statistic: Statistic) -> bool:
    """Whether a row far outside the bounds gives another answer than one at the bounds."""
    tables = [pd.concat([OTHERS, pd.DataFrame([row])], ignore_index=True) for row in (AT_THE_BOUNDS, FAR_OUTSIDE)]
    return bool((np.asarray(statistic(tables[0])) != np.asarray(statistic(tables[1]))).any())


def released(container: str, ask: Callable[[Any], Any]) -> Statistic:
    def statistic(table: pd.DataFrame) -> Any:
        return ask(session(in_container(table, container), SCHEMA).frame).release(mu=1).estimate

    return statistic


def from_the_values_before(table: pd.DataFrame) -> float:
    table.clip(0, 10)  # the result of which is not used
    return float(table.cov().loc["x", "y"])


@pytest.mark.parametrize("container", CONTAINERS)
def test_dpnb_resists(container: str) -> None:
    pytest.importorskip(container.split()[-1])
    assert [name for name, ask in QUESTIONS.items() if attack(released(container, ask))] == []


def test_the_control_is_caught() -> None:
    assert attack(from_the_values_before)
