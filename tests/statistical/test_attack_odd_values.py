"""Odd values of one person in queries over many columns: nothing but the noisy numbers may depend on them.

The queries are those that pandas' spellings make of several columns at once, and those that choose, recode and divide.
The control lets a calendar period fail for a missing date, and the same comparison must see it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._backends.memory import expressions
from dpnb._plan.expressions.periods import index_of
from statistical import test_attack_texts as texts

pytestmark = pytest.mark.slow

QUERIES: dict[str, Callable[[Any], Any]] = {
    "described": lambda f: f.describe(),
    "correlated": lambda f: f.assign(n=f["t"].str.len()).corr(),
    "missing": lambda f: f.isna().mean(),
    "bounds": lambda f: f["x"].find_bounds(),
    "bins": lambda f: f["x"].value_counts(bins=4, normalize=True),
    "two-way table": lambda f: dpnb.crosstab(f["c"], f["d"].dt.to_period("M"), normalize="index"),
    "pivot table": lambda f: f.pivot_table(index="c", values="x"),
    "indicators": lambda f: dpnb.get_dummies(f["c"]).mean(),
    "weeks": lambda f: f.resample("W", on="d")["x"].mean(),
    "formula": lambda f: f.regress("x ~ C(c)"),
    "whole numbers": lambda f: f["x"].astype(int).value_counts(),
    "truth values": lambda f: f["x"].astype(bool).mean(),
    "replaced": lambda f: f["x"].replace({1: 5, 2: None}).mean(),
    "quotient": lambda f: (f["x"] / (f["x"] + 1) ** 0.5).std(),
    "remainder": lambda f: (f["x"] % 3).sum(),
    "chosen": lambda f: f["x"].where(f["d"] > "2017-02-01", f["t"].str.len()).median(),
    "text condition": lambda f: f.query("x > 1 and c == 'Trade' and d > '2017-01-15'").count(),
    "days": lambda f: (f["d"] - pd.Timestamp("2017-01-01")).dt.days.quantile([0.1, 0.9]),
}

ODD: dict[str, Any] = {
    "nothing": None,
    "infinite": -np.inf,
    "negative zero": -0.0,
    "overflow": 10**400,
    "least double": 5e-324,
    "signalling NaN": Decimal("sNaN"),
    "huge decimal": Decimal("1e999999"),
    "wide float": np.longdouble("1e4000"),
    "time zone": dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-14))),
    "first time": dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=14))),
    "far date": np.datetime64("99999-01-01"),
    "period": pd.Period("2017-01"),
    "array": np.array([1, 2]),
    "table": pd.DataFrame({"a": [1]}),
    "object": texts.Rude(),
}


@pytest.fixture
def seen(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> Callable[[pd.DataFrame], dict[str, Any]]:
    monkeypatch.setattr(texts, "QUERIES", QUERIES)
    return lambda frame: texts.seen(frame, tmp_path, capfd, caplog)


def table(odd: Any, *columns: str) -> pd.DataFrame:
    frame = texts.table("ann", "t")
    for row, column in enumerate(columns):
        values = frame[column].to_numpy(object, copy=True)
        values[row : row + 1].fill(odd)  # an array or a table as one value
        frame[column] = pd.Series(values, dtype=object)
    return frame


def test_no_odd_value_can_be_told_from_an_ordinary_one(seen: Callable[[pd.DataFrame], dict[str, Any]]) -> None:
    ordinary = seen(texts.table("ann", "t"))
    assert not [name for name in QUERIES if issubclass(ordinary[name][0], Exception)]
    told = {}
    for name, value in ODD.items():
        if found := texts.differences(ordinary, seen(table(value, "x", "d"))):
            told[name] = found
    assert told == {}


def test_the_index_of_a_row_does_not_matter(seen: Callable[[pd.DataFrame], dict[str, Any]]) -> None:
    frame = texts.table("ann", "t")
    assert seen(frame.set_index(pd.Index([0] * len(frame)))) == seen(frame)


def test_control_a_period_that_fails_for_a_missing_date_is_seen(
    seen: Callable[[pd.DataFrame], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(unit: Any, seconds: Any) -> Any:
        if np.isnan(seconds).any():
            raise ValueError("a date")
        return index_of(unit, seconds)

    ordinary = seen(texts.table("ann", "t"))
    monkeypatch.setattr(expressions, "index_of", careless)
    assert not texts.differences(ordinary, seen(texts.table("eve", "t")))
    assert {"weeks", "two-way table"} <= set(texts.differences(ordinary, seen(table(ODD["nothing"], "d"))))
