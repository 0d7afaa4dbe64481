"""A window over the rows of several persons.

Kind: sensitivity
Fault: A rank, a running sum or a value of the row before is computed over the whole table, or over windows that do not
hold whole persons, so that the rows of one person change the values of others.
Reported: opendp/opendp#2610 (which expressions are valid before `over`)
dpnb: Windows and tables of persons are computed from the rows of one person that count, in an order of their own, and
clamped to bounds that follow from public numbers. What would compare persons is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from attacks.common import CONTAINERS, EXACT, Ask, in_container, session, told_apart

ROWS = 3
SCHEMA = {
    "t": dpnb.Bounded(0, 100),
    "x": dpnb.Bounded(-5, 9),
    "g": dpnb.Categories(["a", "b"]),
}
UNIT = {"privacy_unit": "u", "max_rows_per_unit": ROWS}
OTHERS = pd.DataFrame(
    {
        "u": np.repeat(np.arange(10, 30), 2),
        "t": np.tile([3.0, 50.0], 20),
        "x": np.tile([1.0, -2.0, np.nan, 4.0], 10),
        "g": np.tile(["a", "b", None, "a"], 10),
    }
)
NOTHING, ENDLESS = float("nan"), float("inf")
HOSTILE: dict[str, list[tuple[Any, Any, Any]]] = {
    "first of all": [(0, 9, "a")],
    "last of all": [(100, 9, "a"), (99, -5, "b")],
    "ties": [(3, 9, "a")] * 3,
    "no order": [(NOTHING, 9, "a"), (NOTHING, -5, "b"), (3, NOTHING, None)],
    "beyond the bounds": [(ENDLESS, 1e300, "a"), (-ENDLESS, -1e300, "zz"), (1e300, ENDLESS, "")],
    "many rows": [(place % 101, 9, "a") for place in range(500)],
    "opposite zeros": [(-0.0, 0.0, "a"), (0.0, -0.0, "a"), (5e-324, 0.0, "b")],
}
"""Contents of one person: time, value, group."""

ASKS: dict[str, Ask] = {
    "before": lambda f: f.sort_values("t").groupby("u")["x"].shift(1).sum(),
    "after": lambda f: f.sort_values("t").groupby("u")["x"].shift(-1).sum(),
    "running sum": lambda f: f.sort_values("t").groupby("u")["x"].cumsum().sum(),
    "running maximum": lambda f: f.sort_values("t").groupby("u")["x"].cummax().sum(),
    "filled": lambda f: f.sort_values("t", ascending=False).groupby("u")["x"].ffill().sum(),
    "rank": lambda f: f.groupby("u")["x"].rank().sum(),
    "last two": lambda f: f.sort_values("t").groupby("u")["x"].rolling(2, min_periods=1).mean().sum(),
    "own mean": lambda f: (f["x"] - f.groupby("u")["x"].transform("mean")).sum(),
    "persons": lambda f: f.groupby("u")["x"].sum().sum(),
    "persons by group": lambda f: f.sort_values("t").groupby("u").agg(g=("g", "first")).groupby("g").size(),
    "first rows": lambda f: f.sort_values(["g", "t"]).drop_duplicates(["u", "g"])["x"].sum(),
    "number of values": lambda f: f.groupby("u")["x"].nunique().value_counts(),
}
Ratio = Callable[[pd.DataFrame, pd.DataFrame], float]
"""How well two tables are told apart, as a multiple of what is charged."""


def attack(ratio: Ratio, contents: list[tuple[Any, Any, Any]]) -> float:
    """How well a person with these rows is told from answers that also have others' rows."""
    mine = pd.DataFrame([(1, *row) for row in contents], columns=list(OTHERS)).astype({"t": float, "x": float})
    return ratio(pd.concat([mine, OTHERS], ignore_index=True), OTHERS)


def released(container: str, *names: str) -> Ratio:
    asks = [ASKS[name] for name in names or ASKS]
    return lambda *tables: told_apart(*(in_container(table, container) for table in tables), SCHEMA, *asks, **UNIT)


def over_all_rows(rows: pd.DataFrame, others: pd.DataFrame) -> float:
    """A running maximum without persons, at the noise for the rows of one."""
    one, other = (table.sort_values("t")["x"].clip(-5, 9).cummax().sum() for table in (rows, others))
    return abs(one - other) / (ROWS * 9)


@pytest.mark.parametrize("contents", HOSTILE)
def test_dpnb_resists(contents: str) -> None:
    assert attack(released("pandas"), HOSTILE[contents]) <= 1 + EXACT


@pytest.mark.parametrize("container", CONTAINERS[1:])
def test_dpnb_resists_in_other_containers(container: str) -> None:
    rows = [row for contents in ("first of all", "ties", "no order") for row in HOSTILE[contents]]
    assert attack(released(container, "before", "persons by group", "first rows"), rows) <= 1 + EXACT


def test_the_control_is_caught() -> None:
    assert attack(over_all_rows, HOSTILE["first of all"]) > 5


@pytest.mark.parametrize(
    "ask",
    [
        lambda f: f["x"].shift(1),
        lambda f: f["x"].rank(),
        lambda f: f.cumsum(),
        lambda f: f.groupby("g")["x"].transform("mean"),
        lambda f: f.groupby("g")["x"].shift(1),
        lambda f: f.drop_duplicates("x"),
        lambda f: f.duplicated(),
    ],
)
def test_what_would_compare_persons_is_refused(ask: Ask) -> None:
    made = session(OTHERS, SCHEMA, **UNIT)
    with pytest.raises(dpnb.errors.UnsupportedError, match="different privacy units"):
        ask(made.frame)
    assert made.ledger.count == 0
