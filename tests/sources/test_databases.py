"""Tables read from real databases: what a row holds makes no reading fail, and changes how no other row is read."""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy

import databases
from dpnb import Bounded, Categories, Dates, Text
from dpnb.__main__ import main
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._backends.reading import Reading, Wanted
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb._sources.database_snapshots import TableSnapshot, connected, read_database
from dpnb._sources.formats import read_tables
from dpnb._sources.source import DataSource
from dpnb.errors import SchemaError
from dpnb.service.configuration.settings import read_settings
from dpnb.service.opening import open_table

WHEN = Dates("2020-01-01", "2024-12-31")
SCHEMA = {"n": Bounded(0, 10), "d": WHEN, "t": WHEN, "k": Categories(["a", "b", 1]), "x": Text()}
WANTED = Wanted(SCHEMA, "who")

real = pytest.mark.databases, pytest.mark.slow


@dataclass
class Database:
    """One database, with a table of innocent rows to which hostile ones are added."""

    url: str  # with the account, whose password is in the environment
    server: databases.Server | None
    create: str
    hostile: tuple[str, ...]  # values of (who, n, d, t, k, x)

    def execute(self, sql: str) -> None:
        if self.server is not None:
            self.server.execute(sql)
            return
        connection = sqlite3.connect(self.url.removeprefix("sqlite:///"))
        connection.executescript(sql)
        connection.close()

    def read(self, wanted: Wanted = WANTED, table: str = "visits", query: str = "") -> pd.DataFrame:
        return pd.DataFrame(read_database(DataSource(self.url, "" if query else table, query), wanted))


INNOCENT = (
    "(1, 2.5, '2020-02-02', '2020-02-02 10:00:00', 'a', 'note')",
    "(2, 7, '2024-02-29', '2024-02-29 23:59:59', 'b', '')",
)

POSTGRESQL = (
    "drop table if exists visits; create table visits (who numeric, n numeric, d date, t timestamp, k text, x text)",
    (
        "('NaN', 'NaN', 'infinity', '-infinity', 'NaN', '\\')",
        "(3, '1e400', '0044-03-15 BC', '294276-12-31 23:59:59.999999', '1', repeat('9', 5000))",
        "(4, 'Infinity', '5874897-12-31', 'infinity', E'\\x01', '10000-01-01')",
        "(12345678901234567890, 12345678901234567890, null, '4713-01-01 00:00:00 BC', '1e999', U&'\\FFFF')",
    ),
)
MARIADB = (
    "drop table if exists visits; create table visits (who decimal(20), n decimal(65, 30), d date, t datetime(6), "
    "k varchar(20), x text)",
    (
        "(3, 99999999999999999999999999999999999, '0000-00-00', '2024-00-00 00:00:00', 'NaN', '\\\\')",
        "(4, 1e-30, '9999-12-31', '0000-01-01 00:00:00', '1', repeat('9', 5000))",
        "(5, 1, null, null, convert(_ucs2 x'D800' using utf8mb4), convert(_ucs2 x'D800' using utf8mb4))",
        "(12345678901234567890, -0.0, null, '1000-01-01 00:00:00', '1e999', char(0))",
    ),
)
SQLITE = (
    "drop table if exists visits; create table visits (who integer, n integer, d date, t timestamp, k text, x text)",
    (
        "('twelve', 'abc', 'infinity', -1, 1, x'ff')",
        "(3.5, 9e999, 20200202, 9e999, x'61', cast(x'ff' as text))",
        "(x'31', 9223372036854775807, '0000-00-00', '2020-02-30', 'NaN', 'a' || char(0) || 'b')",
        "(null, '9e999', 1e300, '', '1', 12345678901234567890)",
    ),
)


