"""Tables of Ibis: which are taken, on which connection they are read, and what changes meanwhile."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import pytest

import databases
import dpnb
from backends.engines.database_tables import PostgreSQLTables, SQLiteTables, kinds_of, rows_of
from contracts.engines import QUESTIONS, SCHEMA, TABLE, UNITS, compiled, same
from dpnb._backends import MemoryBackend, opened
from dpnb._backends.lazy.engines.postgresql import PostgreSQL
from dpnb._backends.lazy.engines.sqlite import SQLite
from dpnb.errors import SchemaError
from dpnb.session.snapshot import snapshot

VISITS = pd.DataFrame({"who": np.arange(60) // 3, "x": np.arange(60) % 7 * 1.0})


def session(table: Any, **more: Any) -> dpnb.Session:
    arguments = {"name": "visits", "ledger": ":memory:", "not_private_test_seed": 2, **more}
    return dpnb.Session(
        table,
        privacy_unit="who",
        max_rows_per_unit=2,
        schema={"x": dpnb.Bounded(0, 6)},
        budget=dpnb.Budget.gdp(10),
        **arguments,
    )


def summed(made: dpnb.Session) -> float:
    return float(made.frame["x"].sum().release(mu=1))


@pytest.fixture
def in_sqlite(tmp_path: Path) -> Iterator[SQLiteTables]:
    tables = SQLiteTables(tmp_path / "tables.sqlite")
    yield tables
    tables.close()


@pytest.fixture(scope="module")
def in_postgresql(postgresql: databases.Server) -> Iterator[PostgreSQLTables]:
    tables = PostgreSQLTables(postgresql)
    yield tables
    tables.close()


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # of Ibis
def test_duckdb_through_ibis_is_the_engine_duckdb() -> None:
    """Its contract is that of relations, which `test_duckdb.py` tests."""
    connection = ibis.duckdb.connect()
    connection.con.register("given", TABLE)
    connection.raw_sql("create table people as select * from given")
    table = connection.table("people")
    here = MemoryBackend.read({"": TABLE}, {"": SCHEMA}, {"": UNITS["text"]})
    there = opened({"": table}, {"": SCHEMA}, {"": UNITS["text"]})
    for name in ("by two", "quantiles", "found pairs", "lookup", "day of year"):
        for query in compiled(QUESTIONS[name], UNITS["text"]):
            same(query, here, there)
    made = dpnb.Session(table, name="a", budget=dpnb.Budget.gdp(1), schema=dict(SCHEMA), ledger=":memory:")
    assert snapshot(made).engine == "DuckDB"
    with pytest.raises(SchemaError, match=r"^table: must be a table of the database, .* got Cast, Divide;"):
        opened({"": table.mutate(x=1 / ibis._.x.cast("int64"))}, {"": SCHEMA}, {"": UNITS["text"]})


def test_a_table_of_sqlite_gives_the_same_answer(in_sqlite: SQLiteTables) -> None:
    table = in_sqlite.table(kinds_of(VISITS), rows_of(VISITS))
    assert summed(session(table)) == summed(session(VISITS))
    assert summed(session(table.rename(y="x").select("who", x="y"))) == summed(session(VISITS))
    assert summed(session(table.filter(table.x > 2))) == summed(session(VISITS[VISITS["x"] > 2]))


REFUSED = {
    "a computed column": lambda table: table.mutate(x=table.x / 2),
    "a limit": lambda table: table.limit(5),
    "an order": lambda table: table.order_by("x"),
    "an aggregation": lambda table: table.group_by("who").agg(x=table.x.sum()),
    "a query": lambda table: table.get_backend().sql(f"select who, 1 / x as x from {table.get_name()}"),
    "decimals": lambda table: table.filter(table.n > 1.5),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_table_that_is_computed_is_refused(case: str, in_sqlite: SQLiteTables) -> None:
    table = in_sqlite.table({"who": "integer", "x": "real", "n": "decimal(9, 2)"}, [(1, 1.0, 1)])
    with pytest.raises(dpnb.errors.SchemaError, match="chosen by comparisons"):
        session(REFUSED[case](table))


def test_a_view_is_refused(in_sqlite: SQLiteTables) -> None:
    table = in_sqlite.table(kinds_of(VISITS), rows_of(VISITS))
    in_sqlite.execute(f"create view computed as select who, abs(x) as x from {table.get_name()}")
    with pytest.raises(dpnb.errors.SchemaError, match="must be stored in SQLite"):
        session(in_sqlite.backend.table("computed"))


def test_a_database_whose_texts_are_not_in_utf_8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "wide.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript("pragma encoding = 'UTF-16'; create table visits (who integer, x real)")
    backend = ibis.sqlite.connect(file)
    with pytest.raises(dpnb.errors.SchemaError, match="must be UTF-8"):
        session(backend.table("visits"))
    backend.disconnect()


def test_a_table_with_the_name_of_a_step_is_refused(in_sqlite: SQLiteTables) -> None:
    in_sqlite.execute("create table dpnb_step_1 (who integer, x real)")
    with pytest.raises(dpnb.errors.SchemaError, match="must not begin with dpnb_step_"):
        session(in_sqlite.backend.table("dpnb_step_1"))


def test_many_columns_and_edges_are_no_deep_query(in_sqlite: SQLiteTables) -> None:
    """SQLite allows a hundred levels, and each column is two parts of the hash of a row."""
    wide = VISITS.assign(**{f"x{place}": VISITS["x"] for place in range(30)})
    schema = {name: dpnb.Bounded(0, 6) for name in wide if name != "who"}
    edges = np.linspace(0, 6, 1201).tolist()

    def counts(table: Any) -> Any:
        made = dpnb.Session(
            table,
            name="wide",
            privacy_unit="who",
            max_rows_per_unit=2,
            schema=schema,
            budget=dpnb.Budget.gdp(1),
            ledger=":memory:",
            not_private_test_seed=1,
        )
        return made.frame.groupby(dpnb.cut(made.frame["x"], edges)).size().release(mu=1).estimate

    assert np.array_equal(counts(in_sqlite.table(kinds_of(wide), rows_of(wide))), counts(wide))


def test_more_columns_than_a_query_is_planned_for_are_refused(in_sqlite: SQLiteTables) -> None:
    names = [f"x{place}" for place in range(121)]
    table = in_sqlite.table({"who": "integer", **dict.fromkeys(names, "real")}, [[1, *names]])
    arguments = {"privacy_unit": "who", "max_rows_per_unit": 2, "budget": dpnb.Budget.gdp(1), "ledger": ":memory:"}
    with pytest.raises(SchemaError, match=r"^schema: must have at most 120 columns of a table in SQLite; got 121;"):
        dpnb.Session(table, name="wide", schema=dict.fromkeys(names, dpnb.Bounded(0, 1)), **arguments)


ODD = ['a"b', "it's", "back\\slash", "100%s", "{i}", "{0}", ":k", "?", "m;--", "two\nlines", "e\u0301", "$1"]


def odd_answers(tables: SQLiteTables | PostgreSQLTables, make: str) -> list[int]:
    """How many rows have each odd text, in a column whose name is odd too."""
    tables.execute(make)
    table = tables.backend.table("odd {i} %s \\")
    made = dpnb.Session(
        table.filter(table["c'{i}\\"] != "{"),
        name="odd",
        budget=dpnb.Budget.gdp(1000),
        schema={"c'{i}\\": dpnb.Text()},
        ledger=":memory:",
    )
    column = made.frame["c'{i}\\"]
    found = (made.frame[(column == odd) | column.str.startswith(f"{odd}!")].count() for odd in ODD)
    return [round(float(query.release(mu=99).estimate)) for query in found]


def odd_table() -> str:
    rows = ", ".join("('{0}'), ('{0}!')".format(odd.replace("'", "''")) for odd in ODD)
    name = '"odd {i} %s \\"'
    return f"""create table {name} ("c'{{i}}\\" text); insert into {name} values {rows}"""


def test_names_and_texts_are_quoted_in_sqlite(in_sqlite: SQLiteTables) -> None:
    create, insert = odd_table().split("; ", 1)
    in_sqlite.execute(create)
    assert odd_answers(in_sqlite, insert) == [2] * len(ODD)


def test_other_databases_are_refused_by_name(in_sqlite: SQLiteTables, monkeypatch: pytest.MonkeyPatch) -> None:
    table = in_sqlite.table(kinds_of(VISITS), rows_of(VISITS))
    monkeypatch.setattr(type(in_sqlite.backend), "name", "mysql")
    with pytest.raises(dpnb.errors.SchemaError, match="DuckDB, PostgreSQL, SQLite; got mysql"):
        session(table)


def test_a_database_in_memory_is_refused() -> None:
    connection = ibis.sqlite.connect()
    connection.con.execute("create table visits (who integer, x real)")
    with pytest.raises(dpnb.errors.SchemaError, match="must be a file"):
        session(connection.table("visits"))
    connection.disconnect()


def test_two_connections_are_refused(in_sqlite: SQLiteTables, tmp_path: Path) -> None:
    other = SQLiteTables(tmp_path / "other.sqlite")
    both = {name: of.table(kinds_of(VISITS), rows_of(VISITS)) for name, of in {"a": in_sqlite, "b": other}.items()}
    with pytest.raises(dpnb.errors.SchemaError, match="of one connection"):
        dpnb.Session(
            both,
            name="two",
            privacy_unit="who",
            max_rows_per_unit=2,
            schema={"a": {"x": dpnb.Bounded(0, 6)}, "b": {"x": dpnb.Bounded(0, 6)}},
            budget=dpnb.Budget.gdp(1),
            ledger=":memory:",
        )
    other.close()


def test_a_changed_file_is_refused_under_its_version(in_sqlite: SQLiteTables, tmp_path: Path) -> None:
    table = in_sqlite.table(kinds_of(VISITS), rows_of(VISITS))
    made = session(table, ledger=tmp_path / "visits.dpnb", name="changing")
    summed(made)
    in_sqlite.execute(f"delete from {table.get_name()} where who = 3")
    with pytest.raises(dpnb.errors.DpnbError, match="version"):
        made.frame["x"].mean().release(mu=1)


def test_a_change_in_the_log_of_the_file_is_refused_and_a_reader_is_none(
    in_sqlite: SQLiteTables, tmp_path: Path
) -> None:
    in_sqlite.execute("pragma journal_mode = wal")
    table = in_sqlite.table(kinds_of(VISITS), rows_of(VISITS))
    in_sqlite.execute("pragma wal_checkpoint(truncate)")
    made = session(table, ledger=tmp_path / "visits.dpnb", name="logged")
    summed(made)
    in_sqlite.backend.raw_sql(f"select count(*) from {table.get_name()}").fetchone()
    made.frame["x"].mean().release(mu=1)
    in_sqlite.execute(f"delete from {table.get_name()} where who = 3")
    with pytest.raises(dpnb.errors.DpnbError, match="version"):
        made.frame["x"].median().release(mu=1)


def test_settings_of_the_users_connection_change_nothing(in_sqlite: SQLiteTables) -> None:
    table = in_sqlite.table(kinds_of(VISITS), rows_of(VISITS))
    made = session(table)
    in_sqlite.backend.con.create_function("floor", 1, lambda x: 99.0)
    in_sqlite.backend.con.execute("pragma case_sensitive_like = off")
    assert summed(made) == summed(session(VISITS))


def test_texts_that_a_column_calls_equal_are_different(in_sqlite: SQLiteTables) -> None:
    table = in_sqlite.table({"c": "text collate nocase"}, [("a",), ("A",), ("a ",), ("a",)])
    made = dpnb.Session(
        table, name="c", budget=dpnb.Budget.gdp(100), schema={"c": dpnb.Categories(["a", "b"])}, ledger=":memory:"
    )
    assert round(float(made.frame[made.frame["c"] == "a"].count().release(mu=99))) == 2


def test_an_answer_is_from_one_state_of_the_table(in_sqlite: SQLiteTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer between two statements of an answer would otherwise let one person count more often than allowed."""
    in_sqlite.execute("pragma journal_mode = wal")
    table = in_sqlite.table(kinds_of(VISITS), rows_of(VISITS))
    made = session(table)
    engine = made._core.tables.opened.engine
    states: list[int] = []
    fetched = SQLite.fetched

    def watched(self: SQLite, sql: str) -> Any:
        rows = fetched(self, sql)
        in_sqlite.execute(f"insert into {table.get_name()} values (1, 1.0)")
        states.append(fetched(self, f"select count(*) from {table.get_name()}")[0][0])
        return rows

    monkeypatch.setattr(SQLite, "fetched", watched)
    query = made.frame.agg(q=("x", "median"), m=("x", "mean"), n="count")
    made._core.tables.opened.sums(made._core.tables.compile(query.plan))
    assert engine.label == "SQLite"
    assert len(states) > 1
    assert set(states) == {60}


ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select sum(i) from n"


