"""``python -m dpnb check``: a curator learns what would count nothing, and how to declare it."""

from __future__ import annotations

import io
import sys
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb.__main__ import main
from dpnb.curator.check import Check, check
from dpnb.curator.check_text import check_text

EXAMPLE = Path(__file__).parents[2] / "examples" / "rand-hie.toml"
HEAD = """\
name = "clinic"
{unit}budget = {{ epsilon = 1.0, delta = 1e-6, discovery_delta = 1e-7 }}

[schema]
"""


def write(folder: Path, columns: str, table: Any, unit: str = "") -> list[str]:
    """A declaration and a table as files."""
    (folder / "clinic.toml").write_text(HEAD.format(unit=unit) + columns, encoding="utf-8")
    pd.DataFrame(table).to_parquet(folder / "table.parquet")
    return [str(folder / "clinic.toml"), str(folder / "table.parquet")]


def checked(folder: Path, columns: str, table: Any, unit: str = "") -> Check:
    declaration, file = write(folder, columns, table, unit)
    return check(declaration, [file])


def said(made: Check, *, to_fix: bool) -> str:
    return "\n".join(f"{one.location}: {one.text}" for one in made.advice if one.to_fix is to_fix)


# --- the fault: confident zeros --------------------------------------------------------------------------------------

COINS = ["Yes", "No", "No", "Yes", "No"] * 200


def test_what_gave_confident_zeros_is_found_and_its_fix_counts(tmp_path: Path) -> None:
    declared = "coins = {{ type = 'categories', values = {} }}"
    arguments = write(tmp_path, declared.format("[true, false]"), {"coins": COINS})

    def counts() -> list[float]:
        stated = tomllib.loads((tmp_path / "clinic.toml").read_text())
        session = dpnb.Session(
            pd.read_parquet(tmp_path / "table.parquet"),
            name="clinic",
            budget=dpnb.Budget.gdp(10),
            schema={"coins": dpnb.Categories(stated["schema"]["coins"]["values"])},
            ledger=":memory:",
            not_private_test_seed=1,
        )
        answer = session.frame.groupby("coins").count().release(mu=5).to_pandas()
        return [float(value) for value in answer.iloc[:, 0]]

    assert max(map(abs, counts())) < 5  # not a word of it in the session
    made = check(arguments[0], arguments[1:])
    assert not made.fine
    fix = 'write the categories as texts, values = ["Yes", "No"]: then 1,000 of 1,000 count'
    assert fix in said(made, to_fix=True)
    assert "clinic.toml, line 5: column 'coins': 1,000 of 1,000 values match none" in said(made, to_fix=True)
    write(tmp_path, declared.format('["Yes", "No"]'), {"coins": COINS})
    made = check(arguments[0], arguments[1:])
    assert made.fine
    assert made.advice == ()
    assert counts() == pytest.approx([400, 600], abs=5)


def test_without_trying_other_types_the_fix_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpnb.curator.check_advice.values_that_count", lambda *given: 0)
    made = checked(tmp_path, "coins = { type = 'categories', values = [true, false] }", {"coins": COINS})
    assert "then" not in said(made, to_fix=True)


# --- what to do ------------------------------------------------------------------------------------------------------

Case = tuple[str, list[Any], str]

TO_FIX: dict[str, Case] = {
    "words for truth values": (
        'type = "categories", values = ["yes", "no"]', [True, False, True], "values, values = [true, false]: then 3"
    ),
    "truth values for words": (
        'type = "categories", values = [true, false]', ["Yes", "No"], 'as texts, values = ["Yes", "No"]: then 2 of 2'
    ),
    "truth values for capitals": (
        'type = "categories", values = [false, true]', ["F", "T"], 'values = ["F", "T"]: then 2 of 2'
    ),
    "categories of dates": ('type = "categories", values = ["a"]', [pd.Timestamp(0)], "declare dpnb.Dates"),
    "another spelling": (
        'type = "categories", values = ["north", "south"]', ["North ", "south"], "'North ' is not \"north\": use"
    ),
    "undeclared": ('type = "categories", values = ["north"]', ["north", "east"], "'east' (1); declare them if"),
    "bounds of texts": ('type = "bounded", low = 0, high = 9', ["a", "b"], "cast it to numbers"),
    "bounds of dates": ('type = "bounded", low = 0, high = 9', [pd.Timestamp(0)], "declare dpnb.Dates"),
    "some texts among numbers": (
        'type = "bounded", low = 0, high = 9', ["1", "n/a", "2"], "1 of 3 values are not finite numbers"
    ),
    "bounds that clamp many": (
        'type = "bounded", low = 0, high = 9', [-1, 10, 11, 5], "3 of 4 values are outside 0 to 9 (1 below, 2 above)"
    ),
    "dates of numbers": (
        'type = "dates", first = 1970-01-01, last = 1980-01-01', [1.5, 2.5], "cast it to dates"
    ),
    "dates that do not parse": (
        'type = "dates", first = 1970-01-01, last = 1980-01-01', ["1/2/1975", "1975-02-01"], "write them as 1974-11-01"
    ),
    "dates outside": (
        'type = "dates", first = 1970-01-01, last = 1980-01-01', ["1969-01-01"], "outside 1970-01-01 to 1980-01-01 (1"
    ),
    "texts of dates": ('type = "text"', [pd.Timestamp(0)], "declare dpnb.Dates"),
    "nothing but nulls": ('type = "text"', [None, None], "all of its 2 values are missing"),
    "no rows": ('type = "text"', [], "the table has no rows"),
}  # fmt: skip


