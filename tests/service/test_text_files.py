"""A served CSV file: one person's line neither stops the service nor changes what others count as."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpnb.service.configuration.settings import read_settings
from dpnb.service.opening import check_table, open_table

DECLARATION = """
name = "people"
privacy_unit = "id"
max_rows_per_unit = 3
missing = ["NA"]
[budget]
mu = 1000
[schema]
code = { type = "categories", values = ["00001", "00002", "00003"] }
"""
LINES = [f"{10**17 + number % 200},0000{number % 3 + 1}" for number in range(600)]


def served(folder: Path, lines: list[str]) -> list[int]:
    """The counts that the service on a file with these lines answers, without visible noise."""
    folder.mkdir()
    (folder / "people.toml").write_text(DECLARATION)
    (folder / "people.csv").write_text("\n".join(["id,code,note", *(f"{line},x" for line in lines)]))
    (folder / "curator.toml").write_text('[tables.people]\ndeclaration = "people.toml"\ndata = "people.csv"\n')
    settings = read_settings(folder / "curator.toml").tables["people"]
    check_table(settings)
    table = open_table(settings)
    try:
        frame = table.session.frame
        counts = frame.groupby("code").count().release(mu=200).to_pandas().iloc[:, 0]
        return [*counts.round().astype(int), round(float(frame.count_units().release(mu=200)))]
    finally:
        table.close()


@pytest.mark.parametrize(
    "line", ["7,words", ",00002", '7,"00002', "7", "7,1,2,3,4", "NA,00001", f"{10**17},00001"], ids=str
)
def test_one_line_changes_no_answer_by_more_than_its_own(line: str, tmp_path: Path) -> None:
    before = served(tmp_path / "before", LINES)
    assert before == [200, 200, 200, 200]
    for name, lines in (("first", [line, *LINES]), ("last", [*LINES, line])):
        assert np.abs(np.subtract(served(tmp_path / name, lines), before)).max() <= 1
