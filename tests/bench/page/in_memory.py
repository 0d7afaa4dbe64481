"""Sections of the page about tables in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.measures.questions import ROWS
from bench.page.bars import THREADS, limit, place_of
from bench.page.cells import DASH, GIGABYTE, MEGABYTE, digits, heading, ratio, row, shown, unit, unmeasured


def _tables(found: dict[str, Any], rows: list[int]) -> Iterator[tuple[int, bool, dict[str, Any]]]:
    for number in rows:
        for person in (False, True):
            yield number, person, found.get(f"table {number} {person}", {"error": "left out"})


def opendp(found: dict[str, Any], rows: list[int]) -> dict[str, str]:
    """Which OpenDP it was, and what it could not answer."""
    tables = [table for _, _, table in _tables(found, rows) if "opendp" in table]
    said = [table["opendp"] for table in tables]
    if not said or "error" in said[0]:
        why = said[0]["error"] if said else "nothing was measured"
        return {"opendp": f"Not measured: {why}.", "more": ""}
    failures = sorted({f"{name}: {why}" for table in tables for name, why in table["failures"].items()})
    return {
        "opendp": f"{said[0]['version']}, in another process with the same table.",
        "more": f" It could not answer {'; '.join(failures)}." if failures else "",
    }


def figures(found: dict[str, Any], rows: list[int]) -> Iterator[str]:
    """Every question of every table."""
    yield from heading(
        *("unit, rows, query", "dpnb first", "steady", "pandas", "polars", "OpenDP"),
        *("dpnb/pandas", "dpnb/polars", "dpnb/OpenDP"),
    )
    for number, person, table in _tables(found, rows):
        why = unmeasured(table)
        if why is not None:
            yield row(f"{unit(person)}, {number:,}", why, *[DASH] * 7)
        for question, took in table.get("questions", {}).items():
            steady = took["dpnb"]
            yield row(
                f"{unit(person)}, {number:,}, {question}",
                *(shown(took[name]) for name in ("first", "dpnb", "pandas", "polars", "opendp")),
                *(ratio(steady, took[name]) for name in ("pandas", "polars", "opendp")),
            )


def memory(found: dict[str, Any], rows: list[int]) -> Iterator[str]:
    """Peaks of the queries for which they were measured."""
    yield from heading("unit, rows, query", "peak memory, MB", "peak/columns")
    for number, person, table in _tables(found, rows):
        for question in table.get("questions", {}):
            held = found.get(f"memory {number} {person} {question}", {})
            if "peak" in held:
                peak = digits(held["peak"] / MEGABYTE)
                yield row(f"{unit(person)}, {number:,}, {question}", peak, ratio(held["peak"], held["columns"]))


def opendp_times(found: dict[str, Any], rows: list[int]) -> Iterator[str]:
    """What OpenDP needs in addition to the measured queries."""
    yield from heading("unit, rows", "set-up, until it has the table", "a count whose scale is searched for")
    for number, person, table in _tables(found, rows):
        if "setup" in table.get("opendp", {}):
            yield row(f"{unit(person)}, {number:,}", shown(table["opendp"]["setup"]), shown(table.get("context")))


def setups(found: dict[str, Any], rows: list[int]) -> Iterator[str]:
    """What a session takes before its first question."""
    yield from heading("unit, rows", "set-up", "a copy of the columns", "ratio", "reading them from Parquet", "ratio")
    for number, person, table in _tables(found, rows):
        if "setup" in table:
            compared = (cell for name in ("read", "file") for cell in _compared(table, name))
            yield row(f"{unit(person)}, {number:,}", shown(table["setup"]), *compared)


def _compared(table: dict[str, Any], name: str) -> tuple[str, str]:
    return shown(table[name]), ratio(table["setup"], table[name])


def limits(found: dict[str, Any], most: int) -> Iterator[str]:
    """Rows in memory beside polars and beside what the memory allows, on one thread and on all."""
    copied = found.get("bandwidth", {})
    if "threads" in copied:
        one, several = (copied[name] / GIGABYTE for name in ("one thread", "all threads"))
        yield (
            f"numpy's copy of an array of {copied['size'] / MEGABYTE:,.0f} MiB, which is larger than any cache, to "
            f"another one reads {one:.1f} GiB a second with one thread and {several:.1f} with {copied['threads']}, "
            "each of which copies its part (medians; what is written is not counted). *Read* is what dpnb holds "
            "of the columns that an answer depends on, each once: 16-bit codes of what the filter compares, if "
            "compiled kernels are in use, or 64-bit floats; floats of quantiles; integers of sums; codes of keys. "
            "The *limit* is *read* divided by that speed. One thread: a process with one core, and polars with "
            "one thread. All threads: the figures of the table above.\n"
        )
    yield from heading("rows, query, threads", "read, MB", "limit", "dpnb", "polars", "dpnb/polars", "dpnb/limit")
    for place, words in THREADS.items():
        for question in ROWS:
            took = found.get(place_of(place, most), {}).get("questions", {}).get(question)
            if took is not None:
                least, read = limit(found, place, took), took["bytes"] / MEGABYTE
                figures = shown(least), shown(took["dpnb"]), shown(took["polars"])
                compared = ratio(took["dpnb"], took["polars"]), ratio(took["dpnb"], least)
                yield row(f"{question}, {words}", f"{read:.0f}", *figures, *compared)
