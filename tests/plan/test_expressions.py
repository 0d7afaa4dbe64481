"""Every node of the expression tree gives what pandas gives."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpnb._backends.memory.expressions import NumpyEvaluator
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._plan.expressions.dtypes import Boolean, Categorical
from dpnb._plan.expressions.nodes import (
    And,
    Apply,
    Arithmetic,
    AsNumber,
    ChangeCase,
    Clip,
    Column,
    Compare,
    Cut,
    Expression,
    ExtractDatePart,
    FillNull,
    IsIn,
    IsNull,
    Literal,
    Lookup,
    MatchText,
    Not,
    OnlyWhere,
    Or,
    Period,
    Round,
    Seconds,
    TextLength,
    Where,
)
from dpnb._plan.expressions.rules import TypedSchema, dtype_of
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import PlanError
from dpnb.schema import Bounded, Categories, Dates, Schema, Text

SCHEMA: Schema = {
    "x": Bounded(-3, 5),
    "y": Bounded(0.25, 2),
    "g": Categories(["a", "b", "c"]),
    "k": Categories([10, 20, 2.5]),
    "t": Text(max_length=3),
    "d": Dates("1899-12-31T22:00:00", "2101-06-01"),
    "e": Dates("1999-01-01", "2001-01-01"),
}
SIZE = 700


def made(seed: int = 4) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    x = np.round(chance.uniform(-3, 5, SIZE), 2)
    special = np.array([-3, 5, 0, 0.5, 1.5, 2.5, -0.5, 1, np.nan])
    start = np.datetime64("1900-01-01T00:00:00")
    return pd.DataFrame(
        {
            "x": np.where(chance.random(SIZE) < 0.3, chance.choice(special, SIZE), x),
            "y": np.where(chance.random(SIZE) < 0.1, np.nan, chance.uniform(0.25, 2, SIZE)),
            "g": chance.choice(np.array(["a", "b", "c", None], object), SIZE),
            "k": chance.choice(np.array([10, 20, 2.5, np.nan]), SIZE),
            "t": chance.choice(np.array(["foo", "bar", "7", "", "FOOLED", None], object), SIZE),
            "d": pd.Series(start + chance.integers(0, 200 * 365 * 86_400, SIZE).astype("timedelta64[s]")).mask(
                pd.Series(chance.random(SIZE) < 0.1)
            ),
            "e": pd.Timestamp("1999-06-01") + pd.to_timedelta(chance.integers(0, 400 * 24, SIZE), unit="h"),
        }
    )


T = made()
ROWS = NumpyEvaluator(prepare(T, SCHEMA, PrivacyUnit()), SCHEMA)
X, Y, G, K, D, E = (Column(name) for name in "xygkde")
WORDS = Column("t")
Pandas = Callable[[pd.DataFrame], Any]


def value(node: Expression, rows: NumpyEvaluator = ROWS, size: int = SIZE) -> pd.Series:
    """What the rows give, as pandas would hold it."""
    kind = dtype_of(node, rows._schema)
    if isinstance(kind, Boolean):
        true, false = rows.truth(node)
        assert not (true & false).any()
        return pd.Series(np.where(true, True, np.where(false, False, None)), dtype="boolean")
    if isinstance(kind, Categorical):
        names = np.array([*kind.values, None], object)
        return pd.Series(names[rows.codes(node)], index=range(size), dtype=object)
    return pd.Series(rows.numbers(node), index=range(size))


NUMBERS: dict[str, tuple[Expression, Pandas]] = {
    "+": (Arithmetic("+", X, Y), lambda t: t.x + t.y),
    "-": (Arithmetic("-", X, Literal(2.5)), lambda t: t.x - 2.5),
    "*": (Arithmetic("*", X, Y), lambda t: t.x * t.y),
    "/": (Arithmetic("/", X, Y), lambda t: t.x / t.y),
    "1 /": (Arithmetic("/", Literal(1), Y), lambda t: 1 / t.y),
    "//": (Arithmetic("//", X, Literal(0.75)), lambda t: t.x // 0.75),
    "%": (Arithmetic("%", X, Literal(2)), lambda t: t.x % 2),
    "%.": (Arithmetic("%", X, Literal(0.3)), lambda t: t.x % 0.3),
    "** 2": (Arithmetic("**", X, Literal(2)), lambda t: t.x**2),
    "** 3": (Arithmetic("**", X, Literal(3)), lambda t: t.x**3),
    "** 0.5": (Arithmetic("**", Y, Literal(0.5)), lambda t: np.sqrt(t.y)),
    "clip": (Clip(X, -1.0, 2.5), lambda t: t.x.clip(-1, 2.5)),
    "clip below": (Clip(X, 0.0, None), lambda t: t.x.clip(lower=0)),
    "clip beyond": (Clip(X, 7.0, 9.0), lambda t: t.x.clip(7, 9)),
    "abs": (Apply("abs", X), lambda t: t.x.abs()),
    "round": (Round(X), lambda t: t.x.round()),
    "round to tenths": (Round(X, 1), lambda t: t.x.round(1)),
    "round to tens": (Round(Arithmetic("*", X, Literal(11)), -1), lambda t: (t.x * 11).round(-1)),
    "log1p": (Apply("log1p", Y), lambda t: np.log1p(t.y)),
    "exp": (Apply("exp", X), lambda t: np.exp(t.x)),
    "log": (Apply("log", Y), lambda t: np.log(t.y)),
    "log2": (Apply("log2", Y), lambda t: np.log2(t.y)),
    "log10": (Apply("log10", Y), lambda t: np.log10(t.y)),
    "only where": (OnlyWhere(Compare(">", Y, Literal(1)), X), lambda t: t.x.where(t.y > 1)),
    "length of texts": (TextLength(WORDS), lambda t: t.t.str.len().clip(upper=3)),
    "seconds of dates": (Seconds(D), lambda t: (t.d - pd.Timestamp("1970-01-01")).dt.total_seconds()),
    "looked up by a condition": (
        Lookup("n", (Compare(">", X, Literal(1)),), ((True,), (False,)), (5, None), 5.0, 5.0),
        lambda t: (t.x > 1).map({True: 5.0, False: np.nan}),
    ),
    "fillna": (FillNull(X, -1.5), lambda t: t.x.fillna(-1.5)),
    "where": (Where(Compare(">", Y, Literal(1)), X, Literal(-2)), lambda t: t.x.where(t.y > 1, -2).mask(t.y.isna())),
    "where a column": (
        Where(Compare("==", G, Literal("a")), X, Y),
        lambda t: t.x.where(t.g == "a", t.y).mask(t.g.isna()),
    ),
    "mask": (
        Where(Not(Compare(">", Y, Literal(1))), X, Literal(-2)),
        lambda t: t.x.mask(t.y > 1, -2).mask(t.y.isna()),
    ),
    "categories as numbers": (AsNumber(K), lambda t: t.k.astype(float)),
    "a condition as a number": (
        AsNumber(Compare(">", X, Literal(1))),
        lambda t: (t.x > 1).astype(float).mask(t.x.isna()),
    ),
    "days": (ExtractDatePart("days", Arithmetic("-", D, E)), lambda t: (t.d - t.e).dt.days),
    "seconds": (ExtractDatePart("seconds", Arithmetic("-", D, E)), lambda t: (t.d - t.e).dt.total_seconds()),
    "days since a date": (
        ExtractDatePart("days", Arithmetic("-", E, Literal("1999-12-31T12:00:00"))),
        lambda t: (t.e - pd.Timestamp("1999-12-31 12:00")).dt.days,
    ),
    "looked up": (
        Lookup("n", (G,), (("a",), ("c",)), (1.5, -2), -2.0, 1.5),
        lambda t: t.g.map({"a": 1.5, "c": -2.0}),
    ),
    "looked up by text": (
        Lookup("n", (WORDS,), (("foo",), ("7",), ("none",)), (1, 2, 3), 1.0, 3.0),
        lambda t: t.t.map({"foo": 1.0, "7": 2.0}),
    ),
    "looked up by two": (
        Lookup("n", (G, Round(Y)), (("a", 1), ("b", 2), ("a", 0)), (5, 6, None), 5.0, 6.0),
        lambda t: pd.Series(
            [{("a", 1.0): 5.0, ("b", 2.0): 6.0}.get(key) for key in zip(t.g, t.y.round(), strict=True)]
        ),
    ),
    **{
        part: (ExtractDatePart(part, D), lambda t, name=name: getattr(t.d.dt, name))  # type: ignore[arg-type,misc]
        for part, name in {
            **{part: part for part in ("year", "quarter", "month", "day", "hour", "minute", "second")},
            "dayofyear": "day_of_year",
            "dayofweek": "day_of_week",
        }.items()
    },
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_what_pandas_computes(name: str) -> None:
    node, pandas = NUMBERS[name]
    pd.testing.assert_series_equal(
        value(node), pd.Series(pandas(T)).astype(float), check_names=False, check_exact=True, check_index=False
    )


def known(mask: Any, *columns: pd.Series) -> pd.Series:
    """Where a column holds nothing, pandas' own False becomes unknown."""
    result = pd.Series(mask).astype("boolean")
    for one in columns:
        result = result.mask(one.isna())
    return result


