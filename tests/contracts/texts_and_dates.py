"""Texts and points in time that libraries may treat differently, and questions about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import dpnb
from dpnb._plan.expressions.letters import changed_case
from dpnb.schema import schema_from

LETTERS = ["".join(map(chr, range(start, start + 40))) for start in range(0x20, 0x5A0, 40)]
"""Every character of the scripts whose letters change, and some beyond."""

TEXTS = [
    *(
        "",
        " ",
        "Ann",
        "BOB",
        "bob",
        "ZOË",
        "zoë",
        "İstanbul",
        "Straße",
        "ΑΣ",
        "ασ",
        "ΣΑΣ",
        "ǅ",
        "ﬁn",
        "Ⴀ",
        "ᲀ",
        "Kelvin",
    ),
    *(
        "a\0B",
        "a.b",
        "a+b",
        "100%",
        "a_b",
        "line\nbreak",
        "tab\t",
        "\ufeffx",
        "e\u0301",
        "🤦🏼‍♂️ no",
        "x" * 5000,
        "'; --",
    ),
    *LETTERS,
]

SCHEMA = schema_from(
    {
        "x": dpnb.Bounded(0, 100),
        "t": dpnb.Text(max_length=6),
        "c": dpnb.Categories(["Trade", "trade", " trade ", "Farming", "7"]),
        "d": dpnb.Dates("1968-02-27", "2024-03-05"),
        "s": dpnb.Dates("2023-12-30T22:30:00", "2024-01-02T01:30:00"),
    }
)


def odd() -> pd.DataFrame:
    """Rows with texts and times at which something begins or ends, before and after the declared dates too."""
    chance = np.random.default_rng(13)
    rows = 6 * len(TEXTS)
    days = pd.to_datetime(
        [
            *("1960-01-01", "1968-02-29", "1969-12-28", "1969-12-31", "1970-01-01", "1970-01-05", "1999-12-31"),
            *("2000-02-29", "2000-03-01", "2023-12-31", "2024-01-01", "2024-02-29", "2024-03-04", "2030-06-06"),
        ]
    )
    moments = pd.to_timedelta(["0s", "1us", "59s", "61s", "3599.999999s", "3600s", "86399.999999s"])
    chosen = days[chance.integers(0, len(days), rows)] + moments[chance.integers(0, len(moments), rows)]
    short = pd.Timestamp("2023-12-30T20:00:00") + pd.to_timedelta(chance.integers(0, 60 * 60 * 60, rows), unit="s")
    table = pd.DataFrame(
        {
            "pid": np.arange(rows) // 3,
            "x": chance.uniform(-10, 110, rows).round(2),
            "t": [TEXTS[place % len(TEXTS)] for place in range(rows)],
            "c": chance.choice(np.array(["Trade", "trade", " trade ", "Farming", "7", "other", None], object), rows),
            "d": pd.Series(chosen).astype("datetime64[us]"),
            "s": pd.Series(short).astype("datetime64[us]"),
        }
    )
    table.loc[::9, "t"], table.loc[::13, "x"], table.loc[::11, "d"] = None, np.nan, pd.NaT
    return table


TABLE = odd()
POWERS = {"Trade": 1000, "trade": 0.001, " trade ": 1e15, "Farming": 1e6, "7": 999.9}
SIDES = pd.DataFrame({"high": [True, False], "side": [3, -1]})


def _in_case(case: Any) -> list[str]:
    return sorted({changed_case(text, case) for text in TEXTS})


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "starts with": lambda f: f[f["t"].str.startswith(("Z", "a", "İ"))].count(),
    "ends with": lambda f: f[f["t"].str.endswith("\t")].count(),
    "contains": lambda f: f[~f["t"].str.contains("a")]["x"].sum(),
    "contains a special character": lambda f: f[f["t"].str.contains(".", regex=False)].count(),
    "contains a percent sign": lambda f: f[f["t"].str.contains("%")].count(),
    "contains an underscore": lambda f: f[f["t"].str.contains("_")].count(),
    "contains a null byte": lambda f: f[f["t"].str.contains("\0")].count(),
    "contains nothing": lambda f: f[~f["t"].str.contains("")].count(),
    "contains without case": lambda f: f[f["t"].str.contains("Bo", case=False)].count(),
    "contains or missing": lambda f: f[f["t"].str.contains("bo", na=True)].count(),
    "lower": lambda f: f.groupby(f["t"].str.lower(), keys=_in_case("lower"))["x"].sum(),
    "upper": lambda f: f.groupby(f["t"].str.upper(), keys=_in_case("upper")).count(),
    "lower of upper": lambda f: f.groupby(f["t"].str.upper().str.lower(), keys=_in_case("lower")).count(),
    "found in lower case of upper": lambda f: f.discover(f["t"].str.upper().str.lower()),
    "a constant in a list": lambda f: f[f.assign(one=1)["one"].isin([1, 2])].count(),
    "a computed constant in a list": lambda f: f[(f.assign(one=1)["one"] + 1).isin([1, 2])].count(),
    "a mapped constant": lambda f: f.assign(one=1)["one"].map({1: "a", 2: "b"}).value_counts(),
    "lower is": lambda f: f[f["t"].str.lower() != "zoë"]["x"].sum(),
    "lower is in": lambda f: f[f["t"].str.lower().isin(["bob", "ασ", "straße"])].count(),
    "found in lower case": lambda f: f.discover(f["t"].str.lower()),
    "lengths": lambda f: f.groupby(f["t"].str.len()).count(),
    "length in upper case": lambda f: f["t"].str.upper().str.len().sum(),
    "categories in lower case": lambda f: f["c"].str.strip().str.lower().value_counts(),
    "mapped texts": lambda f: f["t"].map({"bob": 1, "zoë": 2.5, "nobody": 7}).sum(),
    "mapped categories": lambda f: f["c"].map({"Trade": "T", "trade": "T", "7": "S"}).value_counts(),
    "mapped conditions": lambda f: (f["x"] > 50).map({True: 3, False: None}).count(),
    "looked up by conditions": lambda f: f.assign(high=f["x"] > 50).merge(SIDES, on="high")["side"].sum(),
    "nulls mapped": lambda f: f["c"].map({"Trade": 1, np.nan: 7}).sum(),
    "replaced": lambda f: f["x"].round().replace({7: 0, 8: 0, 9: np.nan}).sum(),
    "kept where": lambda f: f["x"].where(f["d"] >= "2000", np.nan).sum(),
    "kept categories": lambda f: f["c"].where(f["x"] > 50).value_counts(),
    "kept dates": lambda f: f.groupby(f["d"].where(f["x"] > 50).dt.year).count(),
    "one of two": lambda f: np.where(f["x"] > 50, "high", "low").value_counts(),
    "larger": lambda f: np.maximum(f["x"], f["t"].str.len()).sum(),
    "floor": lambda f: np.floor(f["x"] / 7).value_counts(),
    "ceil": lambda f: np.ceil(f["x"] / 7).sum(),
    "powers of ten": lambda f: np.floor(np.log10(f["c"].map(POWERS))).value_counts(),
    "powers of ten, rounded up": lambda f: np.ceil(np.log10(f["c"].map(POWERS))).value_counts(),
    "powers of two": lambda f: np.floor(np.log2(f["c"].map({"Trade": 2.0**29, "trade": 8, "7": 2.0**-29}))).sum(),
    "day names": lambda f: f["d"].dt.day_name().value_counts(),
    "month names": lambda f: f["d"].dt.month_name().value_counts(),
    "minutes": lambda f: f["d"].dt.minute.sum(),
    "seconds": lambda f: f["d"].dt.second.sum(),
    **{
        f"periods {freq}": lambda f, freq=freq: f.groupby(f["d"].dt.to_period(freq))["x"].sum()  # type: ignore[misc]
        for freq in ("D", "W", "M", "Q", "Y")
    },
    "hours": lambda f: f["s"].dt.floor("h").value_counts(),
    "a period": lambda f: f[f["d"].dt.to_period("M") == "2024-02"].count(),
    "later periods": lambda f: f[f["d"].dt.to_period("W") > "1969-12-29"].count(),
    "bins of dates": lambda f: dpnb.cut(f["d"], ["1968-02-29", "1970", "2000-03-01", "2030"]).value_counts(),
}

WHOLE_LOGARITHMS = ("powers of ten", "powers of ten, rounded up", "powers of two")
"""Not the same on an engine whose logarithm of a power can be just beside the whole number."""
