"""Tables in memory: columns prepared once, questions answered by `dpnb.query.execute`.

Memory, like timing, is outside the guarantee: a session is as large as its tables, and the temporary memory of a
question may depend on how many rows its filter leaves.  To keep anybody from reading one unit's values from it, a unit
has few pairs in a join, and pairs are formed one block at a time and not kept (`dpnb.query.pairs`); without a join, a
unit accounts for a few arrays as long as its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpnb.accounting.individual import IndividualFilter, OnExhausted, Terms, Till
from dpnb.copying import NotCopyable
from dpnb.query import pairs
from dpnb.query.aggregations import Discovery
from dpnb.query.by_unit import unit_vectors
from dpnb.query.discover import present_groups
from dpnb.query.execute import Active, execute
from dpnb.query.linear.query import LinearQuery
from dpnb.query.pairs import Pairs
from dpnb.query.part import part
from dpnb.query.plan import Joined, PartOf
from dpnb.query.prepare import Prepared, prepare_all
from dpnb.query.schema import Schema
from dpnb.query.tables.protocol import Groups, Schemas, Units
from dpnb.query.tables.sources import Sources
from dpnb.query.unit_vectors import Sums, added
from dpnb.stages import Stage, at


class InMemory(Sources[Prepared | Pairs]):
    """Prepared tables, and the joins and parts that were asked about."""

    @classmethod
    def read(cls, tables: Mapping[str, Any], schemas: Schemas, units: Units) -> InMemory:
        """Copy what the schemas describe; see `prepare_all` for what it raises."""
        return cls(prepare_all(tables, schemas, units), schemas)

    @property
    def units(self) -> int:
        """Number of units of all tables."""
        tables = [self._made[name] for name in self._names]
        return max((int(table.units.max(initial=-1)) + 1 for table in tables if isinstance(table, Prepared)), default=0)

    def _joined(self, left: Prepared | Pairs, right: Prepared | Pairs, source: Joined) -> Pairs:
        return Pairs(left, right, (self.schema(source.left), self.schema(source.right)), source)

    @at(Stage.PART)
    def _part(self, whole: Prepared | Pairs, source: PartOf) -> Prepared:
        if isinstance(whole, Pairs):  # a partition is of a table or of a part
            raise TypeError(type(whole).__name__)
        return part(whole, self.schema(source.source), source)

    def refuse(self, query: LinearQuery) -> None:
        """Refuse nothing: every question can be asked of a table in memory."""

    def refuse_purses(self, mode: OnExhausted) -> None:
        """Refuse nothing: a unit is a place in an array."""

    def settle(self) -> None:
        """Do nothing: the asking thread does all the work itself."""

    def files(self) -> None:
        """None, since nothing is read again."""

    def sums(self, query: LinearQuery, active: Active | None = None) -> Sums:
        """The exact sums of a question; see `execute`."""
        rows, schema = self._rows_and_schema(query)
        if isinstance(rows, Pairs):
            return pairs.sums(query, rows, schema, active)
        return execute(query, rows, schema, active)

    def groups(self, query: LinearQuery, active: Active | None = None) -> Groups:
        """Every group that some unit has; see `present_groups`."""
        rows, schema = self._rows_and_schema(query)
        if isinstance(rows, Pairs):
            return pairs.groups(query, rows, schema, active)
        return present_groups(query, rows, schema, active)

    def _rows_and_schema(self, query: LinearQuery) -> tuple[Prepared | Pairs, Schema]:
        return self.rows(query.plan.source), self.schema(query.plan.source)

    def purses(self, budget: Fraction, mode: OnExhausted) -> PursesInMemory:
        """What each unit has to spend, before anything was spent."""
        return PursesInMemory(self, IndividualFilter(budget, self.units, mode))

    def paid(self, query: LinearQuery, till: Till) -> Sums | Groups:
        """What a question measures over those who can pay for it at a till."""
        if isinstance(query.plan.aggregation, Discovery):
            return self.groups(query, till.active)
        sums = self.sums(query, till.active)
        radii = till.radii
        if radii is None:
            return sums
        rows, schema = self._rows_and_schema(query)

        def in_part(rows: Prepared) -> Sums:
            others = unit_vectors(query, rows.taken(np.flatnonzero(radii[rows.units] >= 0)), schema)
            return others.within(radii[others.owners]).sums()

        return added(sums, rows.summed(query, in_part) if isinstance(rows, Pairs) else in_part(rows))


@dataclass(frozen=True, repr=False)
class PursesInMemory(NotCopyable):
    """What each unit of tables in memory has spent.

    Parameters
    ----------
    tables : InMemory
    units : IndividualFilter
    watched : int
        A unit of which it is noted what a question asks of it, for its own statement; -1 for none.
    asked_of_watched : float
        What the last question asked of it, as mu squared.
    """

    tables: InMemory
    units: IndividualFilter
    watched: int = -1
    asked_of_watched: float = 0.0

    def asked(self, query: LinearQuery, terms: Terms) -> tuple[Sums | Groups, PursesInMemory]:
        """What a question measures over those who can pay for it, and the purses after it."""
        till = Till(self.units, terms)
        found = self.tables.paid(query, till)
        asked = float(till.asked[till.owners == self.watched].sum()) if self.watched >= 0 else 0.0
        return found, replace(self, units=till.units, asked_of_watched=asked)

    def charged(self, loss: float) -> PursesInMemory:
        """The purses after everybody was charged the same."""
        return replace(self, units=self.units.charge(np.full(len(self.units.spent), loss)))

    def spent_by(self, unit: int) -> Fraction:
        """What one unit has spent, as a fraction: a difference of doubles is rounded.  For that unit alone."""
        return Fraction(float(self.units.spent[unit]))
