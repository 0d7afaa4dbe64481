"""A frame on display: its columns with their declared types, and a line to try; never a row."""

from __future__ import annotations

from typing import Any

import pytest
from IPython.lib.pretty import pretty

import dpnb

SCHEMA: dict[str, Any] = {
    "age": dpnb.Bounded(0, 99),
    "plan": dpnb.Categories(["free", "paid"]),
    "<b>": dpnb.Dates("2020-01-01", "2020-12-31"),
}


@pytest.fixture
def frame() -> Any:
    return dpnb.Session.rehearse(name="o", budget=dpnb.Budget.gdp(1), schema=SCHEMA).frame


def test_a_frame_shows_names_types_and_a_line_that_runs(frame: Any) -> None:
    lines = pretty(frame).splitlines()
    assert lines[0] == "private table; rows are never shown"
    assert [line.split(": ", 1)[1].strip() for line in lines[1:3]] == [
        "number from 0 to 99",
        "category: 'free', 'paid'",
    ]
    code = lines[-1].removeprefix("  for example: ")
    assert eval(code, {"df": frame}).description == "mean of age by plan"
    assert str(frame) == pretty(frame)


@pytest.mark.parametrize(("columns", "code"), [(["age"], "df['age'].mean()"), (["plan"], "df.count()")])
def test_the_line_uses_the_columns_that_there_are(frame: Any, columns: list[str], code: str) -> None:
    assert pretty(frame[columns]).endswith(f"for example: {code}")


def test_a_filtered_frame_says_its_condition_and_html_is_escaped(frame: Any) -> None:
    html = frame[frame["age"] > 3]._repr_html_()
    assert "private table where age &gt; 3" in html
    assert "&lt;b&gt;" in html
    assert "'<b>'" not in html


def test_the_repr_that_messages_quote_is_one_line(frame: Any) -> None:
    assert repr(frame) == "<private table: age, plan, <b>>"
