"""What pandas users type: each line of `habits.toml` works, or is refused in words that name what does."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.errors import DpnbError
from frame.habits import REFUSED, THEMES, WORKS, run
from frame.habits_tables import tables


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {**tables(tmp_path_factory.mktemp("habits")), "np": np, "pd": pd, "dpnb": dpnb}


@pytest.fixture(scope="module")
def unreleased(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same tables, of which no query is released beforehand, since refusals say where one was."""
    return {**tables(tmp_path_factory.mktemp("refused")), "np": np, "pd": pd, "dpnb": dpnb}


def run_here(code: str, names: dict[str, Any]) -> Any:
    """The value of an expression; the test is skipped where a library that it imports is missing."""
    for module in re.findall(r"(?:^|; )(?:import|from) ([\w.]+)", code):
        pytest.importorskip(module)
    return run(code, names)


@pytest.mark.parametrize("code", WORKS)
@pytest.mark.filterwarnings("ignore::Warning:(?!dpnb)")  # of the libraries that a line imports
def test_a_habit_works(code: str, names: dict[str, Any]) -> None:
    value = run_here(code, names)
    if isinstance(value, dpnb.Query):
        assert value.preview(mu=0.5).fits
        answer = value.release(mu=0.5)
        assert len(answer.to_pandas()) > 0
        assert repr(answer)
        assert answer._repr_html_()


@pytest.mark.parametrize("code", REFUSED)
@pytest.mark.filterwarnings("ignore::Warning:(?!dpnb)")
def test_a_habit_is_refused_with_a_remedy(code: str, unreleased: dict[str, Any]) -> None:
    with pytest.raises(DpnbError) as caught:
        run_here(code, unreleased)
    assert REFUSED[code] in str(caught.value)


def test_most_habits_work() -> None:
    """Of the expressions that were collected first, three in five; the others need rows or an order of rows."""
    assert len(WORKS) > len(REFUSED)


def test_every_habit_is_under_one_theme() -> None:
    every = [code for theme in THEMES for code in [*theme["works"], *theme["refused"]]]
    assert [code for code, times in Counter(every).items() if times > 1] == []
    assert len({theme["name"] for theme in THEMES}) == len(THEMES)


@pytest.mark.parametrize("module", ["statsmodels", "plotly", "sklearn", "scipy", "polars"])
def test_habits_name_other_libraries(module: str) -> None:
    """The lines above that are skipped where a library is missing: these are part of the test's environment."""
    assert any(module in code for code in REFUSED)
    importlib.import_module(module)
