"""Odd texts of one person: after the charge nothing but the noisy numbers may depend on them.

A text method that fails on a text, warns, logs, prints or changes the type or shape of an answer would tell that
somebody has such a text.  So sessions over ordinary and over odd tables must look the same.  The controls put such a
fault in, and the same comparison must see it.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._backends.memory import expressions

pytestmark = pytest.mark.slow

SCHEMA = {
    "x": dpnb.Bounded(0, 8),
    "t": dpnb.Text(max_length=20),
    "c": dpnb.Categories(["Trade", "farming"]),
    "d": dpnb.Dates("2017-01-01", "2017-03-31"),
}


class Rude:
    """An object whose every conversion fails with a text that would be shown."""

    def __str__(self) -> str:
        raise ValueError("secret")

    __repr__ = __len__ = __hash__ = __eq__ = __lower__ = __str__  # type: ignore[assignment]

    def lower(self) -> str:
        raise ValueError("secret")


ODD: dict[str, Any] = {
    "empty": "",
    "null byte": "a\0b",
    "half a surrogate pair": "a\ud800",
    "ten megabytes": "Ä" * 10**7,
    "many lines": "a\n" * 1000,
    "a pattern": "(a+)+$",
    "a format": "{secret} %s",
    "right to left": "\u202eabc",
    "letters that become several": "İßﬁŉ",
    "bytes": b"ann",
    "a number": 10**400,
    "a fraction": 0.1,
    "not a number": float("nan"),
    "truth": True,
    "nothing": None,
    "NA": pd.NA,
    "a date": pd.Timestamp("2017-02-01"),
    "a list": ["ann"],
    "a dict": {"ann": 1},
    "an object": Rude(),
}

QUERIES: dict[str, Callable[[Any], Any]] = {
    "contains": lambda f: f[f["t"].str.contains("ann", case=False)].count(),
    "not starts with": lambda f: f[~f["t"].str.startswith("a")]["x"].mean(),
    "upper": lambda f: f.groupby(f["t"].str.upper(), keys=["ANN", "BOB"]).count(),
    "length": lambda f: f["t"].str.len().mean(),
    "by length": lambda f: f.groupby(f["t"].str.len()).count(),
    "found": lambda f: f.discover(f["t"].str.lower()),
    "mapped": lambda f: f["t"].map({"ann": 1, "bob": 2}).sum(),
    "categories": lambda f: f["c"].str.lower().value_counts(),
    "mapped categories": lambda f: f["c"].map({"Trade": 1, "farming": 3}).mean(),
    "days": lambda f: f["d"].dt.date.value_counts(),
    "day names": lambda f: f["d"].dt.day_name().value_counts(),
    "logarithm": lambda f: np.log(f["x"] + 0.5).mean(),
    "kept": lambda f: f["x"].where(f["t"].str.endswith("n")).mean(),
}


def table(odd: Any, *columns: str) -> pd.DataFrame:
    """A table with an odd value in each of some columns, each in a row of its own."""
    rows = 120
    frame = pd.DataFrame(
        {
            "x": pd.Series(np.arange(rows) % 9, dtype=object),
            "t": pd.Series(np.array(["ann", "Bob", "eve"] * 40, object)),
            "c": pd.Series(np.array(["Trade", "farming", "other"] * 40, object)),
            "d": pd.Series(
                [pd.Timestamp("2017-01-01") + pd.Timedelta(hours=19 * row) for row in range(rows)], dtype=object
            ),
        }
    )
    for row, column in enumerate(columns):
        values = frame[column].tolist()
        frame[column] = pd.Series([*values[:row], odd, *values[row + 1 :]], dtype=object)
    return frame


def seen(frame: pd.DataFrame, folder: Path, capture: Any, caplog: Any) -> dict[str, Any]:
    """Everything about the answers but their numbers."""
    caplog.clear()
    found: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as warned, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        session = dpnb.Session(
            frame,
            name="odd",
            budget=dpnb.Budget(epsilon=20, delta=1e-6, discovery_delta=1e-7),
            schema=SCHEMA,
            ledger=folder / f"{len(list(folder.iterdir()))}.dpnb",
            not_private_test_seed=7,
        )
        for name, ask in QUERIES.items():
            try:
                answer = ask(session.frame).release(mu=0.2)
            except Exception as error:  # noqa: BLE001  (a failure is what is looked for)
                found[name] = type(error), str(error)
                continue
            shown = answer.to_pandas()
            shape = () if name == "found" else (shown.shape, list(map(str, shown.dtypes)), list(map(str, shown.index)))
            found[name] = type(answer), type(answer.estimate), answer.names, shape
    output = capture.readouterr()
    found["warnings"] = [str(one.message) for one in warned]
    found["logged"] = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    found["printed"] = output.out, output.err
    found["charges"] = [charge.status for charge in session.ledger.charges()]
    return found


def differences(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {name: (one[name], other[name]) for name in one if one[name] != other[name]}


@pytest.fixture
def ordinary(tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    return seen(table("ann", "t"), tmp_path, capfd, caplog)


def test_an_ordinary_table_answers_every_query(ordinary: dict[str, Any]) -> None:
    assert not [name for name in QUERIES if issubclass(ordinary[name][0], Exception)]
    assert not ordinary["warnings"]
    assert len(ordinary["charges"]) == len(QUERIES)


def test_no_odd_value_can_be_told_from_an_ordinary_one(
    ordinary: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    told = {}
    for name, value in ODD.items():
        columns = ("t", "c") if name == "ten megabytes" else ("t", "c", "x", "d")
        if found := differences(ordinary, seen(table(value, *columns), tmp_path, capfd, caplog)):
            told[name] = found
    assert told == {}


@pytest.mark.parametrize("fault", ["raises", "prints"])
def test_control_a_careless_evaluation_is_seen(
    fault: str,
    ordinary: dict[str, Any],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = expressions.changed_case

    def careless(text: str, case: Any) -> str:  # warnings are silenced in any case
        if "\0" in text:
            if fault == "raises":
                raise ValueError("a text")
            print("a text")
        return right(text, case)

    monkeypatch.setattr(expressions, "changed_case", careless)
    assert not differences(ordinary, seen(table("eve", "t"), tmp_path, capfd, caplog))
    assert differences(ordinary, seen(table(ODD["null byte"], "t"), tmp_path, capfd, caplog))
