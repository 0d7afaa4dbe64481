"""The curator's commands and a service take files of every format, named alike."""

from __future__ import annotations

from pathlib import Path

import openpyxl
import pytest

from dpnb.curator.check import check
from dpnb.curator.check_text import check_text
from dpnb.curator.draft import draft
from dpnb.errors import InvalidValueError
from dpnb.service.configuration.settings import Settings, read_settings
from dpnb.service.opening import check_table, open_table
from sources.test_formats import FORMATS, NORMAL, ROWS

DECLARED = """
name = "visits"
version = "1"
privacy_unit = "id"
max_rows_per_unit = 2
missing = ["-9.0"]
[budget]
mu = 1
[schema]
code = { type = "categories", values = [1, 2, 3] }
x = { type = "bounded", low = -10, high = 10 }
day = { type = "dates", first = "1990-01-01", last = "2030-01-01" }
note = { type = "text" }
"""


def settings(folder: Path, data: str, declared: str = DECLARED) -> Settings:
    (folder / "visits.toml").write_text(declared)
    (folder / "curator.toml").write_text(
        f'socket = "dpnb.sock"\n[tables.visits]\ndeclaration = "visits.toml"\ndata = {data}\n'
    )
    return read_settings(folder / "curator.toml")


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_is_drafted_checked_and_served(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write, _ = FORMATS[suffix]
    source = write(ROWS, Path(f"visits{suffix}"))
    drafted = draft([source], "drafted.toml")
    assert [one.name for one in drafted.tables[0].columns] == [*ROWS[0]]
    (tmp_path / "visits.toml").write_text(DECLARED)
    checked = check("visits.toml", [source])
    assert checked.fine, check_text(checked)
    tallies = {one.name: one.tally for one in checked.tables[0].columns}
    found = {name: (one.counts, one.missing, one.unusable) for name, one in tallies.items() if one is not None}
    assert found == {"code": (2, 1, 0), "x": (1, 2, 0), "day": (2, 1, 0), "note": (3, 0, 0)}
    table = settings(tmp_path, f'"{source}"').tables["visits"]
    check_table(table)
    open_table(table).close()
    open_table(table).close()
    write([*ROWS, NORMAL], Path(f"visits{suffix}"))
    with pytest.raises(InvalidValueError, match="the data of the table changed"):
        open_table(table)


def test_a_file_of_a_statistics_package_states_the_types_of_its_draft(tmp_path: Path) -> None:
    for suffix in (".dta", ".sav", ".xpt", ".duckdb"):
        drafted = draft([FORMATS[suffix][0](ROWS, tmp_path / f"a{suffix}")], str(tmp_path / f"{suffix}.toml"))
        kinds = [one.kind for one in drafted.tables[0].columns[1:]]
        assert kinds[1:] == ["numbers", "dates or times", "texts"], suffix


def test_another_sheet_of_a_file_is_another_table(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for name in ("2023", "2024"):
        sheet = book.create_sheet(name)
        for row in ([*NORMAL], [*NORMAL.values()]):
            sheet.append(row)
    book.save(tmp_path / "visits.xlsx")
    open_table(settings(tmp_path, '"visits.xlsx#2023"').tables["visits"]).close()
    with pytest.raises(InvalidValueError, match="the data of the table changed"):
        open_table(settings(tmp_path, '"visits.xlsx#2024"').tables["visits"])


TWO = """
name = "visits"
privacy_unit = "id"
max_rows_per_unit = { source = 2, query = 2 }
[budget]
mu = 1
[schema.source]
code = { type = "categories", values = [1, 2, 3] }
[schema.query]
x = { type = "bounded", low = -10, high = 10 }
"""


def test_the_declaration_says_whether_data_is_one_source_or_several(tmp_path: Path) -> None:
    write, _ = FORMATS[".csv"]
    for name in ("a.csv", "b.csv"):
        write(ROWS, tmp_path / name)
    data = '{ source = "a.csv", query = "b.csv" }'
    both = settings(tmp_path, data, TWO).tables["visits"]
    check_table(both)
    opened = open_table(both)
    assert {*opened.session._core.tables.schemas} == {"source", "query"}
    opened.close()
    one = DECLARED.replace('"visits"', '"one"')
    open_table(settings(tmp_path, '{ source = "a.csv" }', one).tables["visits"]).close()
    with pytest.raises(InvalidValueError, match="data: must be one file, since the declaration has one table"):
        check_table(settings(tmp_path, data, one).tables["visits"])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ('"none.csv"', "data: must be an existing file; got 'none.csv'"),
        ('"visits.toml"', r"data: must be a \.csv, \.parquet.* file .*; got 'visits.toml'; convert"),
        ('"visits.toml#sheet"', r"data: must be an existing file"),
        ('{ visits = "none.csv" }', r"data\.visits: must be an existing file"),
        ('{ source = "visits.toml", query = "select" }', r"data: must have no query, which is for a database"),
        ('{ source = 3 }', r"data: must be the path of a file"),
        ('"gopher://ana@host/clinic#visits"', r"data: must be .*; got 'gopher://host/clinic#visits'"),
        ('"gopher://ana:sekret@host/clinic#visits"', r"data: the URL must have no password in it; got one that is"),
        ('"mysql://ana:sekret"', r"data: the URL must have a number after a colon, as the port; got one that is"),
        ("3", r"data: must be the path of a file"),
    ],
)  # fmt: skip
def test_what_is_no_source_is_refused_with_its_line(data: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=rf"curator\.toml, line 4: tables\.visits\.{said}") as refused:
        settings(tmp_path, data)
    assert "sekret" not in str(refused.value)
