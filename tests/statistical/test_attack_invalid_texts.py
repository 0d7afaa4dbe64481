"""A text of one person that is not valid UTF-8: after the charge nothing but the noisy numbers may depend on it.

An Arrow table can hold such texts, and DuckDB and polars take them without a check.  DuckDB then fails where it changes
their case or returns them, and Python fails where it reads them.  A query that fails after it was charged would tell
that somebody has such a text.  The control leaves out the check, and the same comparison must see the failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb._backends.lazy.engines.duckdb import DuckDB
from dpnb._backends.lazy.engines.engine import Engine
from dpnb._backends.lazy.engines.polars import Polars
from pairwise import product

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

pytestmark = pytest.mark.slow

SCHEMA = {"x": dpnb.Bounded(0, 8), "t": dpnb.Text(max_length=20), "c": dpnb.Categories(["Trade", "farming"])}
INVALID = [
    b"\xff",
    b"a\xc3",  # cut off
    b"\xed\xa0\x80",  # half a surrogate pair
    b"\xf4\x90\x80\x80",  # beyond Unicode
    b"ann\x80\x80",
    b"\xc0\x80",  # overlong
]
ROWS = 60

CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "arrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "lazy polars": lambda table: pl.from_arrow(table).lazy(),
    "duckdb": lambda table: duckdb.connect().from_arrow(table),
}

QUERIES: dict[str, Callable[[Any], Any]] = {
    "count": lambda f: f.count(),
    "upper": lambda f: f.groupby(f["t"].str.upper(), keys=["ANN", "BOB"]).count(),
    "contains": lambda f: f[f["t"].str.contains("ANN", case=False)]["x"].sum(),
    "length": lambda f: f["t"].str.len().mean(),
    "missing": lambda f: f["t"].isna().mean(),
    "mapped": lambda f: f["t"].map({"ann": 1, "bob": 2}).sum(),
    "keys": lambda f: f.groupby("t", keys=["ann", "bob"]).count(),
    "categories": lambda f: f["c"].str.lower().value_counts(),
    "found": lambda f: f.discover("t"),
    "found in upper case": lambda f: f.discover(f["t"].str.upper()),
}


def table(column: str, values: Sequence[bytes | None]) -> Any:
    """A table with these values in a column, each in the first row of a person."""
    columns: dict[str, list[bytes | None]] = {
        "t": [b"ann", b"bob", b"eve"] * 20,
        "c": [b"Trade", b"farming", b"other"] * 20,
        "u": [],
    }
    columns["u"] = [b"p%d" % (row // 2) for row in range(ROWS)]
    columns[column][: 2 * len(values) : 2] = values
    arrays = {"x": pa.array([float(row % 9) for row in range(ROWS)])}
    for name, texts in columns.items():
        encoded = pa.array(texts, pa.binary())
        arrays[name] = pa.Array.from_buffers(pa.string(), ROWS, encoded.buffers())
    return pa.table(arrays)


def outcomes(container: str, rows: Any, folder: Path, unit: bool = False) -> dict[str, Any]:
    """The numbers of each answer, or its failure; with the same noise for every table."""
    session = dpnb.Session(
        CONTAINERS[container](rows),
        name="invalid",
        budget=dpnb.Budget(epsilon=200, delta=1e-6, discovery_delta=1e-7),
        schema=SCHEMA,
        ledger=folder / f"{len(list(folder.iterdir()))}.dpnb",
        not_private_test_seed=7,
        **({"privacy_unit": "u", "max_rows_per_unit": 2} if unit else {}),  # type: ignore[arg-type]
    )
    found: dict[str, Any] = {}
    for name, query in QUERIES.items():
        try:
            found[name] = query(session.frame).release(mu=5).to_pandas().to_dict("list")
        except dpnb.errors.DpnbError as error:
            found[name] = type(error)
    return found


@pytest.mark.parametrize(("container", "column"), product(CONTAINERS, ["t", "c"], together=1))
def test_an_invalid_text_counts_as_a_missing_one(container: str, column: str, tmp_path: Path) -> None:
    missing = outcomes(container, table(column, [None] * len(INVALID)), tmp_path)
    assert not [name for name, found in missing.items() if isinstance(found, type)]
    assert outcomes(container, table(column, INVALID), tmp_path) == missing


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_person_with_an_invalid_name_makes_no_query_fail(container: str, tmp_path: Path) -> None:
    found = outcomes(container, table("u", INVALID), tmp_path, unit=True)
    assert not [query for query, outcome in found.items() if isinstance(outcome, type)]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # polars prints what it cannot decode
@pytest.mark.parametrize(("engine", "container"), [(DuckDB, "duckdb"), (Polars, "lazy polars")])
def test_control_without_the_check_a_query_fails(
    engine: type[Engine], container: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "well_formed", Engine.well_formed)
    ordinary = outcomes(container, table("t", [b"ann"]), tmp_path)
    assert not [name for name, found in ordinary.items() if isinstance(found, type)]
    found = outcomes(container, table("t", INVALID[:1]), tmp_path)
    assert found["found"] is dpnb.errors.ExecutionError
