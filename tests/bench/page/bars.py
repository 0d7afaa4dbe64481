"""How fast dpnb has to be, and whether it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

FIXED = 0.005
"""Seconds of each release that have nothing to do with the table."""

FULL = 10_000_000
"""Rows for which they are meant."""


@dataclass(frozen=True)
class Bar:
    """One of them.

    Parameters
    ----------
    words : str
    most : float
    figure : float or None
        None where it was not measured.
    unit : str
    """

    words: str
    most: float
    figure: float | None
    unit: str = "×"


def bars(found: dict[str, Any], most: int) -> list[Bar]:
    """Every bar, with its figure at the largest table."""
    tables = {person: found.get(f"table {most} {person}", {}) for person in (False, True)}
    costs, asked = found.get("costs", {}), found.get("scale", {}).get("asked", [])
    answers = []
    for question, took in tables[False].get("questions", {}).items():
        if "quantiles" not in question:
            beyond = max(0.0, took["dpnb"] - FIXED)
            answers.append(Bar(f"rows, filtered {question}, relative to pandas", 1, _over(beyond, took["pandas"])))
            answers.append(Bar(f"rows, filtered {question}, relative to polars", 2, _over(beyond, took["polars"])))
    for question, took in tables[True].get("questions", {}).items():
        if "quantiles" not in question:
            answers.append(Bar(f"persons, {question}, relative to pandas", 2, _over(took["dpnb"], took["pandas"])))
    for person, table in tables.items():
        took = table.get("questions", {}).get("three quantiles")
        if took is not None:
            who = "persons" if person else "rows"
            answers.append(
                Bar(f"{who}, quantiles, relative to Series.quantile", 2, _over(took["dpnb"], took["pandas"]))
            )
    answers += [
        Bar("noise for a million cells", 0.15, costs.get("noise"), "s"),
        Bar("a charge with its durable row", 2, _milli(costs.get("charge, disk")), "ms"),
        *(
            Bar(f"set-up for {who} relative to {words}", 3, _over(table.get("setup"), table.get(name)))
            for who, table in (("rows", tables[False]), ("persons", tables[True]))
            for words, name in (("a copy of the columns", "read"), ("reading them from Parquet", "file"))
        ),
        Bar("memory relative to the columns used, the worst of the queries about rows", 2, _memory(found, most, False)),
        Bar(
            "memory relative to the columns used, the worst of the queries about persons", 2, _memory(found, most, True)
        ),
        Bar("Parquet larger than memory, polars, the worst peak", 4, _scale(asked, "polars"), "GiB"),
        Bar("Parquet larger than memory, duckdb, the worst peak", 4, _scale(asked, "duckdb"), "GiB"),
    ]
    return answers


def _over(one: float | None, other: float | None) -> float | None:
    return None if one is None or not other else one / other


def _milli(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def _memory(found: dict[str, Any], most: int, person: bool) -> float | None:
    kept = [said for name, said in found.items() if name.startswith(f"memory {most} {person} ")]
    return _worst(said["peak"] / said["columns"] for said in kept if "error" not in said)


def _scale(asked: list[dict[str, Any]], engine: str) -> float | None:
    ours = [one for one in asked if one["engine"] == engine and one["contender"] == "dpnb"]
    if any("error" in one for one in ours):
        return None
    return _worst(one["peak"] / 2**30 for one in ours)


def _worst(figures: Iterable[float]) -> float | None:
    return max(figures, default=None)
