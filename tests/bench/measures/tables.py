"""Invented tables for the benchmark: the same figures for every library, from one seed.

Needs numpy alone, so that a peer in an environment of its own can make them too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SEED = 20261122
KEYS = {"g50": [f"a{i:02d}" for i in range(50)], "g1000": [f"b{i:03d}" for i in range(1000)]}
TEXTS = (10, 1000, 100_000)
"""Numbers of keys of the columns of texts that only an engine's table has."""
WORDS = [f"word {i:03d}" for i in range(300)]
# Of fifteen rows one person has one, the next two, and so on up to five.
WHO = np.repeat(np.arange(5), np.arange(1, 6))
STRIDE = 61_803_399  # prime: steps through any smaller table, and any larger one of a round size, without a repeat


def made(rows: int, names: list[str] | None = None, start: int = 0, stop: int | None = None) -> dict[str, Any]:
    """Columns of a table, or of rows `start` to `stop` of it; categories and words as places in their lists.

    `x` is filtered by, `y` is asked about; a person has one to five rows, far apart.
    """
    stop = rows if stop is None else stop
    chance, size = np.random.default_rng([SEED, start]), stop - start
    columns = {
        "x": chance.random(size) * 100,
        "y": np.round(chance.gamma(4.0, 8.0, size), 2),
        "g50": chance.integers(0, 50, size, dtype=np.int8),
        "g1000": chance.integers(0, 1000, size, dtype=np.int16),
        "word": (len(WORDS) * chance.random(size) ** 2).astype(np.int16),  # the first ones are frequent
        "person": people(rows, start, stop),
    }
    return columns if names is None else {name: columns[name] for name in names}


def people(rows: int, start: int, stop: int) -> Any:
    """Whose each row is: in random order where all are made at once, else in an order as good as random."""
    whole = start == 0 and stop == rows
    place = np.random.default_rng(SEED).permutation(rows) if whole else np.arange(start, stop) * STRIDE % rows
    return 5 * (place // len(WHO)) + WHO[place % len(WHO)]


def texts(number: int) -> list[str]:
    """The keys of such a column."""
    return [f"key {place:06d}" for place in range(number)]


def in_pandas(columns: dict[str, Any]) -> Any:
    """As a pandas user would hold it: categories as such, texts in pandas' own text type."""
    import pandas as pd

    held = dict(columns)
    for name in KEYS.keys() & held.keys():
        held[name] = pd.Categorical.from_codes(held[name], KEYS[name])
    if "word" in held:
        held["word"] = pd.array(WORDS, dtype="str").take(held["word"])
    return pd.DataFrame(held)


def in_polars(columns: dict[str, Any], *, categories: bool = True) -> Any:
    """The same in polars; `categories` as such or as texts."""
    import polars as pl

    held = {name: pl.Series(values) for name, values in columns.items()}
    for name in KEYS.keys() & held.keys():
        kind = pl.Enum(KEYS[name]) if categories else pl.String
        held[name] = pl.Series(KEYS[name], dtype=kind).gather(held[name])
    if "word" in held:
        held["word"] = pl.Series(WORDS).gather(held["word"])
    return pl.DataFrame(held)
