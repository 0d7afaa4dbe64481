"""New values for given ones make the plan of the spelling with the same meaning, from public values alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpnb._plan.expressions.dtypes import Boolean, Categorical, Numeric
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import Count
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import PlanError, UnsupportedError
from dpnb.frame import Frame
from dpnb.frame.view import TableView
from dpnb.schema import Bounded, Categories, Dates, Schema, Text

SCHEMA: Schema = {
    "x": Bounded(-2, 10),
    "n": Bounded(0, 20, integer=True),
    "union": Categories(["no", "yes"]),
    "code": Categories([1, 2, 9]),
    "flag": Categories([False, True]),
    "when": Dates("2017-01-01", "2017-12-31"),
    "note": Text(),
}


@pytest.fixture
def f() -> Frame:
    return Frame(TableView("", {"": SCHEMA}, {"": PrivacyUnit()}, lambda plan, view: plan, lambda _: "1e-6"))  # type: ignore[arg-type,return-value]


Written = Callable[[Any], Any]

SAME: dict[str, tuple[Written, Written]] = {
    "map and replace": (
        lambda f: f["union"].map({"yes": 1, "no": 0}),
        lambda f: f["union"].replace({"no": 0, "yes": 1}),
    ),
    "replace by pairs, lists and a dict": (
        lambda f: f["union"].replace("yes", "ja"),
        lambda f: f["union"].replace(["yes"], ["ja"]),
    ),
    "a series and a dict": (
        lambda f: f["union"].map(pd.Series({"no": "n", "yes": "y"})),
        lambda f: f["union"].map({"yes": "y", "no": "n"}),
    ),
    "a missing key and a null": (lambda f: f["code"].map({1: 5, 2: 6}), lambda f: f["code"].map({1: 5, 2: 6, 9: None})),
    "a default": (
        lambda f: f["union"].map(Counter({"yes": 3})),
        lambda f: f["union"].map({"yes": 3, "no": 0}),
    ),
    "truth values and a condition": (
        lambda f: f["union"].map({"yes": True, "no": False}),
        lambda f: f["union"].isin(["yes"]),
    ),
    "a map of a map": (
        lambda f: f["union"].map({"yes": "y", "no": "n"}).map({"y": 1, "n": 0}),
        lambda f: f["union"].map({"yes": 1, "no": 0}),
    ),
    "a map that changes nothing": (lambda f: f["union"].map({"yes": "yes", "no": "no"}), lambda f: f["union"]),
    "replaced numbers and mask": (lambda f: f["x"].replace(9, 0), lambda f: f["x"].mask(f["x"] == 9, 0)),
    "several replaced numbers": (lambda f: f["x"].replace([8, 9], 0), lambda f: f["x"].mask(f["x"].isin([9, 8]), 0)),
    "a replaced null": (lambda f: f["x"].replace(np.nan, 0), lambda f: f["x"].fillna(0)),
    "a number replaced by a null": (lambda f: f["x"].replace(9, np.nan), lambda f: f["x"].where(~(f["x"] == 9))),
    "a mapped condition": (lambda f: (f["x"] > 1).map({True: 1, False: 0}), lambda f: (f["x"] > 1).astype(int)),
    "numpy.where of 1 and 0": (lambda f: np.where(f["x"] > 1, 1, 0), lambda f: (f["x"] > 1).astype(int)),
    "numpy.where of 0 and 1": (lambda f: np.where(f["x"] > 1, 0, 1), lambda f: (~(f["x"] > 1)).astype(int)),
    "numpy.where of truth": (lambda f: np.where(f["x"] > 1, True, False), lambda f: f["x"] > 1),
    "numpy.where and where": (lambda f: np.where(f["x"] > 1, f["x"], 0), lambda f: f["x"].where(f["x"] > 1, 0)),
    "numpy.where and mask": (lambda f: np.where(f["x"] > 1, 0, f["x"]), lambda f: f["x"].mask(f["x"] > 1, 0)),
    "numpy.where of a null": (lambda f: np.where(f["x"] > 1, f["x"], np.nan), lambda f: f["x"].where(f["x"] > 1)),
    "numpy.where of words": (
        lambda f: np.where(f["x"] > 1, "hi", "lo"),
        lambda f: (f["x"] > 1).map({False: "lo", True: "hi"}),
    ),
    "where and mask": (lambda f: f["x"].where(f["n"] > 1, None), lambda f: f["x"].mask(~(f["n"] > 1))),
    "filled from a column": (lambda f: f["x"].fillna(f["n"]), lambda f: np.where(f["x"].isna(), f["n"], f["x"])),
    "a null that is replaced, and a value that becomes null": (
        lambda f: f["x"].replace({np.nan: 0, 9: None}),
        lambda f: np.where(f["x"].notna(), f["x"].where(~(f["x"] == 9)), 0),
    ),
    "a null as a key": (
        lambda f: f["union"].map({"yes": 1, "no": 0, None: 5}),
        lambda f: np.where(f["union"].isna(), 5, f["union"].map({"yes": 1, "no": 0})),
    ),
    "numpy.maximum": (lambda f: np.maximum(f["x"], 0), lambda f: f["x"].clip(lower=0)),
    "numpy.minimum on the left": (lambda f: np.minimum(3, f["x"]), lambda f: f["x"].clip(upper=3)),
    "numpy.maximum of columns": (
        lambda f: np.maximum(f["x"], f["n"]),
        lambda f: np.where(f["x"] >= f["n"], f["x"], f["n"]),
    ),
    "numpy.floor": (lambda f: np.floor(f["x"]), lambda f: f["x"] // 1),
    "numpy.ceil": (lambda f: np.ceil(f["x"]), lambda f: -(-f["x"] // 1)),
    "numpy.isnan": (lambda f: np.isnan(f["x"]), lambda f: f["x"].isna()),
    "numpy.logical_and": (
        lambda f: np.logical_and(f["x"] > 1, f["n"] > 1),
        lambda f: (f["x"] > 1) & (f["n"] > 1),
    ),
    "numpy.power": (lambda f: np.power(f["x"], 2), lambda f: f["x"] ** 2),
    "numpy.floor_divide on the left": (lambda f: np.subtract(7, f["x"]), lambda f: 7 - f["x"]),
    "numpy.log": (lambda f: np.log(f["n"] + 1), lambda f: (f["n"] + 1).log()),
    "numpy.log10": (lambda f: np.log10(f["n"] + 1), lambda f: (f["n"] + 1).log10()),
    "numpy.log2": (lambda f: np.log2(f["n"] + 1), lambda f: (f["n"] + 1).log2()),
    "a number as a condition": (lambda f: f["n"].astype(bool), lambda f: f["n"] != 0),
    "categories as a condition": (lambda f: f["flag"].astype(bool), lambda f: f["flag"].isin([True])),
    "truth values as a number": (lambda f: f["flag"] + 1, lambda f: f["flag"].eq(True) + 1),
    "truth values and": (lambda f: f["flag"] & (f["x"] > 1), lambda f: f["flag"].eq(True) & (f["x"] > 1)),
    "truth values on the right": (lambda f: (f["x"] > 1) | f["flag"], lambda f: (f["x"] > 1) | f["flag"].eq(True)),
    "truth values negated": (lambda f: ~f["flag"], lambda f: ~f["flag"].eq(True)),
    "truth values that choose": (lambda f: f["x"].mask(f["flag"], 0), lambda f: f["x"].mask(f["flag"].eq(True), 0)),
    "texts as texts": (lambda f: f["union"].astype(str), lambda f: f["union"]),
    "categories as categories": (lambda f: f["union"].astype("category"), lambda f: f["union"]),
    "periods": (lambda f: f["when"].dt.floor("D"), lambda f: f["when"].dt.date),
    "formats": (lambda f: f["when"].dt.strftime("%Y-%m"), lambda f: f["when"].dt.to_period("ME")),
    "compared periods": (lambda f: f["when"].dt.to_period("M") >= "2017-06", lambda f: f["when"] >= "2017-06-01"),
    "a month of dates": (lambda f: f["when"] < "2017-06", lambda f: f["when"] < pd.Timestamp("2017-06-01")),
    "dates on the left": (lambda f: pd.Timestamp("2017-06-01") < f["when"], lambda f: f["when"] > "2017-06-01"),
    "listed dates": (
        lambda f: f["when"].isin(pd.to_datetime(["2017-06-01", "2017-07-01"])),
        lambda f: f["when"].isin(["2017-07", "2017-06-01"]),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_spellings_with_one_meaning_make_one_plan(f: Frame, name: str) -> None:
    """So the second of them is answered by the first one's observation."""
    keys = {query_key(Plan(Count(), written(f).isna()._node)) for written in SAME[name]}
    assert len(keys) == 1