@pytest.fixture(params=[pytest.param("postgresql", marks=real), pytest.param("mariadb", marks=real), "sqlite"])
def database(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    """Each database in turn."""
    if request.param == "sqlite":
        return Database(f"sqlite:///{tmp_path / 'hospital.db'}", None, *SQLITE)
    return server_of(request, monkeypatch, request.param)


def server_of(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, kind: str) -> Database:
    """A database on a server, with its account in the environment."""
    server: databases.Server = request.getfixturevalue(kind)
    monkeypatch.setenv("READER", databases.READER)
    monkeypatch.setenv("READER_PASSWORD", databases.PASSWORD)
    url = f"{server.url.replace('//', '//${READER}:${READER_PASSWORD}@')}/test"
    return Database(url, server, *(POSTGRESQL if kind == "postgresql" else MARIADB))


@pytest.fixture
def postgres(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Database:
    """PostgreSQL alone."""
    return server_of(request, monkeypatch, "postgresql")


# --- hostile rows -----------------------------------------------------------------------------------------------------


def test_no_row_makes_a_reading_fail_or_changes_how_another_is_read(database: Database) -> None:
    database.execute(f"{database.create}; insert into visits values {', '.join(INNOCENT)}")
    alone = database.read()
    assert alone["n"].tolist() == [2.5, 7.0]
    assert alone["who"].tolist() == ["1", "2"]
    assert [str(when)[:19].replace("T", " ") for when in alone["t"]] == ["2020-02-02 10:00:00", "2024-02-29 23:59:59"]
    for hostile in database.hostile:  # as the first row, by which some drivers choose the types
        database.execute(f"{database.create}; insert into visits values {', '.join([hostile, *INNOCENT])}")
        among = database.read()
        pd.testing.assert_frame_equal(among.iloc[1:].reset_index(drop=True), alone)
        numbers = among["n"].dropna()
        assert all(abs(number) < float("inf") for number in numbers)
    database.execute(f"insert into visits values {', '.join(database.hostile)}")
    with pytest.raises(Exception, match=r"."):  # the control: the driver's own rows as a table
        plainly_read(database)


def plainly_read(database: Database) -> Any:
    """What a driver makes of a table that it is asked for as it is."""
    url = os.path.expandvars(database.url)
    if url.startswith("postgresql"):
        import adbc_driver_postgresql.dbapi as adbc

        with adbc.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT * FROM visits")
            return cursor.fetch_arrow_table().to_pylist()
    engine = sqlalchemy.create_engine(url.replace("mariadb://", "mariadb+pymysql://"))
    try:
        with engine.connect() as connection:
            rows = connection.exec_driver_sql("SELECT * FROM visits").mappings().all()
        return pa.Table.from_pylist([dict(row) for row in rows])
    finally:
        engine.dispose()


SAME = {
    "n": Bounded(-1e18, 1e18, outside="drop"),
    "r": Categories([0.1, 1, 2.5, -7]),
    "k": Categories(["a", "a ", "A", "é"]),
    "d": Dates("0900-01-01", "2999-12-31"),
    "t": Dates("1900-01-01", "2100-01-01"),
    "x": Text(),
}
VALUES = (
    (2**53 + 1, "0.10", "a", "2020-02-29", "2020-01-01 00:00:00.123456", "x"),
    (2**63 - 1, "2.50", "A", "2999-12-31", "1969-12-31 23:59:59", " x"),
    (-9, "1.00", "a ", "0999-01-01", None, "x "),
    (0, "-0.00", "e\u0301", None, "2038-01-19 03:14:08", "007"),
    (None, None, None, "1582-10-10", "2020-01-01 12:00:00", "1e3"),
)


def test_a_database_its_snapshot_and_a_parquet_file_have_the_same_values(database: Database, tmp_path: Path) -> None:
    columns = [pa.array(values) for values in zip(*VALUES, strict=True)]
    types = (pa.int64(), pa.decimal128(10, 2), pa.string(), pa.date32(), pa.timestamp("us"), pa.string())
    numbered = {name: column.cast(kind) for name, column, kind in zip(SAME, columns, types, strict=True)}
    table = {"who": pa.array([*map(str, range(len(VALUES)))]), **numbered}
    pq.write_table(pa.table(table), tmp_path / "a.parquet", row_group_size=2)
    pq.write_table(pa.table({**table, "k": table["k"].dictionary_encode()}), tmp_path / "b.parquet")
    rows = (
        ", ".join("null" if value is None else f"'{value}'" if isinstance(value, str) else str(value) for value in row)
        for row in VALUES
    )
    database.execute(
        f"drop table if exists v; create table v (who varchar(9), n bigint, r decimal(10, 2), k varchar(9), d date, "
        f"t {'datetime' if database.create is MARIADB[0] else 'timestamp'}(6), x text); "
        f"insert into v values {', '.join(f'({who}, {row})' for who, row in enumerate(rows))}"
    )
    wanted, source = Wanted(SAME, "who", Reading.declared(["-9", "x "])), DataSource(database.url, "v")
    snapshot = TableSnapshot(str(tmp_path / "v.dpnb"), "1")
    snapshot.take({"": source}, {"": wanted}, "data")
    kept = snapshot.files({"": source}, {"": wanted})[""]
    files = [DataSource(str(tmp_path / "a.parquet")), DataSource(str(tmp_path / "b.parquet"))]
    first, *others = (counted(one, wanted) for one in (*files, kept, source))
    assert others == [first] * 3


def counted(source: DataSource, wanted: Wanted) -> list[list[Any]]:
    """What the values of a table count as."""
    found = prepare(read_tables({"": source}, "data", {"": wanted})[""], SAME, PrivacyUnit())
    texts = {name: [*codes, None] for name, codes in found.texts.items()}
    columns = {**found.numbers, **found.codes}
    return [[texts[name][value] if name in texts else str(value) for value in columns[name].tolist()] for name in SAME]


@pytest.mark.parametrize(("encoding", "expected"), [("SQL_ASCII", [None, "é"]), ("LATIN1", ["ÿ", "Ã©"])])
@pytest.mark.databases
@pytest.mark.slow
def test_texts_of_a_database_in_another_encoding_are_read_one_by_one(
    postgres: Database, encoding: str, expected: list[str | None]
) -> None:
    assert postgres.server is not None
    name = encoding.lower()
    postgres.server.execute(f"create database {name} encoding '{encoding}' template template0", "postgres")
    postgres.server.execute(
        f"set client_encoding to {encoding}; create table notes (n int, x text);"
        "insert into notes values (1, E'\\xff'), (2, E'\\xc3\\xa9')",
        name,
    )
    source = DataSource(postgres.url.removesuffix("test") + name, "notes")
    read = read_database(source, Wanted({"x": Text()}))
    assert [None if pd.isna(text) else text for text in read["x"]] == expected


def test_names_have_any_characters(database: Database) -> None:
    table, column = ('we`ird "%s %% t', "é %(a)s :x {} %")
    if database.create is MARIADB[0]:
        names = ["`" + name.replace("`", "``") + "`" for name in (table, column)]
    else:
        names = ['"' + name.replace('"', '""') + '"' for name in (table, column)]
    database.execute(
        f"drop table if exists {names[0]}; create table {names[0]} (who int, {names[1]} int);"
        f"insert into {names[0]} values (1, 2)"
    )
    assert database.read(Wanted({column: Bounded(0, 9)}), table)[column].tolist() == [2]


# --- what is refused, and in which words ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "declared", "named"),
    [
        ("money", Bounded(0, 1), "money"),
        ("interval", Bounded(0, 1), "interval"),
        ("int[]", Text(), "_int4"),
        ("bytea", Text(), "bytea"),
        ("jsonb", Text(), "jsonb"),
        ("text", Bounded(0, 1), "texts"),
        ("date", Bounded(0, 1), "dates or times"),
        ("numeric", WHEN, "numbers"),
    ],
)
@pytest.mark.databases
@pytest.mark.slow
def test_a_type_that_cannot_be_read_as_declared_is_refused_before_rows(
    postgres: Database, column: str, declared: Any, named: str
) -> None:
    postgres.execute(f"drop table if exists odd; create table odd (v {column})")
    with pytest.raises(SchemaError, match=rf"column 'v'.*{named}"):
        postgres.read(Wanted({"v": declared}), "odd")


def test_what_a_driver_says_is_not_repeated(database: Database) -> None:
    database.execute(f"{database.create}; insert into visits values {INNOCENT[0]}")
    faults = []
    for wanted, table, query in (
        (WANTED, "secret_name", ""),
        (Wanted({"absent": Text()}), "visits", ""),
        (WANTED, "", "select * from visits where secret_name = 1"),
        (Wanted({"n": Bounded(0, 1)}), "", "delete from visits returning n"),
        (Wanted({"n": Bounded(0, 1)}), "", "with gone as (delete from visits returning n) select * from gone"),
        (WANTED, "", "select 1; drop table visits"),
    ):
        with pytest.raises(SchemaError) as raised:
            database.read(wanted, table, query)
        assert raised.value.__context__ is None  # nor in a traceback
        faults.append(str(raised.value))
    assert not any("secret_name" in fault or databases.PASSWORD in fault for fault in faults)
    assert len(database.read()) == 1  # and nothing was written


@pytest.mark.databases
@pytest.mark.slow
def test_a_row_that_makes_the_curators_own_query_fail_is_not_quoted(postgres: Database) -> None:
    query = "select cast(x as int) as n from (values ('1'), ('the secret of a person')) as v (x)"
    with pytest.raises(SchemaError, match="a cast or a division fail") as raised:
        postgres.read(Wanted({"n": Bounded(0, 1)}), query=query)
    assert "secret" not in str(raised.value)
    assert raised.value.__context__ is None


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://reader:hunter2@db.example.org/hospital#visits",
        "postgresql://reader:hun/ter2@db.example.org/hospital#visits",
        "postgresql://reader:hun#ter2@db.example.org/hospital#visits",
        "postgresql://reader:hun?ter2@db.example.org/hospital#visits",
        "postgresql://reader:hunter2",
        "postgresql://db.example.org/hospital?password=hunter2#visits",
        "mysql://db.example.org/hospital?passwd=hunter2#visits",
        "mysql://db.example.org/hospital?pass=hunter2#visits",
        "postgresql://db.example.org/hospital?%70assword=hunter2#visits",
        "postgresql://db.example.org/hospital#visits?password=hunter2",
        "mssql+pyodbc:///?odbc_connect=DRIVER%3DODBC%3BUID%3Dana%3BPWD%3Dhunter2#visits",
    ],
)
def test_a_password_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(SchemaError) as raised:
        DataSource.parse(url)
    assert not any(part in str(raised.value) for part in ("hunter2", "ter2", "hun"))
    assert raised.value.__context__ is None


