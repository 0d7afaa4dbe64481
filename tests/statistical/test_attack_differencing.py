"""Differencing: two tables that differ in one person look alike in everything but the noisy numbers.

The same calls are made on a table without a person and on tables with that person, who has whatever rows could be
noticed: odd values, an otherwise empty group, a type of their own.  Whatever can be watched must be equal: errors and
their texts, faces, shapes, warnings, log lines, the ledger.  The same watching finds out a table that answers like
pandas.  Nothing here is drawn.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._core.tables import PrivateTables, UnreadTables
from dpnb._request import Release, request_from
from statistical.watching import ledger_rows, watched

pytestmark = pytest.mark.slow

SCHEMA = {
    "x": dpnb.Bounded(0, 10),
    "y": dpnb.Bounded(-5, 5),
    "g": dpnb.Categories(["a", "b", "empty"]),
    "k": dpnb.Categories([1, 2, 3]),
    "d": dpnb.Dates("2020-01-01", "2021-12-31"),
    "t": dpnb.Text(),
}
UNIT = {"privacy_unit": "u", "max_rows_per_unit": 4}
SECRET = "87131-secret"
PLAIN: dict[str, Any] = {"u": 999, "x": 3, "y": 1.0, "g": "a", "k": 1, "d": "2020-05-05", "t": "r"}


class Trap:
    """Every use raises, and says something that nobody may hear."""

    def _sprung(self, *arguments: object) -> Any:
        raise RuntimeError(SECRET)

    __float__ = __hash__ = __eq__ = __str__ = __repr__ = __bool__ = __len__ = __iter__ = _sprung  # type: ignore[assignment]


ODD: dict[str, Any] = {
    "text": SECRET,
    "nan": math.nan,
    "inf": math.inf,
    "none": None,
    "NA": pd.NA,
    "NaT": pd.NaT,
    "huge": 10**400,
    "decimal": decimal.Decimal("sNaN"),
    "complex": 1j,
    "bytes": b"\xff",
    "list": [1, 2],
    "dict": {},
    "tuple": (1, math.nan),
    "surrogate": "\ud800",
    "long text": "z" * 100_000,
    "date": datetime.date(1, 1, 1),
    "moment": pd.Timestamp("2262-04-11"),
    "array": np.array([1, 2]),
    "frame": pd.DataFrame({"x": [1]}),
    "trap": Trap(),
}

PEOPLE: dict[str, list[dict[str, Any]]] = {
    "ordinary": [PLAIN],
    "one in an empty group": [{**PLAIN, "g": "empty"}],
    "one with an undeclared category": [{**PLAIN, "g": "none such", "k": 99}],
    "one with a text of their own": [{**PLAIN, "t": SECRET}],
    "one with very many rows": [{**PLAIN, "x": row} for row in range(2000)],
    "one beyond all bounds": [{**PLAIN, "x": 1e300, "y": -1e300, "d": "9999-12-31"}],
    "one without an id": [{**PLAIN, "u": None}],
    # First in the columns, then as what names the person.
    **{
        f"odd: {name}": [{**PLAIN, **dict.fromkeys("xygkdt", value)}, *[{**PLAIN, "u": value}] * 6]
        for name, value in ODD.items()
    },
}


@cache
def others() -> pd.DataFrame:
    chance = np.random.default_rng(11)
    return pd.DataFrame(
        {
            "u": chance.integers(0, 15, 60),
            "x": chance.integers(0, 11, 60),
            "y": chance.normal(0, 3, 60),
            "g": chance.choice(["a", "b"], 60),
            "k": chance.integers(1, 4, 60),
            "d": pd.to_datetime("2020-01-01") + pd.to_timedelta(chance.integers(0, 700, 60), unit="D"),
            "t": chance.choice(["r", "s"], 60),
        }
    )


@cache
def with_person(who: str) -> pd.DataFrame:
    """Each column of the kind that it then has, as pandas makes it when tables are put together."""
    base, rows = others(), PEOPLE[who]
    columns = {}
    for name in base:
        added = np.empty(len(rows), object)
        added[:] = [row[name] for row in rows]
        kept = pd.Series(added, dtype=object)
        with suppress(UnicodeEncodeError):  # half a character, which pandas' own texts may not hold
            kept = kept.infer_objects()
        same = kept.dtype == base[name].dtype
        values = [base[name], kept] if same else [base[name].astype(object), kept.astype(object)]
        columns[name] = pd.concat(values, ignore_index=True)
    return pd.DataFrame(columns)


def opened(table: pd.DataFrame, ledger: Path | str = ":memory:") -> dpnb.Session:
    return dpnb.Session(
        table,
        name="watched",
        schema=SCHEMA,
        budget=dpnb.Budget(epsilon=100, delta=1e-3, discovery_delta=1e-4),
        ledger=ledger,
        public_size=15,
        not_private_test_seed=1,
        **UNIT,
    )


QUESTIONS: list[Callable[[Any], Any]] = [
    lambda f: f.count(),
    lambda f: f.count_units(),
    lambda f: f["g"].count(),
    lambda f: f["x"].sum(),
    lambda f: f["x"].mean(),
    lambda f: f["x"].std(),
    lambda f: f["y"].median(),
    lambda f: f["y"].describe(),
    lambda f: f["x"].corr(f["y"]),
    lambda f: f["x"].ratio(f["y"]),
    lambda f: f.regress("y", on=["x", "g"]),
    lambda f: f["x"].histogram(5),
    lambda f: f.groupby("g").count(),
    lambda f: f.groupby(["g", "k"])["x"].mean(),
    lambda f: f.groupby(f["d"].dt.quarter).count_units(),
    lambda f: f.groupby("t", keys=["r", "s", SECRET]).count(),
    lambda f: f.groupby("g").agg(n="count", m=("x", "mean"), q=("y", "median")),
    lambda f: f[f["t"] == SECRET].count(),
    lambda f: f[f["x"].isna() | (f["d"] > "2021-01-01")].count(),
    lambda f: f["x"].fillna(3).sum(),
    lambda f: f.bound_contributions(max_rows_per_unit=1).groupby("k")["y"].sum(),
    lambda f: f.merge(pd.DataFrame({"k": [1, 2], "w": [0.5, 2.0]}), on="k")["w"].sum(),
    lambda f: f.assign(z=f["x"] * 2)[["y", "z"]].corr(),
    lambda f: f["y"].find_bounds(),
    lambda f: f["t"].str.contains(SECRET).sum(),
    lambda f: f["g"].str.upper().value_counts(),
    lambda f: f["g"].map({"a": 1, "b": 2}).mean(),
    lambda f: np.log(f["x"] + 1).mean(),
    lambda f: f.resample("M", on="d").size(),
    lambda f: f.query("x > 1 and g == 'b'")["y"].apply(lambda y: y**2).mean(),
    lambda f: dpnb.crosstab(f["g"], f["k"]),
]

ATTEMPTS: list[Callable[[Any], Any]] = [
    lambda f: f,
    lambda f: f["x"],
    lambda f: f.groupby("g"),
    lambda f: f[f["t"] == SECRET],
    lambda f: f.columns,
    lambda f: sorted(dir(f)),
    len,
    list,
    bool,
    lambda f: list(f["x"]),
    lambda f: f.loc[0],
    lambda f: f.nope,
    lambda f: f.query("t == @SECRET"),
    lambda f: f["t"].str.contains(".*"),
    lambda f: f["t"].map(len),
    lambda f: pd.concat([f, f]),
    lambda f: f["x"].mean() > 1,
    lambda f: f.shape,
    lambda f: f.head(),
    lambda f: f.values,
    lambda f: f.dtypes,
    lambda f: f.empty,
    lambda f: f["nope"],
    lambda f: f[0],
    lambda f: f[f["g"] == "none such"],
    lambda f: f["x"] + SECRET,
    lambda f: f["x"] / f["y"],
    lambda f: f["x"].apply(print),
    lambda f: f["x"].unique(),
    lambda f: np.asarray(f["x"]),
    lambda f: pd.DataFrame(f),
    lambda f: f"{f['x']:>10}",
    lambda f: float(f["x"]),
    lambda f: 3 in f["x"],
    lambda f: SECRET in f,
    lambda f: f["t"].mean(),
    lambda f: f.groupby("t").count(),
    lambda f: f.groupby("x").count(),
    lambda f: f.count().release(mu=1e6),
    lambda f: f.count().release(within=0),
    lambda f: f[f["x"] > 1]["x"].mean().release(within=0.1),
    lambda f: f.groupby("g").count().release(mu=1, groups=["none such"]),
]


def everything(table: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """All that can be watched while a session is made and used, with a ledger of always the same name."""
    ledger = folder / "watched.dpnb"
    for file in folder.iterdir():
        file.unlink()
    seen: dict[str, Any] = {"made": watched(lambda: opened(table, ledger))}
    session = opened(table, ledger)
    frame = session.frame
    for place, ask in enumerate(QUESTIONS):
        seen[f"question {place}"] = watched(lambda ask=ask: ask(frame))
        seen[f"preview {place}"] = watched(lambda ask=ask: ask(frame).preview(mu=0.1))
        seen[f"explain {place}"] = watched(lambda ask=ask: ask(frame).explain())
        seen[f"release {place}"] = watched(lambda ask=ask: ask(frame).release(mu=0.1))
        seen[f"refine {place}"] = watched(lambda ask=ask: ask(frame).release(mu=0.1).refine(mu=0.2))
    for place, attempt in enumerate(ATTEMPTS):
        seen[f"attempt {place}"] = watched(lambda attempt=attempt: attempt(frame))
    seen["session"] = watched(lambda: session)
    seen["spent"] = repr((session.spent, session.headroom, session.filter))
    return seen | {"ledger": ledger_rows(ledger)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("watched")


@pytest.fixture(scope="module")
def alone(folder: Path) -> dict[str, Any]:
    """What is seen without the person."""
    return everything(others(), folder)


def differences(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return {name: (first.get(name), second.get(name)) for name in first | second if first.get(name) != second.get(name)}


@pytest.mark.parametrize("who", PEOPLE)
def test_nothing_but_noisy_numbers_tells_whether_a_person_is_in_the_table(
    who: str, alone: dict[str, Any], folder: Path
) -> None:
    assert differences(everything(with_person(who), folder), alone) == {}


def noise(table: pd.DataFrame, ledger: Path) -> list[list[Fraction]]:
    """What was added to the exact sums in each release, in steps of the released grid."""
    frame = opened(table, ledger).frame
    for ask in QUESTIONS:
        ask(frame).release(mu=0.1)
    held = PrivateTables.declared(
        SCHEMA, several=False, privacy_unit="u", rows=4, groups=None, rows_per_group=None, norm=None
    )
    held.read(UnreadTables(table))
    with closing(sqlite3.connect(ledger)) as file:
        rows = file.execute("SELECT request, result FROM events WHERE result IS NOT NULL").fetchall()
    added = []
    for text, told in rows:
        request, measured = request_from(text), json.loads(told)
        assert isinstance(request, Release)
        plan = request.plan
        sums = held.opened.sums(held.compile(plan))
        grid = Fraction(2) ** measured["exponent"]
        added.append([int(value) - int(total) / grid for value, total in zip(measured["values"], sums, strict=True)])
    return added


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> list[list[Fraction]]:
    """The noise without the person."""
    return noise(others(), tmp_path_factory.mktemp("noise") / "first.dpnb")


@pytest.mark.parametrize("who", ["ordinary", "one in an empty group", "odd: trap", "odd: list"])
def test_with_one_seed_answers_differ_through_the_exact_sums_alone(
    who: str, first: list[list[Fraction]], tmp_path: Path
) -> None:
    """To within the rounding of each to its grid."""
    second = noise(with_person(who), tmp_path / "second.dpnb")
    assert [len(one) for one in first] == [len(one) for one in second]
    gaps = [abs(a - b) for one, other in zip(first, second, strict=True) for a, b in zip(one, other, strict=True)]
    assert max(gaps) <= 1


# --- controls: a table that answers as pandas does --------------------------------------------------------------------


NAIVE: dict[str, Callable[[pd.DataFrame], Any]] = {
    "an error quotes a row": lambda table: sum(float(value) for value in table["x"]),
    "only groups with rows are answered": lambda table: table.groupby("g")["y"].mean() + 0.1,
    "the answer's type follows the column's": lambda table: table[["u", "x"]].iloc[:0],
    "a computed column warns": lambda table: float(np.mean(np.log(pd.to_numeric(table["y"] * 0 + table["u"] - 999)))),
    "an operation prints what it skips": lambda table: [print("skipped", v) for v in table["d"] if v != v],
    "the length is there": len,
    "the texts are listed": lambda table: sorted(map(str, table["t"].unique())),
    "a face shows rows": lambda table: table.tail(1),
    "a copy holds the table": lambda table: {"table": table},
}


@pytest.mark.parametrize("way", NAIVE)
def test_control_a_table_that_answers_like_pandas_is_told_by_the_same_watching(way: str) -> None:
    ask = NAIVE[way]
    alone = watched(lambda: ask(others()))
    assert any(watched(lambda who=who: ask(with_person(who))) != alone for who in PEOPLE)
