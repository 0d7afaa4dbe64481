"""Sections of the page about sessions, whatever holds their tables: releases, many requests, starting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.page.cells import MEGABYTE, digits, heading, ratio, row, shown, unmeasured


def costs(costs: dict[str, Any]) -> Iterator[str]:
    """The parts of a release."""
    if unmeasured(costs) is not None:
        yield f"{unmeasured(costs)}"
        return
    yield from heading("on a table of 1,000 rows, medians", "ms")
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
        yield row(words, shown(costs[name]))
    yield ""
    yield f"The last releases took {ratio(costs['late releases'], costs['first releases'])} the first ones' time."


def many(many: dict[str, Any]) -> Iterator[str]:
    """A session with many requests."""
    if unmeasured(many) is not None:
        yield f"{unmeasured(many)}"
        return
    yield (
        f"{many['requests']:,} requests of one session on a table of 20,000 rows and 6,000 persons, with real noise: "
        "counts, means, group-bys, quantiles; 15% repeat an earlier query and 5% refine one. "
        f"{many['charges']:,} of them were charged.\n"
    )
    yield from heading("", "figure")
    yield row("all requests", f"{many['total']:,.0f} s")
    yield row("median of the first 1,000", f"{shown(many['first'])} ms")
    yield row("median of the last 1,000", f"{shown(many['last'])} ms")
    yield row("memory that the session added", f"{many['memory'] / MEGABYTE:,.0f} MB")
    yield row("the same after reading gauges and log", f"{many['memory with faces'] / MEGABYTE:,.0f} MB")
    size = many["ledger"] / many["charges"]
    yield row("ledger", f"{many['ledger'] / MEGABYTE:,.0f} MB, {size:,.0f} bytes a charge")
    yield row("opening the ledger again", f"{many['restart']:.2f} s")
    yield row("first query after that", f"{shown(many['first after restart'])} ms")
    yield row("gauges, first look", f"{many['gauges']:.1f} s")
    yield row("gauges, next look", f"{shown(many['gauges again'])} ms")
    yield row("`session.log`", f"{many['log']:.2f} s")
    yield row("a snapshot for the panel after a release", f"{shown(many['snapshot'])} ms")
    yield ""
    yield from heading("kind of request, medians of a hundred", "first", "last", "ratio")
    for kind, ends in many["by kind"].items():
        if ends is not None:
            yield row(kind, shown(ends[0]), shown(ends[1]), ratio(ends[1], ends[0]))


def individual(found: dict[str, Any]) -> Iterator[str]:
    """Individual accounting beside the worst case."""
    if "units" not in found:
        yield f"{unmeasured(found)}"
        return
    yield (
        f"{found['rows']:,} rows, whole releases with noise and ledger on disk, time of the process alone; before them "
        "half of the units were made unable to pay. The two modes are those of `on_exhausted`.\n"
    )
    yield from heading("unit, query", "worst case", "skip", "ratio", "clip", "ratio", "sums alone")
    for name, one in found["units"].items():
        for question, took in one["questions"].items():
            worst = took["worst case"]
            modes = (cell for mode in ("skip", "clip") for cell in (digits(took[mode]), ratio(took[mode], worst)))
            yield row(f"{name}, {question}", digits(worst), *modes, digits(took["sums"]))


def starts(found: dict[str, Any]) -> Iterator[str]:
    """The import and the extension."""
    if "import" not in found:
        yield f"{unmeasured(found)}"
        return
    yield (
        "Medians of seven fresh processes, taking turns; those of a bare interpreter, or of a kernel's shell without "
        "dpnb, are subtracted.\n"
    )
    yield from heading("", "ms")
    for words, name in (
        ("a bare interpreter", "interpreter"),
        ("`import dpnb` in addition", "import"),
        ("an interpreter with what a kernel imports", "kernel"),
        ("`%load_ext dpnb` in addition", "extension"),
    ):
        yield row(words, shown(found[name]))


def picker(found: dict[str, Any]) -> Iterator[str]:
    """The picker in a notebook."""
    if "first sight" not in found:
        yield f"{unmeasured(found)}"
        return
    yield (
        f"From the start of the cell to the last message of the first picker, in new kernels: "
        f"{shown(found['first sight'])} ms. What the browser then needs to draw it is not counted."
    )
