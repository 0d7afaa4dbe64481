"""The whole page of results: the targets first, then what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.page import engines, in_memory, sessions
from bench.page.bars import FULL, bars
from bench.page.cells import heading, row
from bench.page.words import HEAD, HOW


def page(found: dict[str, Any], *, rows: list[int], rounds: int) -> str:
    """The whole page in Markdown."""
    most, left_out = max(rows), {"error": "left out"}
    lines = [HEAD, "## Targets\n", *_bars(found, most)]
    lines += ["## The machine\n", *(f"- {name}: {text}" for name, text in found["machine"].items()), ""]
    lines += [HOW.format(rounds=rounds, **in_memory.opendp(found, rows))]
    sections: dict[str, Iterator[str]] = {
        "## Tables in memory": in_memory.figures(found, rows),
        "### Beside polars and the memory's speed": in_memory.limits(found, most),
        "### Memory": in_memory.memory(found, rows),
        "### Set-up of a session": in_memory.setups(found, rows),
        "### Set-up and scales of OpenDP": in_memory.opendp_times(found, rows),
        "## Tables that an engine holds": engines.engines(found, most),
        f"## A Parquet file of {found.get('scale file', {}).get('rows', 100_000_000):,} rows": engines.scale(found),
        "## The parts of a release": sessions.costs(found.get("costs", left_out)),
        "## A session with many requests": sessions.many(found.get("many", left_out)),
        "## Individual accounting": sessions.individual(found.get("individual", left_out)),
        "## Spark and Dask": engines.clusters(found),
        "## Starting": sessions.starts(found.get("starts", left_out)),
        "## The budget picker": sessions.picker(found.get("picker", left_out)),
    }
    for title, section in sections.items():
        lines += [f"{title}\n", *section, ""]
    return "\n".join(lines).rstrip() + "\n"


def _bars(found: dict[str, Any], most: int) -> Iterator[str]:
    """How many are met by topic, then each of them."""
    topics = bars(found, most)
    meant = "" if most >= FULL else f" (they are meant for {FULL:,})"
    yield f"At {most:,} rows{meant} unless a number is given.\n"
    yield from heading("topic", "targets", "met", "not met", "not measured")
    for topic, of_topic in topics.items():
        verdicts = [bar.verdict.strip("*") for bar in of_topic]
        yield row(topic, len(verdicts), *(verdicts.count(one) for one in ("met", "not met", "not measured")))
    for topic, of_topic in topics.items():
        yield f"\n### {topic}: targets\n"
        yield "| target | at most | figure | |"
        yield "|---|---:|---:|---|"
        yield from (row(*bar.cells()) for bar in of_topic)
    yield ""
