"""Values within persons beside polars, in one process: ``python tests/bench/persons.py [--rows 10000000]``.

Of each question the first answer, which computes the values within persons, and the median of later answers, beside
polars' expression for the same without privacy and, as the measure of later answers, a mean of the rows.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpnb

PER_PERSON = 5
LATER = 5


def made(rows: int) -> pl.DataFrame:
    """Rows of persons in any order, about five of each."""
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "person": rng.integers(0, rows // PER_PERSON, rows),
            "year": rng.permutation(rows) % PER_PERSON,
            "y": rng.gamma(2, 2, rows).clip(0, 50),
        }
    )


def session(table: pl.DataFrame, folder: Path) -> dpnb.Session:
    """A session in which every row counts."""
    return dpnb.Session(
        table,
        name="persons",
        privacy_unit="person",
        max_rows_per_unit=4 * PER_PERSON,
        budget=dpnb.Budget(epsilon=100_000, delta=1e-5),
        schema={"y": dpnb.Bounded(0, 50), "year": dpnb.Bounded(0, PER_PERSON, integer=True)},
        public_size=len(table) // PER_PERSON,
        ledger=folder / "persons",
    )


def questions(frame: Any) -> dict[str, tuple[Callable[[], Any], pl.Expr | None]]:
    """Each question, and polars' expression; None for the mean of a group-by."""
    within, y = frame.sort_values("year").groupby("person")["y"], pl.col("y")
    return {
        "mean of rows": (frame["y"].mean, y.mean()),
        "sum per person, mean": (frame.groupby("person")["y"].sum().mean, None),
        "shift, mean": (within.shift(1).mean, y.shift(1).over("person", order_by="year").mean()),
        "diff, mean": (within.diff().mean, y.diff().over("person", order_by="year").mean()),
    }


def took(work: Callable[[], Any]) -> float:
    """Seconds of some work."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Print seconds, and ratios to polars and to a mean of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    table = made(parser.parse_args().rows)
    print(f"{len(table):,} rows\n{'':24}{'polars':>9}{'first':>9}{'ratio':>7}{'later':>9}{'to rows':>9}")
    with tempfile.TemporaryDirectory() as folder:
        asker = session(table, Path(folder))
        rows = None
        for name, (ask, expression) in questions(asker.frame).items():

            def plain(expression: pl.Expr | None = expression) -> Any:
                if expression is None:
                    return table.group_by("person").agg(pl.col("y").sum()).select(pl.col("y").mean())
                return table.select(expression)

            other = statistics.median(took(plain) for _ in range(3))
            first = took(lambda ask=ask: ask().release(mu=0.1))
            later = statistics.median(took(lambda at=at, ask=ask: ask().release(mu=0.1 + at)) for at in range(LATER))
            rows = later if rows is None else rows
            print(f"{name:24}{other:9.3f}{first:9.3f}{first / other:7.2f}{later:9.3f}{later / rows:9.2f}", flush=True)


if __name__ == "__main__":
    main()