def test_a_url_may_name_the_environment_and_parameters_of_the_driver() -> None:
    source = DataSource.parse(
        "postgresql://${READER}:${PASSWORD}@[::1]:5433,db.example.org/a?sslmode=require#hospital.b"
    )
    assert source.table == "hospital.b"
    assert source.words == "postgresql://[::1]:5433,db.example.org/a#hospital.b"


def test_a_query_may_stand_for_the_name_of_a_table() -> None:
    query = "select x::text from visits where mail like '%@%'"
    source = DataSource.parse(f"postgresql://db.example.org:5432/hospital# {query}")
    assert source.query == query
    assert source.words == "postgresql://db.example.org:5432/hospital"
    assert DataSource.parse("sqlite:///a.db#selected").table == "selected"


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("READER_PASSWORD", raising=False)
    with pytest.raises(SchemaError, match="'READER_PASSWORD'"):
        read_database(DataSource("mysql://reader:${READER_PASSWORD}@localhost/a", "b"), WANTED)


@pytest.mark.databases
@pytest.mark.slow
def test_a_wrong_password_is_not_shown(postgres: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READER_PASSWORD", "wrong@one/with:signs")
    with pytest.raises(SchemaError, match="check user and password") as raised:
        postgres.read()
    assert "wrong" not in str(raised.value)
    monkeypatch.setenv("READER_PASSWORD", databases.PASSWORD)
    for parameters, said in (("s", "there is no such database"), ("?sslmode=require", "could not be encrypted")):
        with pytest.raises(SchemaError, match=said):
            read_database(DataSource(postgres.url + parameters, "visits"), WANTED)


@pytest.mark.parametrize("scheme", ["postgresql", "mariadb"])
def test_a_machine_that_does_not_answer_is_told_from_a_wrong_account(scheme: str) -> None:
    with pytest.raises(SchemaError, match="no database answers there"):
        read_database(DataSource(f"{scheme}://reader@127.0.0.1:1/hospital", "visits"), WANTED)


@pytest.mark.databases
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "create", "clerk"),
    [
        ("postgresql", f"create role clerk login password '{databases.PASSWORD}'", "clerk"),
        ("mariadb", f"create user clerk@'127.0.0.1' identified by '{databases.PASSWORD}'", "clerk@'127.0.0.1'"),
    ],
)
def test_an_account_of_some_columns_drafts_and_reads_these(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, create: str, clerk: str
) -> None:
    server = server_of(request, monkeypatch, kind)
    server.execute(
        "create table bills (z int, who int, note text, a numeric(8, 2), day date);"
        "insert into bills values (1, 2, 'not granted', 3, '2024-01-01');"
        f"{create}; grant select (z, who, a, day) on bills to {clerk}"
    )
    url, drafted = server.url.replace("${READER}", "clerk") + "#bills", tmp_path / "bills.toml"
    assert main(["draft", url, "--output", str(drafted)]) == 0
    assert re.findall(r"^\[schema.(\w+)", drafted.read_text("utf-8"), re.MULTILINE) == ["z", "who", "a", "day"]
    assert len(read_database(DataSource.parse(url), Wanted({"a": Bounded(0, 9)}, "who"))) == 1


