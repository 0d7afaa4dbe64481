"""Lazy frames of polars."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from contracts.engines import QUESTIONS, SCHEMA, TABLE, UNITS, SortingEngineContract, compiled, same
from dpnb._backends import MemoryBackend, opened
from dpnb._backends.lazy import lazy_backend
from dpnb._backends.lazy.engines import Polars
from dpnb._backends.lazy.engines.engine import digest_of
from dpnb.errors import SchemaError
from waiting import LIMIT

pl = pytest.importorskip("polars")


class TestPolars(SortingEngineContract):
    engine = Polars

    def native(self, table: pd.DataFrame) -> Any:
        return pl.from_pandas(table).lazy()


def test_a_division_by_a_reciprocal_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Polars, "divided", lambda engine, column, by: column / by)
    tables = {"": TABLE}, {"": SCHEMA}, {"": UNITS["row"]}
    here, there = MemoryBackend.read(*tables), opened({"": pl.from_pandas(TABLE).lazy()}, *tables[1:])
    for name in ("variance", "whole quotient of multiples"):
        for query in compiled(QUESTIONS[name], UNITS["row"]):
            with pytest.raises(AssertionError):
                same(query, here, there)


def test_a_type_that_lists_its_values_is_refused_without_them(tmp_path: Path) -> None:
    table = pl.LazyFrame({"x": pl.Series(["seen", "rare"], dtype=pl.Enum(["seen", "rare"]))})
    with pytest.raises(SchemaError, match="column 'x'") as refused:
        dpnb.Session(
            table, name="e", budget=dpnb.Budget.gdp(1), schema={"x": dpnb.Bounded(0, 1)}, ledger=tmp_path / "e.dpnb"
        )
    assert "seen" not in str(refused.value)
    assert "rare" not in str(refused.value)


ONE_ROW = {
    "budget": dpnb.Budget.gdp(10),
    "privacy_unit": "who",
    "max_rows_per_unit": 1,
    "schema": {"x": dpnb.Bounded(0, 2)},
}

RESOLVED = """
import sys, warnings
import dpnb, polars
sys.path += {tests!r}
from backends.engines.test_polars import ONE_ROW, TABLES
warnings.simplefilter("ignore")  # the scan of Iceberg recommends a plugin
append, scan = TABLES[{name!r}]({folder!r})
rows = polars.DataFrame({{"who": ["ann", "ann", "bob"], "x": [1.0, 1.0, 2.0]}})
append(rows)

def opened(version):
    return dpnb.Session(scan(), name="t", version=version, ledger={folder!r} + "/t.dpnb", **ONE_ROW)

def exact(session):
    tables = session._core.tables
    return int(tables.opened.sums(tables.compile(session.frame.count().plan))[0])

session = opened("1")
print(exact(session), exact(opened("1")))
append(rows.with_columns(who=polars.lit("eve")))
for make in (lambda: session.frame.count().release(mu=1), lambda: opened("1")):
    try:
        make()
    except dpnb.errors.InvalidValueError as error:
        print(str(error)[:24])
print(exact(opened("2")), len(session.log))
"""


def delta(folder: str) -> tuple[Any, Any]:
    """A table of Delta Lake: append rows to it, and scan it."""
    return lambda rows: rows.write_delta(f"{folder}/t", mode="append"), lambda: pl.scan_delta(f"{folder}/t")


def iceberg(folder: str) -> tuple[Any, Any]:
    """A table of Iceberg, in a catalogue in SQLite."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalogue = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/tables")
    catalogue.create_namespace("n")

    def append(rows: Any) -> None:
        table = catalogue.create_table_if_not_exists("n.t", schema=rows.to_arrow().schema)
        table.append(rows.to_arrow().cast(table.schema().as_arrow()))

    return append, lambda: pl.scan_iceberg(catalogue.load_table("n.t"))


TABLES = {"deltalake": delta, "pyiceberg": iceberg}


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_is_resolved_in_python_is_read_and_a_later_commit_needs_a_new_version(
    name: str, tmp_path: Path
) -> None:
    """In a process of its own: if polars waited for Python here, nothing in the process could end it."""
    pytest.importorskip(name)
    script = RESOLVED.format(name=name, folder=str(tmp_path), tests=[path for path in sys.path if path])
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert run.stdout.split("\n")[:4] == ["2 2", *["version: must be changed"] * 2, "3 0"], run.stderr


@pytest.mark.waits
def test_a_table_that_does_not_describe_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its columns are asked of a function that never returns; later sessions do not wait for it."""
    from polars.io.plugins import register_io_source

    may_end = threading.Event()

    def columns() -> Any:
        may_end.wait(LIMIT)
        return {"who": pl.String, "x": pl.Float64}

    monkeypatch.setattr(lazy_backend, "OPENING_SECONDS", 0.1)
    never = register_io_source(lambda *_: iter(()), schema=columns)
    try:
        with pytest.raises(SchemaError, match="columns must be known within"):
            dpnb.Session(never, name="never", ledger=":memory:", **ONE_ROW)
        monkeypatch.undo()
        table = pl.LazyFrame({"who": ["ann"], "x": [1.0]})
        dpnb.Session(table, name="t", ledger=":memory:", **ONE_ROW).frame.count().release(mu=1)
    finally:
        may_end.set()


def test_the_files_of_another_machine_are_not_looked_for() -> None:
    """`visit` would wait for them, and for credentials from Python, while it keeps the interpreter's lock."""

    class Remote:
        def explain(self, **_: object) -> str:
            return "Parquet SCAN [s3://bucket/a.parquet, ... 6 other sources]\nPROJECT */3 COLUMNS"

    assert digest_of({"": Polars().files(Remote())}) is None
