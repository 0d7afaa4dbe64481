"""Operations that make missing values, and counts that are free.

Kind: values
Fault: Where the number of rows is public, the count of a column without missing values is free. But a cast, a cut or
a remainder makes missing values of some values, so the free count is the number of rows that were not affected.
Reported: opendp/opendp#2938 (casts); opendp/opendp#2939 (cut); opendp/opendp#2940 (remainders)
dpnb: Every count is charged and gets noise, also with `public_rows`; a row that counts for nothing changes it by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd
import pytest

import dpnb
from attacks.common import answer, told_apart

ODD = [math.nan, math.inf, 0.0, -1e300, None]
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "column": lambda frame: frame["x"].count(),
    "cast": lambda frame: frame["x"].fillna(0).astype(int).count(),
    "cut": lambda frame: frame.groupby(dpnb.cut(frame["x"].fillna(0), [0, 1.5, 2])).count(),
    "remainder": lambda frame: (frame["x"].fillna(0) % 0.5).count(),
    "root": lambda frame: (frame["x"].fillna(1) ** 0.5).count(),
}


class Count(NamedTuple):
    """What a count was charged, its noise scale, and how well it tells the last row of the table."""

    cost: float
    noise: float
    ratio: float


def attack(count: Callable[[list[Any]], Count]) -> list[Any]:
    """Values whose rows are counted for free, or without noise, or told better than was charged."""
    found = []
    for value in ODD:
        cost, noise, ratio = count([*[1.0] * 15, value])
        if not (cost > 0 and noise > 0 and ratio <= 1.0001):
            found.append(value)
    return found


def released(ask: Callable[[Any], Any]) -> Callable[[list[Any]], Count]:
    def count(rows: list[Any]) -> Count:
        schema = {"x": dpnb.Bounded(0, 2)}
        tables = [pd.DataFrame({"x": pd.Series(part, dtype=object)}) for part in (rows, rows[:-1])]
        found = answer(tables[0], schema, ask, public_rows=len(rows))
        noise = min(pd.Series(found.noise_scale))
        return Count(found.cost.mu, noise, told_apart(*tables, schema, ask))

    return count


def free_if_declared_complete(rows: list[Any]) -> Count:
    """The number of values that a cast leaves, at no cost, since their number is that of the rows."""
    cast = pd.to_numeric(pd.Series(rows, dtype=object), errors="coerce").where(lambda column: column.abs() < 1e18)
    return Count(0.0, 0.0, 0.0 if cast.notna().all() else math.inf)


@pytest.mark.parametrize("ask", QUESTIONS)
def test_dpnb_resists(ask: str) -> None:
    assert attack(released(QUESTIONS[ask])) == []


def test_the_control_is_caught() -> None:
    assert attack(free_if_declared_complete)