# --- transactions -----------------------------------------------------------------------------------------------------


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Database:
    """Each database that has a server."""
    return server_of(request, monkeypatch, request.param)


@pytest.mark.databases
@pytest.mark.slow
def test_all_tables_are_read_as_of_one_moment(server: Database) -> None:
    tables = "drop table if exists a; drop table if exists b; create table a (n int); create table b (n int)"
    server.execute(f"{tables}; insert into a values (1); insert into b values (1)")
    wanted = Wanted({"n": Bounded(0, 9)})

    def rows(connection: Any, table: str) -> int:
        return sum(batch.num_rows for batch in connection.select(DataSource(server.url, table), wanted).batches)

    with connected(server.url) as connection:
        assert rows(connection, "a") == 1
        server.execute("insert into a values (2); insert into b values (2)")
        assert rows(connection, "b") == 1
    with connected(server.url) as connection:  # the control
        assert rows(connection, "b") == 2


@pytest.mark.databases
@pytest.mark.slow
def test_a_server_that_goes_away_in_the_middle_leaves_no_snapshot(postgres: Database, tmp_path: Path) -> None:
    server = postgres.server
    assert server is not None
    query = "select i as n, repeat('x', 1000) as x from generate_series(1, 100000) as i"
    source, wanted = DataSource(postgres.url, "", query), Wanted({"n": Bounded(0, 1), "x": Text()})

    def after_the_first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield next(batches)
        ended = server.execute(
            f"select pg_terminate_backend(pid) from pg_stat_activity where usename = '{databases.READER}'"
        )
        assert "t" in ended
        yield from batches

    with connected(postgres.url) as connection, pytest.raises(SchemaError, match="check that the database still runs"):
        sum(batch.num_rows for batch in after_the_first(connection.select(source, wanted).batches))
    failing = DataSource(postgres.url, "", "select 1 / (i - 90000) as n, 'x' as x from generate_series(1, 100000) as i")
    snapshot = TableSnapshot(str(tmp_path / "visits.dpnb"), "1")
    with pytest.raises(SchemaError, match="reading its rows"):
        snapshot.take({"": failing}, {"": wanted}, "data")
    assert not snapshot.is_taken
    assert not [*snapshot.folder.parent.iterdir()]


