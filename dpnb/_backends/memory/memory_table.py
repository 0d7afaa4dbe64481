"""Tables in memory: columns prepared once, questions answered by `dpnb._backends.memory.execute`.

Memory, like timing, is outside the guarantee: a session is as large as its tables, and the temporary memory of a
question may depend on how many rows its filter leaves.  To keep anybody from reading one unit's values from it, a unit
has few pairs in a join, and pairs are formed one block at a time and not kept (`dpnb._backends.memory.join_pairs`);
without a join, a unit accounts for a few arrays as long as its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpnb._backends.memory import join_pairs
from dpnb._backends.memory.execute import Active, execute
from dpnb._backends.memory.join_pairs import JoinedRows
from dpnb._backends.memory.part import part
from dpnb._backends.memory.partitions import present_groups
from dpnb._backends.memory.per_unit import per_unit_vectors
from dpnb._backends.memory.prepare.prepared_table import PreparedTable, prepare_all
from dpnb._backends.protocol import Groups, Schemas, Units
from dpnb._backends.sources import SourceResolver
from dpnb._backends.unit_vectors import Sums, added
from dpnb._compile.linear import LinearQuery
from dpnb._plan.measurements import Discovery
from dpnb._plan.plan import Join, PartSource
from dpnb._plan.schema import Schema
from dpnb.accounting.individual import IndividualFilter, OnExhausted, UnitAdmission, UnitChargeTerms
from dpnb.copying import NotCopyable
from dpnb.progress import Stage, at


class MemoryBackend(SourceResolver[PreparedTable | JoinedRows]):
    """Prepared tables, and the joins and parts that were asked about."""

    @classmethod
    def read(cls, tables: Mapping[str, Any], schemas: Schemas, units: Units) -> MemoryBackend:
        """Copy what the schemas describe; see `prepare_all` for what it raises."""
        return cls(prepare_all(tables, schemas, units), schemas)

    @property
    def units(self) -> int:
        """Number of units of all tables."""
        tables = [self._made[name] for name in self._names]
        return max(
            (int(table.units.max(initial=-1)) + 1 for table in tables if isinstance(table, PreparedTable)), default=0
        )

    def _joined(self, left: PreparedTable | JoinedRows, right: PreparedTable | JoinedRows, source: Join) -> JoinedRows:
        return JoinedRows(left, right, (self.schema(source.left), self.schema(source.right)), source)

    @at(Stage.PART)
    def _part(self, whole: PreparedTable | JoinedRows, source: PartSource) -> PreparedTable:
        if isinstance(whole, JoinedRows):  # a partition is of a table or of a part
            raise TypeError(type(whole).__name__)
        return part(whole, self.schema(source.source), source)

    def refuse(self, query: LinearQuery) -> None:
        """Refuse nothing: every question can be asked of a table in memory."""

    def refuse_individual(self, mode: OnExhausted) -> None:
        """Refuse nothing: a unit is a place in an array."""

    def settle(self) -> None:
        """Do nothing: the asking thread does all the work itself."""

    def files(self) -> None:
        """None, since nothing is read again."""

    def sums(self, query: LinearQuery, active: Active | None = None) -> Sums:
        """The exact sums of a question; see `execute`."""
        rows, schema = self._rows_and_schema(query)
        if isinstance(rows, JoinedRows):
            return join_pairs.sums(query, rows, schema, active)
        return execute(query, rows, schema, active)

    def groups(self, query: LinearQuery, active: Active | None = None) -> Groups:
        """Every group that some unit has; see `present_groups`."""
        rows, schema = self._rows_and_schema(query)
        if isinstance(rows, JoinedRows):
            return join_pairs.groups(query, rows, schema, active)
        return present_groups(query, rows, schema, active)

    def _rows_and_schema(self, query: LinearQuery) -> tuple[PreparedTable | JoinedRows, Schema]:
        return self.rows(query.plan.source), self.schema(query.plan.source)

    def unit_budgets(self, budget: Fraction, mode: OnExhausted) -> MemoryUnitBudgets:
        """What each unit has to spend, before anything was spent."""
        return MemoryUnitBudgets(self, IndividualFilter(budget, self.units, mode))

    def paid(self, query: LinearQuery, till: UnitAdmission) -> Sums | Groups:
        """What a question measures over those who can pay for it at a till."""
        if isinstance(query.plan.aggregation, Discovery):
            return self.groups(query, till.active)
        sums = self.sums(query, till.active)
        radii = till.clip_norms
        if radii is None:
            return sums
        rows, schema = self._rows_and_schema(query)

        def in_part(rows: PreparedTable) -> Sums:
            others = per_unit_vectors(query, rows.taken(np.flatnonzero(radii[rows.units] >= 0)), schema)
            return others.within(radii[others.owners]).sums()

        return added(sums, rows.summed(query, in_part) if isinstance(rows, JoinedRows) else in_part(rows))


@dataclass(frozen=True, repr=False)
class MemoryUnitBudgets(NotCopyable):
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

    tables: MemoryBackend
    units: IndividualFilter
    watched: int = -1
    asked_of_watched: float = 0.0

    def after_query(self, query: LinearQuery, terms: UnitChargeTerms) -> tuple[Sums | Groups, MemoryUnitBudgets]:
        """What a question measures over those who can pay for it, and the unit budgets after it."""
        till = UnitAdmission(self.units, terms)
        found = self.tables.paid(query, till)
        asked = float(till.requested[till.unit_indices == self.watched].sum()) if self.watched >= 0 else 0.0
        return found, replace(self, units=till.units, asked_of_watched=asked)

    def after_charge(self, loss: float) -> MemoryUnitBudgets:
        """The unit budgets after everybody was charged the same."""
        return replace(self, units=self.units.charge(np.full(len(self.units.spent), loss)))

    def spent_by(self, unit: int) -> Fraction:
        """What one unit has spent, as a fraction: a difference of doubles is rounded.  For that unit alone."""
        return Fraction(float(self.units.spent[unit]))
