"""Contenders that take turns within one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

LEAST = 3
"""Rounds of the slowest."""

PATIENCE = 5.0
"""Seconds after which a contender that had these rounds has no more."""


def took(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def median(figures: list[float | None]) -> float | None:
    """Of those that were measured."""
    found = [figure for figure in figures if figure is not None]
    return statistics.median(found) if found else None


def turns(
    contenders: Mapping[str, Callable[[float], float | None]], rounds: int, start: float = 30, end: float = 70
) -> dict[str, float | None]:
    """The median seconds of each contender, which are told a threshold, another one in each round.

    The order changes from round to round.  Slow ones have fewer rounds, at least `LEAST`.
    """
    found: dict[str, list[float | None]] = {name: [] for name in contenders}
    for number in range(rounds):
        above = start + (end - start) * number / rounds  # the same question again would be free
        order = list(contenders)
        for name in order if number % 2 == 0 else reversed(order):
            spent = sum(seconds or 0 for seconds in found[name])
            if len(found[name]) < LEAST or spent < PATIENCE:
                found[name].append(contenders[name](above))
    return {name: median(figures) for name, figures in found.items()}