# --- passwords --------------------------------------------------------------------------------------------------------

DECLARATION = """\
name = "visits"
version = "2026"
privacy_unit = "who"
max_rows_per_unit = 1
budget = { epsilon = 1.0, delta = 1e-6 }
schema = { age = { type = "bounded", low = 0, high = 100 } }
"""


@pytest.mark.databases
@pytest.mark.slow
def test_a_password_is_in_no_file_and_no_message(
    server: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    server.execute(
        "drop table if exists visits; create table visits (who int, age int); insert into visits values (1, 5)"
    )
    declaration, settings = tmp_path / "visits.toml", tmp_path / "curator.toml"
    declaration.write_text(DECLARATION)
    settings.write_text(f'socket = "s"\n[tables.a]\ndeclaration = "visits.toml"\ndata = "{server.url}#visits"\n')
    caplog.set_level("DEBUG")
    with closing(open_table(read_settings(settings).tables["a"])) as table:
        table.session.frame.count().release(mu=0.1)
    assert main(["check", str(declaration), f"{server.url}#visits"]) == 0
    assert main(["refresh", str(settings), "--version", "2027"]) == 0
    settings.write_text(settings.read_text().replace("#visits", "#absent"))
    assert main(["refresh", str(settings), "--version", "2028"]) == 2
    output = capfd.readouterr()
    assert "absent" in output.err
    written = [one.read_bytes() for one in tmp_path.rglob("*") if one.is_file()]
    assert len(written) > 5
    for text in (output.out, output.err, caplog.text, *map(repr, written)):
        assert databases.PASSWORD not in text


# --- the page for curators --------------------------------------------------------------------------------------------

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "databases.md"


def block(beginning: str, page: str) -> str:
    """The block of the page that begins with a text."""
    (found,) = [one for one in re.findall(r"```\w+\n(.*?)```", page, re.DOTALL) if one.startswith(beginning)]
    return str(found)


@pytest.mark.databases
@pytest.mark.slow
def test_the_page_leads_to_a_served_table_and_its_next_version(
    postgres: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = postgres.server
    assert server is not None
    server.execute("create database hospital", "postgres")
    server.execute(
        "create table visits (person text, age int, cost numeric(10, 2), ward text, seen date, diagnosis text);"
        "insert into visits select i % 500, i % 90, i / 10.0, 'surgery', date '2024-01-01' + i % 365, 'not granted'"
        " from generate_series(1, 2000) as i",
        "hospital",
    )
    page = PAGE.read_text("utf-8").replace("db.example.org", server.url.partition("//")[2])
    page = page.replace("?sslmode=verify-full#", "#")  # the server of the tests has no certificate
    server.execute(block("CREATE ROLE", page), "hospital")
    for line in block("PGUSER=", page).splitlines():
        monkeypatch.setenv(*line.split("=", 1))
    monkeypatch.chdir(tmp_path)
    Path("visits.toml").write_text(block("name = ", page), "utf-8")
    assert main(shlex.split(block("python -m dpnb check", page))[3:]) == 0
    with_query, with_table = sorted(re.findall(r"\[tables.visits\].*?(?=```)", page, re.DOTALL), key=len, reverse=True)
    for own in (with_query, with_table):
        Path("curator.toml").write_text(f'socket = "s"\n{own}', "utf-8")
        source = read_settings("curator.toml").tables["visits"].data.sources([""])[""]
        assert len(read_database(source, Wanted({"age": Bounded(0, 110)}))) == 2000
    with closing(open_table(read_settings("curator.toml").tables["visits"])) as table:
        table.session.frame["cost"].mean().release(mu=0.05)
    assert main(shlex.split(block("python -m dpnb refresh", page))[3:]) == 0
    assert 'version = "2027-01"' in Path("visits.toml").read_text("utf-8")
    assert not any(b"not granted" in one.read_bytes() for one in tmp_path.rglob("*") if one.is_file())
    assert "choose another one" not in "".join(capsys.readouterr())
