"""No content of a row is an error in a database: after a charge it would be an answer without noise.

Each table has the rows of a few usual people, and those of people who choose every value so that the database raises:
at the end of the range of its type, beyond that of doubles, of another type than the column's, or not text at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import databases
import dpnb
from backends.engines.database_tables import PostgreSQLTables, SQLiteTables, rows_of
from contracts import texts_and_dates, within_units
from contracts.engines import QUESTIONS, SCHEMA, TABLE
from dpnb._backends.lazy.engines import postgresql, sqlite

USUAL = TABLE[:12]

TEXTS = ["", "x" * 10_000, "1e999", "NaN", "\t'\"%_\\", "\U0001f600\uffff", "İß", "Robert'); DROP TABLE t1; --"]

POSTGRESQL: dict[str, tuple[str, list[str | None]]] = {
    "pid": ("bigint", ["9223372036854775807", "-9223372036854775808", "0", None]),
    "x": (
        "double precision",
        ["NaN", "Infinity", "-Infinity", "1e308", "-1e308", "5e-324", "-5e-324", "-0", "1e-160", None],
    ),
    "y": ("bigint", ["9223372036854775807", "-9223372036854775808", "7", None]),
    "k": ("integer", ["2147483647", "-2147483648", "0", "25"]),
    "c": ("varchar", ["a", *TEXTS]),
    "t": ("text", [*TEXTS, "bob"]),
    "b": ("boolean", ["t", "f", None]),
    "d": ("timestamp", ["infinity", "-infinity", "4713-01-01 BC", "294276-12-31 23:59:59", "2000-02-29", None]),
    "name": ("text", TEXTS),
}
OTHER_TYPES: dict[str, tuple[str, list[str | None]]] = POSTGRESQL | {
    "x": ("numeric", ["NaN", "Infinity", "-Infinity", "1e1000", "-1e1000", "1e-1000", "1e308", "0.1", None]),
    "y": ("smallint", ["32767", "-32768", None]),
    "k": ("real", ["3e38", "1e-45", "NaN", "25"]),
    "c": ("char(3)", ["a", "zz", None]),
    "d": ("date", ["infinity", "-infinity", "4713-01-01 BC", "5874897-12-31", "2000-02-29", None]),
}
MIXED: dict[str, tuple[str, list[Any]]] = {
    "pid": ("integer", [2**63 - 1, -(2**63), "me", b"\xff", 1.5, None]),
    "x": ("real", [9e999, -9e999, 1e308, 5e-324, "abc", b"\xff\x00", 2**63 - 1, None]),
    "y": ("integer", [2**63 - 1, -(2**63), "abc", 1.5, 9e999, b"", None]),
    "k": ("integer", [2**63 - 1, -(2**63), "25.0", 25, "x"]),
    "c": ("text", ["a", *TEXTS, 5, b"\xff", "a\0b"]),
    "t": ("text", [*TEXTS, b"\xff\xfe", "bob\0", 1e308]),
    "b": ("boolean", [0, 1, 7, "maybe", b"\x01", None]),
    "d": ("timestamp", ["infinity", "2000-13-45", 5, 1e308, b"\xff", "9999-12-31T23:59:59.999999-23:59", "0001-01-01"]),
    "name": ("text", [*TEXTS, b"\xff", "n\0m"]),
}


def hostile(columns: dict[str, tuple[str, list[Any]]]) -> list[tuple[Any, ...]]:
    """Each value of each column beside several of the others."""
    values = {name: columns[name][1] for name in USUAL}
    return [
        tuple(of[(row * (1 + place)) % len(of)] for place, of in enumerate(values.values())) for row in range(3 * 13)
    ]


Ask = Callable[[Any], Any]


def within(name: str) -> Ask:
    return lambda frame: within_units.questions(frame, "pid")[name]()


ASKED: dict[str, Ask] = {
    **{
        name: QUESTIONS[name]
        for name in (
            *("by two", "quantiles", "regression", "several", "found pairs", "quotient", "product", "power", "round"),
            *("by year", "day of year", "quantiles by a number", "lookup", "remainder", "found numbers", "units"),
        )
    },
    "functions": lambda f: (np.log(f["x"] + 0.5) + np.exp(-f["x"] * 2) + (f["x"] ** 0.3) + np.log10(f["y"] + 1)).sum(),
    "vanishing": lambda f: (f["x"] * 1e-99 * f["x"]).sum(),
    "one over it": lambda f: (1 / (f["x"] + 1e-90)).clip(0, 1).sum(),
    "texts": lambda f: f[f["t"].str.upper().str.contains("B")].groupby("c").count(),
    "starts": lambda f: f[f["t"].str.startswith("bo") | f["t"].str.endswith("'")].count(),
    "found in lower case": texts_and_dates.QUESTIONS["found in lower case"],
    "shift": within("shift"),
    "rank": within("rank of numbers with fractions"),
    "rolling mean": within("rolling mean"),
    "sum of sums": within("sum"),
}

QUICK = ("by two", "quotient", "vanishing", "by year")


def answers(table: Any, asked: dict[str, Ask]) -> dict[str, Any]:
    """What is released, without its numbers: the answers to questions whose noise is the same everywhere."""
    session = dpnb.Session(
        table,
        name="hostile",
        budget=dpnb.Budget(epsilon=1000, delta=1e-6, discovery_delta=1e-7),
        privacy_unit="pid",
        max_rows_per_unit=2,
        schema=dict(SCHEMA),
        ledger=":memory:",
        not_private_test_seed=5,
    )
    found = {}
    for name, ask in asked.items():
        query = ask(session.frame)
        released = query.release(mu=0.1)
        estimate = np.asarray(released.estimate)
        are_found = name.startswith("found")
        found[name] = type(released), estimate.dtype, None if are_found else (estimate.shape, released.keys)
    return found


@pytest.fixture(scope="module")
def in_postgresql(postgresql: databases.Server) -> Iterator[PostgreSQLTables]:
    tables = PostgreSQLTables(postgresql)
    yield tables
    tables.close()


@pytest.fixture
def in_sqlite(tmp_path: Path) -> Iterator[SQLiteTables]:
    tables = SQLiteTables(tmp_path / "tables.sqlite")
    yield tables
    tables.close()


def mixed(tables: SQLiteTables) -> Any:
    """Also texts that are no texts."""
    usual = rows_of(USUAL)
    table = tables.table({name: MIXED[name][0] for name in USUAL}, [*usual, *hostile(MIXED)])
    name = table.get_name()
    tables.execute(f"update {name} set t = cast(x'ff41' as text), c = cast(x'c0' as text) where rowid % 7 = 0")
    tables.execute(f"update {name} set name = cast(x'ed3030' as text) where rowid % 11 = 0")
    return table


@pytest.mark.databases
@pytest.mark.slow
@pytest.mark.parametrize("columns", [POSTGRESQL, OTHER_TYPES], ids=["usual types", "other types"])
def test_no_value_is_an_error_in_postgresql(
    columns: dict[str, tuple[str, list[Any]]], in_postgresql: PostgreSQLTables
) -> None:
    usual = USUAL.assign(c=USUAL["c"].where(USUAL["c"].isin(["a", "b"])))
    table = in_postgresql.table({name: columns[name][0] for name in USUAL}, [*rows_of(usual), *hostile(columns)])
    asked = ASKED if columns is POSTGRESQL else {name: ASKED[name] for name in QUICK}
    assert answers(table, asked) == answers(USUAL, asked)


@pytest.mark.parametrize("some", [QUICK, pytest.param(tuple(ASKED), marks=pytest.mark.slow)], ids=["few", "all"])
def test_no_value_is_an_error_in_sqlite(some: tuple[str, ...], in_sqlite: SQLiteTables) -> None:
    asked = {name: ASKED[name] for name in some}
    assert answers(mixed(in_sqlite), asked) == answers(USUAL, asked)


def unguarded_operand(self: Any, dtype: Any, number: Any, most: float = 0.0) -> Any:
    return number


def unguarded_read(column: str, dtype: Any) -> tuple[str, Any]:
    return column, "float64" if dtype.is_decimal() else dtype


@pytest.mark.databases
@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "name", "unguarded", "question"),
    [
        (POSTGRESQL, "_operand", unguarded_operand, "vanishing"),
        (
            POSTGRESQL,
            "write_microseconds",
            lambda self, op, arg: self.written("EXTRACT(EPOCH FROM {a})::int8", a=arg),
            "by year",
        ),
        (OTHER_TYPES, "_read", unguarded_read, "quotient"),
    ],
)
def test_control_without_its_guard_postgresql_raises_after_the_charge(
    columns: dict[str, tuple[str, list[Any]]],
    name: str,
    unguarded: Any,
    question: str,
    in_postgresql: PostgreSQLTables,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = in_postgresql.table({name: columns[name][0] for name in USUAL}, [*rows_of(USUAL), *hostile(columns)])
    owner = postgresql if hasattr(postgresql, name) else postgresql.GuardedPostgreSQL
    monkeypatch.setattr(owner, name, unguarded)
    with pytest.raises(dpnb.errors.ExecutionError):
        answers(table, {question: ASKED[question]})


def test_control_without_its_guard_sqlite_raises_after_the_charge(
    in_sqlite: SQLiteTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_read", lambda column, dtype: (column, dtype))
    with pytest.raises(dpnb.errors.ExecutionError):
        answers(mixed(in_sqlite), {"found pairs": ASKED["found pairs"]})
