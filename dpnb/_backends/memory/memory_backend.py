"""Tables in memory: columns prepared once, queries computed by `dpnb._backends.memory.execute`.

Memory, like timing, is outside the guarantee: a session is as large as its tables, and the temporary memory of a
query may depend on how many rows pass its filter.  So that one unit's values cannot be inferred from it, a unit has few
pairs in a join, and pairs are formed one block at a time and not kept (`dpnb._backends.memory.join_pairs`); without a
join, a unit accounts for a few arrays as long as its rows.

In a part of a partition with a limit, a unit that has rows in more groups counts in the first `max_parts_per_unit` of
them by the hash of `contribution`, before any filter: the choice depends on the unit's own rows alone, and is the same
in every part and query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from msgspec import UNSET

from dpnb._backends.contribution import first_groups
from dpnb._backends.memory.join_pairs import joined_groups, joined_sums
from dpnb._backends.memory.blocks import rows_for
from dpnb._backends.memory.evaluate import NumpyEvaluator
from dpnb._backends.memory.execute import Active, execute, scaled_sums
from dpnb._backends.memory.group_discovery import present_groups
from dpnb._backends.memory.join_pairs import JoinedRows
from dpnb._backends.memory.kernels import start_compiling
from dpnb._backends.memory.prepare.prepared_table import PreparedTable, prepare_all
from dpnb._backends.memory.units.within import chosen_by_blocks, chosen_rows, windowed
from dpnb._backends.protocol import FIELDS_AS_TEXTS, ChosenRows, Groups, Schemas, SourceResolver, Units, Windows
from dpnb._backends.unit_vectors import Sums, added
from dpnb._compile.linear import LinearQuery
from dpnb._plan.join import part_keys
from dpnb._plan.measurements import Discovery
from dpnb._plan.plan import Join, PartSource
from dpnb.accounting.individual import IndividualFilter, OnExhausted, UnitAdmission, UnitChargeTerms
from dpnb.copying import NotCopyable
from dpnb.progress import Stage, at
from dpnb.schema import Added, Schema

# --- the rows of one group as a separate table ------------------------------------------------------------------------


def part(table: PreparedTable, schema: Schema, which: PartSource) -> PreparedTable:
    """The rows of a part: a private value."""
    with np.errstate(all="ignore"):
        rows = NumpyEvaluator(table, schema, rows_for(which.by.expression))
        codes = rows.by_pieces(lambda piece: piece.level_codes(which.by.expression)[0])
    code = part_keys(which.by.expression, schema).index(which.key)
    chosen = np.flatnonzero(codes >= 0)
    if which.max_parts_per_unit is not None:
        groups = codes[chosen].astype(np.int64)
        chosen = chosen[first_groups(rows.units[chosen], rows.names[chosen], groups, groups, which.max_parts_per_unit)]
    return table.taken(chosen[codes[chosen] == code])


# --- tables in memory -------------------------------------------------------------------------------------------------


class MemoryBackend(SourceResolver[PreparedTable | JoinedRows]):
    """Prepared tables, and the joins and parts that queries use."""

    engine_label = "memory"
    _reading: str | None = None

    @classmethod
    def read(cls, tables: Mapping[str, Any], schemas: Schemas, units: Units, added: Added = ()) -> MemoryBackend:
        """Copy the columns in the schemas; see `prepare_all` for the errors."""
        from dpnb._backends.source_table import SourceTable  # imported when first used, since it imports pandas

        prepared = prepare_all(tables, schemas, units, added)
        start_compiling()
        backend = cls(prepared, schemas, units)
        # A declared type of identifiers is the same for all readers; and if each row is a unit, none is chosen.
        undeclared = [table for name, table in tables.items() if units[name].column and units[name].type is UNSET]
        read = [table for table in undeclared if isinstance(table, SourceTable)]
        backend._reading = FIELDS_AS_TEXTS if any(table.names_units_by_texts for table in read) else None
        return backend

    @property
    def units(self) -> int:
        """Number of units of all tables."""
        tables = [self._sources[name] for name in self._names]
        return max(
            (int(table.units.max(initial=-1)) + 1 for table in tables if isinstance(table, PreparedTable)), default=0
        )

    def _bytes(self, rows: PreparedTable | JoinedRows) -> int:
        return rows.nbytes

    def _joined(self, left: PreparedTable | JoinedRows, right: PreparedTable | JoinedRows, source: Join) -> JoinedRows:
        return JoinedRows(left, right, (self.schema(source.left), self.schema(source.right)), source)

    @at(Stage.PART)
    def _part(self, whole: PreparedTable | JoinedRows, source: PartSource) -> PreparedTable:
        if isinstance(whole, JoinedRows):  # a partition is of a table or of a part
            raise TypeError(type(whole).__name__)
        return part(whole, self.schema(source.source), source)

    @at(Stage.PREPARING)
    def _windowed(self, table: PreparedTable | JoinedRows, windows: Windows) -> PreparedTable | JoinedRows:
        if isinstance(table, JoinedRows):
            return table.then(lambda pairs: windowed(pairs, *windows), table.max_rows)
        return windowed(table, *windows)

    @at(Stage.PREPARING)
    def _chosen(self, table: PreparedTable | JoinedRows, chosen: ChosenRows) -> PreparedTable | JoinedRows:
        if isinstance(table, JoinedRows):
            return table.then(lambda pairs: chosen_rows(pairs, chosen), chosen.max_rows)
        return chosen_by_blocks(table, chosen)

    def refuse(self, query: LinearQuery) -> None:
        """Refuse nothing: a table in memory supports every query."""

    def refuse_individual(self, mode: OnExhausted) -> None:
        """Refuse nothing: a unit is an index of an array."""

    def ready(self) -> None:
        """Do nothing: the calling thread does all the work itself."""

    def files(self) -> str | None:
        """How text files were read, which decides which rows of a unit count; no file is read again."""
        return self._reading

    def sums(self, query: LinearQuery, active: Active | None = None) -> Sums:
        """The exact sums of a query; see `execute`."""
        query, rows, schema = self.query_and_rows(query)
        if isinstance(rows, JoinedRows):
            return joined_sums(query, rows, schema, active)
        return execute(query, rows, schema, active)

    def groups(self, query: LinearQuery, active: Active | None = None) -> Groups:
        """Every group that some unit has; see `present_groups`."""
        query, rows, schema = self.query_and_rows(query)
        if isinstance(rows, JoinedRows):
            return joined_groups(query, rows, schema, active)
        return present_groups(query, rows, schema, active)

    def unit_budgets(self, budget: Fraction, mode: OnExhausted) -> MemoryUnitBudgets:
        """The budgets of all units, before any charge."""
        return MemoryUnitBudgets(self, IndividualFilter(budget, self.units, mode))

    def admitted_result(self, query: LinearQuery, admission: UnitAdmission) -> Sums | Groups:
        """The result of a query over the units that `admission` admits."""
        if isinstance(query.plan.aggregation, Discovery):
            return self.groups(query, admission.active)
        sums = self.sums(query, admission.active)
        clip_norms = admission.clip_norms
        if clip_norms is None:
            return sums
        query, rows, schema = self.query_and_rows(query)

        def clipped_sums(rows: PreparedTable) -> Sums:
            return scaled_sums(query, rows, schema, clip_norms)

        return added(sums, rows.summed(query, clipped_sums) if isinstance(rows, JoinedRows) else clipped_sums(rows))


@dataclass(frozen=True, repr=False)
class MemoryUnitBudgets(NotCopyable):
    """The budgets of all units of tables in memory."""

    tables: MemoryBackend
    units: IndividualFilter
    watched: int = -1  # a unit whose charge by each query is recorded, for its own statement; -1 for none
    asked_of_watched: float = 0.0  # the charge that the last query requested of this unit, as mu squared

    def after_query(self, query: LinearQuery, terms: UnitChargeTerms) -> tuple[Sums | Groups, MemoryUnitBudgets]:
        """The result of a query over its active units, and the unit budgets after it."""
        admission = UnitAdmission(self.units, terms)
        result = self.tables.admitted_result(query, admission)
        requested = admission.requested[admission.unit_indices == self.watched]
        charge = float(requested.sum()) if self.watched >= 0 else 0.0
        return result, replace(self, units=admission.units, asked_of_watched=charge)

    def after_charge(self, loss: float) -> MemoryUnitBudgets:
        """The unit budgets after the same charge to every unit."""
        return replace(self, units=self.units.charge(np.full(len(self.units.spent), loss)))

    def spent_by(self, unit: int) -> Fraction:
        """What one unit has spent, as a fraction, since a difference of doubles is rounded.  For that unit alone."""
        return Fraction(float(self.units.spent[unit]))
