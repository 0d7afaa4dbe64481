"""``values_file``: a list of categories in a file is that list, and a fault is said with file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb.errors import SchemaError
from dpnb.session.declaration import read_declaration

HEAD = 'name = "c"\nmissing = ["NA", "-9"]\n[budget]\nmu = 1\n[schema.icd]\ntype = "categories"\n'


def declaration(folder: Path, content: bytes, key: str = 'values_file = "codes.txt"') -> Path:
    (folder / "codes.txt").write_bytes(content)
    path = folder / "c.toml"
    path.write_text(f"{HEAD}{key}\n", encoding="utf-8")
    return path


def declared(path: Path) -> Any:
    return read_declaration(path, dpnb.Session).arguments()["schema"]["icd"]


LISTS: dict[str, tuple[bytes, list[Any]]] = {
    "texts": (b"A00\nA00.1\n\xc3\xa4\n", ["A00", "A00.1", "ä"]),
    "numbers": (b"1\n2.5\n-3\n", [1, 2.5, -3]),
    "codes that begin with zero": (b"01\n2\n", ["01", "2"]),
    "numbers that are texts": (b'"1"\n"2"\n', ["1", "2"]),
    "a number among texts": (b"1\n1.0\nx\n", ["1", "1.0", "x"]),
    "quotation marks": (b'"a, b"\n"say ""c"""\n" d"\n', ["a, b", 'say "c"', " d"]),
    "of Windows, with spaces": (b"\xef\xbb\xbfa\r\nb c \r\n", ["a", "b c"]),
    "without a last end of line": (b"a\nb", ["a", "b"]),
    "more digits than a number has": (b"9" * 5000, ["9" * 5000]),
}


@pytest.mark.parametrize(("content", "values"), LISTS.values(), ids=LISTS)
def test_a_file_is_the_list_that_it_has(content: bytes, values: list[Any], tmp_path: Path) -> None:
    found = declared(declaration(tmp_path, content))
    assert found == dpnb.Categories(values)
    assert [*map(type, found.values)] == [*map(type, values)]


FAULTS: dict[str, tuple[bytes, str]] = {
    "a duplicate": (b"a\nb\na\n", "codes.txt, line 3: 'a' is on line 1 too"),
    "one number, written twice": (b"1\n1.0\n", "codes.txt, line 2: '1.0' is on line 1 too"),
    "an empty line": (b"a\n \nb\n", "codes.txt, line 2: is empty; remove it"),
    "an empty category": (b'a\n""\n', "codes.txt, line 2: is empty"),
    "a missing value": (b"a\nNA\n", "codes.txt, line 2: 'NA' is also in missing ="),
    "a missing value that is a number": (b"1\n-9\n", "codes.txt, line 2: '-9' is also in missing ="),
    "another encoding": ("a\nB\xe4r\n".encode("latin-1"), "codes.txt, line 2: is not UTF-8"),
    "two columns": (b"A00,Cholera\n", "codes.txt, line 1: must have one category; got 'A00,Cholera'; keep the column"),
    "two columns of a German file": (b"A00;Cholera\n", "codes.txt, line 1: must have one category"),
    "an open quotation mark": (b'a\n"b\n', "codes.txt, line 2: must have one category in quotation marks"),
    "no lines": (b"", "codes.txt: must be a text file in UTF-8 .* it is empty"),
    "too many lines": (b"\n".join(b"%d" % n for n in range(100_001)), "codes.txt: .* at most 100,000 lines"),
    "too many bytes": (b"a" * (2**21 + 1), "codes.txt: .* at most 100,000 lines and 2,097,152 bytes"),
}


@pytest.mark.parametrize(("content", "says"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_said_with_both_files_and_lines(content: bytes, says: str, tmp_path: Path) -> None:
    path = declaration(tmp_path, content)
    with pytest.raises(SchemaError, match=says) as refused:
        declared(path)
    assert str(refused.value).startswith(f"{path}, line 7: schema.icd: values_file: ")


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ('values_file = "none.txt"', "none.txt: must be a text file .* No such file"),
        ('values_file = "."', "Is a directory"),
        ('values_file = ""', "must be the path of a file"),
        ("values_file = 3", "must be the path of a file, in place of values; got 3"),
        ('values_file = "codes.txt"\nvalues = ["a"]', "got 'codes.txt' and values"),
        ('value_file = "codes.txt"', "did you mean 'values_file'"),
        ("", "'values' is missing in schema.icd; add it; the keys are values, values_file"),
    ],
)
def test_a_key_that_names_no_list_is_refused(key: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(dpnb.errors.DpnbError, match=says):
        declared(declaration(tmp_path, b"a\n", key))


def test_equal_lists_are_one_declaration_and_another_list_needs_a_version(tmp_path: Path) -> None:
    table, keys = pd.DataFrame({"icd": ["a", "b"]}), 'values = ["a", "b"]'
    path = declaration(tmp_path, b"", keys)
    text = path.read_text().replace('missing = ["NA", "-9"]\n', "")  # of files only
    path.write_text(text)
    first = dpnb.Session.from_toml(path, table).frame.count().release(mu=0.1)
    path.write_text(text.replace(keys, 'values_file = "codes.txt"'))
    (tmp_path / "codes.txt").write_text("a\nb\n")
    assert dpnb.Session.from_toml(path, table).frame.count().release(mu=0.1).estimate == first.estimate
    (tmp_path / "codes.txt").write_text("a\nb\nc\n")
    with pytest.raises(dpnb.errors.DpnbError, match="version"):
        dpnb.Session.from_toml(path, table)
    path.write_text(f'version = "2"\n{path.read_text()}')
    assert dpnb.Session.from_toml(path, table).schema["icd"].values == ("a", "b", "c")
