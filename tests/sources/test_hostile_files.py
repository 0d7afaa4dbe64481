"""Contents of files at which a library raises, or by which it reads other rows in another way."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pyreadstat
import pytest

import dpnb
from dpnb.errors import SchemaError

NOTES: dict[str, Any] = {"schema": {"note": dpnb.Text()}, "privacy_unit": "id"}


# --- texts that are not in the encoding of their file -----------------------------------------------------------------

WRITERS = {".dta": "dta", ".sav": "sav", ".xpt": "xport"}


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_text_that_is_not_in_the_encoding_of_its_file_is_missing_alone(suffix: str, tmp_path: Path) -> None:
    file, kind = tmp_path / f"visits{suffix}", WRITERS[suffix]
    frame = pd.DataFrame({"id": ["1", "2", "3"], "note": ["é", "QQQQ", "ab"]})
    getattr(pyreadstat, f"write_{kind}")(frame, str(file))
    file.write_bytes(file.read_bytes().replace(b"QQQQ", b"Q\xff\xfeQ"))
    with pytest.raises(Exception, match=r"."):  # the control: the library's own texts
        getattr(pyreadstat, f"read_{kind}")(str(file))
    table = dpnb.read_table(file, **NOTES)
    assert [None if pd.isna(text) else text for text in table["note"]] == ["é", None, "ab"]
    as_latin = dpnb.read_table(file, **NOTES, encoding="latin-1")
    assert as_latin["note"].tolist() == ["Ã©", "QÿþQ", "ab"]


@pytest.mark.filterwarnings("ignore")
def test_the_texts_of_an_old_stata_file_have_its_encoding(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": ["1", "2"], "note": ["é", "ÿ"]})
    for version in (114, 117, 118):
        frame.to_stata(tmp_path / "visits.dta", write_index=False, version=version)
        assert dpnb.read_table(tmp_path / "visits.dta", **NOTES)["note"].tolist() == ["é", "ÿ"], version


# --- cells of Excel ---------------------------------------------------------------------------------------------------

CELLS = {
    "a number that is none": '<c r="B3"><v>NaN</v></c>',
    "infinity": '<c r="B3"><v>inf</v></c>',
    "a long number": f'<c r="B3"><v>{"9" * 5000}</v></c>',
    "a decimal comma": '<c r="B3"><v>1,5</v></c>',
    "a truth value": '<c r="B3" t="b"><v>true</v></c>',
    "a date that is none": '<c r="B3" t="d"><v>2020-13-45</v></c>',
    "a text that is not there": '<c r="B3" t="s"><v>99</v></c>',
}


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_that_cannot_be_read_is_missing_alone(cell: str, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["id", "x"], [1, 1], [2, 4242], [3, 3]):
        book.active.append(row)
    book.save(tmp_path / "whole.xlsx")
    with zipfile.ZipFile(tmp_path / "whole.xlsx") as whole, zipfile.ZipFile(tmp_path / "a.xlsx", "w") as changed:
        for name in whole.namelist():
            content = whole.read(name).decode()
            changed.writestr(name, re.sub(r'<c r="B3"[^>]*><v>4242</v></c>', CELLS[cell], content))
    with pytest.raises((ValueError, IndexError)):  # the control: the library's own reader
        pd.read_excel(tmp_path / "a.xlsx")
    table = dpnb.read_table(tmp_path / "a.xlsx", schema={"x": dpnb.Bounded(0, 9)}, privacy_unit="id")
    assert table["x"].tolist() == [1, None, 3]
    assert table["id"].tolist() == ["1", "2", "3"]


# --- folders of Parquet files -----------------------------------------------------------------------------------------

DOUBLE = pa.array([1.5])
OTHERS = {
    "whole numbers": pa.array([2]),
    "a text": pa.array(["n/a"]),
    "another unit": pa.array([0], pa.timestamp("ms")),
    "nulls": pa.nulls(1),
    "no such column": None,
}


def folder_of(arrays: list[Any], folder: Path) -> Path:
    folder.mkdir()
    for number, array in enumerate(arrays):
        columns = {"id": pa.array([number]), **({} if array is None else {"x": array})}
        pyarrow.parquet.write_table(pa.table(columns), folder / f"{number}.parquet")
    return folder


@pytest.mark.parametrize("other", OTHERS)
def test_the_first_file_of_a_folder_does_not_decide_the_types_of_others(other: str, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"schema": {"x": dpnb.Bounded(0, 9)}, "privacy_unit": "id"}
    refused = []
    for order, arrays in enumerate(([DOUBLE, OTHERS[other]], [OTHERS[other], DOUBLE])):
        folder = folder_of(arrays, tmp_path / str(order))
        try:
            table = dpnb.read_table(folder, **arguments)
            assert [None if pd.isna(value) else value for value in table["x"]] == [1.5, None][:: 1 - 2 * order]
        except SchemaError as error:
            refused.append("must have one type in all files of the folder" in str(error))
    assert refused == ([] if other in ("nulls", "no such column") else [True, True])


def test_the_first_file_of_a_folder_decides_in_the_library(tmp_path: Path) -> None:  # the control
    folder = folder_of([OTHERS["whole numbers"], DOUBLE], tmp_path / "a")
    with pytest.raises(pa.ArrowInvalid):
        pa.dataset.dataset(folder).to_table()


def test_the_name_of_a_folder_that_is_not_utf_8_is_missing_alone(tmp_path: Path) -> None:
    for ward in ("%C3%A9", "%FF", "a+b", "007"):
        folder_of([DOUBLE], tmp_path / f"ward={ward}")
    table = dpnb.read_table(tmp_path, schema={"ward": dpnb.Text()}, privacy_unit="id")
    assert table["ward"].tolist() == ["é", None, "007", "a+b"]


def test_a_folder_that_also_has_deleted_rows_is_refused(tmp_path: Path) -> None:
    for name, log in (("delta", "_delta_log/0.json"), ("iceberg", "metadata/v1.metadata.json")):
        folder = folder_of([DOUBLE], tmp_path / name)
        assert dpnb.read_table(folder)["x"].tolist() == [1.5]
        (folder / log).parent.mkdir()
        (folder / log).write_text("{}")
        with pytest.raises(SchemaError, match="also have rows that were deleted"):
            dpnb.read_table(folder)
