"""Tables in memory: columns prepared once, questions answered by `dpnb.query.execute`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpnb.accounting.individual import IndividualFilter, OnExhausted, Terms, Till
from dpnb.query.aggregations import Discovery
from dpnb.query.by_unit import unit_vectors
from dpnb.query.discover import present_groups
from dpnb.query.execute import Active, execute
from dpnb.query.join import join
from dpnb.query.linear.query import LinearQuery
from dpnb.query.part import part
from dpnb.query.plan import Joined, PartOf
from dpnb.query.prepare import Prepared, prepare_all
from dpnb.query.tables.protocol import Groups, Schemas, Units
from dpnb.query.tables.sources import Sources
from dpnb.query.unit_vectors import Sums
from dpnb.stages import Stage, at


class InMemory(Sources[Prepared]):
    """Prepared tables, and the joins and parts that were asked about."""

    @classmethod
    def read(cls, tables: Mapping[str, Any], schemas: Schemas, units: Units) -> InMemory:
        """Copy what the schemas describe; see `prepare_all` for what it raises."""
        return cls(prepare_all(tables, schemas, units), schemas)

    @property
    def units(self) -> int:
        """Number of units of all tables."""
        return max((int(self._made[name].units.max(initial=-1)) + 1 for name in self._names), default=0)

    @at(Stage.JOINING)
    def _joined(self, left: Prepared, right: Prepared, source: Joined) -> Prepared:
        return join(left, right, (self.schema(source.left), self.schema(source.right)), source)

    @at(Stage.PART)
    def _part(self, whole: Prepared, source: PartOf) -> Prepared:
        return part(whole, self.schema(source.source), source)

    def refuse(self, query: LinearQuery) -> None:
        """Refuse nothing: every question can be asked of a table in memory."""

    def refuse_purses(self, mode: OnExhausted) -> None:
        """Refuse nothing: a unit is a place in an array."""

    def settle(self) -> None:
        """Nothing is left behind: this thread does all of the work."""

    def files(self) -> None:
        """None: nothing is read again."""

    def sums(self, query: LinearQuery, active: Active | None = None) -> Sums:
        """The exact sums of a question; see `execute`."""
        source = query.plan.source
        return execute(query, self.rows(source), self.schema(source), active)

    def groups(self, query: LinearQuery, active: Active | None = None) -> Groups:
        """Every group that some unit has; see `present_groups`."""
        source = query.plan.source
        return present_groups(query, self.rows(source), self.schema(source), active)

    def purses(self, budget: Fraction, mode: OnExhausted) -> PursesInMemory:
        """What each unit has to spend, before anything was spent."""
        return PursesInMemory(self, IndividualFilter(budget, self.units, mode))

    def paid(self, query: LinearQuery, till: Till) -> Sums | Groups:
        """What a question measures over those who can pay for it at a till."""
        if isinstance(query.plan.aggregation, Discovery):
            return self.groups(query, till.active)
        sums = self.sums(query, till.active)
        if till.radii is None:
            return sums
        source = query.plan.source
        rows = self.rows(source)
        short = rows.taken(np.flatnonzero(till.radii[rows.units] >= 0))
        others = unit_vectors(query, short, self.schema(source))
        return np.asarray(sums + others.within(till.radii[others.owners]).sums())


@dataclass(frozen=True, repr=False)
class PursesInMemory:
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
