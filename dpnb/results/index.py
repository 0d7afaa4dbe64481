"""Columns and index of the pandas table of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpnb._plan.schema import Key

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {"estimate": "value", "low": "low", "high": "high", "noise_scale": "noise_scale"}
"""Columns of an answer's table, and the arrays that they hold."""


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
