"""Tables with margins: ``crosstab(..., margins=True)`` and ``pivot_table(..., margins=True)``."""

from __future__ import annotations

from dpnb._core.margins import MarginsQuery
from dpnb._core.query import Query
from dpnb._plan.schema import Schema, encodable
from dpnb.errors import PlanError


def with_margins(cells: Query, n_rows: int, name: object, schema: Schema) -> MarginsQuery:
    """A table of groups with its margins, which have the label `name`; its first `n_rows` levels are rows.

    Raises `RequestError` if the session cannot release batches.
    """
    if not isinstance(name, str) or not name or not encodable(name):
        raise PlanError(f"margins_name: must be a non-empty str; got {name!r}; 'All' is the default")
    return MarginsQuery(cells, n_rows, name, schema)
