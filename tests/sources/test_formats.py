"""Tables in files of all formats: what a value counts as, and that no row changes how another is read."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pyreadstat
import pytest

import dpnb
from dpnb._backends.memory.prepare.prepared_table import columns_of, prepare
from dpnb._backends.memory.prepare.unit_ids import distinct_unit_ids, unit_labels
from dpnb._backends.reading import Reading, Wanted
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb._sources.formats import read_tables
from dpnb._sources.source import DataSource
from dpnb.errors import InvalidValueError, SchemaError
from dpnb.schema import Schema

SCHEMA: Schema = {
    "code": dpnb.Categories([1, 2, 3]),
    "x": dpnb.Bounded(-1000, 1000, outside="drop"),
    "day": dpnb.Dates("1900-01-01", "2100-01-01", outside="drop"),
    "note": dpnb.Text(),
}
Row = dict[str, Any]

ROWS: list[Row] = [
    {"id": 7, "code": 1, "x": 1.5, "day": date(2020, 1, 31), "note": "a"},
    {"id": 8, "code": 2, "x": None, "day": date(1999, 12, 1), "note": "é"},
    {"id": 9, "code": None, "x": -9.0, "day": None, "note": "007"},
]
READ = [("7", 0, 1.5, "2020-01-31", "a"), ("8", 1, None, "1999-12-01", "é"), ("9", None, -9.0, None, "007")]
"""What the rows are read as: the unit, the index of the category, a number, a date and a text."""


def read(source: str, missing: tuple[str, ...] = (), schema: Schema = SCHEMA, **reading: str) -> Any:
    wanted = Wanted(schema, "id", Reading.declared(list(missing), **reading))
    return read_tables({"": DataSource.parse(source)}, "table", {"": wanted})[""]


def as_read(table: Any, schema: Schema = SCHEMA) -> list[tuple[Any, ...]]:
    names = unit_labels(columns_of(table, "", ["id"])["id"])
    codes, distinct = distinct_unit_ids(names)
    columns: list[list[Any]] = [[None if code < 0 else str(distinct[code]) for code in codes]]
    prepared = prepare(table, schema, PrivacyUnit())
    for name, column in schema.items():
        if name in prepared.texts:
            texts = [*prepared.texts[name], None]
            columns.append([texts[code] for code in prepared.codes[name]])
        elif name in prepared.codes:
            columns.append([None if code < 0 else code for code in prepared.codes[name].tolist()])
        else:
            values = [None if math.isnan(value) else value for value in prepared.numbers[name].tolist()]
            dates = isinstance(column, dpnb.Dates)
            days = [value and str(date(1970, 1, 1) + timedelta(seconds=value)) for value in values]
            columns.append(days if dates else values)
    return [*zip(*columns, strict=True)]


# --- writers, each with rows that it can hold and that would change what a library infers ----------------------------


def write_csv(rows: list[Row], file: Path) -> str:
    lines = [",".join("" if value is None else str(value) for value in row.values()) for row in rows]
    file.write_text("\n".join(["id,code,x,day,note", *lines]), "utf-8")
    return str(file)


def frame_of(rows: list[Row]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=[*ROWS[0]]).astype({"code": "float64", "x": "float64"})
    return frame.assign(day=frame["day"].astype(object).where(frame["day"].notna(), None))


def arrow_of(rows: list[Row]) -> Any:
    types = {"id": pa.int64(), "code": pa.int64(), "x": pa.float64(), "day": pa.date32(), "note": pa.string()}
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()})


def write_parquet(rows: list[Row], file: Path) -> str:
    pa.parquet.write_table(arrow_of(rows), file)
    return str(file)


def write_feather(rows: list[Row], file: Path) -> str:
    pa.feather.write_feather(arrow_of(rows), file)
    return str(file)


def write_stata(rows: list[Row], file: Path) -> str:
    pyreadstat.write_dta(frame_of(rows), file)
    return str(file)


def write_spss(rows: list[Row], file: Path) -> str:
    pyreadstat.write_sav(frame_of(rows), file)
    return str(file)


def write_sas(rows: list[Row], file: Path) -> str:
    pyreadstat.write_xport(frame_of(rows), file, file_format_version=8)
    return str(file)


def write_excel(rows: list[Row], file: Path) -> str:
    book = openpyxl.Workbook()
    book.create_sheet("Visits")
    sheet = book["Visits"]
    sheet.append([*ROWS[0]])
    for row in rows:
        sheet.append([*row.values()])
    book.save(file)
    return f"{file}#Visits"


def write_duckdb(rows: list[Row], file: Path) -> str:
    file.unlink(missing_ok=True)
    with duckdb.connect(str(file)) as connection:
        connection.sql("create table others as select 1 as x")
        connection.sql('create table "The visits" (id bigint, code integer, x double, day date, note varchar)')
        for row in rows:
            connection.execute('insert into "The visits" values (?, ?, ?, ?, ?)', [*row.values()])
    return f"{file}#The visits"


def write_sqlite(rows: list[Row], file: Path) -> str:
    file.unlink(missing_ok=True)
    with sqlite3.connect(file) as connection:
        connection.execute("create table visits (id integer, code integer, x real, day text, note text)")
        for row in rows:
            values = [str(value) if isinstance(value, date) else value for value in row.values()]
            connection.execute("insert into visits values (?, ?, ?, ?, ?)", values)
    connection.close()
    return f"{file}#visits"


NORMAL: Row = {"id": 10, "code": 3, "x": 2.0, "day": date(2001, 2, 3), "note": "b"}
HUGE: list[Row] = [{"x": math.inf}, {"x": math.nan}, {"x": 1e308}, {"code": None}, {"x": None}, {"day": None}]
TEXTS: list[Row] = [
    {"code": "one"}, {"x": "n/a"}, {"x": "9" * 400}, {"id": "A12"}, {"id": None}, {"day": "31.12.2020"},
    {"day": 10**12}, {"note": 5}, {"note": "a\0b"}, {"code": 1.5}, {"x": True}, {"code": "1"},
]  # fmt: skip
FORMATS: dict[str, tuple[Callable[[list[Row], Path], str], list[Row]]] = {
    ".csv": (write_csv, [*TEXTS, *HUGE]),
    ".parquet": (write_parquet, [*HUGE, {"id": None}, {"note": "a\0b"}, {"day": date(9999, 12, 31)}]),
    ".feather": (write_feather, [*HUGE, {"id": None}, {"day": date(1, 1, 1)}]),
    ".dta": (write_stata, [{"x": 8e307}, *HUGE[3:], {"note": "x" * 300}, {"id": 2**53 - 1}, {"id": None}]),
    ".sav": (write_spss, [*HUGE, {"note": "x" * 300}, {"id": 2**53 + 2}, {"id": None}]),
    ".xpt": (write_sas, [*HUGE[3:], {"note": "x" * 300}, {"id": 2**53 - 1}, {"id": None}]),
    ".xlsx": (
        write_excel,
        [
            {"code": "one"}, {"x": "n/a"}, {"x": "=1/0"}, {"x": "#DIV/0!"}, {"id": "A12"}, {"id": 7.5}, {"id": None},
            {"day": "31.12.2020"}, {"day": 10**9}, {"day": datetime(1900, 1, 1, 3)}, {"note": 5}, {"code": True},
            {"x": datetime(2020, 1, 1)}, {"x": 2**70}, {"x": timedelta(days=1)}, {"x": 1e308}, {"code": "1"},
        ],
    ),
    ".duckdb": (write_duckdb, [*HUGE, {"id": None}, {"day": "infinity"}, {"day": date(1, 1, 1)}, {"note": "a\0b"}]),
    ".sqlite": (
        write_sqlite,
        [
            *(row for row in TEXTS if row.get("day") != 10**12), *HUGE, {"day": 10**12}, {"x": b"1"}, {"note": b"\xff"},
            {"id": 2**63 - 1}, {"id": 7.5}, {"code": b""}, {"note": ""},
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_rows_of_a_file_are_read_as_declared(suffix: str, tmp_path: Path) -> None:
    write, _ = FORMATS[suffix]
    assert as_read(read(write(ROWS, tmp_path / f"visits{suffix}"))) == READ


@pytest.mark.parametrize("suffix", FORMATS)
def test_no_row_of_a_file_changes_another(suffix: str, tmp_path: Path) -> None:
    """Where a file says its types, the row is first and last at once; else what is guessed may depend on which."""
    write, hostile = FORMATS[suffix]
    places = [(0, 1), (1, 0)] if suffix in (".csv", ".xlsx", ".sqlite") else [(1, 1)]
    for number, change in enumerate(hostile):
        for first, last in places:
            rows = [*[{**NORMAL, **change}] * first, *ROWS, *[{**NORMAL, **change}] * last]
            found = as_read(read(write(rows, tmp_path / f"visits-{number}-{first}{suffix}")))
            assert len(found) == len(rows), change
            assert found[first : len(found) - last] == READ, change


@pytest.mark.parametrize(
    ("suffix", "infer"),
    [
        (".csv", pd.read_csv),
        (".xlsx", lambda file: pd.read_excel(file, sheet_name="Visits")),
        (".sqlite", lambda file: pd.read_sql("select * from visits", f"sqlite:///{file}")),
    ],
)
def test_a_reader_that_infers_types_is_noticed(suffix: str, infer: Any, tmp_path: Path) -> None:
    write, hostile = FORMATS[suffix]
    changed = 0
    for number, change in enumerate(hostile):
        source = write([*ROWS, {**NORMAL, **change}], tmp_path / f"visits-{number}{suffix}")
        try:
            changed += as_read(infer(source.partition("#")[0]))[: len(ROWS)] != READ
        except Exception:  # noqa: BLE001  (libraries raise many types)
            changed += 1
    assert changed


@pytest.mark.parametrize("suffix", FORMATS)
def test_missing_values_are_the_same_in_every_format(suffix: str, tmp_path: Path) -> None:
    write, _ = FORMATS[suffix]
    rows = [*ROWS, {**NORMAL, "id": 99}, {**NORMAL, "x": -9.0}, {**NORMAL, "note": "NA"}, {**NORMAL, "note": "9"}]
    last = ("10", 2, 2.0, "2001-02-03", "b")
    # As texts exactly, since a text file has nothing else.
    missing = ("-9.0", "NA", "99", "2020-01-31")
    found = as_read(read(write(rows, tmp_path / f"visits{suffix}"), missing))
    assert found[0] == ("7", 0, 1.5, None, "a")
    assert found[2] == ("9", None, None, None, "007")
    assert found[3:] == [(None, *last[1:]), ("10", 2, None, *last[3:]), (*last[:4], None), (*last[:4], "9")]


@pytest.mark.parametrize("suffix", [suffix for suffix in FORMATS if suffix != ".csv"])
@pytest.mark.parametrize("text", ["-9", "-9.0", "-9.00", "-9e0"])
def test_numbers_are_missing_by_their_value(suffix: str, text: str, tmp_path: Path) -> None:
    write, _ = FORMATS[suffix]
    assert as_read(read(write(ROWS, tmp_path / f"visits{suffix}"), (text,)))[2][2] is None


def test_texts_and_truth_values_are_missing_as_they_are_written(tmp_path: Path) -> None:
    rows = [{**NORMAL, "note": note} for note in ("9", "9.0", "09", 9, 9.0, True)]
    found = as_read(read(write_sqlite(rows, tmp_path / "a.sqlite"), ("9",)))
    assert [row[4] for row in found] == [None, "9.0", "09", None, "9.0", "1"]
    rows = [{**NORMAL, "code": value} for value in (1, True, "1", "1.0")]
    found = as_read(read(write_excel(rows, tmp_path / "a.xlsx"), ("1",)))
    assert [row[1] for row in found] == [None, 0, None, 0]


ARRAYS = {
    "int8": pa.array([-9, 1], pa.int8()),
    "uint64": pa.array([2**64 - 1, 1], pa.uint64()),
    "float32": pa.array([99.9, 1], pa.float32()),
    "decimal": pa.array([-9, 1], pa.decimal128(10, 2)),
    "dictionary": pa.array(["NA", "1"]).dictionary_encode(),
    "large": pa.array(["NA", "1"], pa.large_string()),
    "timestamp": pa.array([datetime(1900, 1, 1), datetime(2000, 1, 1)], pa.timestamp("ns")),
    "zoned": pa.array([datetime(1900, 1, 1), datetime(2000, 1, 1)], pa.timestamp("ns", "UTC")),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_missing_values_are_found_in_every_type_of_arrow(name: str, tmp_path: Path) -> None:
    array = ARRAYS[name]
    pa.parquet.write_table(pa.table({"v": array}), tmp_path / "a.parquet")
    texts = ("-9", str(2**64 - 1), "99.9", "NA", "1900-01-01", "1900-01-01T00:00:00+00:00", "1e400", "300")
    wanted = Wanted(None, None, Reading.declared(list(texts)))
    read = read_tables({"": DataSource(str(tmp_path / "a.parquet"))}, "table", {"": wanted})[""]
    assert read["v"].isna().tolist() == [True, False]


# --- Parquet folders --------------------------------------------------------------------------------------------------


def test_folders_of_a_partitioned_table_are_read_as_declared(tmp_path: Path) -> None:
    for region, year in (("007", "2020"), ("7", "2021"), ("a%20b", "__HIVE_DEFAULT_PARTITION__")):
        folder = tmp_path / "visits" / f"region={region}" / f"year={year}"
        folder.mkdir(parents=True)
        pa.parquet.write_table(pa.table({"x": [1.0], "unused": [["a list"]]}), folder / "part.parquet")
    (tmp_path / "visits" / "_SUCCESS").write_bytes(b"")
    schema: Schema = {"region": dpnb.Text(), "year": dpnb.Bounded(2000, 2030), "x": dpnb.Bounded(0, 1)}
    table = read(str(tmp_path / "visits"), schema=schema)
    assert table.columns.tolist() == ["x", "region", "year"]
    session = dpnb.Session(
        table, name="visits", budget=dpnb.Budget.gdp(1000), schema=schema, ledger=dpnb.ledger.MEMORY,
        not_private_test_seed=1,
    )  # fmt: skip
    assert float(session.frame["year"].sum().release(mu=500)) == pytest.approx(4041, abs=50)
    with_codes = prepare(table, {"year": dpnb.Categories([2020, 2021])}, PrivacyUnit())
    assert with_codes.codes["year"].tolist() == [0, 1, -1]
    texts = prepare(table, {"region": dpnb.Text()}, PrivacyUnit())
    assert [*texts.texts["region"]] == ["007", "7", "a b"]
    as_unit = read_tables({"": DataSource(str(tmp_path / "visits"))}, "table", {"": Wanted(schema, "region")})[""]
    assert as_unit["region"].tolist() == ["007", "7", "a b"]


def test_only_the_declared_columns_are_read(tmp_path: Path) -> None:
    for suffix, (write, _) in FORMATS.items():
        table = read(write(ROWS, tmp_path / f"a{suffix}"), schema={"x": dpnb.Bounded(0, 1)})
        assert sorted(table.columns) == ["id", "x"], suffix
        assert table.header == ["id", "code", "x", "day", "note"], suffix


# --- files of statistics packages -------------------------------------------------------------------------------------


def test_labels_are_read_where_the_declaration_has_texts(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [1, 2, 3, 4], "sex": [1, 2, 3, 9]})
    labels = {"sex": {1: "male", 2: "female"}}
    pyreadstat.write_dta(frame, tmp_path / "a.dta", variable_value_labels=labels)
    pyreadstat.write_sav(frame, tmp_path / "a.sav", variable_value_labels=labels, missing_ranges={"sex": [9]})
    for name, nines in (("a.dta", "9"), ("a.sav", None)):
        by_label: Schema = {"sex": dpnb.Categories(["female", "male"])}
        table = read(str(tmp_path / name), schema=by_label)
        assert prepare(table, by_label, PrivacyUnit()).codes["sex"].tolist() == [1, 0, -1, -1]
        by_code: Schema = {"sex": dpnb.Categories([1, 2, 9])}
        table = read(str(tmp_path / name), schema=by_code)
        assert prepare(table, by_code, PrivacyUnit()).codes["sex"].tolist() == [0, 1, -1, 2 if nines else -1]
        text: Schema = {"sex": dpnb.Text()}
        prepared = prepare(read(str(tmp_path / name), schema=text), text, PrivacyUnit())
        assert [*prepared.texts["sex"]] == ["male", "female", "3", *([nines] if nines else [])]


def test_extended_missing_values_of_stata_are_missing(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0], "n": np.array([1, 2, 3], "int8")})
    file = tmp_path / "a.dta"
    frame.to_stata(file, write_index=False, version=118)
    content = file.read_bytes()
    stored, extended = np.float64(2).tobytes(), (np.uint64(0x7FE0010000000000)).tobytes()  # .a
    file.write_bytes(content.replace(stored + b"\x02", extended + bytes([102])))  # 102 is .a of a byte
    schema: Schema = {"x": dpnb.Bounded(-1000, 1000), "n": dpnb.Bounded(-1000, 1000)}
    prepared = prepare(read(str(file), schema=schema), schema, PrivacyUnit())
    assert np.isnan(prepared.numbers["x"]).tolist() == np.isnan(prepared.numbers["n"]).tolist() == [False, True, False]


def test_dates_beyond_the_calendar_are_missing(tmp_path: Path) -> None:
    days = pd.DataFrame({"id": [1.0, 2.0, 3.0], "day": [21915.0, 1e300, -1e9], "t": [1893501000000.0, 1e300, 0.0]})
    pyreadstat.write_dta(days, tmp_path / "a.dta", variable_format={"day": "%td", "t": "%tcCCYY-NN-DD_HH:MM:SS"})
    seconds = days.assign(day=[13797216000.0, 1e300, -1e300], t=[13797261000.0, 1e300, 11903760000.0])
    pyreadstat.write_sav(seconds, tmp_path / "a.sav", variable_format={"day": "EDATE10", "t": "DATETIME20"})
    moments = days.assign(t=[1893501000.0, 1e300, 0.0])
    pyreadstat.write_xport(moments, tmp_path / "a.xpt", variable_format={"day": "YYMMDD10", "t": "E8601DT19"})
    schema: Schema = {"day": dpnb.Dates("1900-01-01", "2100-01-01"), "t": dpnb.Dates("1900-01-01", "2100-01-01")}
    for name in ("a.dta", "a.sav", "a.xpt"):
        prepared = prepare(read(str(tmp_path / name), schema=schema), schema, PrivacyUnit())
        epoch = datetime(1970, 1, 1)
        found = [
            [None if math.isnan(value) else str(epoch + timedelta(seconds=value)) for value in prepared.numbers[column]]
            for column in schema
        ]
        assert found == [["2020-01-01 00:00:00", None, None], ["2020-01-01 12:30:00", None, "1960-01-01 00:00:00"]], (
            name
        )


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_a_file_with_several_tables_needs_a_name(tmp_path: Path) -> None:
    for suffix, word in ((".xlsx", "SHEET"), (".duckdb", "TABLE")):
        source = FORMATS[suffix][0](ROWS, tmp_path / f"a{suffix}").partition("#")[0]
        with pytest.raises(SchemaError, match=rf"has 2 {word.lower()}s; write one of them .* FILE#{word}: "):
            read(source)
        with pytest.raises(SchemaError, match=rf"no {word.lower()} 'none'"):
            read(f"{source}#none")
    only = write_sqlite(ROWS, tmp_path / "a.sqlite").partition("#")[0]
    assert as_read(read(only)) == READ


def test_a_name_of_two_columns_is_refused_if_it_is_declared(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["x", "y", "x"], [1, 2, 3]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    twice = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["x", "y", "x"])
    pa.feather.write_feather(twice, tmp_path / "a.feather")
    for source in ("a.xlsx", "a.feather"):
        for name, said in (("x", "is in the table more than once"), ("X", r"is not in the table; did you mean 'x'\?")):
            schema: Schema = {name: dpnb.Bounded(0, 9)}
            table = dpnb.read_table(tmp_path / source, schema=schema)
            with pytest.raises(SchemaError, match=f"column '{name}': {said}"):
                prepare(table, schema, PrivacyUnit())
        table = dpnb.read_table(tmp_path / source, schema={"y": dpnb.Bounded(0, 9)})
        assert table["y"].tolist() == [2], source


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_declared_column_that_a_file_lacks_is_named(suffix: str, tmp_path: Path) -> None:
    schema: Schema = {"Code": dpnb.Bounded(0, 9)}
    table = dpnb.read_table(FORMATS[suffix][0](ROWS, tmp_path / f"a{suffix}"), schema=schema)
    with pytest.raises(SchemaError, match=r"column 'Code': is not in the table; did you mean 'code'\? Spell it"):
        prepare(table, schema, PrivacyUnit())


def test_changes_beside_a_database_file_are_refused(tmp_path: Path) -> None:
    for suffix, beside in ((".sqlite", "-wal"), (".duckdb", ".wal")):
        source = FORMATS[suffix][0](ROWS, tmp_path / f"a{suffix}")
        (tmp_path / f"a{suffix}{beside}").write_bytes(b"sekret")
        with pytest.raises(SchemaError, match="changes that are not in it yet") as refused:
            read(source)
        assert "sekret" not in str(refused.value)


def test_a_view_of_a_duckdb_file_reads_no_other_file(tmp_path: Path) -> None:
    write_csv(ROWS, tmp_path / "other.csv")
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.sql(f"create view v as from read_csv('{tmp_path / 'other.csv'}')")
    with pytest.raises(SchemaError, match="reading it raised"):
        read(f"{tmp_path / 'a.duckdb'}#v")


@pytest.mark.parametrize("suffix", [suffix for suffix in FORMATS if suffix != ".csv"])
def test_a_damaged_file_is_refused_without_its_content(suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"a{suffix}").write_bytes(b"sekret " * 100)
    with pytest.raises(SchemaError, match=r"reading it raised \w+; check the file") as refused:
        read(str(tmp_path / f"a{suffix}"))
    assert "sekret" not in str(refused.value)


@pytest.mark.parametrize(("suffix", "library"), [(".sav", "pyreadstat"), (".xlsx", "openpyxl"), (".duckdb", "duckdb")])
def test_a_missing_library_is_named_by_its_extra(
    suffix: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    source = FORMATS[suffix][0](ROWS, tmp_path / f"a{suffix}")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(SchemaError, match=r'pip install "dpnb\[files\]"'):
        read(source)


def test_a_table_in_a_file_is_named_after_the_suffix() -> None:
    parsed = [DataSource.parse(text) for text in ("a.xlsx#b", "a#b.csv", "a#b.XLSX#c#d", "a.duckdb", "a=b.sqlite#s.t")]
    assert [(one.location, one.table) for one in parsed] == [
        ("a.xlsx", "b"), ("a#b.csv", ""), ("a#b.XLSX", "c#d"), ("a.duckdb", ""), ("a=b.sqlite", "s.t"),
    ]  # fmt: skip


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_version_was_used_with_numbers_or_with_texts_as_identifiers(suffix: str, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"privacy_unit": "id", "schema": {"x": dpnb.Bounded(0, 1)}}
    table = dpnb.read_table(FORMATS[suffix][0](ROWS, tmp_path / f"a{suffix}"), **arguments)
    session: dict[str, Any] = {
        "name": "t", "budget": dpnb.Budget.gdp(1), "max_rows_per_unit": 1, "ledger": tmp_path / "t.dpnb", **arguments,
    }  # fmt: skip
    in_memory = dpnb.Session(pd.DataFrame({"id": [7], "x": [1.0]}), **session)
    in_memory.frame.count().release(share=0.1)
    in_memory.ledger.close()
    if suffix in (".parquet", ".feather", ".duckdb"):  # which have numbers
        dpnb.Session(table, **session).ledger.close()
    else:
        with pytest.raises(InvalidValueError, match=r"^version: must be changed.*identifies persons by texts"):
            dpnb.Session(table, **session)
