"""The page of results: one table, the targets, and what was measured apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.page.bars import FIXED, FULL, bars

DASH = "–"
GIGABYTE, MEGABYTE = 2**30, 2**20

HEAD = """# Benchmarks

How long queries take in dpnb, pandas, polars and OpenDP on the same tables. Times are milliseconds unless a unit is
given. `make bench` measures and writes this page (`tests/bench/speed.py`); do not edit it by hand.
"""

HOW = """## How it was measured

- **Table**: synthetic, from a fixed seed: two float columns, categories of 50 and of 1,000 keys, texts of 300 words,
  persons with one to five rows each, in random order. pandas holds the categories as `category` and the texts as its
  own `str`, polars as `Enum` and `String`.
- **Query**: each is about the rows where `x` is above a threshold, which differs from release to release: repeating
  the same query would be free. Quantiles are three (0.25, 0.5, 0.75), discovered keys are those of the texts.
- **dpnb**: `Session(...)` with real noise and its ledger on disk; from building the query to the answer. *First* is
  the first query of a new session in a process that has everything imported; *steady* the median of {rounds} more.
- **pandas, polars**: the same aggregation without privacy, in the same process, taking turns with dpnb, medians of as
  many. Only the columns that are needed are taken. About persons they keep the first three rows of each that pass the
  filter, again in each query; dpnb keeps three rows of each before it filters, and remembers which. polars may use
  all cores.
- **OpenDP**: {opendp}
  It needs one exact release of polars, therefore an environment of its own. Its noise scales are given by hand
  through its measurement API, and its compositor counts them. A mean is a sum and a count, groups are public keys that
  it joins, and quantiles choose among 201 candidates.{more}
  Its Context API would search for the scales, which takes longer, and it sets itself up first: see below.
- **Memory**: a process of its own for each query, whose session declares the columns that the query uses and no
  others; the peak of resident memory above the frame, over set-up and two releases, and its ratio to the size of these
  columns in pandas.
- **Set-up** is compared with one copy of every declared column of the frame (for texts of their buffers), and with
  `pandas.read_parquet` of a file of these columns that the system holds in memory.  For persons it also puts the rows
  in the order of their persons and chooses which of them count, which pandas and polars repeat in each query.
