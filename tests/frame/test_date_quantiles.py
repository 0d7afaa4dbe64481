"""Quantiles of dates: the smallest, the median and the largest date are dates, measured like those of numbers."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.errors import PlanError, RequestError

BUDGET = dpnb.Budget(epsilon=1e6, delta=1e-6)
SCHEMA: Any = {
    "day": dpnb.Dates("2017-01-01", "2017-12-31"),
    "old": dpnb.Dates("1950-01-01", "1990-01-01"),
    "g": dpnb.Categories(["a", "b"]),
    "x": dpnb.Bounded(0, 1),
}
DAY = pd.Timedelta(days=1)


def rows(size: int = 2_000) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "day": pd.Timestamp("2017-02-01") + pd.to_timedelta(rng.integers(0, 200 * 24 * 60, size), "min"),
            "old": pd.Timestamp("1955-01-01") + pd.to_timedelta(rng.integers(0, 30 * 365, size), "D"),
            "g": rng.choice(["a", "b"], size),
            "x": rng.random(size),
        }
    )


def frame(folder: Path, table: pd.DataFrame | None = None) -> Any:
    table = rows() if table is None else table
    return dpnb.Session(table, name="t", budget=BUDGET, schema=SCHEMA, ledger=folder / "t").frame


@pytest.mark.parametrize("column", ["day", "old"])
def test_quantiles_of_dates_are_those_of_pandas(tmp_path: Path, column: str) -> None:
    f, series = frame(tmp_path), rows()[column]
    for verb in ("min", "median", "max"):
        answer = getattr(f[column], verb)().release(mu=100, confidence=0.999999)  # false alarms: 3 in a million
        low, high = answer.interval
        exact = getattr(series, verb)()
        assert isinstance(answer.estimate, pd.Timestamp)
        assert abs(answer.estimate - exact) < (series.max() - series.min()) / 50
        assert low <= exact <= high
        assert isinstance(answer.noise_scale, pd.Timedelta)
    answer = f[column].quantile([0.25, 0.75]).release(mu=100)
    exact = series.quantile([0.25, 0.75])
    assert ((answer.estimate - exact).abs() < (series.max() - series.min()) / 50).all()
    assert answer.estimate.dtype.kind == "M"


def test_all_quantiles_of_a_date_share_one_measurement(tmp_path: Path) -> None:
    f = frame(tmp_path)
    f["day"].min().release(mu=1)
    for query in (f["day"].max(), f["day"].median(), f["day"].quantile([0.1, 0.9])):
        assert not query.release(mu=1).cost


def test_dates_are_aggregated_by_group_and_with_numbers(tmp_path: Path) -> None:
    f = frame(tmp_path)
    table = f.groupby("g").agg({"day": ["min", "max"], "x": "mean"}).release(mu=100).estimate
    exact = rows().groupby("g").agg({"day": ["min", "max"], "x": "mean"})
    assert [kind.kind for kind in table.dtypes] == ["M", "M", "f"]
    assert ((table["day_min"] - exact["day"]["min"]).abs() < 5 * DAY).all()
    assert ((table["day_max"] - exact["day"]["max"]).abs() < 5 * DAY).all()
    assert table["x"].sub(exact["x"]["mean"]).abs().max() < 0.1
    same = f.groupby("g")["day"].agg(["min", "max"])
    assert same.view.columns[0].view.at == (0.0,)
    assert f.agg(first=("day", "min")).plan == f.agg({"day": "min"}).plan


def test_dates_are_shown_as_dates(tmp_path: Path) -> None:
    f = frame(tmp_path)
    answer = f["day"].min().release(mu=10)
    assert f"{answer.estimate:%Y-%m-%d}" in repr(answer)
    month = f"{answer.estimate:%Y-%m}"
    assert f"{answer:%Y-%m}" == month
    assert month in answer._repr_html_()
    by_group = f.groupby("g")["day"].max().release(mu=10)
    assert "2017-08" in repr(by_group.sort_values())
    assert isinstance(by_group["a"].estimate, pd.Timestamp)
    assert json.loads(by_group.to_json())[0]["estimate"].startswith("2017-08")
    copy = pickle.loads(pickle.dumps(answer))
    assert copy.estimate == answer.estimate
    refined = answer.refine(mu=20)
    assert f"{refined.estimate:%Y-%m}" in refined._repr_html_()
    assert "1,48" not in refined._repr_html_()  # seconds since 1970


def test_the_log_shows_dates(tmp_path: Path) -> None:
    session = dpnb.Session(rows(), name="t", budget=BUDGET, schema=SCHEMA, ledger=tmp_path / "t")
    session.frame["day"].max().release(mu=10)
    assert session.log["estimate"].iloc[0].startswith("2017-08")


ARITHMETIC: list[Callable[[Any], Any]] = [
    lambda a: a - a,
    lambda a: a + 1,
    lambda a: -a,
    lambda a: a > 3,
    lambda a: a == 3,
    lambda a: a > pd.Timestamp("2017-01-01"),
    lambda a: a.round(1),
    lambda a: a.plot(),
    float,
    int,
    lambda a: a.item(),
]


@pytest.mark.parametrize("use", ARITHMETIC)
def test_arithmetic_with_dates_is_refused(tmp_path: Path, use: Callable[[Any], Any]) -> None:
    answer = frame(tmp_path)["day"].min().release(mu=10)
    with pytest.raises(
        RequestError, match=r"is not offered for dates, such as smallest of day \(UTC\); use \.estimate"
    ):
        use(answer)


@pytest.mark.parametrize("verb", ["mean", "sum", "std", "describe"])
def test_other_statistics_of_dates_are_refused_with_those_that_work(tmp_path: Path, verb: str) -> None:
    with pytest.raises(PlanError, match=r"use df\['day'\]\.min\(\), df\['day'\]\.median\(\)"):
        getattr(frame(tmp_path)["day"], verb)()


@pytest.mark.parametrize(
    "day",
    [[], [pd.NaT], [pd.Timestamp.max], [pd.Timestamp("1700-01-01")], ["no date"], [object()]],
    ids=["empty", "missing", "late", "early", "text", "object"],
)
def test_no_row_changes_the_type_or_the_declared_range(tmp_path: Path, day: list[Any]) -> None:
    """One row cannot be read off the answer: its type, bounds and display are those of the schema."""
    table = pd.DataFrame({"day": pd.Series(day, dtype=object), "old": None, "g": "a", "x": 0.5})
    answer = frame(tmp_path, table)["day"].max().release(mu=0.01)
    assert answer.estimate is pd.NaT or isinstance(answer.estimate, pd.Timestamp)
    low, high = answer.interval
    assert pd.Timestamp("2017-01-01") <= low <= high <= pd.Timestamp("2017-12-31T23:59:59.999999")
    assert repr(answer)


@pytest.mark.parametrize("size", [0, 50])
@pytest.mark.parametrize("mu", [1e-12, 1e-9, 1e-3])
def test_every_date_of_the_calendar_is_displayed_whatever_the_noise(tmp_path: Path, size: int, mu: float) -> None:
    schema = {"day": dpnb.Dates("0001-01-01", "9999-12-31"), "g": dpnb.Categories(["a", "b"])}
    table = pd.DataFrame({"day": [pd.Timestamp("2017-02-01")] * size, "g": ["a"] * size})
    f = dpnb.Session(table, name="t", budget=BUDGET, schema=schema, ledger=tmp_path / "t").frame
    for query in (f["day"].median(), f.groupby("g")["day"].quantile([0.1, 0.9])):
        answer = query.release(mu=mu)
        dates = re.findall(r"(\d+-\d\d-\d\d) to (\d+-\d\d-\d\d)", repr(answer))
        assert len(dates) == 2 * len(answer.to_pandas())  # for the noise, and for the population
        for low, high in dates:
            assert "0001-01-01" <= low <= high <= "9999-12-31"
            assert f"{low} to {high}" in answer._repr_html_()
        assert answer.to_pandas()["low"].min() >= pd.Timestamp("0001-01-01")
