"""Mock data drawn from the schema alone, so that a notebook can be written before the first charge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpnb.query.schema import Bounded, ColumnType, PrivacyUnit, Schema

DEFAULT_UNITS = 1000
NOTICE = "REHEARSAL: mock data, not real"


def mock_table(schema: Schema, unit: PrivacyUnit, public_size: int | None) -> pd.DataFrame:
    """A table with the schema's columns and nothing of the real one; the same on every call.

    Parameters
    ----------
    schema : dict
    unit : PrivacyUnit
        Each unit gets from 1 to ``max_rows`` rows, at most 5.
    public_size : int, optional
        Number of units; 1,000 if it is not public.
    """
    chance = np.random.default_rng(0)  # invents rows; no noise is drawn from it
    units = public_size or DEFAULT_UNITS
    sizes = chance.integers(1, min(unit.max_rows, 5) + 1, units)
    rows = int(sizes.sum())
    columns: dict[str, Any] = {name: _mock_column(column, rows, chance) for name, column in schema.items()}
    if unit.column is not None:
        columns[unit.column] = np.repeat(np.arange(units), sizes)
    return pd.DataFrame(columns)


def _mock_column(column: ColumnType, rows: int, chance: np.random.Generator) -> Any:
    if isinstance(column, Bounded):
        places = column.low + (column.high - column.low) * chance.random(rows)
        whole = column.low.is_integer() and column.high.is_integer() and column.high - column.low >= 2
        return np.floor(places) if whole else places
    return [column.values[code] for code in chance.integers(0, len(column.values), rows)]
