"""``python -m dpnb draft``: from a table's file to a session in three commands, and nothing of a row in the file.

Of a file without types, the probable types alone are from the rows.
"""

from __future__ import annotations

import shlex
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.__main__ import main
from dpnb.curator import draft as drafting
from dpnb.curator.check_text import draft_text
from dpnb.curator.draft import draft
from dpnb.curator.draft_toml import draft_toml
from dpnb.errors import CheckError, SchemaError
from dpnb.session.declaration import PLACEHOLDER, placeholders
from forked import Forked, python
from waiting import LIMIT

HOLDS = {
    "id": [1, 1, 2, 3],
    "wage": [11.5, 902.25, 47.0, 3.0],
    "town": ["Aberdeen", "Bergen", "Aberdeen", "Cork"],
    "hired": pd.to_datetime(["2001-05-06", "2011-10-12", "1999-01-02", "2003-03-03"]),
    "union": [True, False, True, True],
    "jobs": [[1], [2, 3], [], [4]],
}
OTHERS = {
    "id": [70, 71, 72, 73, 74],
    "wage": [-5.0, np.nan, 1e6, 0.125, 8.0],
    "town": ["Dublin", None, "Espoo", "Faro", "Graz"],
    "hired": pd.to_datetime(["2021-05-06", "2031-10-12", None, "2033-03-03", "2040-01-01"]),
    "union": [False] * 5,
    "jobs": [[9]] * 5,
}


def stored(folder: Path, holds: dict[str, Any], name: str = "people.parquet") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    table, path = pd.DataFrame(holds), folder / name
    if name.endswith(".csv"):
        table.to_csv(path, index=False)
    elif name.endswith(".parquet"):
        table.to_parquet(path)
    elif name.endswith(".feather"):
        table.to_feather(path)
    else:
        path.mkdir()
        for part in range(2):
            table.iloc[part::2].to_parquet(path / f"{part}.parquet")
    return str(path)


def drafted(folder: Path, holds: dict[str, Any], name: str = "people.parquet") -> bytes:
    file = stored(folder, holds, name)
    return Path(draft([file], str(folder / "people.toml")).declaration).read_bytes()


def complete(path: Path) -> None:
    """Fill in the placeholders, as a curator would in an editor."""
    answers = {
        "privacy_unit": '"id"', "max_rows_per_unit": "2", "epsilon": "1.0", "delta": "1e-6", "low": "0", "high": "1000",
        "values": '["Aberdeen", "Bergen", "Cork"]', "first": '"1990-01-01"', "last": '"2029-12-31"',
    }  # fmt: skip
    before, id_section = path.read_text().split("[schema.id]")
    lines = []
    for line in (before + id_section[id_section.index("\n\n") :]).split("\n"):
        key = line.partition(" ")[0]
        lines.append(f"{key} = {answers[key]}" if f'= "{PLACEHOLDER}"' in line and not line.startswith("#") else line)
    path.write_text("\n".join(lines))


# --- three commands --------------------------------------------------------------------------------------------------

OPEN = """
import sys
import pandas as pd
import dpnb
session = dpnb.Session.from_toml("people.toml", pd.read_parquet(sys.argv[1]))
print(sorted(session.frame.columns), session.frame.count().release(share=0.1).estimate)
"""


def run(folder: Path, *command: str) -> tuple[int | None, str, str]:
    """The exit code of Python's command, what it prints, and what it writes to stderr."""
    errors = folder / "errors.txt"
    with closing(Forked(python, str(folder), str(errors), *command)) as process:
        printed = process.stdout.read()
        return process.wait(LIMIT), printed, errors.read_text("utf-8")


