"""An expression that has no meaning, or no bound, for every possible row is refused when it is written."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._plan.plan import Plan
from dpnb.errors import PlanError
from session.bad_input import Case, assert_refused_free, kept, make


@kept
def clinic() -> dpnb.Session:
    return make()


@kept
def other() -> dpnb.Session:
    return make(name="other")


HALF = "\ud800"  # half of a surrogate pair

COLUMNS: dict[str, Case] = {
    "unknown": (lambda f: f["hight"], "not in this view; its columns are"),
    "the privacy unit": (lambda f: f["person"].mean(), "nunique"),
    "a number": (lambda f: f[0], "its columns are"),
    "nothing": (lambda f: f[None], "its columns are"),
    "a tuple": (lambda f: f["visits", "income"], "its columns are"),
    "a list with an unknown one": (lambda f: f[["visits", "hight"]], "its columns are"),
    "a list of lists": (lambda f: f[[["visits"]]], "its columns are"),
    "a slice of rows": (lambda f: f[:5], "its columns are"),
    "a public mask": (lambda f: f[np.array([True, False])], "its columns are"),
    "a public series": (lambda f: f[pd.Series([True, False])], "its columns are"),
    "not in the narrowed view": (lambda f: f[["visits"]]["income"], "its columns are 'visits'"),
    "rows chosen by a number": (lambda f: f[f["visits"]], "selected by a condition"),
    "rows chosen by a text": (lambda f: f[f["street"]], "selected by a condition"),
    "rows chosen by another session's condition": (lambda f: f[other().frame["visits"] > 1], "the same table"),
    "a value of a column": (lambda f: f["visits"][0], "takes a condition"),
    "values of a column": (lambda f: f["visits"][:3], "takes a condition"),
    "a column's rows chosen by a number": (lambda f: f["visits"][f["income"]], "selected by a condition"),
    "assign a list": (lambda f: f.assign(one=[1, 2]), "a constant is"),
    "assign a function that gives a list": (lambda f: f.assign(one=lambda d: [1]), "a constant is"),
    "assign another session's column": (lambda f: f.assign(one=other().frame["visits"]), "the same table"),
}

ARITHMETIC: dict[str, Case] = {
    "a number and a category": (lambda f: f["visits"] + f["town"], "a category, not a number"),
    "a number and categories": (lambda f: f["visits"] * f["town"], "not a number|is a category"),
    "categories and a number": (lambda f: f["town"] + 1, "not a number|is a category"),
    "a number and a text column": (lambda f: f["visits"] + f["street"], "is a text"),
    "a text column and a text": (lambda f: f["street"] + "x", "a number or another column"),
    "a number and a text": (lambda f: f["visits"] + "x", "(?!.*astype).*number"),
    "a number and a date": (lambda f: f["visits"] + f["born"], "subtracted from each other"),
    "a date and a number": (lambda f: f["born"] + 1, "subtracted from each other"),
    "a sum of dates": (lambda f: f["born"] + f["seen"], "subtracted from each other"),
    "a date twice": (lambda f: f["born"] * 2, "subtracted from each other"),
    "a date less a number": (lambda f: f["born"] - 7, "subtracted from each other"),
    "a date less a length of time": (lambda f: f["seen"] - (f["seen"] - f["born"]), "subtracted from each other"),
    "a length of time halved": (lambda f: (f["seen"] - f["born"]) / 2, "another part"),
    "a length of time in a condition": (lambda f: (f["seen"] - f["born"]) > 30, "cannot be compared"),
    "a length of time by pandas": (lambda f: f["born"] + pd.Timedelta(days=1), "constant"),
    "a date on the left, added": (lambda f: "2010-01-01" + f["born"], "subtracted"),
    "a number and nothing": (lambda f: f["visits"] + None, "constant"),
    "a number and nan": (lambda f: f["visits"] + math.nan, "constant"),
    "a number and infinity": (lambda f: f["visits"] - math.inf, "constant"),
    "a number and a huge one": (lambda f: f["visits"] + 10**30, "constant"),
    "a number and a complex one": (lambda f: f["visits"] + 1j, "constant"),
    "a number and a list": (lambda f: f["visits"] + [1, 2], "constant"),
    "a number and a series": (lambda f: f["visits"] + pd.Series([1, 2]), "constant"),
    "a series and a number": (lambda f: pd.Series([1, 2]) + f["visits"], "array|constant"),
    "another session's column": (lambda f: f["visits"] + other().frame["visits"], "the same table"),
    "minus a category": (lambda f: -f["town"], "a category"),
    "minus a date": (lambda f: -f["born"], "subtracted"),
    "division by what can be 0": (lambda f: f["income"] / f["visits"], "can be 0.*clip"),
    "division of a constant by what can be 0": (lambda f: 1 / f["visits"], "can be 0.*clip"),
    "division by what changes sign": (lambda f: 1 / f["income"], "can be 0.*clip"),
    "division by a condition": (lambda f: f["visits"] / (f["visits"] > 1), "can be 0"),
    "division by 0": (lambda f: f["visits"] / 0, "can be 0|must not be 0"),
    "division by what is nearly 0": (lambda f: f["visits"] / 1e-320, "between 1e-100 and 1e.100"),
    "// 0": (lambda f: f["visits"] // 0, "above 0"),
    "// a negative number": (lambda f: f["visits"] // -2, "above 0"),
    "// a column": (lambda f: f["visits"] // f["visits"].clip(1, 2), "a constant number"),
    "// a text": (lambda f: f["visits"] // "2", "number"),
    "// a truth value": (lambda f: f["visits"] // True, "number"),
    "a number // a column": (lambda f: 10 // f["visits"], "right side of //"),
    "% 0": (lambda f: f["visits"] % 0, "above 0"),
    "% a column": (lambda f: f["income"] % f["visits"].clip(1, 2), "a constant number"),
    "% a negative number": (lambda f: f["visits"] % -3, "above 0"),
    "a number % a column": (lambda f: 10 % f["visits"], "right side of %"),
    "** 0": (lambda f: f["visits"] ** 0, "exponent"),
    "** a negative number": (lambda f: f["visits"].clip(1, None) ** -1, "exponent"),
    "** a large number": (lambda f: f["visits"] ** 65, "exponent"),
    "** a column": (lambda f: f["visits"] ** f["visits"], "a constant number"),
    "** a text": (lambda f: f["visits"] ** "2", "number"),
    "a number ** a column": (lambda f: 2 ** f["visits"], r"right side of \*\*"),
    "a root of what can be negative": (lambda f: f["income"] ** 0.5, "below 0.*clip"),
    "a power beyond doubles": (lambda f: (f["income"] ** 60) ** 60, "bounds must be 0, or between"),
    "a chain too long to be computed": (lambda f: sum([f["visits"]] * 1500, f["visits"]), "shorter|deep|long|parts"),
    "a product beyond doubles": (lambda f: (f["income"] ** 60) * (f["income"] ** 60), "bounds must be 0, or between"),
}

FUNCTIONS: dict[str, Case] = {
    "abs of categories": (lambda f: f["town"].abs(), "takes a number"),
    "abs of a date": (lambda f: abs(f["born"]), "takes a number"),
    "log1p of what can be -1": (lambda f: f["income"].log1p(), "-1 or less.*clip"),
    "log1p at -1": (lambda f: np.log1p(f["visits"].clip(-1, 10) - 1), "-1 or less.*clip"),
    "exp of large numbers": (lambda f: f["income"].exp(), "bounds must be 0, or between"),
    "exp of exp": (lambda f: np.exp(np.exp(f["visits"])), "bounds must be 0, or between"),
    "clip reversed": (lambda f: f["visits"].clip(5, 1), "lower limit must not be above"),
    "clip at what is nearly 0": (lambda f: f["visits"].clip(5e-324, 5e-324).mean(), "between 1e-100 and 1e.100"),
    "clip at nan": (lambda f: f["visits"].clip(math.nan, 1), "finite"),
    "clip at infinity": (lambda f: f["visits"].clip(0, math.inf), "finite"),
    "clip at a text": (lambda f: f["visits"].clip("0", 1), "clip"),
    "clip at a column": (lambda f: f["visits"].clip(f["grade"], 1), "clip"),
    "clip of categories": (lambda f: f["town"].clip(0, 1), "takes a number"),
    "clip of a date": (lambda f: f["born"].clip("1960-01-01", "1970-01-01"), "clip"),
    "round of categories": (lambda f: f["grade"].round(), "takes a number"),
    "round of a date": (lambda f: round(f["born"]), "takes a number"),
    "round of a condition": (lambda f: (f["visits"] > 1).round(), "takes a number"),
    "round to a fraction": (lambda f: f["visits"].round(1.5), "whole number"),
    "round to a truth value": (lambda f: f["visits"].round(True), "whole number"),
    "round beyond doubles": (lambda f: f["visits"].round(400), "whole number"),
    "fillna of a number by a text": (lambda f: f["visits"].fillna("none"), "cannot be combined"),
    "fillna of a number by nothing": (lambda f: f["visits"].fillna(None), "constant"),
    "fillna of a number by nan": (lambda f: f["visits"].fillna(math.nan), "constant"),
    "fillna of a number by a column of texts": (lambda f: f["visits"].fillna(f["street"]), "cannot be combined"),
    "fillna of a number by its mean": (lambda f: f["visits"].fillna(f["visits"].mean()), "a query, not a number"),
    "fillna of texts": (lambda f: f["street"].fillna("none"), "cannot be combined"),
    "fillna by a text that no file can hold": (
        lambda f: f["town"].fillna(HALF).value_counts().release(mu=0.01),
        "text|str",
    ),
    "fillna of a date by a number": (lambda f: f["born"].fillna(0), "cannot be combined"),
    "fillna of a date by no date": (lambda f: f["born"].fillna("soon"), "must be a date"),
    "fillna of a condition by a number": (lambda f: (f["visits"] > 1).fillna(0), "cannot be combined"),
    "fillna of categories by a number": (lambda f: f["town"].fillna(1), "cannot be combined"),
    "where by a number": (lambda f: f["visits"].where(f["income"], 0), "takes a condition"),
    "where by a truth value": (lambda f: f["visits"].where(True, 0), "another column"),
    "where with a text": (lambda f: f["visits"].where(f["income"] > 1, "none"), "cannot be combined"),
    "where with infinity": (lambda f: f["visits"].where(f["income"] > 1, math.inf), "constant"),
    "where with a category": (lambda f: f["visits"].where(f["income"] > 1, f["town"]), "cannot be combined"),
    "where by a function": (lambda f: f["visits"].where(lambda x: x > 1, 0), "another column"),
    "where of texts": (lambda f: f["street"].where(f["visits"] > 1, "x"), "cannot be combined"),
    "where of two text columns": (lambda f: f["street"].where(f["visits"] > 1, f["note"]), "cannot be combined"),
    "mask by a number": (lambda f: f["visits"].mask(f["income"], 0), "condition"),
    "mask with a date": (lambda f: f["visits"].mask(f["income"] > 1, f["born"]), "cannot be combined"),
    "astype str": (lambda f: f["visits"].astype(str), "cannot be listed"),
    "astype category": (lambda f: f["visits"].astype("category"), "cannot be listed"),
    "astype nothing": (lambda f: f["visits"].astype(None), "float, int, bool and str"),
    "astype of a list": (lambda f: f["visits"].astype([float]), "float, int, bool and str"),
    "astype of a mapping": (lambda f: f["visits"].astype({"visits": float}), "float, int, bool and str"),
    "astype of an array": (lambda f: f["visits"].astype(np.zeros(2)), "float, int, bool and str"),
    "texts as numbers": (lambda f: f["street"].astype(float), "numeric categories"),
    "text categories as numbers": (lambda f: f["town"].astype(int), "numeric categories"),
    "dates as numbers": (lambda f: f["born"].astype(int), "numeric categories"),
}

COMPARISONS: dict[str, Case] = {
    "a number with a text": (lambda f: f["visits"] == "three", "cannot be compared"),
    "a number with a truth value": (lambda f: f["visits"] == True, "cannot be compared"),  # noqa: E712
    "a number with nothing": (lambda f: f["visits"] == None, r"\.isna\(\)"),  # noqa: E711
    "a number with nan": (lambda f: f["visits"] > math.nan, "finite"),
    "a number with infinity": (lambda f: f["visits"] < math.inf, "finite"),
    "a number beyond 64 bits": (lambda f: f["visits"] < 10**30, "64 bits"),
    "a number with a list": (lambda f: f["visits"] == [1, 2], "constant"),
    "a number with an array": (lambda f: f["visits"] == np.array([1, 2]), "constant"),
    "an array with a number": (lambda f: np.array([1, 2]) > f["visits"], "got an array"),
    "an undeclared category": (lambda f: f["town"] == "west", "the categories are 'north', 'south'"),
    "an undeclared number": (lambda f: f["grade"] != 4, "the categories are 1, 2, 3"),
    "an order of text categories": (lambda f: f["town"] < "south", "only numbers have an order"),
    "an order of truth values": (lambda f: f["smoker"] > False, "only numbers have an order"),
    "an order with a text": (lambda f: f["grade"] < "2", "only numbers have an order"),
    "an order of texts": (lambda f: f["street"] < "m", "=="),
    "two text columns": (lambda f: f["street"] == f["note"], "cannot be compared"),
    "a text with a number": (lambda f: f["street"] == 7, "cannot be compared"),
    "a text that no file can hold": (lambda f: f[f["street"] == HALF].count().release(mu=0.01), "text|str"),
    "a text with nothing": (lambda f: f["street"] == None, r"\.isna\(\)"),  # noqa: E711
    "two columns of categories": (lambda f: f["town"] == f["grade"], "cannot be compared"),
    "a number and categories": (lambda f: f["visits"] > f["grade"], r"\.astype\(float\)"),
    "a date with a number": (lambda f: f["born"] > 1960, "cannot be compared"),
    "a date with no date": (lambda f: f["born"] > "tomorrow", "must be a date"),
    "a date with an impossible date": (lambda f: f["born"] == "1960-02-30", "must be a date"),
    "a date with nothing": (lambda f: f["born"] == pd.NaT, "must be a date"),
    "a date with a time of day": (lambda f: f["seen"] > datetime.time(8), "constant"),
    "a date and a number column": (lambda f: f["born"] > f["visits"], "cannot be compared"),
    "another session's column": (lambda f: f["visits"] > other().frame["visits"], "the same table"),
    "isin of one text": (lambda f: f["town"].isin("north"), "list of values"),
    "isin of nothing": (lambda f: f["town"].isin([]), "at least one value"),
    "isin of a number": (lambda f: f["visits"].isin(3), "list of values"),
    "isin of undeclared": (lambda f: f["town"].isin(["north", "west"]), "the categories are"),
    "isin of mixed kinds": (lambda f: f["visits"].isin([1, "two"]), "cannot be compared"),
    "isin of nan": (lambda f: f["visits"].isin([1, math.nan]), "constant"),
    "isin of lists": (lambda f: f["visits"].isin([[1], [2]]), "constant"),
    "isin of a mapping": (lambda f: f["visits"].isin({1: 2}), "list of values"),
    "isin of a private column": (lambda f: f["visits"].isin(f["income"]), "never shown"),
    "isin of no dates": (lambda f: f["born"].isin(["1960-01-01", "soon"]), "must be a date"),
    "between texts": (lambda f: f["street"].between("a", "m"), "cannot be compared"),
    "between categories": (lambda f: f["town"].between("north", "south"), "only numbers have an order"),
    "between, inclusive a truth value": (lambda f: f["visits"].between(1, 2, inclusive=True), "inclusive"),
    "between, inclusive unknown": (lambda f: f["visits"].between(1, 2, inclusive="all"), "inclusive"),
    "between, inclusive a list": (lambda f: f["visits"].between(1, 2, inclusive=["both"]), "inclusive"),
    "between nothing": (lambda f: f["visits"].between(None, 2), "constant"),
    "and": (lambda f: (f["visits"] > 1) and (f["income"] > 1), "&"),
    "or": (lambda f: (f["visits"] > 1) or (f["income"] > 1), "&"),
    "not": (lambda f: not (f["visits"] > 1), "~"),
    "a chain of comparisons": (lambda f: 1 < f["visits"] < 3, "chain"),
    "& with a truth value": (lambda f: (f["visits"] > 1) & True, "parentheses"),
    "a truth value &": (lambda f: True & (f["visits"] > 1), "parentheses"),
    "& without brackets": (lambda f: f["visits"] > 1 & f["income"] > 2, "parentheses"),
    "| with a column": (lambda f: (f["visits"] > 1) | f["income"], "conditions"),
    "^": (lambda f: (f["visits"] > 1) ^ (f["income"] > 1), "."),
    "~ of a number": (lambda f: ~f["visits"], "condition"),
}

DATES: dict[str, Case] = {
    "year of a number": (lambda f: f["visits"].dt.year, "only a date"),
    "year of a text": (lambda f: f["street"].dt.year, "dpnb.Dates"),
    "year of a length of time": (lambda f: (f["seen"] - f["born"]).dt.year, "only a date"),
    "days of a date": (lambda f: f["born"].dt.days, "difference of dates"),
    "seconds of a number": (lambda f: f["visits"].dt.total_seconds(), "difference of dates"),
    "microsecond": (lambda f: f["seen"].dt.microsecond, "it offers: |did you mean"),
    "strftime": (lambda f: f["seen"].dt.strftime("%c"), "strftime"),
    "floor": (lambda f: f["seen"].dt.floor("15min"), "period"),
    "a sum of dates": (lambda f: f["born"].sum(), r"\.dt\.year"),
    "a mean of lengths of time": (lambda f: (f["seen"] - f["born"]).mean(), r"\.dt\.days"),
    "a date less a text that is none": (lambda f: f["seen"] - "soon", "must be a date"),
    "a mean of dates": (lambda f: f["born"].mean(), r"\.dt\."),
}

TABLES = {
    "column": COLUMNS,
    "arithmetic": ARITHMETIC,
    "function": FUNCTIONS,
    "comparison": COMPARISONS,
    "date": DATES,
}
CASES = {f"{subject}: {name}": case for subject, cases in TABLES.items() for name, case in cases.items()}


@pytest.mark.parametrize(("ask", "says"), CASES.values(), ids=CASES)
def test_an_expression_without_a_meaning_is_refused(ask: Any, says: str) -> None:
    assert_refused_free(clinic(), lambda: ask(clinic().frame), says)


@pytest.mark.parametrize("terms", [50, 400])
def test_an_expression_is_refused_before_it_is_charged_or_it_is_answered(terms: int) -> None:
    session = make(name="long")
    column = session.frame["visits"]
    try:
        answer = sum([column] * terms, column).sum().release(mu=0.01)
    except PlanError:
        assert session.ledger.charges() == []
    else:
        assert answer.estimate is not None


@pytest.mark.parametrize(
    "moment",
    [
        datetime.datetime(1960, 1, 1, 5),
        datetime.datetime(1960, 1, 1, 5, tzinfo=datetime.UTC),
        pd.Timestamp("1960-01-01 05:00"),
        pd.Timestamp("1960-01-01 05:00:00.000000001"),
        np.datetime64("1960-01-01T05"),
        np.datetime64("1960-01-01T05:00", "us"),
        np.datetime64("1960-01-01T05:00", "ns"),
    ],
    ids=lambda moment: f"{type(moment).__module__} {moment!r}",
)
def test_a_point_in_time_of_any_library_is_one_literal(moment: Any) -> None:
    frame = clinic().frame
    assert repr(frame["born"] > moment) == repr(frame["born"] > "1960-01-01T05:00:00")


def test_the_bins_of_an_expression_come_back_from_json() -> None:
    question = clinic().frame.groupby(dpnb.cut(clinic().frame["visits"], [0, 5, 10], right=np.bool_(False))).count()
    assert Plan.from_json(question.plan.to_json()) == question.plan


def test_a_set_is_refused_or_makes_the_same_plan_in_every_kernel() -> None:
    # A set of texts has another order in every kernel; another plan would be charged again.
    codes = [f"{letter}{number}" for letter in "qwertz" for number in range(3)]
    try:
        question = clinic().frame[clinic().frame["street"].isin(set(codes))].count()
    except PlanError:
        return
    assert list(question.plan.where.values) == sorted(codes)
