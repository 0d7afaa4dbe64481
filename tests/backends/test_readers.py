"""What one row is read as depends on no other row: ten thousand single-row additions to files and frames."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import dpnb
from dpnb._backends import opened
from dpnb._backends.memory.prepare.columns import DictionaryColumn, Values, column_of
from dpnb._backends.memory.prepare.prepared_table import columns_of, prepare
from dpnb._backends.memory.prepare.unit_ids import assign_unit_ids, unit_labels
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb._sources.formats import read_tables
from dpnb._sources.source import DataSource
from dpnb._sources.text_file import read_text_table
from dpnb.errors import SchemaError
from dpnb.schema import Schema

SCHEMA: Schema = {
    "code": dpnb.Categories([0, 25, 50]),
    "word": dpnb.Categories(["north", "00001", "7"]),
    "flag": dpnb.Categories([True, False]),
    "x": dpnb.Bounded(0, 1e6),
    "day": dpnb.Dates("1970-01-01", "2030-01-01"),
    "note": dpnb.Text(),
}
TIMES = 10_000 if os.environ.get("DPNB_TEST_LEVEL") != "quick" else 1_000

Row = tuple[Any, ...]


def as_read(table: Any) -> list[Row]:
    """What each row of a table is read as: its unit's name and hash, and the value of each column."""
    names = unit_labels(columns_of(table, "", ["id"])["id"])
    codes, hashes = assign_unit_ids(names)
    plain: Any = names.values[names.codes] if isinstance(names, DictionaryColumn) else names
    prepared = prepare(table, SCHEMA, PrivacyUnit())
    columns: list[list[Any]] = [
        [None if code < 0 else (str(name), int(hashes[code])) for name, code in zip(plain, codes, strict=True)]
    ]
    for name in SCHEMA:
        if name in prepared.texts:
            texts = [*prepared.texts[name], None]
            columns.append([texts[code] for code in prepared.codes[name]])
        elif name in prepared.codes:
            columns.append(prepared.codes[name].tolist())
        else:
            columns.append([None if math.isnan(number) else number for number in prepared.numbers[name].tolist()])
    return [*zip(*columns, strict=True)]


def others_of(rows: list[Row], place: int, of: int) -> list[Row]:
    """The rows without those that were added together at a place to `of` rows."""
    return rows[:place] + rows[len(rows) - (of - place) :]


# --- text files ------------------------------------------------------------------------------------------------------

LINES = [
    b"007,25,north,True,1.5,2020-01-01,elm",
    b'100000000000000001,0,00001,false,2,2020-02-01,"a, b"',
    b"100000000000000002,50,7,1,1e3,1999-12-31T08:30,",
    b",25.0,north,0,,,NA",
    b"7,25,,,-3,,\xc3\xa9",
]
HEADER = b"id,code,word,flag,x,day,note"
PIECES = [
    b"", b",", b"''", b'"', b'""', b'","', b"\xff", b"\xc3", b"\xed\xa0\x80", b"\0", b"\r", b"\x1c", b"\xe2\x80\xa8",
    b"007", b"7", b"7.0", b"1e400", b"nan", b"NA", b"None", b"True", b"north", b"00001", b"x" * 50, b"9" * 25, b"-0.0",
    b"1970-01-01", b"#", b";", b"\t", b" ", b"\\", b"\xef\xbb\xbf", b"\x1a", b"%d" % 2**63,
]  # fmt: skip


