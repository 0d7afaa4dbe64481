"""Lookups of public values, such as the declared categories: a join with a small table of them.

A join takes as long for a hundred thousand values as for ten.  The tables are kept in the engine for later queries.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import narwhals as nw

from dpnb._backends.lazy import arithmetic
from dpnb._backends.lazy.engines.engine import Engine, LazyFrame

MAX_TABLES = 32
"""Tables that are kept, the most recently used."""


class PublicTables:
    """The small tables with which the tables of an engine are joined, each made when it is first needed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tables: OrderedDict[tuple[Any, ...], LazyFrame] = OrderedDict()

    def with_values(
        self, frame: LazyFrame, column: str, keys: Sequence[Any], values: Sequence[Any], default: Any, to: str
    ) -> LazyFrame:
        """The frame with the value of each key of a column, as another column.

        The keys are distinct texts, doubles or integers, as the column contains; their values are integers or doubles.
        Anything else has the value `default`.
        """
        if not keys:
            return frame.with_columns(nw.lit(default).alias(to))
        are_codes = isinstance(keys[0], int) and isinstance(values[0], int) and default == -1
        if are_codes and [*values] == [*range(len(keys))] and all(b - a == 1 for a, b in pairwise(keys)):
            return frame.with_columns(arithmetic.code_of_consecutive(nw.col(column), keys[0], keys[-1]).alias(to))
        found = self._engine.with_matches(frame, column, self._table(frame, keys, values), to)
        return found.with_columns(nw.col(to).fill_null(default))

    def _table(self, frame: LazyFrame, keys: Sequence[Any], values: Sequence[Any]) -> LazyFrame:
        name = type(keys[0]), type(values[0]), tuple(keys), tuple(values)
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = self._engine.public_table(frame, {"key": keys, "value": values})
            while len(self._tables) > MAX_TABLES:
                self._tables.popitem(last=False)
        self._tables.move_to_end(name)
        return table
