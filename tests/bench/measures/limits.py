"""What the machine's memory allows: how fast it is copied, and how much of it a query has to read."""

from __future__ import annotations

import os
import statistics
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from bench.measures.turns import took

SIZE = 2**29
"""Bytes that are copied: more than any processor's cache."""

TIMES = 9


def bandwidth() -> dict[str, float]:
    """Bytes read per second by numpy's copy of an array to another one, with one thread and with one per core."""
    source = np.arange(SIZE // 8, dtype=np.int64)
    target = np.empty_like(source)
    cores = len(os.sched_getaffinity(0))
    found = {}
    for name, threads in (("one thread", 1), ("all threads", cores)):
        pieces = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))
        with ThreadPoolExecutor(threads) as pool:
            seconds = [took(lambda: list(pool.map(lambda pair: np.copyto(*pair), pieces))) for _ in range(TIMES)]  # noqa: B023
        found[name] = SIZE / statistics.median(seconds[1:])  # the first one gets the target's memory
    return {**found, "threads": cores, "size": SIZE}


def bytes_read(asker: Any, names: list[str], question: str) -> int:
    """Bytes of the prepared columns that an answer depends on: each of them once.

    Parameters
    ----------
    asker : dpnb.Session
        One of a single table in memory.
    names : list of str
        The columns that the question uses.
    question : str
    """
    (table,) = asker._core.tables.opened._sources.values()
    found = 0
    for name in names:
        if name in table.codes:
            found += table.codes[name].nbytes
        elif name == "x" and name in table.coarse_codes:
            found += table.coarse_codes[name].nbytes  # the values themselves are read where these do not decide
        elif name == "person":
            found += table.units.nbytes
        elif name == "y" and "quantiles" not in question:
            found += table.steps(name).nbytes  # sums are of grid steps
        else:
            found += table.numbers[name].nbytes
    return int(found)
