"""Every argument of pandas either works or is refused by an error of dpnb, never by a bare TypeError."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pandas as pd
import pytest
from pandas.api.extensions import no_default
from pandas.core.groupby import DataFrameGroupBy, SeriesGroupBy

import dpnb
import dpnb.frame
from dpnb.errors import DpnbError, PlanError


def table() -> Any:
    session = dpnb.Session.rehearse(
        name="people",
        budget=dpnb.Budget(epsilon=1, delta=1e-6, discovery_delta=1e-7),
        schema={
            "x": dpnb.Bounded(1, 20),
            "y": dpnb.Bounded(-1, 3),
            "g": dpnb.Categories(["a", "b"]),
            "d": dpnb.Dates("2020-01-01", "2020-12-31"),
        },
    )
    return session.frame


RECEIVERS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "Frame": (lambda df: df, pd.DataFrame),
    "Series": (lambda df: df["x"], pd.Series),
    "GroupBy": (lambda df: df.groupby("g"), DataFrameGroupBy),
    "GroupedSeries": (lambda df: df.groupby("g")["x"], SeriesGroupBy),
    "str": (lambda df: df["g"].str, pd.Series.str),
    "dt": (lambda df: df["d"].dt, pd.Series.dt),
    "dpnb": (lambda df: dpnb, pd),
}
"""Objects of a table, and what has methods of the same names in pandas."""

FUNCTIONS = ("cut", "crosstab", "get_dummies")


class Case(NamedTuple):
    """A method of pandas that dpnb also has."""

    receiver: str
    method: str

    def parameters(self) -> dict[str, inspect.Parameter]:
        """The named parameters of pandas' method."""
        found = inspect.signature(getattr(RECEIVERS[self.receiver][1], self.method)).parameters
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        return {name: one for name, one in found.items() if name != "self" and one.kind in named}


def methods() -> Iterator[Case]:
    df = table()
    for receiver, (of, theirs) in RECEIVERS.items():
        own = of(df)
        own = own if own is dpnb else type(own)  # of an object, names of columns would be found too
        for name in FUNCTIONS if own is dpnb else dir(own):
            ours = getattr(own, name)
            if not name.startswith("_") and inspect.isroutine(ours) and inspect.isroutine(getattr(theirs, name, None)):
                yield Case(receiver, name)


CASES = [*methods()]

REQUIRED: dict[str, Callable[[Any], Any]] = {
    "func": lambda df: "mean",
    "cond": lambda df: df["y"] > 1,
    "expr": lambda df: "x > 1",
    "right": lambda df: pd.DataFrame({"g": ["a", "b"], "price": [1, 2]}),
    "by": lambda df: "g",
    "rule": lambda df: "M",
    "freq": lambda df: "M",
    "date_format": lambda df: "%Y-%m",
    "item": lambda df: "x",
    "loc": lambda df: 0,
    "column": lambda df: "new",
    "other": lambda df: 1,
    "dtype": lambda df: float,
    "values": lambda df: [1, 2],
    "to_replace": lambda df: {1: 2},
    "pat": lambda df: "a",
    "i": lambda df: 0,
    "x": lambda df: df["x"],
    "bins": lambda df: 4,
    "index": lambda df: df["g"],
    "columns": lambda df: df["y"] > 1,
    "data": lambda df: df["g"],
}
"""Values of the arguments that pandas requires; 0 for others."""

