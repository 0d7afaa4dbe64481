"""Whatever a table holds, it is never an error, a warning, a log line, or an answer of another shape."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.errors import ExecutionError
from session.bad_input import SCHEMA, make, make_table

Table = Callable[[], pd.DataFrame]


def filled(value: Any, kind: type) -> pd.DataFrame:
    """The table with nothing but one value, where a text of pandas' own, which may be Arrow's, could not hold it."""
    table = make_table()
    return pd.DataFrame({name: pd.Series([value] * len(table), dtype=kind) for name in table.columns})


def on_arrow(table: pd.DataFrame) -> pd.DataFrame:
    """The table with Arrow's types wherever they can hold a column."""
    pytest.importorskip("pyarrow")
    return table.convert_dtypes(dtype_backend="pyarrow")


def with_texts_of_persons(table: pd.DataFrame) -> pd.DataFrame:
    """The same values as objects in the privacy unit, which cannot be a column of floating-point numbers."""
    return table.astype({"person": object})


TABLES: dict[str, Table] = {
    "as it is": make_table,
    "no rows": lambda: make_table().iloc[:0],
    "one row": lambda: make_table().iloc[:1],
    "objects": lambda: make_table().astype(object),
    "nothing but nulls": lambda: make_table().map(lambda _: None),
    "nothing but missing values of pandas": lambda: make_table().map(lambda _: pd.NA),
    "nothing but nan": lambda: with_texts_of_persons(make_table().map(lambda _: math.nan)),
    "nothing but texts": lambda: make_table().map(str),
    "nothing but huge numbers": lambda: make_table().map(lambda _: 10**400),
    "nothing but infinities": lambda: with_texts_of_persons(make_table().map(lambda _: -math.inf)),
    "nothing but dates": lambda: make_table().map(lambda _: pd.Timestamp("1913-08-07")),
    "nothing but dates beyond pandas": lambda: make_table().map(lambda _: datetime.datetime(1, 1, 1)),
    "dates with a zone": lambda: make_table().map(lambda _: pd.Timestamp("1960-08-07 05:00", tz="America/Lima")),
    "dates at the end of the calendar with a zone": lambda: make_table().map(lambda _: "9999-12-31T23:59-12:00"),
    "dates with nanoseconds": lambda: make_table().map(lambda _: pd.Timestamp("1960-08-07 05:00:00.123456789")),
    "lengths of time": lambda: make_table().map(lambda _: pd.Timedelta(days=3)),
    "times that are none": lambda: make_table().map(lambda _: pd.NaT),
    "half characters": lambda: filled("\ud800", object),
    "empty texts": lambda: make_table().map(lambda _: ""),
    "long texts": lambda: make_table().map(lambda _: "zircon" * 100_000),
    "texts with zero bytes": lambda: make_table().map(lambda _: "zir\0con"),
    "bytes": lambda: make_table().map(lambda _: b"sekret"),
    "lists": lambda: make_table().map(lambda _: ["sekret"]),
    "mappings": lambda: make_table().map(lambda _: {"sekret": 87131}),
    "arrays": lambda: make_table().map(lambda _: np.arange(3)),
    "truth values": lambda: make_table().map(lambda _: True),
    "categorical columns": lambda: make_table().astype(str).astype("category"),
    "nullable columns": lambda: make_table().convert_dtypes(),
    "columns on Arrow": lambda: on_arrow(make_table()),
    "complex numbers": lambda: with_texts_of_persons(filled(87131 + 1j, complex)),
}

