"""Files that have changed are refused under an old version, when a session is made and before every charge."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb._core.source_files import TableFileCheck
from dpnb.curator.personal_statement import statement
from dpnb.errors import InvalidValueError

TABLE = pd.DataFrame({"x": [float(number % 7) for number in range(100)], "pid": list(range(100))})
OTHER = TABLE.assign(x=TABLE["x"].to_numpy()[::-1])


def polars_parquet(folder: Path) -> Any:
    import polars

    return polars.scan_parquet(folder / "*.parquet").filter(polars.col("x") >= 0)


def polars_csv(folder: Path) -> Any:
    import polars

    return polars.scan_csv(folder / "a.csv")


def duckdb_parquet(folder: Path) -> Any:
    import duckdb

    return duckdb.connect().read_parquet(str(folder / "*.parquet")).filter("x >= 0")


def duckdb_csv_in_a_view(folder: Path) -> Any:
    import duckdb

    con = duckdb.connect()
    con.execute(f"create view v as select * from read_csv('{folder / 'a.csv'}')")
    return con.table("v")


def duckdb_text(folder: Path) -> Any:
    import duckdb

    return duckdb.connect().sql(f"select 1 as pid, length(content) % 6 as x from read_text('{folder / 'a.csv'}')")


READERS = {
    "polars, parquet": ("polars", polars_parquet, "a.parquet"),
    "polars, csv": ("polars", polars_csv, "a.csv"),
    "duckdb, parquet": ("duckdb", duckdb_parquet, "a.parquet"),
    "duckdb, csv in a view": ("duckdb", duckdb_csv_in_a_view, "a.csv"),
    "duckdb, the text of a file": ("duckdb", duckdb_text, "a.csv"),
}
Read = Callable[[Path], Any]


def written(table: pd.DataFrame, path: Path) -> None:
    table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False)


def opened(table: Any, path: Path, version: str = "1", **more: Any) -> dpnb.Session:
    return dpnb.Session(
        table,
        name="files",
        budget=dpnb.Budget.gdp(1),
        privacy_unit="pid",
        max_rows_per_unit=1,
        schema={"x": dpnb.Bounded(0, 6)},
        ledger=path / "files.dpnb",
        version=version,
        **more,
    )


CHANGES = [("polars, parquet", change) for change in ("rewritten", "touched", "replaced", "copied")]
CHANGES += [(reader, "rewritten") for reader in READERS if reader != "polars, parquet"]


@pytest.mark.parametrize(("reader", "change"), CHANGES)
def test_a_changed_file_needs_a_new_version(reader: str, change: str, tmp_path: Path) -> None:
    engine, read, name = READERS[reader]
    pytest.importorskip(engine)
    folder, ledger = tmp_path / "tables", tmp_path
    folder.mkdir()
    file = folder / name
    written(TABLE, file)
    session = opened(read(folder), ledger)
    session.frame.count().release(mu=0.1)
    later = opened(read(folder), ledger)  # unchanged, as in another kernel
    later.frame["x"].sum().release(mu=0.1)
    before = session.spent

    if change == "rewritten":
        written(OTHER, file)
    elif change == "touched":
        os.utime(file)
    elif change == "replaced":
        written(OTHER, tmp_path / name)
        (tmp_path / name).replace(file)
    else:
        shutil.copytree(folder, tmp_path / "copy", copy_function=shutil.copy2)
        folder = tmp_path / "copy"

    with pytest.raises(InvalidValueError, match="version: must be changed"):
        opened(read(folder), ledger)
    if change != "copied":
        with pytest.raises(InvalidValueError, match="nothing was charged"):
            session.frame["x"].mean().release(mu=0.1)
    assert session.spent == before
    session.frame.count().release(mu=0.1)  # was answered: free, and no row is read for it
    assert session.spent == before
    newer = opened(read(folder), ledger, version="2")
    newer.frame.count().release(mu=0.1)
    assert newer.spent != before


def test_a_file_more_that_a_pattern_stands_for_is_a_change(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    written(TABLE, tmp_path / "a.parquet")
    session = opened(duckdb_parquet(tmp_path), tmp_path)
    written(TABLE.assign(pid=TABLE["pid"] + 100), tmp_path / "b.parquet")
    with pytest.raises(InvalidValueError, match="version: must be changed"):
        session.frame.count().release(mu=0.1)
    assert not session.log.size


def test_what_is_noted_is_shown_nowhere_and_is_not_the_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("polars")
    file = tmp_path / "a.parquet"
    written(TABLE, file)
    session = opened(polars_parquet(tmp_path), tmp_path, accounting="individual")
    session.frame.count().release(mu=0.1)
    stat, rows = file.stat(), session.ledger.charges()
    shown = " ".join([repr(session), str(session), session._repr_html_(), session.log.to_string(), repr(rows)])
    for mark in (stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns):
        assert str(mark) not in shown
    assert len(session.log) == 1
    assert [charge.node for charge in rows] == [" files", ""]
    for row in rows[:1]:
        assert row.launch["digest"] not in session.log.to_string() + str(session) + session._repr_html_()

    session.ledger.close()
    monkeypatch.setattr("dpnb.curator.kernel.kernel_evidence", lambda: None)
    assert [entry.id for entry in statement(str(tmp_path / "files.dpnb"), [str(file)], "3").entries] == [rows[1].id]
    session = opened(polars_parquet(tmp_path), tmp_path, accounting="individual")

    def other_size(path: Any, **given: Any) -> Any:
        found = real(path, **given)
        marks = {name: getattr(found, name) for name in dir(found) if name.startswith("st_")}
        return SimpleNamespace(**{**marks, "st_size": found.st_size + 1})

    real = os.stat
    monkeypatch.setattr("dpnb._backends.lazy.engines.engine.os.stat", other_size)
    session.frame["x"].sum().release(mu=0.1)
    assert len(session.log) == 2


def test_a_table_in_memory_has_no_files(tmp_path: Path) -> None:
    session = opened(TABLE, tmp_path)
    session.frame.count().release(mu=0.1)
    assert session.ledger.count == 1


def test_without_a_look_before_the_charge_a_changed_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the first test."""
    pytest.importorskip("polars")
    written(TABLE, tmp_path / "a.csv")
    session = opened(polars_csv(tmp_path), tmp_path)
    written(OTHER, tmp_path / "a.csv")
    monkeypatch.setattr(TableFileCheck, "refuse_changed", lambda self: None)
    session.frame.count().release(mu=0.1)
    assert len(session.log) == 1