- Ratios are of medians of one run.
"""


def page(found: dict[str, Any], *, rows: list[int], rounds: int, scale_rows: int) -> str:
    """The whole page in Markdown."""
    lines = [HEAD, "## The machine\n", *(f"- {name}: {text}" for name, text in found["machine"].items()), ""]
    lines += [HOW.format(rounds=rounds, **_opendp(found, rows)), "## Figures\n", *_figures(found, rows), ""]
    lines += ["### Memory\n", *_memory(found, rows), ""]
    lines += ["### Set-up of a session\n", *_setups(found, rows), ""]
    lines += ["### Set-up and scales of OpenDP\n", *_opendp_times(found, rows), ""]
    if "costs" in found:
        lines += ["### The parts of a release\n", *_costs(found["costs"]), ""]
    lines += ["## Targets\n", *_bars(found, max(rows)), ""]
    if "scale" in found:
        lines += [f"## A Parquet file of {scale_rows:,} rows\n", *_scale(found["scale"]), ""]
    if "many" in found:
        lines += ["## A session with many requests\n", *_many(found["many"]), ""]
    return "\n".join(lines).rstrip() + "\n"


def shown(seconds: float | None) -> str:
    """Milliseconds, three digits."""
    return DASH if seconds is None else _digits(1000 * seconds)


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _ratio(one: float | None, other: float | None) -> str:
    if one is None or not other:
        return DASH
    return f"{_digits(one / other)}×" if one / other >= 0.005 else "<0.01×"


def _row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def _heading(*cells: str) -> Iterator[str]:
    yield _row(*cells)
    yield "|---|" + "---:|" * (len(cells) - 1)


def _tables(found: dict[str, Any], rows: list[int]) -> Iterator[tuple[int, bool, dict[str, Any]]]:
    for number in rows:
        for person in (False, True):
            yield number, person, found.get(f"table {number} {person}", {"error": "not measured"})


def _opendp(found: dict[str, Any], rows: list[int]) -> dict[str, str]:
    tables = [table for _, _, table in _tables(found, rows) if "error" not in table]
    said = [table["opendp"] for table in tables]
    if not said or "error" in said[0]:
        why = said[0]["error"] if said else "nothing was measured"
        return {"opendp": f"Not measured: {why}.", "more": ""}
    failures = sorted({f"{name}: {why}" for table in tables for name, why in table["failures"].items()})
    return {
        "opendp": f"{said[0]['version']}, in another process with the same table.",
        "more": f" It could not answer {'; '.join(failures)}." if failures else "",
    }


def _unit(person: bool) -> str:
    return "persons" if person else "rows"


def _figures(found: dict[str, Any], rows: list[int]) -> Iterator[str]:
    yield from _heading(
        *("unit, rows, query", "dpnb first", "steady", "pandas", "polars", "OpenDP"),
        *("dpnb/pandas", "dpnb/polars", "dpnb/OpenDP"),
    )
    for number, person, table in _tables(found, rows):
        if "error" in table:
            yield _row(f"{_unit(person)}, {number:,}", f"not measured: {table['error']}", *[DASH] * 7)
            continue
        for question, took in table["questions"].items():
            steady = took["dpnb"]
            yield _row(
                f"{_unit(person)}, {number:,}, {question}",
                *(shown(took[name]) for name in ("first", "dpnb", "pandas", "polars", "opendp")),
                *(_ratio(steady, took[name]) for name in ("pandas", "polars", "opendp")),
            )


def _memory(found: dict[str, Any], rows: list[int]) -> Iterator[str]:
    """Peaks of the queries for which they were measured."""
    yield from _heading("unit, rows, query", "peak memory, MB", "peak/columns")
    for number, person, table in _tables(found, rows):
        for question in table.get("questions", {}):
            held = found.get(f"memory {number} {person} {question}", {"error": ""})
            if "error" not in held:
                peak = _digits(held["peak"] / MEGABYTE)
                yield _row(f"{_unit(person)}, {number:,}, {question}", peak, _ratio(held["peak"], held["columns"]))


def _opendp_times(found: dict[str, Any], rows: list[int]) -> Iterator[str]:
    """What OpenDP needs in addition to the measured queries."""
    yield from _heading("unit, rows", "set-up, until it has the table", "a count whose scale is searched for")
    for number, person, table in _tables(found, rows):
        if "error" not in table and "error" not in table["opendp"]:
            yield _row(f"{_unit(person)}, {number:,}", shown(table["opendp"].get("setup")), shown(table["context"]))


def _setups(found: dict[str, Any], rows: list[int]) -> Iterator[str]:
    yield from _heading("unit, rows", "set-up", "a copy of the columns", "ratio", "reading them from Parquet", "ratio")
    for number, person, table in _tables(found, rows):
        if "error" not in table:
            compared = (cell for name in ("read", "file") for cell in _compared(table, name))
            yield _row(f"{_unit(person)}, {number:,}", shown(table["setup"]), *compared)


def _compared(table: dict[str, Any], name: str) -> tuple[str, str]:
    return shown(table[name]), _ratio(table["setup"], table[name])


def _costs(costs: dict[str, Any]) -> Iterator[str]:
    if "error" in costs:
        yield f"Not measured: {costs['error']}"
        return
    yield from _heading("on a table of 1,000 rows, medians", "ms")
    for words, name in (
        ("a whole release (a mean), ledger on disk", "release, ledger on disk"),
        ("the same, ledger in memory", "release, ledger in memory"),
        ("the accounting: a step of filter and odometer, the noise scale, the headroom", "accounting"),
        ("a charge with its row in a ledger in memory", "charge, memory"),
        ("a charge with its durable row on disk", "charge, disk"),
        ("the answer's row on disk", "answer, disk"),
        ("for comparison: 1,000 bytes written and fsynced", "bare fsync"),
        ("exact noise for a million cells", "noise"),
        ("one of the first 100 releases of a session", "first releases"),
        (f"one of the last 100 of {costs['late number']:,}", "late releases"),
    ):
        yield _row(words, shown(costs[name]))
    yield ""
    yield f"The last releases took {_ratio(costs['late releases'], costs['first releases'])} the first ones' time."


def _bars(found: dict[str, Any], most: int) -> Iterator[str]:
    meant = "" if most >= FULL else f" (they are meant for {FULL:,})"
    fixed = f"{1000 * FIXED:.0f} ms a release"
    yield f"At {most:,} rows{meant}; a fixed cost of {fixed} is subtracted from filtered queries about rows.\n"
    yield "| target | at most | figure | |"
    yield "|---|---:|---:|---|"
    for bar in bars(found, most):
        unit = "×" if bar.unit == "×" else f" {bar.unit}"
        figure = DASH if bar.figure is None else f"{_digits(bar.figure)}{unit}"
        met = "not measured" if bar.figure is None else "met" if bar.figure <= bar.most else "**not met**"
        yield _row(bar.words, f"{bar.most:g}{unit}", figure, met)


def _scale(scale: dict[str, Any]) -> Iterator[str]:
    if "error" in scale["file"]:
        yield f"Not measured: {scale['file']['error']}"
        return
    size, held = (scale["file"][name] / GIGABYTE for name in ("bytes", "held"))
    yield (
        f"{size:.1f} GiB in pieces, which would be {held:.1f} GiB in memory, given to the session as "
        "`polars.scan_parquet(...)` or as a relation of duckdb (limited to 3 GB, with a folder to spill to). Each line "
        "is a process of its own: set-up, a first and a second query in seconds, and the whole peak of its resident "
        "memory. *plain* is the same query without privacy in the engine itself (polars streaming).\n"
    )
    yield from _heading("query", "engine", "implementation", "set-up, s", "first, s", "second, s", "peak, GiB")
    for one in scale["asked"]:
        names = one["question"], one["engine"], one["contender"]
        if "error" in one:
            yield _row(*names, f"not measured: {one['error']}", *[DASH] * 3)
            continue
        times = (DASH if name not in one else f"{one[name]:.1f}" for name in ("setup", "first", "second"))
        yield _row(*names, *times, f"{one['peak'] / GIGABYTE:.2f}")


def _many(many: dict[str, Any]) -> Iterator[str]:
    if "error" in many:
        yield f"Not measured: {many['error']}"
        return
    yield (
        f"{many['requests']:,} requests of one session on a table of 20,000 rows and 6,000 persons, with real noise: "
        "counts, means, group-bys, quantiles; 15% repeat an earlier query and 5% refine one. "
        f"{many['charges']:,} of them were charged.\n"
    )
    yield from _heading("", "figure")
    yield _row("all requests", f"{many['total']:,.0f} s")
    yield _row("median of the first 1,000", f"{shown(many['first'])} ms")
    yield _row("median of the last 1,000", f"{shown(many['last'])} ms")
    yield _row("memory that the session added", f"{many['memory'] / MEGABYTE:,.0f} MB")
    yield _row("the same after reading gauges and log", f"{many['memory with faces'] / MEGABYTE:,.0f} MB")
    size = many["ledger"] / many["charges"]
    yield _row("ledger", f"{many['ledger'] / MEGABYTE:,.0f} MB, {size:,.0f} bytes a charge")
    yield _row("opening the ledger again", f"{many['restart']:.1f} s")
    yield _row("first query after that", f"{shown(many['first after restart'])} ms")
    yield _row("gauges, first look", f"{many['gauges']:.1f} s")
    yield _row("gauges, next look", f"{shown(many['gauges again'])} ms")
    yield _row("`session.log()`", f"{many['log']:.1f} s")
    yield ""
    yield from _heading("kind of request, medians of a hundred", "first", "last", "ratio")
    for kind, ends in many["by kind"].items():
        if ends is not None:
            yield _row(kind, shown(ends[0]), shown(ends[1]), _ratio(ends[1], ends[0]))