QUESTIONS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "count": (lambda f: f.count(), 1),
    "units": (lambda f: f.count_units(), 1),
    "sum": (lambda f: f["visits"].sum(), 1),
    "mean": (lambda f: f["income"].mean(), 1),
    "var": (lambda f: f["income"].var(), 1),
    "median": (lambda f: f["visits"].median(), 1),
    "quantiles": (lambda f: f["income"].quantile([0.1, 0.5, 0.9]), 3),
    "min": (lambda f: f["visits"].min(), 1),
    "describe": (lambda f: f["income"].describe(), 8),
    "corr": (lambda f: f["visits"].corr(f["income"]), 1),
    "ratio": (lambda f: f["visits"].ratio(f["income"] + 2000), 1),
    "regress": (lambda f: f.regress("visits", on=["income", "town", f["born"].dt.year]), 4),
    "agg": (lambda f: f.groupby("town").agg(n="count", u="units", m=("visits", "mean"), q=("visits", "median")), 8),
    "count of categories": (lambda f: f["town"].count(), 1),
    "count of texts": (lambda f: f["street"].count(), 1),
    "count of dates": (lambda f: f["born"].count(), 1),
    "categories": (lambda f: f.groupby("town").count(), 2),
    "truth values": (lambda f: f.groupby("smoker").count_units(), 2),
    "numeric categories": (lambda f: f.groupby("grade")["visits"].mean(), 3),
    "several levels": (lambda f: f.groupby(["town", "grade", f["visits"] > 1]).count(), 12),
    "given texts": (lambda f: f.groupby("street", keys=["elm", "7"])["visits"].sum(), 2),
    "given pairs": (lambda f: f.groupby(["town", "note"], keys=[("north", "a"), ("south", 7)]).count(), 2),
    "value_counts of texts": (lambda f: f["note"].value_counts(keys=["a", "b"], normalize=True), 2),
    "histogram": (lambda f: f["income"].histogram(5), 5),
    "cut": (lambda f: f.groupby(dpnb.cut(f["visits"], [-math.inf, 1, 5, math.inf])).count(), 3),
    "months": (lambda f: f.groupby(f["seen"].dt.month).count(), 12),
    "weekdays": (lambda f: f.groupby(f["born"].dt.dayofweek)["visits"].mean(), 7),
    "hours": (lambda f: f["seen"].dt.hour.mean(), 1),
    "a length of time": (lambda f: ((f["seen"] - f["born"]).dt.days / 365.25).mean(), 1),
    "dates compared": (lambda f: f[(f["born"] < "1970-01-01") & (f["seen"] >= f["born"])].count(), 1),
    "dates listed": (lambda f: f[f["born"].isin(["1960-01-01", "1960-08-07T10:00"])].count(), 1),
    "dates filled": (lambda f: f["born"].fillna("1960-01-01").dt.year.sum(), 1),
    "texts compared": (lambda f: f[(f["street"] == "elm") | f["note"].isin(["x", "y"])].count_units(), 1),
    "texts missing": (lambda f: f[f["street"].isna() | f["note"].notna()].count(), 1),
    "arithmetic": (lambda f: ((f["income"] / 1000) ** 3 % 7 + (f["visits"] * 2).exp().clip(0, 1e6)).sum(), 1),
    "functions": (lambda f: np.log1p(np.sqrt(np.abs(f["income"].round(1)))).mean(), 1),
    "filled": (lambda f: f["visits"].fillna(3).where(f["town"] == "north", f["grade"].astype(float)).sum(), 1),
    "limited": (
        lambda f: f.bound_contributions(max_norm_per_unit=1.0, max_rows_per_group=1).groupby("town")["visits"].sum(),
        2,
    ),
    "looked up": (
        lambda f: f.merge(pd.DataFrame({"note": ["a", "7"], "rank": [1, 2]}), on="note", how="left")["rank"].sum(),
        1,
    ),
}

# The quick level asks each table a third of the questions, and each question of a third of the tables.
THIRDS = [
    pytest.param(table, number, id=f"{name}, third {number}", marks=() if place % 3 == number else pytest.mark.slow)
    for place, (name, table) in enumerate(TABLES.items())
    for number in range(3)
]


def third(number: int) -> list[tuple[str, Callable[[Any], Any], int]]:
    """Every third question, and how many numbers its answer has."""
    return [(name, *asked) for name, asked in list(QUESTIONS.items())[number::3]]


NOT_PRIVATE: dict[str, Any] = {"budget": dpnb.Budget(epsilon=500, delta=1e-3, discovery_delta=5e-4)}


@pytest.mark.parametrize(("table", "number"), THIRDS)
def test_what_the_table_holds_changes_no_shape_and_is_never_an_error(
    table: Table, number: int, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    session = make(table(), **NOT_PRIVATE)
    for name, ask, numbers in third(number):
        answer = ask(session.frame).release(mu=0.5)
        found = answer.to_pandas()
        assert len(found) == numbers, name
        assert found.dtypes.eq("float64").all(), name
        assert found["low"].le(found["high"]).all(), name
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_groups_are_discovered_in_whatever_a_table_holds(
    table: Table, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    people = table()
    session = make(people.assign(person=range(len(people))), **NOT_PRIVATE)
    frame = session.frame
    for by in ("street", ["note", "town"], [frame["born"].dt.year, "street"], frame["visits"].round()):
        found = frame.discover(by).release(mu=8)
        assert found.to_pandas().dtypes.eq("float64").all()
        assert repr(found)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_tables_are_joined_whatever_they_hold(
    table: Table, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    tables = {"old": table(), "new": make_table()}
    session = make(tables, **NOT_PRIVATE, schema={"old": SCHEMA, "new": SCHEMA})
    joined = session.table("old").merge(session.table("new"), on="person")
    for question in (joined.count(), joined.groupby("town_x")["visits_y"].mean(), joined["visits_x"].sum()):
        assert question.release(mu=0.5).to_pandas().dtypes.eq("float64").all()
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_a_text_that_every_unit_has_is_discovered() -> None:
    table = make_table().assign(person=range(4), street="elm")
    found = make(table, **NOT_PRIVATE).frame.discover("street").release(mu=8)
    assert found.keys == (("elm",),)


class Trap:
    """An object whose every use raises, with a row's content in the message."""

    def fail(self, *_: object) -> Any:
        raise ValueError("sekret")

    __float__ = __int__ = __index__ = __bool__ = __hash__ = __eq__ = __lt__ = __str__ = __repr__ = __len__ = fail  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        raise ValueError("sekret")


@pytest.mark.parametrize(
    ("column", "number"),
    [
        pytest.param(column, number, marks=() if place % 3 == number else pytest.mark.slow)
        for place, column in enumerate(["person", *SCHEMA])
        for number in range(3)
    ],
)
def test_an_object_that_raises_does_not_count(column: str, number: int) -> None:
    table = make_table().astype(object)
    table.at[0, column] = Trap()
    try:
        frame = make(table, **NOT_PRIVATE).frame
        for _, ask, _ in third(number):
            ask(frame).release(mu=0.5)
        frame.discover("street").release(mu=0.5)
    except ExecutionError as error:  # allowed only as the one constant text
        assert "sekret" not in str(error)  # noqa: PT017
        raise