def interrupted(made: dpnb.Session, query: str) -> None:
    """An interrupt while the database computes; afterwards it is free."""
    engine, started = made._core.tables.opened.engine, threading.Event()

    def work() -> None:
        started.set()
        engine.fetched(query)

    def interrupt() -> None:
        started.wait()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        engine.run(work, [])
    thread.join()
    assert summed(made) == summed(session(VISITS))


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_an_interrupt_ends_what_sqlite_is_doing(in_sqlite: SQLiteTables) -> None:
    interrupted(session(in_sqlite.table(kinds_of(VISITS), rows_of(VISITS))), ENDLESS)


@pytest.mark.databases
@pytest.mark.slow
class TestOnAServer:
    def test_a_view_or_a_temporary_table_is_refused(self, in_postgresql: PostgreSQLTables) -> None:
        table = in_postgresql.table(kinds_of(VISITS), rows_of(VISITS))
        in_postgresql.execute(f"create view computed as select who, 1 / x as x from {table.get_name()}")
        with pytest.raises(dpnb.errors.SchemaError, match="must be stored in PostgreSQL"):
            session(in_postgresql.backend.table("computed"))
        in_postgresql.execute(f"create materialized view stored as select who, x from {table.get_name()}")
        assert summed(session(in_postgresql.backend.table("stored"))) == summed(session(VISITS))

    def test_a_live_table_is_read_at_each_answer_in_one_state(
        self, in_postgresql: PostgreSQLTables, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = in_postgresql.table(kinds_of(VISITS), rows_of(VISITS))
        made = session(table)
        assert "at its time" in str(made.explain())
        connection = made._core.tables.opened.engine._connection
        assert connection.read_only
        first = summed(made)
        in_postgresql.execute(f"delete from {table.get_name()} where who < 10")
        assert float(made.frame["x"].clip(0, 5.9).sum().release(mu=1)) < first - 20

    def test_the_password_is_nowhere(self, in_postgresql: PostgreSQLTables) -> None:
        table = in_postgresql.table(kinds_of(VISITS), rows_of(VISITS))
        made = session(table)
        in_postgresql.execute(f"drop table {table.get_name()}")
        with pytest.raises(dpnb.errors.SchemaError, match="dropped or altered") as caught:
            summed(made)
        assert not made.ledger.charges()
        assert not any(databases.PASSWORD in text for text in (str(caught.value), repr(made), str(made.explain())))

    def test_names_and_texts_are_quoted_whatever_the_roles_settings(self, in_postgresql: PostgreSQLTables) -> None:
        in_postgresql.execute(f"alter role {databases.READER} set standard_conforming_strings = off")
        try:
            assert odd_answers(in_postgresql, odd_table()) == [2] * len(ODD)
        finally:
            in_postgresql.execute(f"alter role {databases.READER} reset all")

    @pytest.mark.parametrize(
        "makes",
        [
            "create table computed (who bigint, x float); alter table computed enable row level security; "
            "create policy failing on computed using (1 / x > 0)",
            "create extension file_fdw; create server files foreign data wrapper file_fdw; "
            "create table computed (who bigint, x float); "
            "create foreign table part () inherits (computed) server files options (filename '/dev/null')",
        ],
        ids=["by a policy", "in a part"],
    )
    def test_rows_that_are_computed_are_refused(self, makes: str, in_postgresql: PostgreSQLTables) -> None:
        in_postgresql.execute(f"drop view if exists computed cascade; {makes}")
        try:
            with pytest.raises(dpnb.errors.SchemaError, match="must be stored in PostgreSQL"):
                session(in_postgresql.backend.table("computed"))
        finally:
            in_postgresql.execute("drop table computed cascade")

    def test_money_is_a_number_and_a_late_year_that_year(self, in_postgresql: PostgreSQLTables) -> None:
        table = in_postgresql.table({"m": "money", "d": "date"}, [("2.50", "9998-01-02"), (None, None)])
        made = dpnb.Session(
            table,
            name="money",
            schema={"m": dpnb.Bounded(0, 3), "d": dpnb.Dates("0002-01-01", "9999-01-01")},
            budget=dpnb.Budget.gdp(10_000),
            ledger=":memory:",
        )
        assert round(float(made.frame["m"].sum().release(mu=999).estimate), 1) == 2.5
        assert abs(float(made.frame["d"].dt.year.sum().release(mu=5000).estimate) - 9998) < 20

    def test_a_column_of_another_type_is_refused_before_the_charge(self, in_postgresql: PostgreSQLTables) -> None:
        """The conversion of a text that is no number is an error."""
        table = in_postgresql.table(kinds_of(VISITS), rows_of(VISITS))
        made = session(table)
        in_postgresql.execute(f"alter table {table.get_name()} alter x type text using 'none'")
        with pytest.raises(dpnb.errors.SchemaError, match="dropped or altered"):
            summed(made)
        assert not made.ledger.charges()

    def test_a_connection_lost_in_a_query_takes_its_charge_up(
        self, in_postgresql: PostgreSQLTables, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = session(in_postgresql.table(kinds_of(VISITS), rows_of(VISITS)))
        own = made._core.tables.opened.engine._connection.info.backend_pid
        with monkeypatch.context() as patch:
            fetched = PostgreSQL.fetched

            def lost(self: PostgreSQL, sql: str) -> Any:
                in_postgresql.execute(f"select pg_terminate_backend({own})")
                return fetched(self, sql)

            patch.setattr(PostgreSQL, "fetched", lost)
            with pytest.raises(dpnb.errors.ExecutionError, match="uses the same charge"):
                summed(made)
        assert summed(made) == summed(session(VISITS))
        assert len(made.ledger.charges()) == 1

    def test_texts_that_a_collation_calls_equal_are_different(self, in_postgresql: PostgreSQLTables) -> None:
        in_postgresql.execute("create collation ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
        table = in_postgresql.table({"c": "text collate ci"}, [("a",), ("A",), ("a ",), ("a",)])
        given = in_postgresql.backend.raw_sql(f"select count(*) from {table.get_name()} where c = 'a'").fetchone()
        assert given == (3,)  # for PostgreSQL itself
        made = dpnb.Session(
            table, name="c", budget=dpnb.Budget.gdp(300), schema={"c": dpnb.Categories(["a", "b"])}, ledger=":memory:"
        )
        frame = made.frame
        counts = frame[frame["c"] == "a"].count(), frame.groupby("c").size()
        assert [round(float(np.ravel(query.release(mu=99).estimate)[0])) for query in counts] == [2, 2]

    def test_a_closed_connection_is_opened_again_before_the_charge(self, in_postgresql: PostgreSQLTables) -> None:
        table = in_postgresql.table(kinds_of(VISITS), rows_of(VISITS))
        made = session(table)
        own = made._core.tables.opened.engine._connection.info.backend_pid
        in_postgresql.execute(f"select pg_terminate_backend({own})")
        assert summed(made) == summed(session(VISITS))

    def test_nothing_is_charged_where_the_server_is_gone(
        self, in_postgresql: PostgreSQLTables, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = session(in_postgresql.table(kinds_of(VISITS), rows_of(VISITS)))
        engine = made._core.tables.opened.engine
        engine._connection.close()
        engine._address["port"] = "1"
        with pytest.raises(dpnb.errors.ExecutionError):
            summed(made)
        assert not made.ledger.charges()

    def test_an_interrupt_ends_what_the_server_is_doing(self, in_postgresql: PostgreSQLTables) -> None:
        table = in_postgresql.table(kinds_of(VISITS), rows_of(VISITS))
        interrupted(session(table), "select pg_sleep(1000)")
