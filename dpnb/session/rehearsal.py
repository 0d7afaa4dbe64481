"""Mock data drawn from the schema alone, so that a notebook can be developed before any budget is spent."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.schema import Bounded, Categories, ColumnType, Dates, Schema

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_UNITS = 1000
MAX_TEXTS = 20
MAX_MOCK = 10_000_000
"""Limit of the units and of the rows of a mock table, which is kept in memory however large the real one is."""


def mock_tables(
    schemas: dict[str, Schema],
    units: dict[str, PrivacyUnit],
    public_size: int | None,
    public_rows: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, pd.DataFrame]:
    """Tables with the schemas' columns that contain no real data; the same on every call.

    Without a public number of units there are 1,000.  A public number of rows is spread evenly over them; otherwise
    each unit gets 1 to ``max_rows`` rows, at most 5.
    """
    import pandas as pd  # imported when first used

    rng = np.random.default_rng(0)  # for mock rows only; no noise is drawn from it
    tables = {}
    for name, schema in schemas.items():
        unit = units[name]
        max_rows = min(unit.max_rows or 5, 5)
        rows = min(public_rows[name], MAX_MOCK) if name in public_rows else None
        count = public_size or (DEFAULT_UNITS if rows is None else max(1, 2 * rows // (1 + max_rows)))
        count = min(count, MAX_MOCK if rows is None else max(rows, 1))
        if rows is None:
            sizes = rng.integers(1, max_rows + 1, count)
        else:
            sizes = rng.permutation(rows // count + (np.arange(count) < rows % count))
        rows = int(sizes.sum())
        columns: dict[str, Any] = {column: _mock_column(kind, rows, rng) for column, kind in schema.items()}
        if unit.column is not None:
            columns[unit.column] = np.repeat(np.arange(count), sizes)
        tables[name] = pd.DataFrame(columns)
    return tables


def _mock_column(column: ColumnType, rows: int, rng: np.random.Generator) -> Any:
    import pandas as pd  # imported when first used

    if isinstance(column, Bounded):
        values = column.low + (column.high - column.low) * rng.random(rows)
        is_integer = column.integer or (
            column.low.is_integer() and column.high.is_integer() and column.high - column.low >= 2
        )
        return np.floor(values) if is_integer else values
    if isinstance(column, Dates):
        instants = column.low + (column.high - column.low) * rng.random(rows)
        return pd.to_datetime(instants, unit="s", utc=column.clock is not None)
    if isinstance(column, Categories):
        return [column.values[code] for code in rng.integers(0, len(column.values), rows)]
    return [f"text {number}" for number in np.minimum(rng.geometric(0.3, rows), MAX_TEXTS)]
