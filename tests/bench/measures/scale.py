"""A Parquet file larger than memory: asked through lazy polars and duckdb, each engine in a process of its own."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpnb
from bench.measures.peak import Peak
from bench.measures.questions import BUDGET, MOST
from bench.measures.tables import in_polars, made

PIECE = 5_000_000
NAMES = ["x", "y", "g50", "person", "word"]  # nobody asks about the texts: they are there to be left out
CONTENDERS = ("dpnb", "plain")
SCHEMA = {"x": dpnb.Bounded(0, 100), "y": dpnb.Bounded(0, 200), "g50": dpnb.Categories(range(50))}
DUCKDB = {"memory_limit": "3GB"}

# Question -> whether about persons, dpnb's words, the same in SQL without privacy.
FIRST_ROWS = (
    "(SELECT * FROM (SELECT y, row_number() OVER (PARTITION BY person) AS place FROM big WHERE x > {above}) "
    f"WHERE place <= {MOST})"
)
QUESTIONS: dict[str, tuple[bool, Callable[[Any], Any], str]] = {
    "rows: mean by 50 keys": (
        False,
        lambda view: view.groupby("g50")["y"].mean(),
        "SELECT g50, avg(y) FROM big WHERE x > {above} GROUP BY g50",
    ),
    "rows: sum": (False, lambda view: view["y"].sum(), "SELECT sum(y) FROM big WHERE x > {above}"),
    "persons: units": (
        True,
        lambda view: view.count_units(),
        "SELECT count(DISTINCT person) FROM big WHERE x > {above}",
    ),
    "persons: mean": (True, lambda view: view["y"].mean(), f"SELECT avg(y) FROM {FIRST_ROWS}"),
}


def written(rows: int, folder: str) -> dict[str, Any]:
    """Write the table in pieces, none of which is large."""
    import polars as pl

    start, held = time.perf_counter(), 0
    for first in range(0, rows, PIECE):
        columns = made(rows, NAMES, first, min(first + PIECE, rows))
        groups = pl.Series("g50", columns.pop("g50"))  # stay numbers: no engine keeps categories alike
        piece = in_polars(columns).with_columns(groups)
        held += piece.estimated_size()
        piece.write_parquet(Path(folder) / f"{first // PIECE:04d}.parquet")
    size = sum(path.stat().st_size for path in Path(folder).glob("*.parquet"))
    return {"rows": rows, "seconds": time.perf_counter() - start, "bytes": size, "held": held}


def asked(folder: str, engine: str, contender: str, question: str, ledgers: str) -> dict[str, Any]:
    """Seconds of set-up and of two releases, or of the same without privacy, and the process's whole peak of memory."""
    person, words, sql = QUESTIONS[question]
    peak = Peak()
    start = time.perf_counter()
    table = _opened(folder, engine)
    found: dict[str, Any] = {}
    if contender == "dpnb":
        limits = {"privacy_unit": "person", "max_rows_per_unit": MOST} if person else {}
        with tempfile.TemporaryDirectory(dir=ledgers) as place:
            asker = dpnb.Session(table, name="big", budget=BUDGET, schema=SCHEMA, ledger=Path(place) / "big", **limits)
            found["setup"] = time.perf_counter() - start
            for name, above in _thresholds(person):
                start = time.perf_counter()
                frame = asker.frame
                words(frame[frame["x"] > above]).release(mu=0.5)
                found[name] = time.perf_counter() - start
    else:
        for name, above in _thresholds(person):
            start = time.perf_counter()
            _plain(table, engine, question, sql, above)
            found[name] = time.perf_counter() - start
    return {**found, "peak": peak.whole()}


def _thresholds(person: bool) -> list[tuple[str, int]]:
    """What is asked one after the other; about persons, which takes minutes, once."""
    return [("first", 40), ("second", 45)][: 1 if person else 2]


def _opened(folder: str, engine: str) -> Any:
    files = f"{folder}/*.parquet"
    if engine == "polars":
        import polars as pl

        return pl.scan_parquet(files)
    import duckdb

    # Not all of this class of machine's 4 GB: Python needs some too.
    return duckdb.connect(config={**DUCKDB, "temp_directory": f"{folder}/spilled"}).read_parquet(files)


def _plain(table: Any, engine: str, question: str, sql: str, above: float) -> object:
    if engine == "duckdb":
        return table.query("big", sql.format(above=above)).fetchall()
    import polars as pl

    kept, y = table.filter(pl.col("x") > above), pl.col("y")
    if question == "rows: mean by 50 keys":
        asked = kept.group_by("g50").agg(y.mean())
    elif question == "rows: sum":
        asked = kept.select(y.sum())
    elif question == "persons: units":
        asked = kept.select(pl.col("person").n_unique())
    else:
        asked = kept.select("person", "y").group_by("person").head(MOST).select(y.mean())
    return asked.collect(engine="streaming")
