"""The code in a refusal runs when it is copied: each refusal of `habits.toml` is read for its examples."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.errors import DpnbError
from frame.habits import REFUSED, code_in, run
from frame.habits_tables import tables
from frame.test_habits import run_here

WHOLE = re.compile(r"\(?df(?:[\[.]| = )|dpnb\.|np\.")
"""How code begins that is a whole expression, unlike `.mean()`."""

GAPS = re.compile(r"\.\.\.|df\['x'\]|'a_x'|public_table|> limit|outcome ~")
"""Examples with a gap that the analyst fills in, or with names that no table has."""


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {**tables(tmp_path_factory.mktemp("remedies")), "np": np, "pd": pd, "dpnb": dpnb}


def examples_in(message: str) -> list[str]:
    """The code in a message that the analyst can copy: not what is refused, which is quoted or before a colon."""
    pieces = [(message[begin:end], message[end : end + 1]) for begin, end in code_in(message)]
    return [
        code for code, after in pieces if WHOLE.match(code) and after not in (":", "'", '"') and not GAPS.search(code)
    ]


def refused_examples(message: str, names: dict[str, Any]) -> list[str]:
    """The examples in a message that are refused themselves."""
    refused = []
    for example in examples_in(message):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(example, {**names, "df": names["df"].copy()})
            except DpnbError as error:
                refused.append(f"{example}: {error}")
    return refused


def table_of(code: str) -> str:
    """The name of the table that a habit uses."""
    return next((name for name in ("hm", "sf") if re.search(rf"\b{name}\b", code)), "df")


@pytest.mark.parametrize("code", REFUSED)
@pytest.mark.filterwarnings("ignore::Warning:(?!dpnb)")  # of the libraries that a line imports
def test_the_code_in_a_refusal_runs(code: str, names: dict[str, Any]) -> None:
    with pytest.raises(DpnbError) as caught:
        run_here(code, names)
    assert refused_examples(str(caught.value), {**names, "df": names[table_of(code)]}) == []


@pytest.mark.filterwarnings("ignore::Warning:(?!dpnb)")
def test_refusals_have_examples(names: dict[str, Any]) -> None:
    """Without this, the test above would pass if it found none."""
    found = []
    for code in REFUSED:
        try:
            run(code, names)
        except DpnbError as error:
            found += examples_in(str(error))
        except ImportError:
            continue
    assert len(found) > 300


@pytest.mark.parametrize(
    ("message", "code", "examples"),
    [
        (
            "write (df['a'] > 1) & (df['b'] == 'c').mean(), or np.log(df['c'] + 1).",
            ["(df['a'] > 1) & (df['b'] == 'c').mean()", "np.log(df['c'] + 1)"],
            ["(df['a'] > 1) & (df['b'] == 'c').mean()", "np.log(df['c'] + 1)"],
        ),
        ("df['a'].b: is not offered; did you mean .c('d')?", ["df['a'].b", ".c('d')"], []),
        (
            "formula 'a ~ np.log(b)': has no groupby('a'); write df.assign(b=...)",
            ["np.log(b)", "groupby('a')", "df.assign(b=...)"],
            [],
        ),
        (
            "df[['a', 'b']] = ...: takes two columns (or one df['a'] = df['b'] * 2)",
            ["df[['a', 'b']] = ...", "df['a'] = df['b'] * 2"],
            ["df['a'] = df['b'] * 2"],
        ),
    ],
)
def test_code_in_a_message(message: str, code: list[str], examples: list[str]) -> None:
    assert [message[begin:end] for begin, end in code_in(message)] == code
    assert examples_in(message) == examples


def test_an_example_that_is_refused_is_detected(names: dict[str, Any]) -> None:
    (refused,) = refused_examples("is not offered; use df['wage'].harmonic_mean() or df['wage'].mean()", names)
    assert refused.startswith("df['wage'].harmonic_mean(): ")
