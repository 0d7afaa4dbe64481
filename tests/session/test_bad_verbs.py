"""What pandas has and a private table has not is refused by name, and says what to do instead."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.errors import UnsupportedError
from session.bad_input import Case, assert_refused_free, kept, make


@kept
def clinic() -> dpnb.Session:
    return make()


TABLE: dict[str, Case] = {
    "values": (lambda f: f.values, "would show rows.*release"),
    "head": (lambda f: f.head(), "would show rows.*release"),
    "tail": (lambda f: f.tail(3), "would show rows.*release"),
    "sample": (lambda f: f.sample(5), "would show rows.*release"),
    "iloc": (lambda f: f.iloc[0], "would show rows.*release"),
    "loc": (lambda f: f.loc[0, "visits"], "never shown"),
    "to_numpy": (lambda f: f.to_numpy(), "would show rows.*release"),
    "to_csv": (lambda f: f.to_csv("out.csv"), "would show rows.*release"),
    "iterrows": (lambda f: list(f.iterrows()), "would show rows.*release"),
    "nlargest": (lambda f: f.nlargest(3, "visits"), r"release df\['visits'\]\.quantile"),
    "plot": (lambda f: f.plot(), "release a summary"),
    "index": (lambda f: f.index, "would show rows.*release"),
    "T": (lambda f: f.T, "would show rows.*release"),
    "apply": (lambda f: f.apply(print), "would run Python.*where"),
    "pipe": (lambda f: f.pipe(len), "has no len"),
    "shape": (lambda f: f.shape, "number of rows.*count"),
    "size": (lambda f: f.size, "number of rows.*count"),
    "empty": (lambda f: f.empty, "number of rows.*count"),
    "info": (lambda f: f.info(), "dtypes and session.schema"),
    "drop_duplicates": (lambda f: f.drop_duplicates(), "units"),
    "join": (lambda f: f.join(f), "merge"),
    "a misspelt verb": (lambda f: f.grupby("town"), r"did you mean \.groupby"),
    "len": (lambda f: len(f), "private.*count"),
    "truth": (lambda f: bool(f), "truth value"),
    "float": (lambda f: float(f), "is not a number"),
    "int": (lambda f: int(f), "is not a number"),
    "as an index": (lambda f: [1, 2][f], "is not a number"),
    "an array": (lambda f: np.array(f), "cannot be converted to an array"),
}

COLUMN: dict[str, Case] = {
    "values": (lambda c: c.values, "would show rows.*release"),
    "head": (lambda c: c.head(), "would show rows.*release"),
    "iloc": (lambda c: c.iloc[0], "would show rows.*release"),
    "tolist": (lambda c: c.tolist(), "would show rows.*release"),
    "unique": (lambda c: c.unique(), "would show which values"),
    "mode": (lambda c: c.mode(), "value_counts"),
    "nunique": (lambda c: c.nunique(), "discover"),
    "apply": (lambda c: c.apply(str), "would run Python.*where"),
    "map": (lambda c: c.map(str.upper), "would run Python"),
    "shape": (lambda c: c.shape, "number of rows.*count"),
    "size": (lambda c: c.size, "number of rows.*count"),
    "str": (lambda c: c.str.lower(), "only texts"),
    "cumsum": (lambda c: c.cumsum(), "different privacy units.*groupby"),
    "shift": (lambda c: c.shift(1), "different privacy units.*groupby"),
    "rank": (lambda c: c.rank(), "different privacy units.*groupby"),
    "rolling": (lambda c: c.rolling(3).mean(), "different privacy units.*groupby"),
    "duplicated": (lambda c: c.duplicated(), "units"),
    "skew": (lambda c: c.skew(), "quantile"),
    "idxmax": (lambda c: c.idxmax(), "release.*max"),
    "any": (lambda c: c.any(), "could be decided by one row"),
    "replace": (lambda c: c.replace(1, "2"), "must be a number"),
    "cat": (lambda c: c.cat.codes, "declared categories"),
    "len": (lambda c: len(c), "private.*count"),
    "iteration": (lambda c: list(c), "never shown"),
    "sum by Python": (lambda c: sum(c), "never shown"),
    "max by Python": (lambda c: max(c), "never shown"),
    "sorted": (lambda c: sorted(c), "never shown"),
    "truth": (lambda c: bool(c), "truth value"),
    "float": (lambda c: float(c), "is not a number"),
    "int": (lambda c: int(c), "is not a number"),
    "range": (lambda c: range(c), "is not a number"),
    "in": (lambda c: 3 in c, "==.*sum"),
    "a value set": (lambda c: operator.setitem(c, 0, 1), "where|assign"),
}

GROUPS: dict[str, Case] = {
    "groups": (lambda g: g.groups, "groups"),
    "get_group": (lambda g: g.get_group("north"), "groups"),
    "apply": (lambda g: g.apply(type), "takes an aggregation"),
    "transform": (lambda g: g.transform("mean"), "different privacy units.*groupby"),
    "filter": (lambda g: g.filter(len), "it offers: "),
    "head": (lambda g: g.head(1), "would show rows"),
    "first": (lambda g: g.first(), "would show rows"),
    "nunique": (lambda g: g["visits"].nunique(), "value_counts|discover"),
    "cumcount": (lambda g: g.cumcount(), "different privacy units.*groupby"),
    "len": (lambda g: len(g), "count"),
    "iteration": (lambda g: dict(iter(g)), "never shown"),
    "truth": (lambda g: bool(g), "truth value"),
    "in": (lambda g: "north" in g, "private|columns"),
    "an unknown column": (lambda g: g["hight"], "its columns are"),
    "a condition": (lambda g: g[clinic().frame["visits"] > 1], "before grouping"),
    "a computed column": (lambda g: g["visits"] * 2, "before grouping"),
    "a compared column": (lambda g: g["visits"] > 2, "before grouping"),
    "a clipped column": (lambda g: g["visits"].clip(0, 5), "before grouping"),
    "a part of a date": (lambda g: g["born"].dt.year, "before grouping"),
    "rows of a column": (lambda g: g["visits"][clinic().frame["visits"] > 1], "before grouping"),
    "histogram": (lambda g: g["visits"].histogram(), "groupby"),
    "cut of a column": (lambda g: g["visits"].histogram(3), "dpnb.cut"),
    "grouped again": (lambda g: g.groupby("grade"), "is not offered"),
}

NUMPY: dict[str, Case] = {
    "log": (lambda f: np.log(f["visits"]), "(?!.*show rows)log.*clip.*log1p"),
    "sin": (lambda f: np.sin(f["visits"]), "numpy.sin"),
    "isfinite": (lambda f: np.isfinite(f["visits"]), "numpy.isfinite"),
    "maximum": (lambda f: np.maximum(f["visits"], np.ones(3)), "got an array"),
    "sum": (lambda f: np.add.reduce(f["visits"]), "numpy.add"),
    "an outer product": (lambda f: np.multiply.outer(f["visits"], f["visits"]), "numpy.multiply"),
    "with an argument": (lambda f: np.add(f["visits"], 1, dtype=float), "numpy.add"),
    "into an array": (lambda f: np.add(f["visits"], 1, out=np.zeros(3)), "numpy.add"),
    "with an array": (lambda f: np.add(np.arange(3), f["visits"]), "got an array"),
    "with an array on the right": (lambda f: f["visits"] * np.arange(3), "array|constant"),
    "add of a table": (lambda f: np.add(f, 1), "."),
    "sqrt of what can be negative": (lambda f: np.sqrt(f["income"]), "below 0"),
    "exp of a table": (lambda f: np.exp(f), "."),
    "where": (lambda f: np.where(f["visits"] > 1), "is not offered"),
    "an array of a column": (lambda f: np.asarray(f["visits"]), "cannot be converted to an array"),
    "an array of a table": (lambda f: np.asarray(f), "cannot be converted to an array"),
    "a density by numpy": (lambda f: np.histogram(f["visits"], density=True), "."),
    "a data frame of a column": (lambda f: pd.DataFrame({"x": f["visits"]}), "."),
    "a series of a column": (lambda f: pd.Series(f["visits"]), "."),
    "binned by pandas": (lambda f: pd.cut(f["visits"], [0, 5, 10]), "."),
}

TABLES = {"table": TABLE, "column": COLUMN, "groups": GROUPS, "numpy": NUMPY}


def subject(name: str) -> Any:
    frame = clinic().frame
    return {"table": frame, "column": frame["visits"], "groups": frame.groupby("town"), "numpy": frame}[name]


CASES = {f"{which}: {name}": (which, *case) for which, cases in TABLES.items() for name, case in cases.items()}


@pytest.mark.parametrize(("which", "ask", "says"), CASES.values(), ids=CASES)
def test_what_would_show_rows_is_refused_with_a_remedy(which: str, ask: object, says: str) -> None:
    assert callable(ask)
    assert_refused_free(clinic(), lambda: ask(subject(which)), says)


@pytest.mark.parametrize("which", ["table", "column", "groups"])
def test_a_name_that_is_not_offered_looks_missing_to_python(which: str) -> None:
    private = subject(which)
    assert not hasattr(private, "iloc")
    assert getattr(private, "to_numpy", None) is None
    assert issubclass(UnsupportedError, AttributeError)


@pytest.mark.parametrize("which", ["table", "column", "groups"])
def test_completion_offers_no_verb_that_is_refused(which: str) -> None:
    private = subject(which)
    refused = {"values", "head", "iloc", "transform", "shape"}
    assert refused.isdisjoint(dir(private))
    assert {"count", "agg"} & set(dir(private))
