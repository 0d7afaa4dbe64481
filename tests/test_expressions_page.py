"""The page of pandas expressions has every line of the table that the tests keep, under a theme."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from frame.habits import REFUSED, WORKS
from scripts import loaded


@pytest.fixture(scope="module")
def expressions() -> ModuleType:
    return loaded("expressions")


def test_every_expression_is_on_the_page_once(expressions: ModuleType) -> None:
    text = expressions.page(
        lambda code: expressions.Outcome("text", code), lambda code, part: expressions.Outcome(part)
    )
    cells = re.findall(r"(?:^\| |<br>)(`.*?`)(?=<br>| \|)", text, flags=re.MULTILINE)
    assert sorted(cells) == sorted(map(expressions.code_span, [*WORKS, *REFUSED]))


def test_spellings_of_one_query_are_one_row_and_other_bins_are_another(expressions: ModuleType, tmp_path: Path) -> None:
    outcomes = expressions.Outcomes(tmp_path)
    mean = outcomes.result("df['wage'].mean()")
    assert mean == outcomes.result("df.wage.mean()")
    assert mean.text == "query: mean of wage"
    assert outcomes.result("df['wage'].hist(bins=10)") != outcomes.result("df['wage'].hist(bins=20)")
    assert outcomes.result("df.copy()").text == "the same table"
    assert outcomes.result("df['union'].unique()").text == "public: ['no', 'yes']"


def test_a_refusal_is_whole_or_what_the_table_has_where_a_library_is_missing(
    expressions: ModuleType, tmp_path: Path
) -> None:
    outcomes = expressions.Outcomes(tmp_path)
    whole = outcomes.refusal("df['wage']/df['exper']", "exper can be 0").text
    assert whole.startswith("exper can be 0")
    assert whole.endswith("df['exper'].clip(lower=1)")
    assert outcomes.refusal("import no_such_library", "needs rows").text == "needs rows"


def test_an_expression_that_is_listed_as_refused_but_works_is_an_error(expressions: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"df\.copy\(\) is listed as refused, but works"):
        expressions.Outcomes(tmp_path).refusal("df.copy()", "needs rows")


def test_code_in_a_message_is_set_as_code(expressions: ModuleType) -> None:
    marked = expressions.marked_up("a_b | c: write (df['a'] > 1) | (df['b'] * 2 > 1), or np.log(x)[0]; d[0]")
    assert marked == "a\\_b \\| c: write `(df['a'] > 1) \\| (df['b'] * 2 > 1)`, or `np.log(x)[0]`; d\\[0\\]"