@pytest.mark.slow
def test_three_commands_lead_from_a_file_to_a_session(tmp_path: Path) -> None:
    stored(tmp_path, HOLDS)
    code, out, err = run(tmp_path, "-m", "dpnb", "draft", "people.parquet")
    assert (code, err) == (0, "")
    assert "902.25" in out  # what the table holds goes to the curator's terminal
    assert "Do not copy them into the declaration" in out
    code, out, err = run(tmp_path, "-m", "dpnb", "check", "people.toml", "people.parquet")
    assert (code, out) == (2, "")
    assert err.startswith("dpnb: people.toml, line ")
    assert "privacy_unit: still has the placeholder" in err
    complete(tmp_path / "people.toml")
    code, out, err = run(tmp_path, "-m", "dpnb", "check", "people.toml", "people.parquet")
    assert (code, err) == (0, "")
    assert "Nothing has to be fixed." in out
    code, out, err = run(tmp_path, "-c", OPEN, "people.parquet")
    assert (code, err) == (0, "")
    assert out.startswith("['hired', 'town', 'union', 'wage'] ")


# --- the attack: analysts may open the file --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["people.parquet", "people.feather", "people"])
@pytest.mark.parametrize("others", [{name: values[1:] for name, values in HOLDS.items()}, OTHERS], ids=["one", "all"])
def test_tables_with_other_rows_give_the_same_bytes(tmp_path: Path, name: str, others: dict[str, Any]) -> None:
    assert drafted(tmp_path / "a", HOLDS, name) == drafted(tmp_path / "b", others, name)


def test_nothing_of_a_row_is_in_the_file(tmp_path: Path) -> None:
    text = drafted(tmp_path, HOLDS).decode()
    assert not any(value in text for value in ("902", "11.5", "Aberdeen", "2001", "2011", "1999"))


def test_whole_numbers_with_a_null_which_pandas_stores_as_fractions_make_no_difference(tmp_path: Path) -> None:
    whole, with_null = {"n": [1, 2, 3]}, {"n": [1, 2, None]}
    assert pd.DataFrame(whole)["n"].dtype != pd.DataFrame(with_null)["n"].dtype
    assert drafted(tmp_path / "a", whole) == drafted(tmp_path / "b", with_null)


LOOKS: dict[str, tuple[list[Any], str]] = {
    "bounded": ([number / 8 for number in range(40)], "bounded"),
    "integer": ([*range(39), ""], "bounded"),
    "codes": ([1, 2, 3, 9] * 10, "categories"),
    "truth": (["true", "false"] * 20, "categories"),
    "town": (["Bergen", "Cork"] * 20, "categories"),
    "name": ([f"person {number}" for number in range(40)], "text"),
    "born": ([f"2001-02-{1 + number % 28:02}" for number in range(40)], "dates"),
    "empty": ([""] * 40, PLACEHOLDER),
}


def test_the_types_that_most_values_of_a_csv_file_look_like_are_proposed_and_marked(tmp_path: Path) -> None:
    text = drafted(tmp_path, {name: values for name, (values, _) in LOOKS.items()}, "p.csv").decode()
    schema = tomllib.loads(text)["schema"]
    assert {name: entry["type"] for name, entry in schema.items()} == {name: kind for name, (_, kind) in LOOKS.items()}
    assert [name for name, entry in schema.items() if "integer" in entry] == ["integer"]
    assert {value for entry in schema.values() for key, value in entry.items() if key not in ("type", "integer")} == {
        PLACEHOLDER
    }
    sections = text[text.index("[schema.") :]
    marked = [line for line in sections.split("\n") if "read from the table: confirm from its documentation" in line]
    assert len(marked) == 8  # seven types, and one whole number
    assert not any(value in text for value in ("Bergen", "person 1", "2001-02", "2.125"))


def test_types_are_proposed_for_the_cells_of_an_excel_file(tmp_path: Path) -> None:
    days = pd.date_range("2001-02-01", periods=40)
    pd.DataFrame({"n": range(40), "born": days, "town": ["Bergen", "Cork"] * 20}).to_excel(tmp_path / "p.xlsx")
    made = draft([str(tmp_path / "p.xlsx")], str(tmp_path / "p.toml"))
    assert [one.kind for one in made.tables[0].columns if one.name in ("n", "born", "town")] == [
        "integer", "dates", "categories",
    ]  # fmt: skip


