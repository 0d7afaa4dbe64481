"""Codes of categories that depend on the other rows.

Kind: values
Fault: A library numbers categories in the order in which they first occur (or in the order of those that occur), so
one row in front changes the code of every other row, and computations with codes are not row by row.
Reported: opendp/opendp#2944
dpnb: A category is its declared value; the codes and the categories of a container's column are never used as
numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import dpnb
from attacks.common import CONTAINERS, EXACT, in_container, told_apart

OTHERS = ["b"] * 50 + ["c"] * 50
WITH_ONE_MORE = ["a", *OTHERS]
"""The first in the table, and the first in the alphabet."""

QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "groups": lambda frame: frame.groupby("g").count(),
    "recoded": lambda frame: frame["g"].map({"a": 0, "b": 1, "c": 2}).sum(),
    "bins": lambda frame: frame.groupby(dpnb.cut(frame["x"], [0, 1, 2])).count(),
    "condition": lambda frame: (frame["g"] == "b").sum(),
}
Ratio = Callable[[pd.DataFrame, pd.DataFrame], float]


def table(values: list[str], ordered: bool) -> pd.DataFrame:
    kind = pd.CategoricalDtype(list(dict.fromkeys(values)), ordered=ordered)
    return pd.DataFrame({"g": pd.Series(values).astype(kind), "x": [float("abc".index(value)) for value in values]})


def attack(ratio: Ratio) -> float:
    """How well one row is told, as a multiple of the claim."""
    return max(ratio(table(WITH_ONE_MORE, ordered), table(OTHERS, ordered)) for ordered in (False, True))


def released(container: str) -> Ratio:
    schema = {"g": dpnb.Categories(["a", "b", "c"]), "x": dpnb.Bounded(0, 2)}
    asks = QUESTIONS.values()
    return lambda rows, others: told_apart(
        in_container(rows, container), in_container(others, container), schema, *asks
    )


def sum_of_codes(rows: pd.DataFrame, others: pd.DataFrame) -> float:
    """Of a claim of 2, the largest code."""
    return abs(int(rows["g"].cat.codes.sum()) - int(others["g"].cat.codes.sum())) / 2


@pytest.mark.parametrize("container", CONTAINERS)
def test_dpnb_resists(container: str) -> None:
    pytest.importorskip(container.split()[-1])
    assert attack(released(container)) <= 1 + EXACT


def test_the_control_is_caught() -> None:
    assert attack(sum_of_codes) > 10
