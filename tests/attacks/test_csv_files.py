"""One line of a text file changes how all other lines are read.

Kind: values
Fault: The reader of a CSV file infers the type of a column from its rows. One text turns codes into texts that match
no category, one missing identifier turns large integers into doubles that coincide, and an open quotation mark
swallows the lines after it, or stops the program.
Reported: opendp/opendp#2587; opendp/opendp#2374
dpnb: Every field is read as text, and converted alone, by the declared type of its column. A record is one physical
line; a line that is not one is dropped alone. Identifiers are the exact texts of their fields.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from attacks.common import answer
from dpnb._sources.formats import read_tables
from dpnb._sources.source import DataSource

CODES = [1, 2, 3, 4, 5]
OTHERS = [f"{10**17 + number},{CODES[number % 5]}" for number in range(400)]
LINES = {
    "a text in a column of codes": "1,unknown",
    "no identifier": ",3",
    "an identifier that is a text": "A12,3",
    "a fraction": "1,2.5",
    "too many fields": "1,2,3",
    "too few fields": "1",
    "an open quotation mark": '"1,2',
    "a huge number": f"1,{'9' * 400}",
    "a NUL": "1\0,2",
    "nothing": "",
}
Counts = Callable[[Path], list[float]]
"""From a file to the counts of all codes, and the number of persons."""


def attack(counts: Counts, folder: Path) -> list[str]:
    """Lines that change a count by more than one, at any place, or stop the program."""

    def read(lines: list[str]) -> list[float]:
        file = folder / "people.csv"
        file.write_bytes("\n".join(["id,code", *lines, ""]).encode())
        try:
            return counts(file)
        except Exception:  # noqa: BLE001  (that it fails is what is looked for)
            return [np.inf] * 6

    usual = read(OTHERS)
    assert usual == pytest.approx([80] * 5 + [400], abs=0.1)
    found = []
    for name, line in LINES.items():
        versions = [read([*OTHERS[:place], line, *OTHERS[place:]]) for place in (0, 200, 400)]
        if np.abs(np.subtract(versions, usual)).max() > 1.1:
            found.append(name)
    return found


def released(file: Path) -> list[float]:
    table = read_tables({"": DataSource(str(file))}, "table")[""]
    schema = {"code": dpnb.Categories(CODES)}
    limits: dict[str, Any] = {"privacy_unit": "id", "max_rows_per_unit": 1}
    groups = answer(table, schema, lambda frame: frame.groupby("code").count(), mu=500, **limits).estimate
    persons = answer(table, schema, lambda frame: frame.count_units(), mu=500, **limits).estimate
    return [*np.ravel(groups).tolist(), float(persons)]


def as_pandas_infers(file: Path) -> list[float]:
    table = pd.read_csv(file, low_memory=False)
    numbers = table["code"] if pd.api.types.is_numeric_dtype(table["code"]) else pd.Series(dtype=float)
    return [*(int((numbers == code).sum()) for code in CODES), table["id"].nunique()]


def test_dpnb_resists(tmp_path: Path) -> None:
    assert attack(released, tmp_path) == []


def test_the_control_is_caught(tmp_path: Path) -> None:
    found = attack(as_pandas_infers, tmp_path)
    assert {"a text in a column of codes", "no identifier", "an open quotation mark"} <= set(found)
