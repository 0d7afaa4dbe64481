"""Sections of the page about tables that an engine holds or reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.measures.engines import ENGINES
from bench.measures.questions import IN_ENGINES
from bench.measures.scale import CONTENDERS, QUESTIONS
from bench.page.cells import DASH, GIGABYTE, heading, ratio, row, shown, unit, unmeasured


def engines(found: dict[str, Any], most: int) -> Iterator[str]:
    """A table that an engine holds, each question beside the plain query."""
    yield (
        f"{most:,} rows in a data frame of polars, given to the session as a lazy frame, or in a table of "
        "DuckDB, given as a relation; keys are texts, and the schema declares them. Each question has a "
        "process of its own, in which dpnb (ledger on disk) and the same question without privacy in the "
        "engine take turns. About persons the plain query keeps the first three rows of each person that pass "
        "the filter, then aggregates them.\n"
    )
    yield from heading("engine, unit, query", "dpnb first", "steady", "plain", "dpnb/plain")
    for engine in ENGINES:
        for person in (False, True):
            for question in IN_ENGINES:
                took = found.get(f"engine {most} {engine} {person} {question}")
                if took is None:
                    continue
                ours, ended = shown(took.get("dpnb")), ""
                if "over" in took or "error" in took:
                    ours, ended = unmeasured(took), DASH
                figures = shown(took.get("first")), ours, shown(took.get("plain"))
                compared = ended or ratio(took.get("dpnb"), took.get("plain"))
                yield row(f"{engine}, {unit(person)}, {question}", *figures, compared)


def clusters(found: dict[str, Any]) -> Iterator[str]:
    """Spark and Dask, beside their own queries."""
    kept = {name.removeprefix("cluster "): took for name, took in found.items() if name.startswith("cluster ")}
    if not kept:
        yield "Not measured: left out."
        return
    some = next(iter(kept.values()))
    if "rows" in some:
        yield f"{some['rows']:,} rows in Parquet files, a local cluster of {some['workers']} workers.\n"
    yield from heading("engine, unit, query", "set-up", "dpnb", "plain", "dpnb/plain")
    for name, took in kept.items():
        why = unmeasured(took)
        figures = shown(took.get("setup")), why or shown(took.get("dpnb")), shown(took.get("plain"))
        yield row(name.replace(" ", ", ", 1), *figures, ratio(took.get("dpnb"), took.get("plain")))


def scale(found: dict[str, Any]) -> Iterator[str]:
    """A Parquet file, each question and engine in a process of its own."""
    file = found.get("scale file", {"error": "left out"})
    if "bytes" not in file:
        yield f"{unmeasured(file)}"
        return
    size, held = (file[name] / GIGABYTE for name in ("bytes", "held"))
    yield (
        f"{size:.1f} GiB in pieces, which would be {held:.1f} GiB in memory, given to the session as "
        "`polars.scan_parquet(...)` or as a relation of duckdb (limited to 3 GB, with a folder to spill to). Each line "
        "is a process of its own: set-up, a first and a second query in seconds, and the whole peak of its resident "
        "memory. *plain* is the same query without privacy in the engine itself (polars streaming).\n"
    )
    yield from heading("query", "engine", "implementation", "set-up, s", "first, s", "second, s", "peak, GiB")
    for question in QUESTIONS:
        for engine in ENGINES:
            for contender in CONTENDERS:
                one = found.get(f"scale {question} {engine} {contender}", {"error": "left out"})
                names = question, engine, contender
                if "peak" not in one:
                    yield row(*names, unmeasured(one), *[DASH] * 3)
                    continue
                times = (DASH if name not in one else f"{one[name]:.1f}" for name in ("setup", "first", "second"))
                yield row(*names, *times, f"{one['peak'] / GIGABYTE:.2f}")
