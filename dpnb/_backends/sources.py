"""Tables by name, and the joins and parts of them that queries use.

Those used last are kept.  A join holds no rows: it is a plan of the engine, or
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

LEAST_KEPT = 2**27
"""Memory that joins and parts may take in any case."""

MAX_DERIVED = 1000
"""Largest number of joins and parts that are kept."""


class SourceResolver(NotCopyable, ABC, Generic[R]):
    """Tables, joins and parts of one backend."""

    def __init__(self, tables: Mapping[str, R], schemas: Schemas) -> None:
        self._sources: dict[TableSource, R] = {}
        self._sources.update(tables)
        self._derived: dict[TableSource, R] = {}
        self._names, self._schemas = tuple(tables), schemas

    def schema(self, source: TableSource) -> Schema:
        """Columns of a table, join or part."""
        return schema_of(source, self._schemas)

    def rows(self, source: TableSource) -> R:
        """A table, join or part: a private value.  Raises `KeyError` if there is no such table."""
        if source in self._sources:
            return self._sources[source]
        derived = self._derived.pop(source, None)
        if derived is None:
            if isinstance(source, Join):
                sides = self.rows(source.left), self.rows(source.right)
                derived = self._joined(*sides, source)
            elif isinstance(source, PartSource):
                derived = self._part(self.rows(source.source), source)
            else:
                raise KeyError(source)
        self._derived[source] = derived  # the last one
        self._forget()
        return derived

    def _forget(self) -> None:
        """Forget the joins and parts that were not used for longest, while they take more memory than the tables."""
        room = max(LEAST_KEPT, sum(map(self._bytes, self._sources.values())))
        sizes = [(source, self._bytes(rows)) for source, rows in list(self._derived.items())]  # other threads may add
        number, size = len(sizes), sum(size for _, size in sizes)
        for source, its_size in sizes[:-1]:
            if number <= MAX_DERIVED and size <= room:
                return
            self._derived.pop(source, None)
            number, size = number - 1, size - its_size

    def _bytes(self, rows: R) -> int:
        """Memory of the rows of a table, join or part in this process."""
        return 0

    @abstractmethod
    def _joined(self, left: R, right: R, source: Join) -> R:
        """Every pair of rows that one unit has in both."""

    @abstractmethod
    def _part(self, whole: R, source: PartSource) -> R:
        """The rows of a part."""
