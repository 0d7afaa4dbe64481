"""Tables by their names, and the joins and parts of them that were asked about.

Each is made once and kept; a join holds no rows, but is a plan of the engine or `dpnb.query.pairs.Pairs`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Generic, TypeVar

from dpnb.copying import NotCopyable
from dpnb.query.join import schema_of
from dpnb.query.plan import Joined, PartOf, Source
from dpnb.query.schema import Schema
from dpnb.query.tables.protocol import Schemas

R = TypeVar("R")


class Sources(NotCopyable, ABC, Generic[R]):
    """Rows in one place.

    Parameters
    ----------
    tables : mapping of str to rows
    schemas : dict of str to dict
    """

    def __init__(self, tables: Mapping[str, R], schemas: Schemas) -> None:
        self._made: dict[Source, R] = {}
        self._made.update(tables)
        self._names, self._schemas = tuple(tables), schemas

    def schema(self, source: Source) -> Schema:
        """Columns of a table, join or part."""
        return schema_of(source, self._schemas)

    def rows(self, source: Source) -> R:
        """A table, join or part: a private value.

        Raises
        ------
        KeyError
            There is no such table.
        """
        if source not in self._made:
            if isinstance(source, Joined):
                sides = self.rows(source.left), self.rows(source.right)
                self._made[source] = self._joined(*sides, source)
            elif isinstance(source, PartOf):
                self._made[source] = self._part(self.rows(source.source), source)
            else:
                raise KeyError(source)
        return self._made[source]

    @abstractmethod
    def _joined(self, left: R, right: R, source: Joined) -> R:
        """Every pair of rows that one unit has in both."""

    @abstractmethod
    def _part(self, whole: R, source: PartOf) -> R:
        """The rows of a part."""
