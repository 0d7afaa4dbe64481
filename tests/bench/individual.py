"""What individual accounting costs: a release with its charges to single units, beside one of the worst case.

Both whole releases, with noise and ledger on disk, of the same table in the same run; medians of several, in seconds of
this process, so that others on the machine do not count.  Before it half of the units were made unable to pay.  The
last column is the exact sums alone, without noise and ledger.  ``python tests/bench/individual.py [rows]``
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpnb

TIMES = 5
MODES = ("skip", "clip")


def table(rows: int, people: int) -> pd.DataFrame:
    """Rows of invented people."""
    chance = np.random.default_rng(0)
    columns = {
        "who": chance.integers(0, people, rows),
        "group": chance.integers(0, 50, rows),
        "x": chance.random(rows) * 100,
    }
    return pd.DataFrame(columns)


def session(frame: pd.DataFrame, folder: Path, **how: Any) -> dpnb.Session:
    """One whose worst case is soon used up, or, without individual accounting, one that has enough."""
    schema = {"group": dpnb.Categories(range(50)), "x": dpnb.Bounded(0, 100)}
    name = "-".join(str(value) for value in how.values()) or "worst-case"
    mu = 1 if how.get("accounting") == "individual" else 1000
    return dpnb.Session(frame, name="bench", schema=schema, budget=dpnb.Budget.gdp(mu), ledger=folder / name, **how)


def questions(frame: Any) -> dict[str, Any]:
    """One of each kind."""
    return {
        "count, all": frame.count(),
        "count, filtered": frame[frame["x"] > 50].count(),
        "sum": frame["x"].sum(),
        "mean": frame["x"].mean(),
        "mean of 50 groups": frame.groupby("group")["x"].mean(),
        "median": frame["x"].median(),
        "units": frame.count_units(),
    }


def took(work: Callable[[], object]) -> float:
    """Median milliseconds of this process."""
    work()
    found = []
    for _ in range(TIMES):
        start = time.process_time()
        work()
        found.append(1000 * (time.process_time() - start))
    return statistics.median(found)


def released(query: Any) -> float:
    """A release of a target that was never asked for before."""
    amounts = itertools.count(1)
    return took(lambda: query.release(mu=0.1 + next(amounts) / 1000))


def asked(name: str, frame: pd.DataFrame, folder: Path, **how: Any) -> dict[str, Any]:
    """Milliseconds of each question in the worst case, in each mode, and of its sums."""
    folder.mkdir()
    plainly = session(frame, folder, **how)
    tables = plainly._core.tables
    sessions = {mode: session(frame, folder, accounting="individual", on_exhausted=mode, **how) for mode in MODES}
    for made in sessions.values():
        made.frame[made.frame["x"] < 50].count().release(mu=2)
    found = {}
    for words, query in questions(plainly.frame).items():
        figures = {"worst case": released(query)}
        figures |= {mode: released(questions(made.frame)[words]) for mode, made in sessions.items()}
        compiled = tables.compile(query.plan)
        figures["sums"] = took(lambda compiled=compiled: tables.opened.sums(compiled))  # type: ignore[misc]
        found[words] = figures
        print(f"{name:<8} {words:<20} {figures} ms", file=sys.stderr)
    return {"questions": found}


def measured(rows: int) -> dict[str, Any]:
    """What `asked` finds about rows and about people, in milliseconds."""
    frame = table(rows, rows // 4)
    with tempfile.TemporaryDirectory() as folder:
        units: dict[str, dict[str, Any]] = {"rows": {}, "people": {"privacy_unit": "who", "max_rows_per_unit": 8}}
        found = {name: asked(name, frame, Path(folder) / name, **how) for name, how in units.items()}
    return {"rows": rows, "units": found}


def main() -> None:
    """Measure once and print a table."""
    found = measured(int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000)
    print(f"{found['rows']:,} rows, milliseconds")
    print(f"{'':<28}{'worst case':>10}" + "".join(f"{mode:>16}" for mode in MODES) + f"{'sums alone':>12}")
    for name, unit in found["units"].items():
        for words, figures in unit["questions"].items():
            alone = figures["worst case"]
            ratios = "".join(f"{figures[mode]:>9.1f}{figures[mode] / alone:>6.1f}x" for mode in MODES)
            print(f"{name:<8}{words:<20}{alone:>10.1f}{ratios}{figures['sums']:>10.1f}")


if __name__ == "__main__":
    main()
