"""Groups, aggregations, quantiles, pairs and discoveries that have no public shape or no bound are refused."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from session.bad_input import Case, assert_refused_free, kept, make


@kept
def clinic() -> dpnb.Session:
    return make()


@kept
def other() -> dpnb.Session:
    return make(name="other")


KEYS = pd.DataFrame({"town": ["north", "south"], "grade": [1, 2]})

GROUPS: dict[str, Case] = {
    "an unknown column": (lambda f: f.groupby("hight"), "its columns are"),
    "the privacy unit": (lambda f: f.groupby("person").std(), "std"),
    "nothing": (lambda f: f.groupby(None), "its columns are"),
    "a number": (lambda f: f.groupby(0), "its columns are"),
    "an empty list": (lambda f: f.groupby([]), "at least one column"),
    "a tuple": (lambda f: f.groupby(("town", "grade")), "."),
    "a function": (lambda f: f.groupby(len), "its columns are"),
    "a public series": (lambda f: f.groupby(pd.Series([1, 2])), "its columns are"),
    "a mapping": (lambda f: f.groupby({"town": 1}), "its columns are"),
    "an unknown column in a list": (lambda f: f.groupby(["town", "hight"]), "its columns are"),
    "a bounded column": (lambda f: f.groupby("visits"), r"dpnb.cut.*\.round"),
    "a date": (lambda f: f.groupby("born"), r"part of it, such as .*\.dt\."),
    "a length of time": (lambda f: f.groupby(f["seen"] - f["born"]), r"part of it, such as .*\.dt\."),
    "a number with fractions": (lambda f: f.groupby(f["visits"].round(1)), r"dpnb.cut.*\.round"),
    "texts without keys": (lambda f: f.groupby("street"), "keys=.*discover"),
    "texts among others without keys": (lambda f: f.groupby(["town", "street"]), "keys=.*discover"),
    "another session's column": (lambda f: f.groupby(other().frame["town"]), "the same table"),
    "one column twice": (lambda f: f.groupby(["town", "town"]), "twice"),
    "one name twice": (lambda f: f.groupby(["town", f["town"]]), "twice"),
    "too many groups": (lambda f: f.groupby([(f["income"]).round(), (f["income"] * 2).round()]), "are possible"),
    "too many values": (lambda f: f.groupby((f["income"] * 1000).round()), "dpnb.cut"),
    "keys a text": (lambda f: f.groupby("street", keys="elm"), "a list of keys"),
    "keys a mapping": (lambda f: f.groupby("street", keys={"elm": 1}), "a list of keys"),
    "keys a number": (lambda f: f.groupby("street", keys=3), "a list of keys"),
    "no keys": (lambda f: f.groupby("street", keys=[]), "at least one key"),
    "keys in no order": (lambda f: f.groupby("street", keys={"elm", "oak"}), "a list of keys"),
    "keys of another question": (lambda f: f.groupby("street", keys=f.count()), "this is a query, not a number"),
    "what only looks like a table of keys": (
        lambda f: f.groupby("town", keys=SimpleNamespace(columns=["town"])),
        "keys",
    ),
    "a key that no file can hold": (
        lambda f: f.groupby("street", keys=["\ud800"]).count().release(mu=0.01),
        "text|str",
    ),
    "a key twice": (lambda f: f.groupby("street", keys=["elm", "oak", "elm"]), "'elm'.*twice"),
    "a key twice across types": (lambda f: f.groupby("grade", keys=[1, 1.0]), "twice"),
    "a text key twice as a number": (lambda f: f.groupby("street", keys=["7", 7]), "twice|text"),
    "a key nothing": (lambda f: f.groupby("street", keys=["elm", None]), "constant"),
    "a key nan": (lambda f: f.groupby("grade", keys=[1, math.nan]), "constant"),
    "an undeclared key": (lambda f: f.groupby("town", keys=["north", "west"]), "can have; its values are"),
    "a text key of numbers": (lambda f: f.groupby(f["visits"].round(), keys=["one"]), "can have; its values are"),
    "a text key of a condition": (lambda f: f.groupby(f["visits"] > 1, keys=["yes"]), "."),
    "a number key of a condition": (lambda f: f.groupby(f["visits"] > 1, keys=[7]), "."),
    "a number key out of bounds": (lambda f: f.groupby(f["visits"].round(), keys=[99]), "."),
    "a fraction key of whole numbers": (lambda f: f.groupby(f["visits"].round(), keys=[1.5]), "."),
    "pairs for one column": (lambda f: f.groupby("town", keys=[("north", 1)]), "must have 1 value"),
    "single keys for two columns": (lambda f: f.groupby(["town", "grade"], keys=["north"]), "must have 2 values"),
    "a table of keys without a column": (lambda f: f.groupby(["town", "smoker"], keys=KEYS), r"lacks \['smoker'\]"),
    "keys a private column": (lambda f: f.groupby("street", keys=f["street"]), "never shown"),
    "keys a private table": (lambda f: f.groupby("street", keys=f), "keys|private"),
    "keys of dates": (lambda f: f.groupby("born", keys=["1960-01-01"]), "part of"),
}

BINS: dict[str, Case] = {
    "of a public list": (lambda f: dpnb.cut([1, 2], 3), "pandas.cut"),
    "of a column's name": (lambda f: dpnb.cut("visits", 3), "pandas.cut"),
    "of a table": (lambda f: dpnb.cut(f, 3), "takes a column"),
    "of categories": (lambda f: dpnb.cut(f["town"], 3), "needs a number"),
    "of texts": (lambda f: dpnb.cut(f["street"], 3), "needs a number"),
    "no bins": (lambda f: dpnb.cut(f["visits"], 0), "from 1 to"),
    "negative bins": (lambda f: dpnb.cut(f["visits"], -4), "from 1 to"),
    "too many bins": (lambda f: dpnb.cut(f["visits"], 10**6), "from 1 to"),
    "a fraction of bins": (lambda f: dpnb.cut(f["visits"], 2.5), "number of bins"),
    "bins a truth value": (lambda f: dpnb.cut(f["visits"], True), "number of bins"),
    "bins a text": (lambda f: dpnb.cut(f["visits"], "auto"), "number of bins"),
    "bins nothing": (lambda f: dpnb.cut(f["visits"], None), "number of bins"),
    "one edge": (lambda f: dpnb.cut(f["visits"], [1]), "two ascending edges"),
    "no edges": (lambda f: dpnb.cut(f["visits"], []), "two ascending edges"),
    "descending edges": (lambda f: dpnb.cut(f["visits"], [5, 1]), "ascending edges"),
    "equal edges": (lambda f: dpnb.cut(f["visits"], [1, 1, 2]), "ascending edges"),
    "an edge nan": (lambda f: dpnb.cut(f["visits"], [0, math.nan, 2]), "finite"),
    "edges texts": (lambda f: dpnb.cut(f["visits"], ["0", "5"]), "finite number"),
    "edges a private column": (lambda f: dpnb.cut(f["visits"], f["income"]), "never shown"),
    "too few labels": (lambda f: dpnb.cut(f["visits"], [0, 5, 10], labels=["low"]), "2 different values"),
    "a label twice": (lambda f: dpnb.cut(f["visits"], [0, 5, 10], labels=["a", "a"]), "2 different values"),
    "labels a text": (lambda f: dpnb.cut(f["visits"], [0, 5, 10], labels="ab"), "list of values"),
    "labels in no order": (lambda f: dpnb.cut(f["visits"], [0, 5, 10], labels={"a", "b"}), "list of values"),
    "labels true": (lambda f: dpnb.cut(f["visits"], [0, 5, 10], labels=True), "list of values"),
    "labels nothing": (lambda f: dpnb.cut(f["visits"], [0, 5, 10], labels=["a", None]), "constant"),
    "right a text": (lambda f: dpnb.cut(f["visits"], [0, 5, 10], right="no"), "right"),
    "more numbers than memory holds": (
        lambda f: f.groupby([f["visits"].round(), f["income"].round()])["visits"].median(),
        "noisy numbers at once",
    ),
    "histogram of categories": (lambda f: f["town"].histogram(), "value_counts|needs a number"),
    "histogram of texts": (lambda f: f["street"].histogram(), "needs a number"),
    "histogram without bins": (lambda f: f["visits"].histogram(0), "from 1 to"),
    "histogram with descending edges": (lambda f: f["visits"].histogram([3, 1]), "ascending"),
}

AGGREGATIONS: dict[str, Case] = {
    "sum of categories": (lambda f: f["town"].sum(), "needs a number"),
    "mean of categories": (lambda f: f["town"].mean(), r"needs a number.*value_counts"),
    "mean of texts": (lambda f: f["street"].mean(), "needs a number"),
    "var of dates": (lambda f: f["born"].var(), r"\.dt\.year"),
    "std of texts": (lambda f: f["street"].std(), "needs a number"),
    "min of texts": (lambda f: f["street"].min(), "needs a number"),
    "max of categories": (lambda f: f["town"].max(), "needs a number"),
    "describe of categories": (lambda f: f["town"].describe(), "value_counts|needs a number"),
    "sum of a constant": (lambda f: f["visits"].clip(3, 3).sum(), "query the count"),
    "mean of a narrow number": (lambda f: (f["visits"] / 1e9 + 1).mean(), "subtract a public constant"),
    "grouped sum of categories": (lambda f: f.groupby("grade")["town"].sum(), "needs a number"),
    "agg of nothing": (lambda f: f.agg(), "at least one column"),
    "agg of nothing by group": (lambda f: f.groupby("town").agg(), "at least one column"),
    "agg, rows by mean": (lambda f: f.agg(n="mean"), r"x=\('column', verb\)"),
    "agg, an unknown verb": (lambda f: f.agg(n=("visits", "skew")), "one of 'count'"),
    "agg, units of a column": (lambda f: f.agg(n=("visits", "units")), "n='units'"),
    "agg, a pair reversed": (lambda f: f.agg(n=("mean", "visits")), "its columns are"),
    "agg, three": (lambda f: f.agg(n=("visits", "mean", 1)), "a pair"),
    "agg, a list": (lambda f: f.agg(n=["visits", "mean"]), "a pair"),
    "agg, several verbs": (lambda f: f.agg(n=("visits", ["mean", "sum"])), "a pair"),
    "agg, a function": (lambda f: f.agg(n=("visits", np.cumsum)), "takes names"),
    "agg, a function alone": (lambda f: f.agg(n=len), "a pair"),
    "agg, an unknown column": (lambda f: f.agg(n=("hight", "mean")), "its columns are"),
    "agg, a list of columns": (lambda f: f.agg(n=(["visits", "income"], "mean")), "one column|column"),
    "agg, a condition for a column": (lambda f: f.agg(n=(None, "count")), "its columns are"),
    "agg, mean of texts": (lambda f: f.agg(n=("street", "mean")), "needs a number"),
    "agg, quantile without a level": (lambda f: f.agg(n=("visits", "quantile")), "one of"),
    "agg, another session's column": (lambda f: f.agg(n=(other().frame["visits"], "mean")), "same table|one table"),
    "weights a list": (lambda f: f.agg(n="count", weights=[1]), "must map"),
    "weights of an unknown column": (lambda f: f.agg(n="count", weights={"m": 1}), "not a column of this agg"),
    "a weight zero": (lambda f: f.agg(n="count", weights={"n": 0}), "between"),
    "a weight negative": (lambda f: f.agg(n="count", weights={"n": -1}), "between"),
    "a weight nan": (lambda f: f.agg(n="count", weights={"n": math.nan}), "finite"),
    "a weight a text": (lambda f: f.agg(n="count", weights={"n": "2"}), "finite number"),
    "a weight huge": (lambda f: f.agg(n="count", weights={"n": 1e9}), "between"),
    "a weight of a list": (lambda f: f.agg(n="count", weights={("n",): 1}), "not a column of this agg"),
    "quantile above 1": (lambda f: f["visits"].quantile(1.5), "from 0 to 1"),
    "quantile below 0": (lambda f: f["visits"].quantile(-0.1), "from 0 to 1"),
    "quantile in percent": (lambda f: f["visits"].quantile(95), "from 0 to 1"),
    "quantile nan": (lambda f: f["visits"].quantile(math.nan), "."),
    "quantile a text": (lambda f: f["visits"].quantile("median"), "finite number"),
    "quantile nothing": (lambda f: f["visits"].quantile(None), "."),
    "quantile true": (lambda f: f["visits"].quantile(True), "finite number"),
    "no quantiles": (lambda f: f["visits"].quantile([]), "from 0 to 1"),
    "a quantile twice": (lambda f: f["visits"].quantile([0.5, 0.5]), "differ"),
    "quantiles nested": (lambda f: f["visits"].quantile([[0.5]]), "."),
    "quantile of categories": (lambda f: f["town"].quantile(0.5), "needs a number"),
    "median of texts": (lambda f: f["street"].median(), "needs a number"),
    "quantile of a constant": (lambda f: f["income"].clip(0.5, 0.5).median(), "count"),
    "value_counts of a number": (lambda f: f["visits"].value_counts(), "dpnb.cut"),
    "value_counts of texts": (lambda f: f["street"].value_counts(), "keys="),
    "value_counts of a date": (lambda f: f["born"].value_counts(), r"part of it, such as .*\.dt\."),
    "value_counts, undeclared keys": (lambda f: f["town"].value_counts(keys=["west"]), "can have; its values are"),
    "value_counts, normalize a text": (lambda f: f["town"].value_counts(normalize="no"), "normalize"),
}

PAIRS: dict[str, Case] = {
    "corr with itself": (lambda f: f["visits"].corr(f["visits"]), "two different columns"),
    "cov with itself": (lambda f: f["visits"].cov(f["visits"]), r"\.var\(\)"),
    "corr with a name": (lambda f: f["visits"].corr("income"), "(?!.*parentheses)corr.*column"),
    "corr with nothing": (lambda f: f["visits"].corr(None), "(?!.*parentheses)corr.*column"),
    "corr with a number": (lambda f: f["visits"].corr(3), "(?!.*parentheses)corr.*column"),
    "corr with categories": (lambda f: f["visits"].corr(f["town"]), "number"),
    "corr with texts": (lambda f: f["visits"].corr(f["street"]), "number"),
    "corr with dates": (lambda f: f["visits"].corr(f["born"]), "number"),
    "corr with another session's": (lambda f: f["visits"].corr(other().frame["income"]), "the same table"),
    "corr with a constant": (lambda f: f["visits"].corr(f["income"].clip(1, 1)), "apart"),
    "ratio to a name": (lambda f: f["visits"].ratio("income"), "(?!.*parentheses)ratio.*column"),
    "ratio to a number": (lambda f: f["visits"].ratio(12), "(?!.*parentheses)ratio.*column"),
    "ratio to categories": (lambda f: f["visits"].ratio(f["town"]), "number"),
    "ratio of texts": (lambda f: f["street"].ratio(f["visits"]), "number"),
    "ratio to another session's": (lambda f: f["visits"].ratio(other().frame["income"]), "the same table"),
    "regress an unknown column": (lambda f: f.regress("hight", on="visits"), "its columns are"),
    "regress on an unknown column": (lambda f: f.regress("visits", on=["hight"]), "its columns are"),
    "regress on nothing": (lambda f: f.regress("visits", on=[]), "at least one column"),
    "regress on None": (lambda f: f.regress("visits", on=None), "column"),
    "regress on itself": (lambda f: f.regress("visits", on=["visits"]), "only once"),
    "regress on one twice": (lambda f: f.regress("visits", on=["income", "income"]), "only once"),
    "regress categories": (lambda f: f.regress("town", on=["visits"]), "number"),
    "regress texts": (lambda f: f.regress("street", on=["visits"]), "number"),
    "regress on texts": (lambda f: f.regress("visits", on=["street"]), "number"),
    "regress on a date": (lambda f: f.regress("visits", on=["born"]), "use a part"),
    "regress on a tuple": (lambda f: f.regress("visits", on=("income",)), "column"),
    "regress another session's": (lambda f: f.regress(other().frame["visits"], on="income"), "same table|one table"),
    "regress on another session's": (lambda f: f.regress("visits", on=other().frame["income"]), "same table|one table"),
}


@kept
def unbounded() -> dpnb.Session:
    return make(name="unbounded", max_rows_per_unit=None, max_norm_per_unit=2)


@kept
def no_delta() -> dpnb.Session:
    return make(name="strict", budget=dpnb.Budget(epsilon=1, delta=1e-6))


DISCOVERIES: dict[str, Case] = {
    "without discovery_delta": (lambda f: no_delta().frame.discover("street"), "discovery_delta=.*keys="),
    "of a GDP budget": (lambda f: make(budget=dpnb.Budget.gdp(1)).frame.discover("street"), "discovery_delta=.*keys="),
    "delta above what is set aside": (lambda f: f.discover("street", discovery_delta=2e-7), "at most discovery_delta"),
    "delta zero": (lambda f: f.discover("street", discovery_delta=0), "delta"),
    "delta negative": (lambda f: f.discover("street", discovery_delta=-1e-8), "delta"),
    "delta nan": (lambda f: f.discover("street", discovery_delta=math.nan), "delta"),
    "delta beyond doubles": (
        lambda f: f.discover("street", discovery_delta=Fraction(1, 10**305)).release(mu=0.1),
        "1e-300",
    ),
    "delta a text": (lambda f: f.discover("street", discovery_delta="little"), "delta"),
    "delta a truth value": (lambda f: f.discover("street", discovery_delta=True), "delta"),
    "unbounded groups": (lambda f: unbounded().frame.discover("street"), "max_groups_per_unit="),
    "an unknown column": (lambda f: f.discover("hight"), "its columns are"),
    "the privacy unit": (lambda f: f.discover("person"), "count_units"),
    "nothing": (lambda f: f.discover([]), "at least one column"),
    "a number": (lambda f: f.discover("visits"), "dpnb.cut"),
    "a date": (lambda f: f.discover("born"), r"part of it, such as .*\.dt\."),
    "one column twice": (lambda f: f.discover(["street", "street"]), "twice"),
    "another session's column": (lambda f: f.discover(other().frame["street"]), "same table"),
    "within": (lambda f: f.discover("street").release(within=3), "mu="),
    "groups": (lambda f: f.discover("street").release(mu=0.1, groups=["elm"]), "groups"),
    "groups of a preview": (lambda f: f.discover("street").preview(mu=0.1, groups=["elm"]), "groups"),
}

LIMITS: dict[str, Case] = {
    "rows zero": (lambda f: f.bound_contributions(max_rows_per_unit=0), "whole number from 1"),
    "rows a fraction": (lambda f: f.bound_contributions(max_rows_per_unit=1.5), "whole number from 1"),
    "rows true": (lambda f: f.bound_contributions(max_rows_per_unit=True), "whole number from 1"),
    "groups zero": (lambda f: f.bound_contributions(max_groups_per_unit=0), "max_groups_per_unit.*from 1"),
    "groups a text": (lambda f: f.bound_contributions(max_groups_per_unit="2"), "max_groups_per_unit.*from 1"),
    "groups beyond reason": (lambda f: f.bound_contributions(max_groups_per_unit=2**40), "max_groups_per_unit.*from 1"),
    "rows in a group negative": (lambda f: f.bound_contributions(max_rows_per_group=-1), "max_rows_per_group.*from 1"),
    "rows in a group a list": (lambda f: f.bound_contributions(max_rows_per_group=[1]), "max_rows_per_group.*from 1"),
    "norm zero": (lambda f: f.bound_contributions(max_norm_per_unit=0), "between"),
    "norm negative": (lambda f: f.bound_contributions(max_norm_per_unit=-2.5), "between"),
    "norm nan": (lambda f: f.bound_contributions(max_norm_per_unit=math.nan), "between"),
    "norm infinite": (lambda f: f.bound_contributions(max_norm_per_unit=math.inf), "between"),
    "norm beyond doubles": (lambda f: f.bound_contributions(max_norm_per_unit=10**400), "between"),
    "norm tiny": (lambda f: f.bound_contributions(max_norm_per_unit=1e-9), "between"),
    "norm a text": (lambda f: f.bound_contributions(max_norm_per_unit="1"), "between"),
    "norm true": (lambda f: f.bound_contributions(max_norm_per_unit=True), "between"),
    "of rows that are units": (
        lambda f: (
            make(privacy_unit=None, max_rows_per_unit=None).frame.bound_contributions(max_rows_per_unit=1).count()
        ),
        "leave it out",
    ),
}

TABLES = {
    "groups": GROUPS,
    "bins": BINS,
    "aggregation": AGGREGATIONS,
    "pair": PAIRS,
    "discovery": DISCOVERIES,
    "limit": LIMITS,
}
CASES = {f"{subject}: {name}": case for subject, cases in TABLES.items() for name, case in cases.items()}


@pytest.mark.parametrize(("ask", "says"), CASES.values(), ids=CASES)
def test_a_question_without_a_public_shape_or_bound_is_refused(ask: Any, says: str) -> None:
    assert_refused_free(clinic(), lambda: ask(clinic().frame), says)
