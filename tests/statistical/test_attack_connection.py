"""A DuckDB connection belongs to its user: neither its settings nor its macros may change what a query means.

A collation that calls texts of two persons equal lets them share one limit, and a macro takes the place of a function
that a query calls.  Texts are compared by their bytes on any connection, which the first tests show with the check of
the connection left out; the check refuses everything else before a charge.  The controls leave out one or the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import dpnb
from dpnb._backends.lazy import lazy_backend
from dpnb._backends.lazy.engines import duckdb as duckdb_settings
from dpnb._backends.lazy.engines import duckdb as engine
from dpnb._backends.lazy.engines.engine import Engine
from dpnb.errors import ExecutionError, SchemaError

duckdb = pytest.importorskip("duckdb")

pytestmark = pytest.mark.slow

PAIRS = [("ann", -10.0), ("bob", 0.0)]
SCHEMA = {"x": dpnb.Bounded(-10, 10), "t": dpnb.Text(max_length=5), "c": dpnb.Categories(["ann", "ANN", "bob"])}

QUERIES: dict[str, Callable[[Any], Any]] = {
    "sum": lambda f: f["x"].sum(),
    "units": lambda f: f.count_units(),
    "categories": lambda f: f.groupby("c").count(),
    "keys": lambda f: f.groupby("t", keys=["ann", "ANN"]).count(),
    "equal": lambda f: f[f["t"] == "ann"].count(),
    "other": lambda f: f[f["t"] != "ann"].count(),
    "in": lambda f: f[f["t"].isin(["ANN", "x"])].count(),
    "begins": lambda f: f[f["t"].str.startswith("AN")].count(),
    "contains": lambda f: f[f["t"].str.contains("nn")].count(),
    "upper": lambda f: f.groupby(f["t"].str.upper(), keys=["ANN", "bob"]).count(),
    "mapped": lambda f: f["t"].map({"ann": 1, "ANN": 3}).sum(),
}


def connected(rows: list[tuple[str, float]], collation: str = "") -> Any:
    connection = duckdb.connect()
    connection.execute(
        f"create table t (id varchar {collation}, x double, t varchar {collation}, c varchar {collation})"
    )
    for name, x in rows:
        connection.execute("insert into t values (?, ?, ?, ?)", [name, x, name, name])
    return connection


def opened(connection: Any) -> dpnb.Session:
    return dpnb.Session(
        connection.table("t"),
        name="t",
        privacy_unit="id",
        max_rows_per_unit=1,
        schema=SCHEMA,
        budget=dpnb.Budget(epsilon=50, delta=1e-6, discovery_delta=1e-7),
        ledger=":memory:",
    )


def exact(session: dpnb.Session, query: Callable[[Any], Any]) -> list[int]:
    tables = session._core.tables
    sums: list[int] = tables.opened.sums(tables.compile(query(session.frame).plan)).tolist()
    return sums


def change_by_ann(after: str = "", collation: str = "") -> float:
    """The change of the exact sum, in units of `x`, by the row of another person."""
    found = []
    for rows in (PAIRS, [*PAIRS, ("ANN", 10.0)]):
        connection = connected(rows, collation)
        session = opened(connection)
        connection.execute(after)
        found += exact(session, QUERIES["sum"])
    return abs(found[1] - found[0]) / one()


@cache
def one() -> float:
    """What `x` = 1 adds to the exact sum."""
    return exact(opened(connected([("bob", 10.0)])), QUERIES["sum"])[0] / 10


@pytest.fixture
def without_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "refuse_changed_meaning", lambda connection: None)


COLLATIONS = ["NOCASE", "NOACCENT", "NFC", "NOCASE.NOACCENT"]


@pytest.mark.usefixtures("without_the_check")
@pytest.mark.parametrize("collation", COLLATIONS)
def test_a_person_changes_a_sum_by_the_bound_under_any_collation(collation: str) -> None:
    assert change_by_ann(f"set default_collation = '{collation}'") <= 10
    assert change_by_ann(collation=f"collate {collation}") <= 10


@pytest.mark.usefixtures("without_the_check")
def test_control_texts_that_the_connection_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.DuckDB, "exact", Engine.exact)
    monkeypatch.setattr(engine.DuckDB, "well_formed", Engine.well_formed)
    assert change_by_ann("set default_collation = 'NOCASE'") == 20


@pytest.mark.usefixtures("without_the_check")
def test_no_collation_changes_an_integer() -> None:
    rows = [*PAIRS, ("ANN", 10.0), ("Ann", 3.0)]
    usual, of_connection, of_column = (connected(rows, collation) for collation in ("", "", "collate nocase"))
    sessions = [opened(connection) for connection in (usual, of_connection, of_column)]
    of_connection.execute("set default_collation = 'NOCASE'")
    expected, *found = ({name: exact(session, query) for name, query in QUERIES.items()} for session in sessions)
    assert found == [expected, expected]


@pytest.mark.usefixtures("without_the_check")
def test_no_collation_merges_discovered_groups() -> None:
    rows = [(f"p{person}", 0.0) for person in range(400)]
    found = []
    for after in ("", "set default_collation = 'NOCASE'"):
        connection = connected(rows)
        connection.execute("update t set t = case when substr(id, 2)::int % 2 = 0 then 'ann' else 'ANN' end")
        session = opened(connection)
        connection.execute(after)
        found.append(sorted(session.frame.discover("t").release(mu=3).to_pandas().index))
    assert found[0] == found[1] == ["ANN", "ann"]


CHANGES = {
    "default_collation": ("set default_collation = 'NOCASE'", "reset default_collation"),
    "default_null_order": ("set default_null_order = 'nulls_first'", "reset default_null_order"),
    "default_order": ("set default_order = 'desc'", "reset default_order"),
    "integer_division": ("set integer_division = true", "reset integer_division"),
    "ieee_floating_point_ops": ("set ieee_floating_point_ops = false", "reset ieee_floating_point_ops"),
    "enable_profiling": ("pragma enable_profiling = 'json'", "reset enable_profiling"),
    "'encode'": ("create macro encode(x) as lower(x)::blob", "drop macro encode"),
    "'decode'": ("create temp macro decode(x) as 'same'", "drop macro decode"),
    "'+'": ('create macro "+"(a, b) as 7', 'drop macro "+"'),
    "'md5'": ("create schema s; create macro s.MD5(x) as 'same'", "drop macro s.md5"),
    "'range'": ("create macro range(x) as table select 1", "drop macro table range"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_the_connection_is_refused_before_the_charge(name: str) -> None:
    change, remedy = CHANGES[name]
    connection = connected(PAIRS)
    session = opened(connection)
    session.frame.count().release(mu=1)
    charges = len(session.log)
    connection.execute(change)
    with pytest.raises(SchemaError, match="DuckDB connection") as refused:
        session.frame["x"].sum().release(mu=1)
    assert name in str(refused.value)
    assert "ann" not in str(refused.value)
    with pytest.raises(SchemaError, match="DuckDB connection"):
        opened(connection)
    assert len(session.log) == charges
    session.frame.count().release(mu=1)  # answered before: no row is read
    connection.execute(remedy)
    session.frame["x"].sum().release(mu=1)
    assert len(session.log) == charges + 1


def test_control_without_the_check_a_macro_changes_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(connection := connected(PAIRS))
    expected = exact(session, QUERIES["sum"])
    monkeypatch.setattr(engine, "refuse_changed_meaning", lambda connection: None)
    connection.execute('create macro "+"(a, b) as 7')
    assert exact(session, QUERIES["sum"]) != expected


def test_other_macros_and_settings_are_the_users_own() -> None:
    connection = connected(PAIRS)
    session = opened(connection)
    connection.execute("create macro clean(x) as trim(x); set threads = 1; set timezone = 'Asia/Tokyo'")
    connection.create_function("mine", lambda text: text, ["VARCHAR"], "VARCHAR")
    session.frame.count().release(mu=1)
    opened(connection)


def test_a_setting_that_changes_during_the_query_leaves_the_charge_without_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection = connected(PAIRS)
    session, added_up = opened(connection), lazy_backend.added_up

    def meanwhile(*arguments: Any) -> Any:
        connection.execute("set integer_division = true")
        return added_up(*arguments)

    monkeypatch.setattr(lazy_backend, "added_up", meanwhile)
    with pytest.raises(ExecutionError):
        session.frame["x"].sum().release(mu=1)
    connection.execute("reset integer_division")
    monkeypatch.undo()
    session.frame["x"].sum().release(mu=1)
    assert len(session.log) == 1


def test_every_setting_that_is_looked_at_exists() -> None:
    settings, functions = duckdb_settings._on_new_connection()
    assert set(settings) == set(duckdb_settings._CHECKED_SETTINGS)
    assert {"encode", "decode", "md5", "+", "//", "count_star", "sum", "row_number"} <= functions