def test_truth_values_select_and_are_averaged_as_in_pandas(f: Frame) -> None:
    flag: Any = f["flag"]
    assert query_key(flag.mean()) == query_key(flag.eq(True).mean())
    assert query_key(f[flag].count()) == query_key(f[flag.eq(True)].count())
    assert query_key(f.groupby("union")["flag"].sum()) == query_key(flag.eq(True).groupby(f["union"]).sum())


TYPES: dict[str, tuple[Written, Any]] = {
    "numbers": (lambda f: f["union"].map({"yes": 2.5, "no": -1}), Numeric(-1, 2.5)),
    "whole numbers": (lambda f: f["union"].map({"yes": 2, "no": -1}), Numeric(-1, 2, whole=True, step=3)),
    "words": (lambda f: f["code"].map({1: "a", 2: "b", 9: "a"}), Categorical(("a", "b"))),
    "truth": (lambda f: f["code"].map({1: True, 2: False}), Boolean()),
    "of whole numbers": (
        lambda f: f["n"].map({12: "hs", 16: "college", 99: "never"}),
        Categorical(("hs", "college", "never")),
    ),
    "of texts": (lambda f: f["note"].map({"a": 1, 7: 2}), Numeric(1, 2, whole=True)),
    "replaced categories": (lambda f: f["code"].replace({1: 10}), Categorical((10, 2, 9))),
    "a category replaced by a null": (lambda f: f["code"].replace(9, np.nan), Categorical((1, 2))),
    "replaced numbers": (lambda f: f["n"].replace({20: -5}), Numeric(-5, 20, whole=True)),
    "numbers as texts": (lambda f: f["code"].astype(str), Categorical(("1", "2", "9"))),
    "the larger": (lambda f: np.maximum(f["x"], f["n"]), Numeric(-2, 20)),
    "kept": (lambda f: f["union"].where(f["x"] > 1), Categorical(("no", "yes"))),
    "logarithm": (lambda f: np.log2(f["n"].clip(lower=1)), Numeric(0, np.log2(20))),
}