@pytest.mark.parametrize(("declared", "values", "says"), TO_FIX.values(), ids=TO_FIX)
def test_what_should_be_fixed_is_said_with_the_line_and_the_fix(
    declared: str, values: list[Any], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = write(tmp_path, f"x = {{ {declared} }}", {"x": values})
    made = check(arguments[0], arguments[1:])
    assert says in said(made, to_fix=True)
    assert f"{tmp_path / 'clinic.toml'}, line 5: column 'x': " in said(made, to_fix=True)
    assert main(["check", *arguments]) == 1
    assert "To fix:" in capsys.readouterr().out


FINE: dict[str, tuple[str, list[Any], str]] = {
    "numbers": ('type = "bounded", low = 0, high = 9', [1, 2.5, None], ""),
    "some are clamped": ('type = "bounded", low = 0, high = 9', [*range(9)] * 3 + [10], ""),
    "texts": ('type = "text", max_length = 5', ["a", None], ""),
    "texts whose lengths have no limit": ('type = "text"', ["a", None], "add a line such as max_length = 200"),
    "dates": ('type = "dates", first = 1970-01-01, last = 1980-01-01', ["1975-02-01", None], ""),
    "categories as truth values": ('type = "categories", values = [0, 1]', [True, False], ""),
    "a rare category": ('type = "categories", values = ["a", "b"]', ["a"] * 99 + ["c"], "'c' (1); declare them"),
    "a category of no row": ('type = "categories", values = ["a", "b"]', ["a"], 'no row has "b"'),
    "a rare text": ('type = "bounded", low = 0, high = 9', ["3"] * 99 + ["x"], "1 of 100 values are not finite"),
    "numbers as texts": ('type = "bounded", low = 0, high = 9', ["3", "4"], "are written as texts"),
    "ten in a hundred outside": ('type = "bounded", low = 0, high = 9', [1] * 90 + [10] * 10, "10 of 100 values are"),
}


@pytest.mark.parametrize(("declared", "values", "says"), FINE.values(), ids=FINE)
def test_what_need_not_be_fixed_is_at_most_said(
    declared: str, values: list[Any], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = write(tmp_path, f"x = {{ {declared} }}", {"x": values})
    made = check(arguments[0], arguments[1:])
    assert made.fine
    assert says in said(made, to_fix=False)
    assert bool(says) == bool(made.advice)
    assert main(["check", *arguments]) == 0
    assert "Nothing has to be fixed." in capsys.readouterr().out


def test_a_column_that_is_not_there_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    columns = "Town = { type = 'text' }\nvisit = { type = 'text' }\nzzz = { type = 'text' }\nx = { type = 'text' }"
    unit = 'privacy_unit = "person"\nmax_rows_per_unit = 1\n'
    made = checked(tmp_path, columns, {"town": ["a"], "visits": ["b"], "x": ["c"], "Person": ["p"]}, unit)
    lines = said(made, to_fix=True).split("\n")
    for line, (number, name, near) in zip(
        lines, [(7, "Town", "'town'"), (8, "visit", "'visits'"), (9, "zzz", ""), (2, "person", "'Person'")], strict=True
    ):
        assert f"line {number}: column '{name}': is declared but not in the table" in line
        assert (f"did you mean {near}" if near else "correct the name") in line
    assert made.tables[0].units is None
    assert [column.tally is None for column in made.tables[0].columns] == [True, True, True, False]


def test_rows_without_a_unit_and_beyond_its_limit_are_counted(tmp_path: Path) -> None:
    unit = 'privacy_unit = "who"\nmax_rows_per_unit = 2\n'
    table = {"who": ["a"] * 5 + ["b", "b", None], "x": range(8)}
    made = checked(tmp_path, "x = { type = 'bounded', low = 0, high = 9 }", table, unit)
    assert "line 2: privacy_unit 'who': is missing in 1 of 8 rows" in said(made, to_fix=True)
    assert "line 3: max_rows_per_unit: 3 of 8 rows exceed 2 per unit" in said(made, to_fix=False)
    assert "8 rows of 2 units (who); 1 rows without a unit, 3 beyond 2 rows" in check_text(made).replace("\n", " ")


def test_limits_that_depend_on_the_question_are_said_not_to_be_counted(tmp_path: Path) -> None:
    unit = 'privacy_unit = "who"\nmax_groups_per_unit = 1\nmax_rows_per_group = 1\n'
    made = checked(tmp_path, "x = { type = 'text' }", {"who": ["a", "a"], "x": ["a", "b"]}, unit)
    text = check_text(made).replace("\n", " ")
    assert "2 rows of 1 units (who); 0 rows without a unit; what its other limits exclude depends" in text


@pytest.mark.parametrize("listed", ['["nan", "inf", "x"]', '["1", "1.0"]', '["99999999999999999999"]', "[0.1, 1e100]"])
def test_categories_that_are_none_as_another_type_are_no_error(listed: str, tmp_path: Path) -> None:
    for values in ([1.0, 2.0], ["1", "x"], [True]):
        made = checked(tmp_path, f"x = {{ type = 'categories', values = {listed} }}", {"x": values})
        assert len(made.advice) in (1, 2)


def test_several_tables_are_given_by_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "clinic.toml").write_text(
        'name = "clinic"\nprivacy_unit = "who"\nmax_rows_per_unit = { seen = 1, paid = 3 }\n[budget]\nmu = 1\n'
        "[schema.seen]\nx = { type = 'bounded', low = 0, high = 9 }\n"
        "[schema.paid]\nx = { type = 'categories', values = [1] }\n"
    )
    for name in ("seen", "paid"):
        pd.DataFrame({"who": ["a", "a"], "x": ["1", "1"]}).to_csv(tmp_path / f"{name}.csv", index=False)
    pd.DataFrame({"who": ["a", "a"], "x": ["2", "2"]}).to_parquet(tmp_path / "paid.parquet")
    declaration = str(tmp_path / "clinic.toml")
    files = [f"paid={tmp_path / 'paid.parquet'}", f"seen={tmp_path / 'seen.csv'}"]
    made = check(declaration, files)
    assert "line 9: column 'x': 2 of 2 values match none of the categories" in said(made, to_fix=True)
    assert "line 3: max_rows_per_unit: 1 of 2 rows of table 'seen' exceed 1" in said(made, to_fix=False)
    assert main(["check", declaration, *files]) == 1
    assert "Table paid" in capsys.readouterr().out
    for wrong in (files[:1], [str(tmp_path / "seen.csv")], [*files, files[0]]):
        assert main(["check", declaration, *wrong]) == 2
        assert "table: must be" in capsys.readouterr().err


# --- the command -----------------------------------------------------------------------------------------------------

BAD: dict[str, tuple[str, str]] = {
    "no TOML": ("low = ", "line 5: must be TOML"),
    "a rule of a column": (
        "x = { type = 'bounded', low = 3, high = 0 }",
        "line 5: schema.x: Bounded: low must be below",
    ),
    "an unknown key": ("x = { type = 'text', max = 3 }", "line 5: 'max' is not a key in schema.x"),
}


@pytest.mark.parametrize(("columns", "says"), BAD.values(), ids=BAD)
def test_a_declaration_that_breaks_a_rule_is_refused_with_its_line(
    columns: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = write(tmp_path, columns, {"x": [1]})
    assert main(["check", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1


ARGUMENTS: dict[str, tuple[str, str]] = {
    "a rule of the session": ('version = ""\n', "line 2: version: must be"),
    "a filter that cannot keep the budget": ('filter = "basic"\n', "epsilon"),
    "a ledger that is none": ("ledger = 3\n", "line 2: ledger: must be the path"),
    "a unit without a limit": ('privacy_unit = "who"\n', "max_rows_per_unit: required"),
}


@pytest.mark.parametrize(("unit", "says"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_every_rule_of_a_session_is_applied(
    unit: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = write(tmp_path, "x = { type = 'text' }", {"x": ["a"]}, unit)
    assert main(["check", *arguments]) == 2
    assert says in capsys.readouterr().err


def test_files_that_cannot_be_used_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    declaration, file = write(tmp_path, "x = { type = 'text' }", {"x": ["a"]})
    (tmp_path / "odd.parquet").write_bytes(b"sekret")
    for arguments, says in (
        ([declaration, "none.csv"], "must be an existing file"),
        ([declaration, declaration], "(.csv also compressed"),
        ([declaration, file, file], "give one FILE"),
        ([declaration, str(tmp_path / "odd.parquet")], "readable table"),
        (["none.toml", file], "none.toml: must be a TOML file"),
    ):
        assert main(["check", *arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert says in err
        assert "sekret" not in err


def test_it_writes_nothing_and_says_whom_it_is_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A terminal that cannot show everything is no reason to fail.
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii", write_through=True))
    arguments = write(tmp_path, """'größe' = { type = 'text' }""", {"größe": ["a"]})
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert main(["check", *arguments]) == 0
    out = sys.stdout.buffer.getvalue().decode("ascii")  # type: ignore[attr-defined]
    assert capsys.readouterr() == ("", "")
    assert out.count("COMPUTED FROM THE ROWS") == 2
    assert out.count("These counts are private: correct mistakes by them, but tune no bound") == 1
    assert "Do not show it to the analyst" in out
    assert r"gr\xf6\xdfe" in out
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_text_of_the_table_cannot_move_the_cursor(tmp_path: Path) -> None:
    evil = "\x1b[2J\r\u202e\x9b"
    name = '"\\u001b[2J"'
    made = checked(
        tmp_path,
        f"{name} = {{ type = 'categories', values = ['\u202e'] }}\nx = {{ type = 'text' }}\n",
        {"\x1b[2J": [evil], "x ": ["a"], "x\x1b": ["b"]},
    )
    text = check_text(made)
    assert [one for one in text if not one.isprintable() and one != "\n"] == []
    assert r"\x1b[2J" in text
    assert r"\u202e" in text


def test_a_check_cannot_be_shown_by_accident(tmp_path: Path) -> None:
    made = checked(tmp_path, "x = { type = 'text' }", {"x": ["sekret"]})
    for one in (made, made.tables[0], made.tables[0].columns[0], made.tables[0].columns[0].tally):
        assert repr(one).endswith(f"object at {hex(id(one))}>")


def test_the_example_passes_on_the_real_table(tmp_path: Path) -> None:
    statsmodels = pytest.importorskip("statsmodels")
    file = Path(statsmodels.__file__).parent / "datasets/randhie/src/randhie.csv"
    made = check(str(EXAMPLE), [str(file)])
    assert made.fine
    assert made.advice == ()
    assert all(column.tally is not None and column.tally.counts == 20190 for column in made.tables[0].columns)
    # The beginning of the file with texts for numbers passes too, and with other values it does not.
    beginning, mistaken = tmp_path / "randhie.csv", tmp_path / "rand-hie.toml"
    beginning.write_text("\n".join(file.read_text("utf-8").splitlines()[:2000]) + "\n", "utf-8")
    for values, fine in (('["0", "25", "50", "95", "100"]', True), ("[0, 1, 2]", False)):
        mistaken.write_text(EXAMPLE.read_text("utf-8").replace("[0, 25, 50, 95, 100]", values))
        assert check(str(mistaken), [str(beginning)]).fine is fine


def test_a_few_dates_after_the_last_one_are_counted_aloud(tmp_path: Path) -> None:
    table = {"seen": pd.to_datetime("2025-01-01") + pd.to_timedelta([4 * number for number in range(100)], unit="D")}
    seen = 'seen = {{ type = "dates", first = 2025-01-01, last = {} }}'
    made = checked(tmp_path, seen.format("2026-01-25"), table)
    told = said(made, to_fix=False)
    assert "column 'seen': 2 of 100 dates are after 2026-01-25 and count as if they were on that day" in told
    assert made.fine
    made = checked(tmp_path, seen.format("2026-12-31"), table)
    assert "dates are after" not in said(made, to_fix=False)
