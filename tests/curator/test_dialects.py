"""CSV files of other dialects: ``draft`` writes their keys, ``check`` names the missing ones, then all counts."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dpnb.__main__ import main
from dpnb._sources.text_file import probable_reading
from dpnb.curator.check import Check, check
from dpnb.curator.draft import draft
from dpnb.errors import SchemaError

GERMAN = {"separator": ";", "decimal": ",", "encoding": "latin-1", "date_format": "DD.MM.YYYY"}

STATIONS = ("Pädiatrie", "Chirurgie")

LINES = [
    "patient;station;aufnahme;kosten;plz",
    *(f"P{one};{STATIONS[one % 2]};{1 + one % 28}.{1 + one % 12:02}.2024;{one},5;0{1000 + one}" for one in range(60)),
]

SCHEMA = """
[budget]
mu = 1
[schema]
station = { type = "categories", values = ["Pädiatrie", "Chirurgie"] }
aufnahme = { type = "dates", first = "2024-01-01", last = "2024-12-31" }
kosten = { type = "bounded", low = 0, high = 100 }
"""


def german(folder: Path, lines: list[str] = LINES, encoding: str = "latin-1") -> str:
    path = folder / "stays.csv"
    path.write_bytes("\r\n".join(lines).encode(encoding))
    return str(path)


def checked(folder: Path, **keys: str) -> Check:
    path = folder / "stays.toml"
    written = "".join(f"{key} = '{value}'\n" for key, value in keys.items())
    path.write_text(
        f'name = "stays"\nprivacy_unit = "patient"\nmax_rows_per_unit = 1\n{written}{SCHEMA}', encoding="utf-8"
    )
    return check(str(path), [str(folder / "stays.csv")])


def to_write(made: Check) -> list[str]:
    texts = [one.text for one in made.advice if one.to_fix and " below the name of the declaration" in one.text]
    return [text.partition("; write ")[2].partition(" below")[0] for text in texts]


def test_a_draft_has_the_keys_of_a_german_file_and_the_types_of_its_columns(tmp_path: Path) -> None:
    text = Path(draft([german(tmp_path)], str(tmp_path / "stays.toml")).declaration).read_text(encoding="utf-8")
    content = tomllib.loads(text)
    assert {key: content[key] for key in GERMAN} == GERMAN
    assert {name: one["type"] for name, one in content["schema"].items()} == {
        "patient": "text", "station": "categories", "aufnahme": "dates", "kosten": "bounded", "plz": "text",
    }  # fmt: skip
    assert not any(value in text for value in ("Chirurgie", "0,5", ".2024"))


def test_a_check_names_each_key_that_is_missing_and_with_all_of_them_every_value_counts(tmp_path: Path) -> None:
    german(tmp_path)
    assert to_write(checked(tmp_path)) == ['separator = ";"']  # the others follow when there are columns
    assert to_write(checked(tmp_path, separator=";")) == [
        'encoding = "latin-1"', 'decimal = ","', 'date_format = "DD.MM.YYYY"',
    ]  # fmt: skip
    made = checked(tmp_path, **GERMAN)
    assert made.advice == ()
    assert [one.tally.counts for one in made.tables[0].columns if one.tally is not None] == [60, 60, 60]


@pytest.mark.parametrize("name", GERMAN)
def test_one_line_does_not_decide_how_a_file_is_written(name: str, tmp_path: Path) -> None:
    odd = {"separator": "a,b,c,d,e", "decimal": "x;y;z;1.5;0", "encoding": "\xe4", "date_format": "x;y;2024-01-01;1;0"}
    german(tmp_path, [*LINES, odd[name]])
    assert probable_reading(tmp_path / "stays.csv").to_dict() == GERMAN


FILES: dict[str, tuple[list[str], str, dict[str, str]]] = {
    "as usual": (["a,b", *["1.5,2024-01-01"] * 9], "utf-8", {}),
    "thousands": (["a,b", *['"1,500",2024-01-01'] * 9], "utf-8", {}),
    "tabs": (["a\tb", *["1,5\tx"] * 9], "utf-8", {"separator": "\t", "decimal": ","}),
    "American dates": (["a,b", *["1,12/31/2024"] * 9], "utf-8", {"date_format": "MM/DD/YYYY"}),
    "one column": (["a", *["x;y"] * 9], "utf-8", {}),
    "of Windows": (["a,b", *["1,5 €"] * 9], "cp1252", {"encoding": "cp1252"}),
    "no lines": ([], "utf-8", {}),
}


@pytest.mark.parametrize(("lines", "encoding", "keys"), FILES.values(), ids=FILES)
def test_files_are_recognised(lines: list[str], encoding: str, keys: dict[str, str], tmp_path: Path) -> None:
    assert probable_reading(Path(german(tmp_path, lines, encoding))).to_dict() == keys


def test_a_text_among_numbers_is_shown_as_it_is_written(tmp_path: Path) -> None:
    german(tmp_path, [*LINES, "P60;Chirurgie;1.1.2024;k.A.;01000"])
    (advice,) = checked(tmp_path, **GERMAN).advice
    assert "'k.A.' (1); convert them to finite numbers in the table, or list in missing = what means" in advice.text


@pytest.mark.parametrize("wrong", ["DD.MM.YY", "dd.mm.yyyy", "DD.MM/YYYY", "DD.DD.YYYY", ""])
def test_a_format_of_dates_that_is_none_is_refused(
    wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    german(tmp_path)
    checked(tmp_path, **GERMAN)
    path = tmp_path / "stays.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("DD.MM.YYYY", wrong), encoding="utf-8")
    assert main(["check", str(path), str(tmp_path / "stays.csv")]) == 2
    assert "line 7: date_format: must have YYYY, MM and DD in the order" in capsys.readouterr().err


def test_a_file_in_utf_16_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="must not be UTF-16; convert it to UTF-8"):
        draft([german(tmp_path, encoding="utf-16")], str(tmp_path / "stays.toml"))