def test_of_a_query_the_commands_are_printed_as_they_were_given_and_the_file_has_no_query(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "clinic.db")) as database, database:
        database.execute("create table visits (person text, cost)")
        database.executemany("insert into visits values (?, ?)", [(str(n), n) for n in range(90, 110)])
    given = f"sqlite:///{tmp_path / 'clinic.db'}#select cost from visits where person <> 'secret'"
    made = draft([given], str(tmp_path / "p.toml"))
    assert (made.tables[0].columns[0].low, made.tables[0].columns[0].high) == (90, 109)  # as numbers
    (command,) = [line for line in draft_text(made).splitlines() if line.startswith("2. ")]
    assert shlex.split(command)[-1] == given
    text = (tmp_path / "p.toml").read_text("utf-8")
    assert "#SELECT ..." in text
    assert "secret" not in text


def test_one_row_does_not_decide_a_proposed_type(tmp_path: Path) -> None:
    values = {name: values * 25 for name, (values, kind) in LOOKS.items() if kind != PLACEHOLDER}
    odd = {name: ["secret", *some[1:]] for name, some in values.items()}
    assert drafted(tmp_path / "a", values, "p.csv") == drafted(tmp_path / "b", odd, "p.csv")


def test_a_draft_that_writes_a_minimum_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the same comparison fails for a draft with a value of the table."""
    frames: list[Any] = []
    read = drafting.read_tables

    def kept(*arguments: Any) -> Any:
        frames.append(read(*arguments))
        return frames[-1]

    def broken(*arguments: Any) -> str:
        return draft_toml(*arguments).replace(f'low = "{PLACEHOLDER}"', f"low = {frames[-1]['']['wage'].min()}", 1)

    monkeypatch.setattr(drafting, "read_tables", kept)
    monkeypatch.setattr(drafting, "draft_toml", broken)
    assert drafted(tmp_path / "a", HOLDS) != drafted(tmp_path / "b", OTHERS)


# --- the file --------------------------------------------------------------------------------------------------------


def test_every_column_has_the_lines_of_its_storage_type(tmp_path: Path) -> None:
    content = tomllib.loads(drafted(tmp_path, HOLDS).decode())
    assert content["name"] == "people"
    assert {name: entry["type"] for name, entry in content["schema"].items()} == {
        "id": "bounded", "wage": "bounded", "town": "categories", "hired": "dates", "union": "categories",
    }  # fmt: skip
    assert content["schema"]["union"]["values"] == [False, True]
    assert [".".join(keys) for keys in placeholders(content)] == [
        "privacy_unit", "max_rows_per_unit", "budget.epsilon", "budget.delta", "schema.id.low", "schema.id.high",
        "schema.wage.low", "schema.wage.high", "schema.town.values", "schema.hired.first", "schema.hired.last",
    ]  # fmt: skip


def test_a_placeholder_of_the_schema_has_a_comment_on_where_its_value_must_come_from(tmp_path: Path) -> None:
    _, columns = drafted(tmp_path, HOLDS).decode().split("# --- the columns ---")
    lines = [line for line in columns.split("\n") if PLACEHOLDER in line]
    assert len(lines) == 7
    assert all("not from the table" in line or "likewise" in line for line in lines)


ODD = ["a b", "ä", 'quo"te', "back\\slash", "new\nline", "delete\x7f", "dotted.name", "1", "schema", "{open}", "#"]


def test_odd_column_names_are_written_as_valid_toml(tmp_path: Path) -> None:
    content = tomllib.loads(drafted(tmp_path, {name: [1] for name in ODD}).decode())
    assert list(content["schema"]) == ODD


def test_a_file_name_cannot_add_a_line(tmp_path: Path) -> None:
    file = stored(tmp_path, {"x": [1]}, "a\nversion = 9\n.parquet")
    content = tomllib.loads(Path(draft([file], str(tmp_path / "d.toml")).declaration).read_text())
    assert content["version"] == "1"
    assert content["name"] == "a-version-9"


def test_several_tables_have_a_section_each(tmp_path: Path) -> None:
    visits, drugs = stored(tmp_path, {"id": [1], "x": [2]}, "v.parquet"), stored(tmp_path, {"id": [1]}, "d.parquet")
    made = draft([f"visits={visits}", f"drugs={drugs}"], str(tmp_path / "c.toml"))
    content = tomllib.loads(Path(made.declaration).read_text())
    assert {name: list(columns) for name, columns in content["schema"].items()} == {
        "visits": ["id", "x"],
        "drugs": ["id"],
    }
    assert content["max_rows_per_unit"] == {"visits": PLACEHOLDER, "drugs": PLACEHOLDER}


# --- refusals --------------------------------------------------------------------------------------------------------


def test_a_file_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, mine = stored(tmp_path, HOLDS), tmp_path / "people.toml"
    mine.write_text("my work")
    assert main(["draft", file, "--output", str(mine)]) == 2
    assert "exists already; give another file with --output" in capsys.readouterr().err
    assert mine.read_text() == "my work"


def test_a_session_refuses_a_draft_and_names_the_line(tmp_path: Path) -> None:
    text = drafted(tmp_path, HOLDS).decode()
    line = text[: text.index("privacy_unit = ")].count("\n") + 1
    with pytest.raises(
        SchemaError, match=rf"people.toml, line {line}: privacy_unit: still has the placeholder 'FILL IN'"
    ):
        dpnb.Session.from_toml(tmp_path / "people.toml", pd.DataFrame(HOLDS))
    with pytest.raises(SchemaError, match="still has the placeholder"):
        dpnb.Session.from_toml(tmp_path / "people.toml", rehearse=True)
    assert not [*tmp_path.glob("*.dpnb*")]


def test_each_placeholder_is_refused_at_its_line_until_none_is_left(tmp_path: Path) -> None:
    file, path = stored(tmp_path, HOLDS), tmp_path / "people.toml"
    draft([file], str(path))
    complete(path)
    whole = path.read_text().split("\n")
    for key in ("low", "values", "epsilon"):
        index = next(index for index, line in enumerate(whole) if line.startswith(f"{key} = "))
        path.write_text("\n".join([*whole[:index], f'{key} = "{PLACEHOLDER}"', *whole[index + 1 :]]))
        with pytest.raises(SchemaError, match=rf"line {index + 1}: .*{key}: still has the placeholder") as raised:
            dpnb.Session.from_toml(path, pd.DataFrame(HOLDS))
        assert "more" not in str(raised.value)
    path.write_text("\n".join(whole))
    assert dpnb.Session.from_toml(path, rehearse=True).frame.columns == ["wage", "town", "hired", "union"]


def test_a_list_with_a_placeholder_is_not_complete(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(f'name = "c"\n[budget]\nmu = 1\n[schema.x]\ntype = "categories"\nvalues = ["a", "{PLACEHOLDER}"]\n')
    with pytest.raises(SchemaError, match=r"line 6: schema\.x\.values: still has the placeholder"):
        dpnb.Session.from_toml(path, rehearse=True)


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        (["none.parquet"], "must be an existing file"),
        (["a=x.parquet", "y.parquet"], "must be NAME=FILE"),
        (["a=x.parquet", "a=y.parquet"], "must be NAME=FILE"),
    ],
)
def test_wrong_tables_are_refused(tables: list[str], told: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=told):
        draft(tables, str(tmp_path / "d.toml"))
    assert not [*tmp_path.iterdir()]


def test_a_notebook_kernel_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JPY_PARENT_PID", "1")
    with pytest.raises(CheckError, match="draft: must be run outside notebooks"):
        draft([stored(tmp_path, HOLDS)], str(tmp_path / "people.toml"))
    assert not (tmp_path / "people.toml").exists()


def test_what_a_terminal_shows_cannot_move_its_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["draft", stored(tmp_path, {"x": ["\x1b[2J"]}), "--output", str(tmp_path / "d.toml")]) == 0
    assert "\x1b" not in capsys.readouterr().out
