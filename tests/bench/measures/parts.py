"""The parts of the benchmark, each of which measures what is missing in a file of figures."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

from bench.measures.children import child

CLUSTERS = ("spark", "dask")

LONG = 900
"""Seconds that a table with all its contenders, or a session with many requests, may take."""

SHORT = 150
"""Seconds that an engine may take for one question with all its rounds."""


def bandwidth(kept: Any, asked: Any) -> None:
    """How fast the machine copies memory."""
    del asked
    kept.measure("bandwidth", lambda: child("measures.limits.bandwidth"))


def tables(kept: Any, asked: Any) -> None:
    """Tables in memory, beside pandas, polars and OpenDP."""
    opendp = None if "opendp" in asked.without else asked.opendp
    for rows in asked.rows:
        for person in (False, True):
            how = {"rows": rows, "person": person, "rounds": asked.rounds, "opendp": opendp}
            work = "measures.in_memory.measured"
            kept.measure(f"table {rows} {person}", lambda how=how, work=work: child(work, seconds=LONG, **how))


def one_thread(kept: Any, asked: Any) -> None:
    """The largest table with one core, beside polars."""
    how = {"rows": max(asked.rows), "rounds": asked.rounds}
    kept.measure(
        f"one thread {max(asked.rows)}",
        lambda: child("measures.in_memory.one_thread", seconds=LONG, one_core=True, **how),
    )


def memory(kept: Any, asked: Any) -> None:
    """The peak of each question's session, of the largest table."""
    from bench.measures.questions import PEOPLE, ROWS

    most = max(asked.rows)
    for person in (False, True):
        for question in PEOPLE if person else ROWS:
            how = {"rows": most, "person": person, "question": question}
            kept.measure(
                f"memory {most} {person} {question}", lambda how=how: child("measures.in_memory.memory", **how)
            )


def engines(kept: Any, asked: Any) -> None:
    """The largest table, held by polars and DuckDB."""
    from bench.measures.engines import ENGINES
    from bench.measures.questions import IN_ENGINES

    most = max(asked.rows)
    wanted = {
        f"engine {most} {engine} {person} {question}": {"engine": engine, "person": person, "question": question}
        for engine in ENGINES
        for person in (False, True)
        for question in IN_ENGINES
        if person or question != "units"
    }
    if all(kept.has(name) for name in wanted):
        return
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        child("measures.engines.held", rows=most, folder=folder)
        for name, how in wanted.items():
            how |= {"folder": folder, "rounds": min(asked.rounds, 5)}
            kept.measure(name, lambda how=how: child("measures.engines.asked", seconds=SHORT, **how))


def scale(kept: Any, asked: Any) -> None:
    """A Parquet file larger than memory."""
    from bench.measures.engines import ENGINES
    from bench.measures.scale import CONTENDERS, QUESTIONS

    wanted = {
        f"scale {question} {engine} {contender}": {"engine": engine, "contender": contender, "question": question}
        for question in QUESTIONS
        for engine in ENGINES
        for contender in CONTENDERS
    }
    if all(kept.has(name) for name in wanted):
        return
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        kept.found["scale file"] = child("measures.scale.written", rows=asked.scale_rows, folder=folder)
        for name, how in wanted.items():
            how |= {"folder": folder, "ledgers": asked.folder}
            kept.measure(name, lambda how=how: child("measures.scale.asked", **how))


def individual(kept: Any, asked: Any) -> None:
    """Individual accounting beside the worst case."""
    kept.measure("individual", lambda: child("individual.measured", rows=asked.individual_rows))


def starts(kept: Any, asked: Any) -> None:
    """The import and the extension."""
    del asked
    kept.measure("starts", lambda: child("measures.starts.starts"))


def costs(kept: Any, asked: Any) -> None:
    """The parts of a release."""
    kept.measure("costs", lambda: child("measures.costs.costs", folder=asked.folder))


def many(kept: Any, asked: Any) -> None:
    """A session with many requests."""
    how = {"requests": asked.requests, "folder": asked.folder}
    kept.measure("many", lambda: child("measures.many.many", seconds=LONG, **how))


def clusters(kept: Any, asked: Any) -> None:
    """Spark and Dask with two workers, beside their own queries."""
    from bench.measures.questions import PEOPLE, ROWS

    for engine in CLUSTERS:
        for question in (*(f"rows: {name}" for name in ROWS), *(f"persons: {name}" for name in PEOPLE)):
            how = {"engine": engine, "question": question, "rows": min(max(asked.rows), 10**6), "workers": 2}
            kept.measure(
                f"cluster {engine} {question}", lambda how=how: child("cluster.measured", seconds=SHORT, **how)
            )


def picker(kept: Any, asked: Any) -> None:
    """The budget picker in a kernel."""
    del asked
    kept.measure("picker", lambda: child("picker.first_sight", seconds=SHORT))


PARTS: dict[str, Callable[[Any, Any], None]] = {
    "bandwidth": bandwidth,
    "tables": tables,
    "one-thread": one_thread,
    "memory": memory,
    "engines": engines,
    "scale": scale,
    "costs": costs,
    "many": many,
    "individual": individual,
    "starts": starts,
    "picker": picker,
    "clusters": clusters,
}
"""In the order in which they run."""