SPECIAL: dict[Case, dict[str, Callable[[Any], Any]]] = {
    Case("Series", "between"): {"left": lambda df: 1, "right": lambda df: 2},
    Case("Series", "groupby"): {"by": lambda df: df["g"]},
    Case("Series", "apply"): {"func": lambda df: lambda x: x + 1},
    Case("Series", "map"): {"func": lambda df: lambda x: x + 1},
    Case("Series", "pipe"): {"func": lambda df: lambda x: x},
    Case("Frame", "pipe"): {"func": lambda df: lambda x: x},
    Case("GroupBy", "pipe"): {"func": lambda df: lambda x: x},
    Case("GroupedSeries", "pipe"): {"func": lambda df: lambda x: x},
    Case("Frame", "apply"): {"func": lambda df: lambda row: row["x"], "axis": lambda df: 1},
    Case("GroupBy", "apply"): {"func": lambda df: lambda groups: groups["x"].mean()},
    Case("GroupedSeries", "apply"): {"func": lambda df: lambda x: x.mean()},
    Case("Frame", "fillna"): {"value": lambda df: {"x": 0}},
    Case("Frame", "merge"): {"on": lambda df: "g"},
    Case("Frame", "hist"): {"column": lambda df: "x"},
    Case("Frame", "boxplot"): {"column": lambda df: "x"},
    Case("Frame", "filter"): {"items": lambda df: ["x"]},
    Case("Frame", "drop"): {"columns": lambda df: ["x"]},
    Case("Frame", "rename"): {"columns": lambda df: {"x": "z"}},
    Case("Frame", "select_dtypes"): {"include": lambda df: "number"},
    Case("Frame", "pivot_table"): {"values": lambda df: "x", "index": lambda df: "g"},
    Case("Frame", "value_counts"): {"subset": lambda df: "g"},
    Case("Frame", "resample"): {"on": lambda df: "d"},
    Case("Series", "value_counts"): {"bins": lambda df: 4},
    Case("GroupedSeries", "value_counts"): {"bins": lambda df: 4},
    **{Case(one, name): {"other": lambda df: df["y"]} for one in ("Series", "GroupedSeries")
       for name in ("corr", "cov", "dot")},
    Case("Frame", "groupby"): {"by": lambda df: "g"},
    Case("Series", "replace"): {"to_replace": lambda df: {1: 2}},
    Case("str", "replace"): {"repl": lambda df: "b"},
    Case("dt", "to_period"): {"freq": lambda df: "M"},
    Case("Series", "fillna"): {"value": lambda df: 0},
    **{Case(one, name): {"func": lambda df: "mean"} for one in ("Frame", "GroupBy", "Series", "GroupedSeries")
       for name in ("agg", "aggregate")},
}  # fmt: skip
"""Further arguments that make a call work."""

VALUES = (True, False, 1, "x", None, [0, 1], ["x"], lambda x: x)
"""Values of each argument, besides the default of pandas."""


def base(case: Case, df: Any) -> dict[str, Any]:
    """A call in the style of pandas, with the names that pandas gives to the arguments."""
    required = {
        name: REQUIRED.get(name, lambda df: 0)(df)
        for name, one in case.parameters().items()
        if one.default is inspect.Parameter.empty
    }
    return required | {name: value(df) for name, value in SPECIAL.get(case, {}).items()}


def answer(call: Callable[..., Any], arguments: dict[str, Any]) -> str | None:
    """What a call ends in other than a result or an error of dpnb."""
    try:
        call(**arguments)
    except DpnbError:
        return None
    except Exception as error:  # noqa: BLE001  # this is what is looked for
        return f"{type(error).__name__}: {error}"
    return None


def faults(case: Case, call: Callable[..., Any], df: Any) -> set[str]:
    """Arguments and values of pandas that end in another error than those of dpnb."""
    found = set()
    for name, one in case.parameters().items():
        is_stated = one.default not in (inspect.Parameter.empty, no_default)
        for value in (*VALUES, one.default) if is_stated else VALUES:
            fault = answer(call, base(case, df) | {name: value})
            if fault is not None:
                found.add(f"{name}={value!r}: {fault}")
    return found


@pytest.fixture(scope="module")
def df() -> Any:
    return table()


@pytest.mark.parametrize("case", CASES, ids=".".join)
def test_an_argument_of_pandas_works_or_is_refused(case: Case, df: Any) -> None:
    call = getattr(RECEIVERS[case.receiver][0](df.copy()), case.method)
    assert faults(case, call, df) == set()