@pytest.mark.parametrize("name", TYPES)
def test_new_values_have_the_type_that_their_values_have(f: Frame, name: str) -> None:
    written, kind = TYPES[name]
    assert dtype_of(written(f)._node, SCHEMA) == kind


REFUSED: dict[str, tuple[Written, str]] = {
    "a function": (
        lambda f: f["union"].map(str.lower),
        r"public dict, such as df\['union'\].map\({'no': 0, 'yes': 1}\)",
    ),
    "a function of values": (lambda f: f["x"].map(lambda x: [x]), r"arithmetic such as df\['x'\] \* 2; a function"),
    "a text": (lambda f: f["union"].map("yes"), "public dict.*got 'yes'"),
    "an empty dict": (lambda f: f["union"].map({}), "from 1 to"),
    "a misspelt key": (lambda f: f["union"].map({"Yes": 1, "no": 0}), "'Yes' is not a declared.*did you mean 'yes'"),
    "an unknown key": (lambda f: f["union"].map({"maybe": 1}), "the categories are 'no', 'yes'"),
    "two kinds of values": (lambda f: f["union"].map({"yes": 1, "no": "no"}), "only numbers or only texts"),
    "only nulls": (lambda f: f["union"].map({"yes": None}), "every value would be missing"),
    "fractions": (lambda f: f["x"].map({1: 2}), "this is a number; use arithmetic, or dpnb.cut"),
    "dates": (lambda f: f["when"].map({"2017-01-01": 2}), "this is a date"),
    "texts of numbers": (lambda f: f["n"].map({"1": 2}), "keys must be whole numbers"),
    "numbers of conditions": (lambda f: (f["x"] > 1).map({1: 2}), "True and False"),
    "an infinity": (lambda f: f["union"].map({"yes": np.inf}), "finite"),
    "a large number": (lambda f: f["union"].map({"yes": 1e200, "no": 0}), "1e\\+100"),
    "replaced without a value": (lambda f: f["union"].replace("yes"), "needs the new value"),
    "a dict and a value": (lambda f: f["union"].replace({"yes": 1}, 2), "dict of old and new values alone"),
    "lists of two lengths": (lambda f: f["union"].replace(["yes", "no"], ["a"]), "same length"),
    "a pattern": (lambda f: f["union"].replace("y.*", "n", regex=True), "regex must be False"),
    "replaced by a text": (lambda f: f["x"].replace(1, "one"), "must be a number"),
    "a replaced text": (lambda f: f["note"].replace("a", "b"), r"\.map\({...}\) gives values"),
    "a misspelt old value": (lambda f: f["union"].replace("Yes", "ja"), "did you mean 'yes'"),
    "many new numbers": (lambda f: f["n"].replace({old: -old - 1 for old in range(21)}), "at most 20"),
    "two nulls": (lambda f: np.where(f["x"] > 1, np.nan, None), "at least one"),
    "numpy.where of public conditions": (lambda f: np.where([True], f["x"], 0), "is not offered|condition of columns"),
    "numpy.where of a number": (lambda f: np.where(f["x"], 1, 0), r"takes a condition.*df\['x'\] > 0"),
    "numpy.where of two kinds": (lambda f: np.where(f["x"] > 1, f["x"], "a"), "cannot be combined"),
    "numpy.maximum of an array": (lambda f: np.maximum(f["x"], np.zeros(3)), "single number; got an array"),
    "another numpy function": (lambda f: np.sin(f["x"]), "is not offered"),
    "a negative logarithm": (lambda f: np.log(f["x"]), r"write np.log\(df\['x'\].clip\(lower=0.1\)\)"),
    "a logarithm of 0": (lambda f: np.log(f["n"]), r"clip\(lower=1\)\), or np.log1p\(df\['n'\]\)"),
    "a logarithm of an operation": (lambda f: np.log10(f["x"] + f["n"]), r"np.log10\(\(df\['x'\] \+ df\['n'\]\).clip"),
    "never above 0": (lambda f: np.log(f["x"].clip(upper=-1)), "never above 0"),
    "a quotient": (lambda f: f["x"] / f["n"], r"df\['x'\] / df\['n'\].clip\(lower=1\)"),
    "a quotient by both signs": (lambda f: f["n"] / f["x"], r"df\['x'\].abs\(\).clip\(lower=0.1\)"),
    "a root": (lambda f: np.sqrt(f["x"]), r"write df\['x'\].clip\(lower=0\)"),
    "another type": (lambda f: f["x"].astype("datetime64[ns]"), "only float, int, bool and str"),
    "words as a condition": (lambda f: f["union"].astype(bool), "is a category"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_public_meaning_is_refused_with_what_does(f: Frame, name: str) -> None:
    written, says = REFUSED[name]
    with pytest.raises((PlanError, UnsupportedError), match=says):
        written(f)


def test_the_remedies_for_logarithms_and_quotients_work(f: Frame) -> None:
    df = f
    for written in (
        np.log(df["x"].clip(lower=0.1)),
        np.log(df["n"].clip(lower=1)),
        np.log1p(df["n"]),
        np.log10((df["x"] + df["n"]).clip(lower=0.1)),
        df["x"] / df["n"].clip(lower=1),
        df["n"] / df["x"].abs().clip(lower=0.1),
        np.sqrt(df["x"].clip(lower=0)),
    ):
        assert isinstance(dtype_of(written._node, SCHEMA), Numeric)


def test_a_default_is_computed_for_the_public_categories_alone(f: Frame) -> None:
    """A function that makes defaults could otherwise note for which rows it is called."""
    called: list[int] = []
    default: defaultdict[str, int] = defaultdict(lambda: called.append(1) or 7, {"yes": 1})  # type: ignore[func-returns-value]
    mapped = f["union"].map(default)
    assert len(called) == 1
    assert dtype_of(mapped._node, SCHEMA) == Numeric(1, 7, whole=True, step=6)


def test_a_column_never_becomes_an_array(f: Frame) -> None:
    for convert in (np.array, np.asarray, list, lambda x: np.where(np.array([True]), x, 0)):
        with pytest.raises((PlanError, UnsupportedError)):
            convert(f["x"])