CONDITIONS: dict[str, tuple[Expression, Pandas]] = {
    **{
        f"x {sign} 1.5": (
            Compare(sign, X, Literal(1.5)),  # type: ignore[arg-type]
            lambda t, verb=verb: known(getattr(t.x, verb)(1.5), t.x),  # type: ignore[misc]
        )
        for sign, verb in {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}.items()
    },
    "x < y": (Compare("<", X, Y), lambda t: known(t.x < t.y, t.x, t.y)),
    "conditions": (
        Compare("==", Compare(">", X, Literal(1)), Compare(">", Y, Literal(1))),
        lambda t: known((t.x > 1) == (t.y > 1), t.x, t.y),
    ),
    "category": (Compare("==", G, Literal("b")), lambda t: known(t.g == "b", t.g)),
    "category !=": (Compare("!=", G, Literal("b")), lambda t: known(t.g != "b", t.g)),
    "numeric category": (Compare(">=", K, Literal(10)), lambda t: known(t.k >= 10, t.k)),
    "text": (Compare("==", WORDS, Literal("foo")), lambda t: known(t.t == "foo", t.t)),
    "text !=": (Compare("!=", WORDS, Literal("foo")), lambda t: known(t.t != "foo", t.t)),
    "empty text": (Compare("==", WORDS, Literal("")), lambda t: known(t.t == "", t.t)),
    "unknown text": (Compare("==", WORDS, Literal("nobody")), lambda t: known(t.t == "nobody", t.t)),
    "unknown text !=": (Compare("!=", WORDS, Literal("nobody")), lambda t: known(t.t != "nobody", t.t)),
    "date": (Compare("<", D, Literal("2000-01-01")), lambda t: known(t.d < "2000-01-01", t.d)),
    "two dates": (Compare("<=", D, E), lambda t: known(t.d <= t.e, t.d, t.e)),
    "spans": (
        Compare(">", Arithmetic("-", D, E), Arithmetic("-", E, Literal("1999-01-01"))),
        lambda t: known((t.d - t.e) > (t.e - pd.Timestamp("1999-01-01")), t.d),
    ),
    "isin": (IsIn(X, (1, 2.5, -3)), lambda t: known(t.x.isin([1, 2.5, -3]), t.x)),
    "isin categories": (IsIn(G, ("a", "c")), lambda t: known(t.g.isin(["a", "c"]), t.g)),
    "isin numeric categories": (IsIn(K, (20, 2.5)), lambda t: known(t.k.isin([20, 2.5]), t.k)),
    "isin texts": (IsIn(WORDS, ("foo", "", "x")), lambda t: known(t.t.isin(["foo", "", "x"]), t.t)),
    "isin conditions": (
        IsIn(Compare(">", X, Literal(1)), (True,)),
        lambda t: known(t.x > 1, t.x),
    ),
    "isin dates": (
        IsIn(E, ("1999-06-02", "1999-06-03T05:00:00")),
        lambda t: known(t.e.isin(pd.to_datetime(["1999-06-02 00:00", "1999-06-03 05:00"])), t.e),
    ),
    "between": (
        And(Compare(">=", X, Literal(0)), Compare("<", X, Literal(2.5))),
        lambda t: known(t.x.between(0, 2.5, inclusive="left"), t.x),
    ),
    "and": (
        And(Compare(">", X, Literal(1)), Compare("==", G, Literal("a"))),
        lambda t: known(t.x > 1, t.x) & known(t.g == "a", t.g),
    ),
    "or": (
        Or(Compare(">", X, Literal(1)), Not(Compare("==", G, Literal("a")))),
        lambda t: known(t.x > 1, t.x) | ~known(t.g == "a", t.g),
    ),
    "starts": (MatchText("startswith", WORDS, "fo"), lambda t: known(t.t.str.startswith("fo"), t.t)),
    "ends": (MatchText("endswith", WORDS, "o"), lambda t: known(t.t.str.endswith("o"), t.t)),
    "contains": (MatchText("contains", WORDS, "a"), lambda t: known(t.t.str.contains("a"), t.t)),
    "contains a dot": (MatchText("contains", WORDS, "."), lambda t: known(t.t.str.contains(".", regex=False), t.t)),
    "contains nothing": (MatchText("contains", WORDS, ""), lambda t: known(t.t.str.contains(""), t.t)),
    "contains in lower case": (
        MatchText("contains", ChangeCase("lower", WORDS), "fool"),
        lambda t: known(t.t.str.contains("fool", case=False), t.t),
    ),
    "text in upper case": (
        Compare("==", ChangeCase("upper", WORDS), Literal("FOO")),
        lambda t: known(t.t.str.upper() == "FOO", t.t),
    ),
    "text in upper case is in": (
        IsIn(ChangeCase("upper", WORDS), ("FOO", "BAR", "bar")),
        lambda t: known(t.t.str.upper().isin(["FOO", "BAR", "bar"]), t.t),
    ),
    "isna of a text in lower case": (IsNull(ChangeCase("lower", WORDS)), lambda t: t.t.isna()),
    "condition only where": (
        OnlyWhere(Compare("==", G, Literal("a")), Compare(">", X, Literal(1))),
        lambda t: known(t.x > 1, t.x).mask(t.g != "a"),
    ),
    "isna": (IsNull(X), lambda t: t.x.isna()),
    "notna": (Not(IsNull(G)), lambda t: t.g.notna()),
    "isna of text": (IsNull(WORDS), lambda t: t.t.isna()),
    "isna of a condition": (IsNull(Compare(">", X, Y)), lambda t: t.x.isna() | t.y.isna()),
    "condition filled": (FillNull(Compare(">", X, Literal(1)), True), lambda t: known(t.x > 1, t.x).fillna(True)),
    "condition where": (
        Where(Compare("==", G, Literal("a")), Compare(">", X, Literal(1)), Literal(False)),
        lambda t: known(t.x > 1, t.x).where(t.g == "a", False).mask(t.g.isna()),
    ),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_is_what_pandas_computes_with_three_values(name: str) -> None:
    node, pandas = CONDITIONS[name]
    pd.testing.assert_series_equal(value(node), pd.Series(pandas(T)).astype("boolean"), check_names=False)


EDGES = (-1.0, 0.5, 1.5, 2.5, 4.0)
LARGEST = float(np.finfo(np.float64).max)


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("edges", [EDGES, (-np.inf, 0.5, 1.0), (0.0, 1.0, np.inf), (-np.inf, np.inf)], ids=repr)
def test_bins_are_those_of_pandas(edges: tuple[float, ...], right: bool) -> None:
    labels = tuple(f"bin {place}" for place in range(len(edges) - 1))
    node = Cut(X, tuple(min(max(edge, -LARGEST), LARGEST) for edge in edges), labels, right)
    wanted = pd.cut(T.x, list(edges), labels=list(labels), right=right, include_lowest=right).astype(object)
    if not right:  # unlike pandas', the last bin holds the last edge, as the first one holds the first otherwise
        wanted = wanted.mask(T.x == edges[-1], labels[-1])
    pd.testing.assert_series_equal(value(node), wanted.astype(object).where(wanted.notna(), None), check_names=False)


CATEGORIES: dict[str, tuple[Expression, Pandas]] = {
    "filled": (FillNull(G, "none"), lambda t: t.g.fillna("none")),
    "filled with a known one": (FillNull(G, "b"), lambda t: t.g.fillna("b")),
    "where": (
        Where(Compare(">", X, Literal(1)), G, Literal("low")),
        lambda t: t.g.where(t.x > 1, "low").mask(t.x.isna(), None),
    ),
    "only where": (OnlyWhere(Compare(">", X, Literal(1)), G), lambda t: t.g.where(t.x > 1)),
    **{
        f"period {freq}": (Period(unit, D), lambda t, freq=freq: t.d.dt.to_period(freq).astype(str).mask(t.d.isna()))  # type: ignore[arg-type,misc]
        for unit, freq in {"day": "D", "month": "M", "quarter": "Q", "year": "Y"}.items()
    },
    "week": (Period("week", D), lambda t: t.d.dt.to_period("W").dt.start_time.dt.strftime("%Y-%m-%d").mask(t.d.isna())),
    "hour": (Period("hour", E), lambda t: t.e.dt.strftime("%Y-%m-%dT%H:00")),
    "bins of dates": (
        Cut(E, (915148800.0, 930000000.0, 946684800.0), ("first", "second"), False, dates=True),
        lambda t: pd.cut(
            t.e, pd.to_datetime([915148800, 930000000, 946684800], unit="s"), labels=["first", "second"], right=False
        ),
    ),
    "numeric where": (
        Where(Compare(">", X, Literal(1)), K, Literal(0)),
        lambda t: t.k.where(t.x > 1, 0).mask(t.x.isna()),
    ),
    "looked up": (
        Lookup("n", (G,), (("c",), ("a",)), ("north", "south")),
        lambda t: t.g.map({"a": "south", "c": "north"}),
    ),
}


@pytest.mark.parametrize("name", CATEGORIES)
def test_a_category_is_what_pandas_computes(name: str) -> None:
    node, pandas = CATEGORIES[name]
    wanted = pandas(T).astype(object)
    assert value(node).tolist() == wanted.where(wanted.notna(), None).tolist()


def test_a_lookup_without_any_value_is_refused() -> None:
    with pytest.raises(PlanError, match="every value that is looked up would be missing"):
        dtype_of(AsNumber(Lookup("n", (G,), (("a",),), (None,))), SCHEMA)


@pytest.mark.parametrize("name", NUMBERS)
def test_what_a_row_gives_does_not_depend_on_where_it_stands(name: str) -> None:
    """Functions that compute several rows at a time must not round the last ones of a table in another way."""
    node, _ = NUMBERS[name]
    every = value(node)
    for start, end in ((1, SIZE), (3, 20), (5, 6), (SIZE - 7, SIZE)):
        part = NumpyEvaluator(prepare(T[start:end], SCHEMA, PrivacyUnit()), SCHEMA)
        assert value(node, part, end - start).tolist() == pytest.approx(
            every[start:end].tolist(), rel=0, abs=0, nan_ok=True
        )


def test_a_copy_of_a_typed_schema_has_no_types_of_other_objects() -> None:
    typed = TypedSchema(SCHEMA)
    dtype_of(Arithmetic("+", X, Y), typed)
    assert typed.kinds
    for copied in (copy.deepcopy(typed), pickle.loads(pickle.dumps(typed))):
        assert type(copied) is dict
        assert copied == SCHEMA
