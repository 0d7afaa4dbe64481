"""``.str``: tables of the public list on categories; on texts the few methods that all engines evaluate alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb._plan.expressions.dtypes import Categorical, Numeric, String
from dpnb._plan.expressions.nodes import ChangeCase, Column, FillNull, IsIn, Lookup, MatchText, Or, TextLength
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import PlanError, SchemaError, UnsupportedError
from dpnb.frame import Frame
from dpnb.frame.view import TableView
from dpnb.schema import Bounded, Categories, Schema, Text
from texts import characters

NAMES = ("Trade", " trade", "Public_Admin", "", "straße", "7a")
SCHEMA: Schema = {
    "c": Categories(NAMES),
    "mixed": Categories(["a", 1]),
    "k": Categories([1, 2]),
    "x": Bounded(0, 1),
    "t": Text(),
    "short": Text(max_length=80),
}


def view() -> Frame:
    return Frame(TableView("", {"": SCHEMA}, {"": PrivacyUnit()}, lambda plan, view: plan, lambda _: "1e-6"))  # type: ignore[arg-type,return-value]


f = view()
t = Column("t")

METHODS: dict[str, Callable[[Any], Any]] = {
    "lower": lambda c: c.str.lower(),
    "upper": lambda c: c.str.upper(),
    "casefold": lambda c: c.str.casefold(),
    "title": lambda c: c.str.title(),
    "capitalize": lambda c: c.str.capitalize(),
    "swapcase": lambda c: c.str.swapcase(),
    "strip": lambda c: c.str.strip(),
    "strip some": lambda c: c.str.strip("T7"),
    "lstrip": lambda c: c.str.lstrip(),
    "rstrip": lambda c: c.str.rstrip("e"),
    "slice": lambda c: c.str[1:3],
    "slice method": lambda c: c.str.slice(0, 4, 2),
    "one character": lambda c: c.str[2],
    "last character": lambda c: c.str.get(-1),
    "replace": lambda c: c.str.replace("_", " "),
    "replace once": lambda c: c.str.replace("a", "o", n=1),
    "len": lambda c: c.str.len(),
    "two": lambda c: c.str.strip().str.lower(),
    "starts": lambda c: c.str.startswith("T"),
    "starts with one": lambda c: c.str.startswith(("T", "7")),
    "ends": lambda c: c.str.endswith("e"),
    "contains": lambda c: c.str.contains("ad"),
    "contains without case": lambda c: c.str.contains("TRA", case=False),
    "contains nowhere": lambda c: c.str.contains("nowhere"),
    "contains a character": lambda c: c.str.contains("_", regex=False),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_of_categories_is_a_table_of_what_pandas_gives(name: str) -> None:
    node = METHODS[name](f["c"])._node
    wanted = METHODS[name](pd.Series(NAMES, dtype=object))
    found: list[Any]
    if isinstance(node, IsIn):
        assert node.inner == Column("c")
        found = [value in node.values for value in NAMES]
    else:
        assert isinstance(node, Lookup)
        assert node.inner == (Column("c"),)  # whatever was composed
        new = dict(zip([key for (key,) in node.keys], node.values, strict=True))
        found = [new.get(value) for value in NAMES]
    assert found == [None if pd.isna(value) else value for value in wanted]


def test_categories_that_become_equal_are_one_group() -> None:
    kind = dtype_of(f["c"].str.strip().str.lower()._node, SCHEMA)
    assert kind == Categorical(("trade", "public_admin", "", "straße", "7a"))


def test_a_method_that_changes_nothing_is_the_column() -> None:
    assert f["c"].str.strip("?")._node == Column("c")


def test_categories_that_are_not_texts_are_missing() -> None:
    assert dtype_of(f["mixed"].str.upper()._node, SCHEMA) == Categorical(("A",))
    assert f["mixed"].str.contains("a")._node == IsIn(Column("mixed"), ("a",))


def test_methods_of_texts_are_conditions_texts_and_lengths() -> None:
    lower = ChangeCase("lower", t)
    assert f["t"].str.contains("a b")._node == MatchText("contains", t, "a b")
    assert f["t"].str.contains("A.B", case=False, regex=False)._node == MatchText("contains", lower, "a.b")
    assert f["t"].str.contains("a", regex=True)._node == MatchText("contains", t, "a")  # has no other meaning
    assert f["t"].str.startswith(("a", "b"))._node == Or(
        MatchText("startswith", t, "a"), MatchText("startswith", t, "b")
    )
    assert f["t"].str.endswith("a", na=False)._node == FillNull(MatchText("endswith", t, "a"), False)
    assert dtype_of(f["short"].str.lower()._node, SCHEMA) == String(80)
    assert f["short"].str.len()._node == TextLength(Column("short"))
    assert dtype_of(f["short"].str.upper().str.len()._node, SCHEMA) == Numeric(0, 80, whole=True)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a pattern": (
        lambda: f["t"].str.contains("a.*"),
        r"regular expression.*df\['t'\].str.contains\('a.\*', regex=False\)",
    ),
    "a pattern of categories": (lambda: f["c"].str.contains("^T"), "regular expression"),
    "alternatives": (
        lambda: f["c"].str.contains("Trade|7"),
        r"write df\['c'\].str.contains\('Trade'\) \| df\['c'\].str.contains\('7'\)",
    ),
    "a pattern that is meant": (lambda: f["t"].str.contains("a+", regex=True), "regular expression"),
    "flags": (lambda: f["t"].str.contains("a", flags=2), "regular expression"),
    "a replaced pattern": (lambda: f["c"].str.replace("a+", "b", regex=True), "regular expression"),
    "a length without a bound": (lambda: f["t"].str.len(), r"dpnb.Text\(max_length=...\)"),
    "strip of texts": (lambda: f["t"].str.strip(), "declared categories, and this is a text column"),
    "a slice of texts": (lambda: f["t"].str[:3], "declared categories"),
    "numbers": (lambda: f["x"].str.lower(), "only texts have these methods; this is a number"),
    "numeric categories": (lambda: f["k"].str.lower(), r"\.astype\(str\) converts"),
    "no text": (lambda: f["t"].str.contains(7), "takes a text; got 7"),
    "half a surrogate pair": (lambda: f["t"].str.contains("\ud800"), "constant"),
    "several, not a tuple": (lambda: f["t"].str.startswith(["a"]), "takes a text"),
    "no whole number": (lambda: f["c"].str[1.5], "whole numbers"),
    "a step of 0": (lambda: f["c"].str[::0], "step"),
    "a method of pandas": (lambda: f["c"].str.split("_"), "is not offered"),
    "a misspelt result": (lambda: f["c"].str.upper() == "TRADES", "did you mean 'TRADE'"),
    "the case of a number": (lambda: f["t"].str.contains("a", case="no"), "case"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_offered_is_refused_with_what_is(name: str) -> None:
    written, says = REFUSED[name]
    with pytest.raises((PlanError, UnsupportedError), match=says):
        written()


@given(st.text(characters, max_size=5), st.sampled_from(["contains", "startswith", "endswith"]))
def test_every_literal_text_is_found_as_by_pandas(text: str, method: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    options = {"regex": False} if method == "contains" else {}
    node = getattr(f["c"].str, method)(text, **options)._node
    wanted = getattr(pd.Series(NAMES, dtype=object).str, method)(text, **options)
    assert [value in node.values for value in NAMES] == wanted.tolist()


@pytest.mark.parametrize("length", [0, -1, 1.5, "80", True, 10**9])
def test_an_invalid_maximal_length_is_refused(length: Any) -> None:
    with pytest.raises(SchemaError, match="max_length must be a whole number"):
        Text(max_length=length)
