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
from frame.habits_tables import tables
from frame.test_habits import REFUSED

STARTS = re.compile(r"(?<![\w.'\]])(?:\(?df\[|df\.|dpnb\.|np\.)")
"""Where an example begins."""

GAPS = re.compile(r"\.\.\.|df\[df\['[ax]_?|'a_x'|df\['x'\]|some = |df = df|other, on|public_table|outcome|> limit")
"""Examples with a gap that the analyst fills in, or with names that no table has."""


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {**tables(tmp_path_factory.mktemp("remedies")), "np": np, "pd": pd, "dpnb": dpnb}


def examples_in(text: str) -> list[str]:
    """The expressions in a sentence: from a table, or a function, to the end of its brackets and attributes."""
    found, at = [], 0
    while match := STARTS.search(text, at):
        end = _end(text, match.start())
        if text[end - 1] != ":":  # the name of what is refused
            found.append(text[match.start() : end].rstrip(".,;?"))
        at = max(end, match.end())
    return found


def _end(text: str, at: int) -> int:
    """The end of the expression: outside brackets at a space that no operator follows, or at punctuation."""
    depth, quote = 0, ""
    while at < len(text):
        char = text[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth < 0:
                return at
        elif not depth and char in ",;":
            return at
        elif not depth and char == " ":
            follows = re.match(r" (\*|/|\+|-|>|<|==|&|\||>=|=) ", text[at:])
            if follows is None:
                return at
            at += follows.end() - 1
        at += 1
    return at


def table_of(code: str) -> str:
    """The name of the table that a habit uses."""
    return next((name for name in ("hm", "sf") if re.search(rf"\b{name}\b", code)), "df")


@pytest.mark.parametrize("code", REFUSED)
def test_the_code_in_a_refusal_runs(code: str, names: dict[str, Any]) -> None:
    table = table_of(code)
    for example in examples_in(REFUSED[code]):
        if GAPS.search(example) or example.count("(") != example.count(")"):  # only the start of it is in the file
            continue
        own = {**names, "df": names[table].copy()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(example, own)
            except DpnbError as error:
                pytest.fail(f"{example!r} in the refusal of {code!r} is refused: {error}")


def test_examples_are_found() -> None:
    """Without this, the test above would pass if it found none."""
    every = [example for text in REFUSED.values() for example in examples_in(text)]
    assert len(every) > 200
    assert examples_in("write df[df['x'] > 1], (df['a'] > 1) & (df['b'] == 'c'); or np.log(df['x'] + 1).") == [
        "df[df['x'] > 1]",
        "(df['a'] > 1) & (df['b'] == 'c')",
        "np.log(df['x'] + 1)",
    ]


def test_a_remedy_that_does_not_run_is_detected(names: dict[str, Any]) -> None:
    (example,) = examples_in("is not offered; use df['wage'].harmonic_mean()")
    with pytest.raises(DpnbError):
        exec(example, {**names})
