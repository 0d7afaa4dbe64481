"""What an analyst types in the first hour: 131 lines that were written down before any of them was tried.

`first_hour.toml` has those that work, and the refusal of each other one, which repeats the columns that were typed.
The last of its tables has what was typed in later trials.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb.errors import DpnbError
from frame.first_hour import frames
from shells import terminal_shell

LINES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("first_hour.toml").read_text(encoding="utf-8"))
WORKS: list[str] = LINES["works"]
REFUSED: dict[str, str] = LINES["refused"]
LATER: dict[str, str] = LINES["refused_in_later_trials"]
IMPORTS = """
import numpy as np, pandas as pd
import statsmodels.api as sm, statsmodels.formula.api as smf
from scipy import stats
from sklearn.linear_model import LinearRegression
"""
DRAWN = {"plt": "matplotlib.pyplot", "sns": "seaborn"}
"""Libraries that need a display's backend, imported where a line uses them."""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with terminal_shell() as shell:
        shell.run_cell(IMPORTS)
        shell.user_ns |= {"dpnb": dpnb, "tables": frames(tmp_path_factory.mktemp("first_hour"))}
        shell.run_line_magic("load_ext", "dpnb")
        yield shell
        shell.run_line_magic("unload_ext", "dpnb")


def typed(shell: Any, line: str, capsys: pytest.CaptureFixture[str]) -> tuple[Any, str]:
    """The result of a cell in a fresh copy of the tables, and what it printed."""
    for name, module in DRAWN.items():
        if re.search(rf"\b{name}\.", line):
            pytest.importorskip(module)
            sys.modules["matplotlib"].use("Agg")  # type: ignore[attr-defined]
            shell.user_ns[name] = sys.modules[module]
    for name, value in shell.user_ns["tables"].items():
        shell.user_ns[name] = value.copy() if isinstance(value, dpnb.Frame) else value
    capsys.readouterr()
    result = shell.run_cell(line)
    printed = capsys.readouterr()
    return result, printed.out + printed.err


@pytest.mark.parametrize("line", WORKS)
@pytest.mark.filterwarnings("ignore::Warning:(?!dpnb)")  # of the libraries
def test_a_line_works(line: str, shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    result, _ = typed(shell, line, capsys)
    result.raise_error()
    value = result.result
    if hasattr(value, "release"):
        answer = value.release(mu=1)
        assert repr(answer)
        assert getattr(answer, "notice", None) is None


@pytest.mark.parametrize("line", REFUSED | LATER)
@pytest.mark.filterwarnings("ignore::Warning:(?!dpnb)")
def test_a_refusal_is_short_and_has_the_columns_that_were_typed(
    line: str, shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    result, printed = typed(shell, line, capsys)
    assert isinstance(result.error_in_exec, DpnbError)
    assert (REFUSED | LATER)[line] in str(result.error_in_exec)
    assert "site-packages" not in printed
    assert "/dpnb/" not in printed
    assert len(printed.splitlines()) < 12


def test_without_the_extension_a_traceback_is_long(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The assertions above can fail."""
    shell.run_line_magic("unload_ext", "dpnb")
    try:
        _, printed = typed(shell, "pd.crosstab(df.year, df.female)", capsys)
    finally:
        shell.run_line_magic("load_ext", "dpnb")
    assert "site-packages" in printed


def test_a_refusal_repeats_no_table_and_no_long_list(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    line = "pd.cut(df['age'], {}, labels={})"
    for bins, labels in (("[25, 65]", "pd.Series(['secret'])"), ("list(range(1000))", "None")):
        _, printed = typed(shell, line.format(bins, labels), capsys)
        assert "use dpnb.cut(df['age'], 5), or with edges" in printed
        assert "998" not in printed.replace(line, "")
        assert "secret" not in printed.rpartition("PlanError:")[2]


def test_two_lines_in_three_work() -> None:
    assert len(WORKS) >= 88
    assert len(WORKS) + len(REFUSED) == 131
