"""Tables in CSV files: no row changes what others count as, from the file to the answer and the ledger."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpnb
from dpnb._backends.reading import Reading
from dpnb._core.tables import PrivateTables, UnreadTables
from dpnb._sources.formats import read_tables
from dpnb._sources.source import DataSource
from dpnb.curator.check import check
from dpnb.errors import InvalidValueError, LedgerError, SchemaError
from dpnb.ledger import MEMORY, Ledger
from dpnb.ledger.charge import TABLE_FILES

CODES = [1, 2, 3, 4, 5]
SCHEMA: dict[str, Any] = {"code": dpnb.Categories(CODES)}


def people(count: int = 400) -> list[str]:
    return [f"{10**17 + number},{CODES[number % 5]}" for number in range(count)]


def session(file: Path, lines: list[str], **changes: Any) -> dpnb.Session:
    file.write_text("\n".join(["id,code", *lines]), "utf-8")
    return opened(file, **changes)


def opened(file: Path, **changes: Any) -> dpnb.Session:
    arguments: dict[str, Any] = {
        "name": "people", "budget": dpnb.Budget.gdp(1000), "schema": SCHEMA, "privacy_unit": "id",
        "max_rows_per_unit": 2, "ledger": MEMORY, "not_private_test_seed": 1, **changes,
    }  # fmt: skip
    declared = dpnb.Session.rehearse(**{name: value for name, value in arguments.items() if "seed" not in name})
    return dpnb.Session(
        read_tables({"": DataSource(str(file))}, "table", declared._core.tables.wanted)[""], **arguments
    )


def counts(of: dpnb.Session) -> list[int]:
    return of.frame.groupby("code").count().release(mu=100).to_pandas().iloc[:, 0].round().astype(int).tolist()


def units(of: dpnb.Session) -> int:
    return round(float(of.frame.count_units().release(mu=100)))


ADDED = {
    "a text in a column of codes": "1,unknown",
    "no identifier": ",3",
    "an identifier that is a text": "A12,3",
    "too many fields": "1,2,3",
    "too few fields": "1",
    "an open quotation mark": '"1,2',
    "an open quotation mark in the last field": '1,"2',
    "a huge number": f"1,{'9' * 400}",
    "a carriage return": "1\r2,3",
    "a NUL": "1\0,2",
}


@pytest.mark.parametrize("place", [0, 200, 400])
@pytest.mark.parametrize("line", ADDED.values(), ids=ADDED)
def test_one_line_changes_no_count_by_more_than_one(line: str, place: int, tmp_path: Path) -> None:
    before = session(tmp_path / "a.csv", people())
    assert counts(before) == [80] * 5
    assert units(before) == 400
    lines = people()
    after = session(tmp_path / "b.csv", [*lines[:place], line, *lines[place:]])
    assert np.abs(np.subtract(counts(after), 80)).max() <= 1
    assert abs(units(after) - 400) <= 1


def test_with_the_reader_of_pandas_one_text_changes_all_counts(tmp_path: Path) -> None:
    schema = {"code": dpnb.Categories(["00001", "00002"])}
    lines = [f"p{number},0000{number % 2 + 1}" for number in range(100)]
    found = []
    for name, added in (("a", []), ("b", ["q,x"])):
        file = tmp_path / f"{name}.csv"
        file.write_text("\n".join(["id,code", *lines, *added]))
        codes = pd.read_csv(file)["code"]
        found.append([int((codes == key).sum()) for key in schema["code"].values])
        assert counts(opened(file, schema=schema)) == [50, 50]
    assert found == [[0, 0], [50, 50]]


def test_identifiers_are_the_exact_texts_of_their_fields(tmp_path: Path) -> None:
    lines = ["007,1", "7,1", "7.0,1", " 7,1", f"{10**17},1", f"{10**17 + 1},1"]
    assert units(session(tmp_path / "a.csv", lines)) == 6
    as_integers = session(tmp_path / "a.csv", lines, unit_type="integer")
    assert units(as_integers) == 3  # 7, and the two large ones


def test_the_rows_of_a_unit_that_count_do_not_depend_on_other_identifiers(tmp_path: Path) -> None:
    lines = [f"{unit},{code}" for unit in range(300) for code in CODES]
    without, beside = (session(tmp_path / "a.csv", [*lines, *more]) for more in ([], ["a text,1", ",2"]))
    assert np.abs(np.subtract(counts(without), counts(beside))).max() <= 1
    # As numbers the same units have other names, so that other rows count.
    assert counts(session(tmp_path / "a.csv", lines, unit_type="integer")) != counts(without)


def test_missing_values_are_empty_fields_and_the_declared_texts(tmp_path: Path) -> None:
    lines = ["1,1", "NA,1", ",1", "2,NA", "3,-9", "4,"]
    assert units(session(tmp_path / "a.csv", lines)) == 5
    listed = session(tmp_path / "a.csv", lines, missing=["NA", "-9"])
    assert units(listed) == 4
    x = {"code": dpnb.Bounded(-10, 10)}
    assert float(session(tmp_path / "a.csv", lines, schema=x).frame["code"].sum().release(mu=500)) == pytest.approx(
        -7, abs=0.5
    )
    answer = session(tmp_path / "a.csv", lines, schema=x, missing=["NA", "-9"]).frame["code"].sum().release(mu=500)
    assert float(answer) == pytest.approx(1, abs=0.5)


def test_the_list_of_missing_texts_is_part_of_the_guarantee(tmp_path: Path) -> None:
    file, ledger = tmp_path / "a.csv", tmp_path / "a.dpnb"
    session(file, people(), ledger=ledger, missing=["NA"]).frame.count().release(mu=1)
    opened(file, ledger=ledger, missing=["NA"]).ledger.close()
    session(file, people(), ledger=tmp_path / "b.dpnb", missing=["NA", "-9"]).ledger.close()
    opened(file, ledger=tmp_path / "b.dpnb", missing=["-9", "NA"]).ledger.close()
    for other in ([], ["NA", "-9"]):
        with pytest.raises(LedgerError, match="missing"):
            opened(file, ledger=ledger, missing=other)


def test_schema_and_statement_name_the_missing_texts_and_the_type_of_identifiers(tmp_path: Path) -> None:
    file, ledger = tmp_path / "a.csv", tmp_path / "a.dpnb"
    with_both = session(file, people(), ledger=ledger, missing=["NA", "-9"], unit_type="integer")
    for text in (str(with_both.schema), with_both.report().to_html()):
        assert "named by a whole number" in text
        assert "in its source" in text
        assert "NA" in text
    assert "source" not in str(session(file, people()).schema)
    with_both.ledger.close()


@pytest.mark.parametrize("missing", ["NA", [1], ["a", "a"], [""], None, ["\ud800"], [str(n) for n in range(101)]])
def test_other_lists_of_missing_texts_are_refused(missing: Any, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"^missing: must be a list"):
        session(tmp_path / "a.csv", people(), missing=missing)


def test_a_table_in_memory_marks_missing_values_itself() -> None:
    table = pd.DataFrame({"id": ["a", "NA"], "code": [1, 2]})
    with pytest.raises(SchemaError, match=r"^missing: is for tables that dpnb reads"):
        dpnb.Session(
            table, name="t", budget=dpnb.Budget.gdp(1), schema=SCHEMA, privacy_unit="id", max_rows_per_unit=1,
            missing=["NA"], ledger=MEMORY,
        )  # fmt: skip


# --- versions and several tables -------------------------------------------------------------------------------------


def test_a_ledger_that_was_filled_with_the_table_in_memory_asks_for_a_new_version(tmp_path: Path) -> None:
    file, ledger = tmp_path / "a.csv", tmp_path / "a.dpnb"
    file.write_text("\n".join(["id,code", *people()]))
    same: dict[str, Any] = {
        "name": "people", "budget": dpnb.Budget.gdp(1000), "schema": SCHEMA, "privacy_unit": "id",
        "max_rows_per_unit": 2, "ledger": ledger, "not_private_test_seed": 1,
    }  # fmt: skip
    filled = dpnb.Session(pd.read_csv(file), **same)
    spent = filled.frame.count().release(mu=100)
    filled.ledger.close()
    with pytest.raises(InvalidValueError, match=r"^version: must be changed.*by texts"):
        opened(file, ledger=ledger)
    new = opened(file, ledger=ledger, version="2")
    assert spent is not None
    assert new.headroom < 1
    new.frame.count().release(mu=100)
    new.ledger.close()
    again = opened(file, ledger=ledger, version="2")  # what was read in this way is used again
    again.ledger.close()
    with pytest.raises(InvalidValueError, match=r"^version: must be changed.*a file in which texts"):
        dpnb.Session(pd.read_csv(file), **same, version="2")
    kinds = [charge.kind for charge in Ledger.read_only_copy(str(ledger)).charges()]
    assert kinds.count(TABLE_FILES) == 1


def test_a_declared_type_of_units_is_the_same_for_a_file_and_for_a_table_in_memory(tmp_path: Path) -> None:
    file, ledger = tmp_path / "a.csv", tmp_path / "a.dpnb"
    file.write_text("\n".join(["id,code", *(f"{unit},{code}" for unit in range(300) for code in CODES)]))
    same: dict[str, Any] = {
        "name": "people", "budget": dpnb.Budget.gdp(1000), "schema": SCHEMA, "privacy_unit": "id",
        "max_rows_per_unit": 2, "unit_type": "integer", "not_private_test_seed": 1,
    }  # fmt: skip
    filled = dpnb.Session(pd.read_csv(file), **same, ledger=ledger)
    answers = counts(filled)
    filled.ledger.close()
    assert counts(opened(file, **same, ledger=MEMORY)) == answers
    opened(file, **same, ledger=ledger).ledger.close()


TEXTS = pd.DataFrame({"id": pd.array(["007", "7"], "string"), "code": [1, 2]})
NUMBERS = pd.DataFrame({"id": [7, 8], "code": [1, 2]})


def two(first: Any, second: Any, **changes: Any) -> dpnb.Session:
    return dpnb.Session(
        UnreadTables({"a": first, "b": second}), name="two", budget=dpnb.Budget.gdp(1000),
        schema={"a": SCHEMA, "b": SCHEMA}, privacy_unit="id", max_rows_per_unit={"a": 1, "b": 1}, ledger=MEMORY,
        not_private_test_seed=1, **changes,
    )  # fmt: skip


@pytest.mark.parametrize("make", [lambda frame: frame, pa.Table.from_pandas], ids=["pandas", "Arrow"])
def test_tables_that_name_a_person_by_a_text_and_by_a_number_are_not_joined_silently(make: Any) -> None:
    with pytest.raises(SchemaError, match=r"one type in all tables.*'a' has texts, 'b' whole numbers.*unit_type"):
        two(make(TEXTS), make(NUMBERS))

    def pairs(of: dpnb.Session) -> int:
        return round(float(of.table("a").merge(of.table("b"), on="id").count().release(mu=100)))

    assert pairs(two(make(TEXTS), make(NUMBERS), unit_type="text")) == 1
    assert pairs(two(make(TEXTS.iloc[:1]), make(NUMBERS), unit_type="text")) == 0
    assert pairs(two(make(TEXTS.iloc[:1]), make(NUMBERS), unit_type="integer")) == 1


def test_one_odd_identifier_does_not_refuse_a_table() -> None:
    odd = pd.concat([NUMBERS, pd.DataFrame({"id": [("a", 1)], "code": [1]})])
    assert odd["id"].dtype == object
    assert round(float(two(NUMBERS, odd).table("b").count().release(mu=100))) == 3


def test_a_text_file_and_a_file_with_numbers_are_not_joined_silently(tmp_path: Path) -> None:
    TEXTS.to_csv(tmp_path / "a.csv", index=False)
    NUMBERS.to_parquet(tmp_path / "b.parquet")
    tables = read_tables(
        {"a": DataSource(str(tmp_path / "a.csv")), "b": DataSource(str(tmp_path / "b.parquet"))}, "table"
    )
    with pytest.raises(SchemaError, match="one type in all tables"):
        two(tables["a"], tables["b"])


def test_missing_texts_are_for_all_files(tmp_path: Path) -> None:
    TEXTS.replace("7", "NA").to_csv(tmp_path / "a.csv", index=False)
    TEXTS.to_parquet(tmp_path / "b.parquet")
    named = {"a": DataSource(str(tmp_path / "a.csv")), "b": DataSource(str(tmp_path / "b.parquet"))}
    limits: dict[str, Any] = {"rows": 1, "groups": None, "rows_per_group": None, "norm": None}
    declared = PrivateTables.declared(
        {"a": SCHEMA, "b": SCHEMA}, several=True, privacy_unit="id", reading=Reading.declared(["NA"]), **limits
    )
    tables = read_tables(named, "table", declared.wanted)
    of = two(tables["a"], tables["b"], missing=["NA"])
    assert [round(float(of.table(name).count_units().release(mu=100))) for name in "ab"] == [1, 2]
    with pytest.raises(SchemaError, match=r"^missing: must be \('NA',\), with which the table was read; got \(\)"):
        two(tables["a"], tables["b"])


FLOATS: dict[str, Any] = {
    "pandas": pd.DataFrame({"id": [1.0, None], "code": [1, 2]}),
    "nullable": pd.DataFrame({"id": pd.array([1.0, None], "Float64"), "code": [1, 2]}),
    "categories": pd.DataFrame({"id": pd.Categorical([1.0, None]), "code": [1, 2]}),
    "complex": pd.DataFrame({"id": [1 + 0j, 2], "code": [1, 2]}),
    "Arrow": pa.table({"id": [1.0, None], "code": [1, 2]}),
    "narwhals": nw.from_native(pd.DataFrame({"id": [1.0, None], "code": [1, 2]})),
}


@pytest.mark.parametrize("table", FLOATS.values(), ids=FLOATS)
def test_floating_point_numbers_identify_no_units(table: Any) -> None:
    with pytest.raises(SchemaError, match=r"privacy_unit 'id': must not be .*floating.*read_csv\(path, dtype="):
        dpnb.Session(
            table, name="t", budget=dpnb.Budget.gdp(1), schema=SCHEMA, privacy_unit="id", max_rows_per_unit=1,
            ledger=MEMORY,
        )  # fmt: skip


def test_decimal_numbers_are_integers_where_unit_type_says_so() -> None:
    ids = pa.array([7, 8, None, 2**63 - 1, 2**63], pa.decimal128(20, 0))
    table = pa.table({"id": ids, "code": [1] * 5})
    of = dpnb.Session(
        table, name="t", budget=dpnb.Budget.gdp(1000), schema=SCHEMA, privacy_unit="id", max_rows_per_unit=1,
        unit_type="integer", ledger=MEMORY, not_private_test_seed=1,
    )  # fmt: skip
    assert units(of) == 3


@pytest.mark.parametrize("unit_type", ["number", 1, True, ["text"]])
def test_other_types_of_units_are_refused(unit_type: Any) -> None:
    with pytest.raises(SchemaError, match=r"^unit_type: must be 'text' or 'integer'"):
        two(TEXTS, TEXTS, unit_type=unit_type)


# --- the curator's commands ------------------------------------------------------------------------------------------

DECLARED = """
name = "people"
privacy_unit = "id"
max_rows_per_unit = 2
missing = ["NA"]
[budget]
mu = 1
[schema]
code = { type = "categories", values = [1, 2, 3, 4, 5] }
"""


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_check_counts_what_could_not_be_read(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "people.toml").write_text(DECLARED)
    lines = [*map(str.encode, people(100)), b'1,"2', b'3"', b"1,2,3", b"\xff,1", b"NA,3", b"4,NA"]
    text = b"\xef\xbb\xbf" + b"\r\n".join([b"id,code", *lines])
    file = tmp_path / f"people.csv{suffix}"
    file.write_bytes(gzip.compress(text) if suffix else text)
    made = check(str(tmp_path / "people.toml"), [str(file)])
    said = "\n".join(one.text for one in made.advice)
    assert made.fine
    assert "1 of 106 lines have an open or misplaced quotation mark and are dropped" in said
    assert "convert the table to Parquet" in said
    assert "2 of 106 lines do not have as many fields as the first line and are dropped" in said
    assert "1 of 106 lines have values that are not UTF-8 and are missing" in said
    units = made.tables[0].units
    assert units is not None
    assert (units.rows, units.units, units.rows_without_unit) == (103, 101, 2)
    tally = made.tables[0].columns[0].tally
    assert tally is not None
    assert (tally.counts, tally.missing, tally.unusable) == (102, 1, 0)


def test_a_first_line_without_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('"id,code\n1,2')
    with pytest.raises(SchemaError, match="the first line must have the names"):
        read_tables({"": DataSource(str(tmp_path / "a.csv"))}, "table")


def test_an_unusable_archive_is_refused_without_its_content(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(b"sekret")
    with pytest.raises(
        SchemaError, match=r"must be a readable table; reading it raised \w+; check the file"
    ) as refused:
        read_tables({"": DataSource(str(tmp_path / "a.csv.gz"))}, "table")
    assert "sekret" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id;code\n1;2\n", "its fields are separated by ';'; write separator = \";\" below the name"),
        ("person,code_\n1,2,\n2,3\n", "1 of 2 lines do not have as many fields as the first line"),
    ],
)
def test_a_check_of_a_file_without_any_declared_column_says_what_is_wrong(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "people.toml").write_text(DECLARED)
    (tmp_path / "people.csv").write_text(text)
    made = check(str(tmp_path / "people.toml"), [str(tmp_path / "people.csv")])
    assert not made.fine
    assert any(said in one.text for one in made.advice)


def test_empty_lines_before_the_names_of_the_columns_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\r\n\r\nid,code\r\n1,2\r\n")
    assert units(opened(tmp_path / "a.csv")) == 1


def test_the_last_suffix_is_the_format_of_a_file(tmp_path: Path) -> None:
    TEXTS.to_parquet(tmp_path / "a.csv.parquet")
    assert read_tables({"": DataSource(str(tmp_path / "a.csv.parquet"))}, "table")[""]["id"].tolist() == ["007", "7"]
    (tmp_path / "a.csv.zst").write_bytes(b"")
    with pytest.raises(SchemaError, match=r"must be a \.csv"):
        read_tables({"": DataSource(str(tmp_path / "a.csv.zst"))}, "table")


# --- separators, decimal marks and encodings -------------------------------------------------------------------------

SEMICOLONS = "id;code;wage;name\n7;1;1,5;Zoë\n8;2;-2,25;b\n9;3;1.5;c\n10;3;1.234,5;d\n"
DIALECT: dict[str, Any] = {"separator": ";", "decimal": ",", "encoding": "latin-1"}
WAGES: dict[str, Any] = {
    "code": dpnb.Categories(CODES), "wage": dpnb.Bounded(-100, 100), "name": dpnb.Text(max_length=9),
}  # fmt: skip


def test_a_file_with_semicolons_decimal_commas_and_latin_letters(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(SEMICOLONS.encode("latin-1"))
    of = opened(file, schema=WAGES, **DIALECT)
    assert counts(of) == [1, 1, 2, 0, 0]
    # A point may mean thousands where the comma is the decimal mark.
    assert float(of.frame["wage"].sum().release(mu=500)) == pytest.approx(-0.75, abs=2)
    assert round(float(of.frame["wage"].count().release(mu=100))) == 2
    assert round(float((of.frame["name"] == "Zoë").sum().release(mu=100))) == 1
    of_halves = {"wage": dpnb.Categories([1.5, -2.25, "1.234,5"])}
    wages = opened(file, schema=of_halves, **DIALECT).frame.groupby("wage").count().release(mu=100)
    assert wages.to_pandas().iloc[:, 0].round().tolist() == [1, 1, 1]


def test_a_tab_is_a_separator_and_quoted_fields_may_contain_the_separator(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id\tcode\n"7\t8"\t1\n9\t2\n')
    of = opened(tmp_path / "a.csv", separator="\t")
    assert (counts(of), units(of)) == ([1, 1, 0, 0, 0], 2)


def test_a_value_that_the_encoding_does_not_have_is_missing_alone(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,code,name\n7,1,\x81\n8,2,caf\xe9\n")
    of = opened(tmp_path / "a.csv", schema={**SCHEMA, "name": dpnb.Text()}, encoding="cp1252")
    assert counts(of) == [1, 1, 0, 0, 0]
    assert round(float(of.frame["name"].count().release(mu=100))) == 1


def test_how_a_table_is_read_belongs_to_a_version(tmp_path: Path) -> None:
    file, ledger = tmp_path / "a.csv", tmp_path / "a.dpnb"
    file.write_bytes(SEMICOLONS.encode("latin-1"))
    spent = opened(file, ledger=ledger, schema=WAGES, **DIALECT)
    spent.frame.count().release(mu=1)
    spent.ledger.close()
    opened(file, ledger=ledger, schema=WAGES, **DIALECT).ledger.close()
    for other in ({"decimal": "."}, {"encoding": "cp1252"}):
        with pytest.raises(LedgerError, match=rf"; {next(iter(other))}: the ledger has"):
            opened(file, ledger=ledger, schema=WAGES, **{**DIALECT, **other})
    opened(file, ledger=ledger, schema=WAGES, **{**DIALECT, "encoding": "cp1252"}, version="2").ledger.close()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("separator", ["", ";;", '"', "\n", "\r", "\0", None, 1]),
        ("decimal", ["", ";", "..", None, "·"]),
        (
            "encoding",
            ["", "latin-11", "utf-16", "utf-7", "iso2022_kr", "cp037", "base64", "unicode_escape", "\0", None, 8],
        ),
    ],
)
def test_other_dialects_are_refused(name: str, values: list[Any], tmp_path: Path) -> None:
    for value in values:
        with pytest.raises(SchemaError, match=rf"^{name}: must be"):
            session(tmp_path / "a.csv", people(), **{name: value})


def test_a_dialect_that_is_wrong_in_a_declaration_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "people.toml").write_text(DECLARED.replace("[budget]", 'separator = ";;"\n[budget]'))
    with pytest.raises(SchemaError, match=r"people\.toml, line 6: separator: must be one character"):
        dpnb.Session.from_toml(tmp_path / "people.toml", rehearse=True)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_another_separator_is_named_when_a_session_is_opened(mark: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(mark.join(["id", "code"]) + "\n" + mark.join(["sekret", "1"]))
    with pytest.raises(SchemaError, match=r"one field: declare separator=") as refused:
        opened(tmp_path / "a.csv")
    assert repr(mark) in str(refused.value)
    assert "sekret" not in str(refused.value)


def test_a_session_says_how_its_table_was_read(tmp_path: Path) -> None:
    table = dpnb.read_table(write_people(tmp_path), missing=["NA"], separator=";")
    arguments: dict[str, Any] = {"name": "p", "budget": dpnb.Budget.gdp(1), "schema": SCHEMA, "ledger": MEMORY}
    dpnb.Session(table, **arguments, missing=["NA"], separator=";")
    with pytest.raises(SchemaError, match=r"^separator: must be ';', with which the table was read; got ','"):
        dpnb.Session(table, **arguments, missing=["NA"])
    with pytest.raises(SchemaError, match=r"^decimal: is for tables that dpnb reads"):
        dpnb.Session(pd.DataFrame({"code": [1]}), **arguments, decimal=",")


def write_people(folder: Path) -> Path:
    (folder / "p.csv").write_text("id;code\n1;2\n")
    return folder / "p.csv"


@pytest.mark.parametrize("source", [1, None, b"a.csv", "none.csv", "https://a:sekret@b/c.csv"])
def test_read_table_refuses_what_is_no_table(source: Any) -> None:
    with pytest.raises(SchemaError, match=r"^source: (must be|the URL must have no password)") as refused:
        dpnb.read_table(source)
    assert "sekret" not in str(refused.value)
