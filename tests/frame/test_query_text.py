"""A text for `df.query` is parsed, never evaluated: attacks, and a control that shows what evaluation would do."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import DpnbError, PlanError
from dpnb.frame import Frame
from dpnb.frame.view import TableView
from dpnb.schema import Bounded, Categories, Dates, Schema, Text

SCHEMA: Schema = {
    "x": Bounded(0, 20),
    "g": Categories(["a", "b"]),
    "t": Text(),
    "d": Dates("2020-01-01", "2021-12-31"),
}
CALLED: list[object] = []


def called(*_: object) -> float:
    """What an attack would call; the texts below know it by the name of this module's global."""
    CALLED.append(_)
    return 1.0


@pytest.fixture
def f() -> Any:
    CALLED.clear()
    return Frame(TableView("", {"": SCHEMA}, {"": PrivacyUnit("u", 5)}, lambda plan, view: (plan, view), str))  # type: ignore[arg-type]


ATTACKS = [
    "called() > 0", "x > called()", "x.apply(called) > 0", "(lambda: called())() > x", "[called() for i in (1,)] == x",
    "x > __import__('os').getpid()", "x.__class__ == 1", "x._view == 1", "x._node == 1", "x.isin(called())", "x.isin",
    "x.mean() > 1", "x.mean", "x._view.schemas", "x.groupby('g')", "x.release(mu=1)", "g.str.__class__", "x.dt._date",
    "f'{called()}' == g", "x if called() else x", "x := 3", "x[called()]", "x[x > 1]", "x.isin(values=[called()])",
    "x.isin(*[1])", "x.isin(**{'values': [1]})", "exec('called()')", "eval('called()') > x", "x > @CALLED",
    "@called() > 0", "@pd.eval('1')", "`called()` > 1", "`x", "`", "x > 9 ** 9 ** 9", "x > 1 << 10**9",
    "x > 'a' * 10**9",
    "x > -True", "x > None", "x > ...", "x > 1j", "x > b'1'", "x is x", "x is not None", "x in x", "x in 'a'", "1 < 2",
    "1", "'a'", "x", "x + 1", "[x]", "[1, 2]", "{'a': 1}", "x, x", "x == [called()]", "x == [x]", "x > 1; called()",
    "x > 1\ncalled()", "import os", "x =1", "x > ", "", "   ", "\x00", "x > \x00", "((((((((((",
    "(" * 2000 + "x" + ")" * 2000,
    "not " * 3000 + "x > 1", "x" + " + x" * 3000 + " > 1", "x" + ".a" * 4000, "-" * 5000 + "x > 1", "x > 1e999",
    "x > " + "9" * 5000, "x > 1 and", "'a", "x > 'a\\", "x.between(1)", "x.between(1, 2, 'nonsense')", "g > 'a'",
    "x > 1 if x > 2 else x > 3", "await x", "yield x", "*x", "x @ x", "x ^ x", "x >> 1", "~1 > x", "+g > 1", "x and 1",
    "d.dt.tz", "d.dt.days", "y > 1", "count > 1", "x > y", "{x} > 1",
    "%s > 1", "x > 1 " + "# called()\n", "x" * 10_001,
]  # fmt: skip


@pytest.mark.parametrize("text", ATTACKS)
def test_what_is_not_a_condition_is_refused_and_nothing_is_called(f: Any, text: str) -> None:
    try:
        f.query(text)
    except PlanError:
        pass
    else:
        assert text.startswith("x > 1 #")  # a comment
    assert CALLED == []


def test_evaluation_would_call(f: Any) -> None:
    """The control: the attacks reach their target if the text is evaluated."""
    names = {"called": called, "x": f["x"]}
    eval("called() > 0", names)
    eval("x > called()", names)
    assert len(CALLED) == 2


@given(st.text(alphabet="xgtd.()[]'\"`@&|~<>=!+-*/ 12andorit_" + string.ascii_lowercase, max_size=40))
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    frame: Any = Frame(TableView("", {"": SCHEMA}, {"": PrivacyUnit("u", 5)}, lambda plan, view: (plan, view), str))  # type: ignore[arg-type]
    for parse in (frame.query, frame.eval, frame.regress):
        try:
            parse(text)
        except DpnbError:
            continue


@pytest.mark.parametrize(
    "value", [None, 3, b"x > 1", ["x > 1"], {"x": 1}, object()], ids=lambda value: type(value).__name__
)
def test_only_a_text_is_parsed(f: Any, value: Any) -> None:
    with pytest.raises(PlanError, match="takes a text"):
        f.query(value)


def test_a_variable_is_named_with_both_remedies(f: Any) -> None:
    with pytest.raises(PlanError, match=r"@limit: variables are not read; write the value.*df\[df\['x'\] > limit\]"):
        f.query("x > @limit")


def test_a_long_text_of_few_levels_is_read(f: Any) -> None:
    text = " or ".join(f"x == {value}" for value in range(50))
    assert f.query(text)._view.where is not None


def test_a_number_with_thousands_of_digits_is_refused_by_name(f: Frame) -> None:
    digits = "9" * 4000
    for write in (
        lambda: f.query(f"x > {digits} * {digits}"),
        lambda: f["x"] > 10**5000,
        lambda: f["x"].clip(upper=10**5000),
        lambda: f["x"].isin([10**5000]),
    ):
        with pytest.raises(PlanError, match="a number of thousands of digits"):
            write()


def test_a_column_that_is_formatted_as_a_number_is_refused_by_name(f: Frame) -> None:
    with pytest.raises(PlanError, match="is not a number; release an aggregate"):
        f"{f['x']:.2f}"
    assert f"{f['x']}" == repr(f["x"])
