"""Tables by name, and the joins and parts of them that queries use.

Each is created once and kept.  A join holds no rows: it is a plan of the engine, or
`dpnb._backends.memory.join_pairs.JoinedRows`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Generic, TypeVar

from dpnb._backends.protocol import Schemas
from dpnb._plan.join import schema_of
from dpnb._plan.plan import Join, PartSource, TableSource
from dpnb._plan.schema import Schema
from dpnb.copying import NotCopyable

R = TypeVar("R")


class SourceResolver(NotCopyable, ABC, Generic[R]):
    """Tables, joins and parts of one backend.

    Parameters
    ----------
    tables : mapping of str to rows
    schemas : dict of str to dict
    """

    def __init__(self, tables: Mapping[str, R], schemas: Schemas) -> None:
        self._sources: dict[TableSource, R] = {}
        self._sources.update(tables)
        self._names, self._schemas = tuple(tables), schemas

    def schema(self, source: TableSource) -> Schema:
        """Columns of a table, join or part."""
        return schema_of(source, self._schemas)

    def rows(self, source: TableSource) -> R:
        """A table, join or part: a private value.

        Raises
        ------
        KeyError
            There is no such table.
        """
        if source not in self._sources:
            if isinstance(source, Join):
                sides = self.rows(source.left), self.rows(source.right)
                self._sources[source] = self._joined(*sides, source)
            elif isinstance(source, PartSource):
                self._sources[source] = self._part(self.rows(source.source), source)
            else:
                raise KeyError(source)
        return self._sources[source]

    @abstractmethod
    def _joined(self, left: R, right: R, source: Join) -> R:
        """Every pair of rows that one unit has in both."""

    @abstractmethod
    def _part(self, whole: R, source: PartSource) -> R:
        """The rows of a part."""