ADDITIONS = (TIMES // 10, 1), (TIMES * 9 // 40, 4)
"""Files, and lines in each: one at a time for a part of them, else four, since a file takes longer than a line."""


def hostile_line(chance: random.Random) -> bytes:
    if chance.random() < 0.5:  # the right number of fields
        return b",".join(b"".join(chance.choices(PIECES, k=chance.randrange(3))) for _ in range(7))
    return b"".join(chance.choices(PIECES, k=chance.randrange(12)))


def csv_additions(read: Callable[[Path], Any], folder: Path, files: int, lines_of_each: int) -> Iterator[bool]:
    """Whether all other rows are read as before, for each of some files to which lines are added at a random place."""
    chance, file = random.Random(1), folder / "table.csv"
    file.write_bytes(b"\n".join([HEADER, *LINES]) + b"\n")
    before = as_read(read(file))
    assert len(before) == len(LINES)
    for _ in range(files):
        place = chance.randrange(len(LINES) + 1)
        lines = [*LINES[:place], *(hostile_line(chance) for _ in range(lines_of_each)), *LINES[place:]]
        file.write_bytes(b"\n".join([HEADER, *lines]))
        try:
            yield others_of(as_read(read(file)), place, len(LINES)) == before
        except Exception:  # noqa: BLE001  (readers raise many types)
            yield False


def test_no_line_of_a_csv_file_changes_another(tmp_path: Path) -> None:
    for files, lines_of_each in ADDITIONS:
        assert all(csv_additions(lambda file: read_text_table(DataSource(str(file))), tmp_path, files, lines_of_each))


@pytest.mark.parametrize(
    "read",
    [pd.read_csv, lambda file: pd.read_csv(file, dtype=str), lambda file: pl.read_csv(file, infer_schema=False)],
    ids=["pandas", "pandas, texts", "polars, texts"],
)
def test_with_other_readers_the_additions_are_noticed(read: Any, tmp_path: Path) -> None:
    for files, lines_of_each in ADDITIONS:
        assert not all(csv_additions(read, tmp_path, files, lines_of_each))


# --- files with types ------------------------------------------------------------------------------------------------

TYPED = pa.table({
    "id": pa.array([7, 10**17 + 1, 10**17 + 2, None, -5]),
    "code": pa.array([25, 0, 50, 2**53 + 1, None]),
    "word": pa.array(["north", "00001", "7", None, ""]).dictionary_encode(),
    "flag": pa.array([True, False, None, True, False]),
    "x": pa.array([1.5, 2.0, None, -math.inf, 1e7]),
    "day": pa.array([0, 10**15, None, -1, 10**18], pa.timestamp("us")),
    "note": pa.array(["elm", None, "\0", "x" * 50, "7"]),
})  # fmt: skip
EXTREMES: dict[str, list[Any]] = {
    "id": [None, 0, 2**63 - 1, -(2**63), 7],
    "code": [None, 25, 2**63 - 1, -(2**63)],
    "word": [None, "another", "7", "", "\0"],
    "flag": [None, True, False],
    "x": [None, math.nan, math.inf, -math.inf, 1e308, 5e-324, -0.0],
    "day": [None, 0, 2**63 - 1, -(2**63) + 1],
    "note": [None, "", "\0", "y" * 200, "7.0"],
}


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_no_row_of_a_file_with_types_changes_another(kind: str, tmp_path: Path) -> None:
    chance, file = random.Random(2), tmp_path / f"table.{kind}"
    write = pyarrow.parquet.write_table if kind == "parquet" else pyarrow.feather.write_feather

    def read() -> list[Row]:
        return as_read(read_tables({"": DataSource(str(file))}, "table")[""])

    write(TYPED, file)
    before = read()
    assert before[1][0] == (str(10**17 + 1), 10**17 + 1)
    for _ in range(TIMES // 20):
        row = {name: [chance.choice(values)] for name, values in EXTREMES.items()}
        added = pa.table({name: pa.array(row[name]).cast(TYPED.schema.field(name).type) for name in TYPED.column_names})
        place = chance.randrange(len(TYPED) + 1)
        write(pa.concat_tables([TYPED.slice(0, place), added, TYPED.slice(place)]), file)
        assert others_of(read(), place, len(TYPED)) == before


# --- frames of pandas, whose types follow from the rows --------------------------------------------------------------

OBJECTS: list[Any] = [
    None, math.nan, pd.NA, pd.NaT, True, 7, 7.5, 25.0, 2**70, -(2**63), "7", "007", "25", "x", b"25", 1 + 1j, 25 + 0j,
    np.longdouble(7), np.uint64(2**63), np.float32(0.1), pd.Timestamp("2020-01-01"),
    pd.Timestamp("2020-01-01", tz="UTC"), np.datetime64("1999-01-01"), pd.Timedelta(days=1), [25], (7,), {"a": 1},
]  # fmt: skip
RECORDS: list[dict[str, Any]] = [
    {"id": 7, "code": 25, "word": 1, "flag": True, "x": 1.5, "day": pd.Timestamp("2020-01-01"), "note": "elm"},
    {"id": 10**17 + 1, "code": 0, "word": 7, "flag": False, "x": 2.0, "day": pd.Timestamp("1999-12-31"), "note": "a"},
    {"id": 10**17 + 2, "code": 50, "word": 7, "flag": True, "x": -3.0, "day": pd.Timestamp("1999-12-31"), "note": "7"},
]


def frames(records: list[dict[str, Any]]) -> Iterator[pd.DataFrame]:
    yield pd.DataFrame(records)
    yield pd.concat([pd.DataFrame([record]) for record in records], ignore_index=True)


@pytest.mark.filterwarnings("ignore")
def test_no_row_of_a_frame_of_pandas_changes_another() -> None:
    chance, refused = random.Random(3), 0
    before = as_read(pd.DataFrame(RECORDS))
    for _ in range(TIMES // 10):
        row = {name: chance.choice([*OBJECTS, RECORDS[0][name]]) for name in RECORDS[0]}
        place = chance.randrange(len(RECORDS) + 1)
        for frame in frames([*RECORDS[:place], row, *RECORDS[place:]]):
            try:
                opened({"": frame}, {"": SCHEMA}, {"": PrivacyUnit("id", 5)})
            except SchemaError as error:
                assert frame["id"].dtype.kind in "fc"
                assert "read_csv(path, dtype={'id': str})" in str(error)  # noqa: PT017
                refused += 1
                continue
            assert others_of(as_read(frame), place, len(RECORDS)) == before
    assert refused > 0


def test_without_the_refusal_a_row_without_an_identifier_makes_persons_one() -> None:
    def distinct(ids: list[Any]) -> int:
        column: Values = column_of(nw.from_native(pd.Series(ids), series_only=True))
        return len(assign_unit_ids(unit_labels(column))[1])

    ids = [10**17 + number for number in range(3000)]
    assert distinct(ids) == 3000
    assert distinct([*ids, None]) < 300