REFUSED = {
    *(Case("Series", name) for name in ("unique", "nunique")),
    *(Case("GroupBy", name) for name in ("corr", "cov")),
    Case("dt", "total_seconds"),
    Case("Frame", "drop_duplicates"),  # in this table each row is a unit
    *(Case("GroupedSeries", name) for name in ("hist", "nunique", "unique")),
}
"""Calls that are refused whatever their arguments are."""


@pytest.mark.parametrize("case", [case for case in CASES if case not in REFUSED], ids=".".join)
def test_the_call_to_which_arguments_are_added_works(case: Case, df: Any) -> None:
    getattr(RECEIVERS[case.receiver][0](df.copy()), case.method)(**base(case, df))


def test_a_bare_error_would_be_found(df: Any) -> None:
    def clip(lower: object = None, upper: object = None) -> None:
        """The method as it was without `axis` and `inplace`."""

    found = faults(Case("Series", "clip"), clip, df)
    assert {fault.partition("=")[0] for fault in found} == {"axis", "inplace"}
    assert all("TypeError: " in fault for fault in found)


def test_what_is_compared_with_pandas() -> None:
    assert {case.receiver for case in CASES} == RECEIVERS.keys()
    assert len(CASES) > 150
    assert sum(len(case.parameters()) for case in CASES) > 400


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda df: df["x"].add(1, fill_value=0),
            r"add: fill_value=0 is not offered; .*fill them first, as in df\['x'\].fillna\(0\)",
        ),
        (lambda df: df["x"].clip(0, 1, inplace=True), r"clip: inplace=True .* df\['new'\] = df\['x'\].clip\(...\)"),
        (lambda df: df["x"].where(df["y"] > 1, axis=1), "where: axis=1 is not offered; a column has only rows"),
        (lambda df: df.merge(df, left_on="g", right_on="h"), "merge: left_on='g' is not offered; .* use on="),
        (
            lambda df: dpnb.get_dummies(df["g"], columns=["g"]),
            r"one column is converted at a time, as in dpnb.get_dumm",
        ),
        (lambda df: dpnb.cut(df["x"], bins=4, include_lowest=False), "the first bin always includes its lower edge"),
        (lambda df: df["x"].astype(float, errors="ignore"), "astype: errors='ignore' is not offered"),
        (lambda df: df["x"].map(), "map: takes one dict"),
        (lambda df: df["x"].replace(), "replace: needs the old values"),
        (lambda df: df.pipe("mean"), "pipe: takes a function"),
    ],
)
def test_a_refusal_says_what_to_write_instead(call: Callable[[Any], Any], message: str, df: Any) -> None:
    with pytest.raises(PlanError, match=message):
        call(df)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda df: dpnb.cut(df["x"], bins=4, include_lowest=True), lambda df: dpnb.cut(df["x"], 4)),
        (lambda df: dpnb.cut(df["x"], 4, False), lambda df: dpnb.cut(df["x"], 4, right=False)),
        (lambda df: df["x"].add(1, fill_value=None, axis=0), lambda df: df["x"] + 1),
        (lambda df: df["x"].clip(0, 5, axis="index"), lambda df: df["x"].clip(0, 5)),
        (lambda df: df["g"].map(func={"a": 1, "b": 2}), lambda df: df["g"].map({"a": 1, "b": 2})),
        (lambda df: df["g"].map(arg={"a": 1, "b": 2}), lambda df: df["g"].map({"a": 1, "b": 2})),
        (lambda df: df.count(numeric_only=True), lambda df: df.count()),
    ],
)
def test_an_argument_without_effect_gives_the_same_expression(
    one: Callable[[Any], Any], other: Callable[[Any], Any], df: Any
) -> None:
    assert repr(one(df)) == repr(other(df))


@pytest.mark.parametrize("method", [dpnb.frame.Series.fillna, dpnb.frame.Series.replace, dpnb.frame.Series.map])
def test_a_signature_shows_no_address(method: Callable[..., Any]) -> None:
    assert "<no default>" in str(inspect.signature(method))
    assert " at 0x" not in str(inspect.signature(method))
