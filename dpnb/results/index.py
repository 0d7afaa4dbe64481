"""Columns, index and order of the pandas table of an answer, and the arguments that refer to them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpnb._plan.schema import Key, whole_number
from dpnb.errors import RequestError

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {"estimate": "value", "low": "low", "high": "high", "noise_scale": "noise_scale"}
"""Columns of an answer's table, and the arrays that they hold."""

MAX_DECIMALS = 300


def pandas_index(
    names: tuple[str, ...], keys: tuple[tuple[Key, ...], ...], outputs: tuple[str, tuple[Key, ...]] | None
) -> pd.Index:
    """One label for each number, group by group; the arguments are names and labels as in an answer."""
    import pandas as pd  # imported when first used

    outer = [(label,) for label in outputs[1]] if outputs else [()]
    labels = [(*key, *label) for key in keys for label in outer]
    levels = [*names, *([outputs[0]] if outputs else [])]
    if not levels:
        return pd.RangeIndex(1)
    if len(levels) == 1:
        index: pd.Index = pd.Index([label[0] for label in labels], name=levels[0])
        return index
    several: pd.Index = pd.MultiIndex.from_tuples(labels, names=levels)
    return several


def order_of(values: list[float], ascending: bool) -> list[int]:
    """The indices of the sorted values; equal ones keep their order, unknown ones are last."""
    sign = 1.0 if ascending else -1.0
    return sorted(range(len(values)), key=lambda row: (math.isnan(values[row]), sign * values[row]))


def row_count(n: object, verb: str) -> int:
    """A number of rows that an analyst gave."""
    number = whole_number(n)
    if number is None:
        raise RequestError(f"{verb}: n must be a whole number; got {n!r}")
    return number


def decimals_of(decimals: object) -> int:
    """A number of decimals that an analyst gave."""
    number = whole_number(decimals)
    if number is None or abs(number) > MAX_DECIMALS:
        raise RequestError(f"round: decimals must be a whole number up to {MAX_DECIMALS}; got {decimals!r}")
    return number


def flag_of(value: object, name: str) -> bool:
    """A truth value that an analyst gave."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise RequestError(f"{name}: must be True or False; got {value!r}")


def level_of(names: tuple[str, ...], level: object, verb: str) -> int:
    """The index of a level by its name or number."""
    if isinstance(level, str) and level in names:
        return names.index(level)
    number = whole_number(level)
    if number is not None and -len(names) <= number < len(names):
        return number % len(names)
    raise RequestError(f"{verb}: level must be one of {', '.join(map(repr, names))}, or its number; got {level!r}")
