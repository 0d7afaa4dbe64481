"""Tables in memory, also joined ones: columns prepared once, queries computed by `dpnb._backends.memory.execute`.

One unit may have many times more pairs in a join than rows, so the memory of a query must not depend on them.  Pairs
are formed for each query, a block of whole units at a time, and never kept.  A block has a fixed size, which its last
unit exceeds by no more pairs than a unit may have.  Before the first block is formed, as much memory is requested as
the largest blocks can need, so that whether a query fails for lack of memory does not depend on the rows.

Memory is nevertheless outside the guarantee, as timing is: a session is as large as its tables, and the temporary
memory of a query may depend on how many rows pass its filter.  Without a join, a unit accounts for a few arrays as long
as its rows.

In a part of a partition with a limit, a unit that has rows in more groups counts in the first `max_parts_per_unit` of
them by the hash of `contribution`, before any filter: the choice depends on the unit's own rows alone, and is the same
in every part and query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from msgspec import UNSET

from dpnb._backends.contribution import Integers, first_groups
from dpnb._backends.memory import group_discovery
from dpnb._backends.memory.blocks import KEPT_BYTES, by_blocks, rows_for
from dpnb._backends.memory.execute import Active, affected_units, apply_admission, execute, merge_blocks, scaled_sums
from dpnb._backends.memory.expressions import NumpyEvaluator
from dpnb._backends.memory.group_discovery import merged, present_groups
from dpnb._backends.memory.kernels import start_compiling
from dpnb._backends.memory.prepare.prepared_table import PreparedTable, prepare_all
from dpnb._backends.memory.prepare.unit_ids import ShortIntegers
from dpnb._backends.memory.within import chosen_by_blocks, chosen_rows, windowed
from dpnb._backends.protocol import FIELDS_AS_TEXTS, ChosenRows, Groups, Schemas, SourceResolver, Units, Windows
from dpnb._backends.unit_vectors import Floats, Sums, added
from dpnb._compile.sensitivity import LinearQuery
from dpnb._plan.join import joined_name, part_keys
from dpnb._plan.measurements import Discovery
from dpnb._plan.plan import Join, PartSource
from dpnb.accounting.individual import IndividualFilter, OnExhausted, UnitAdmission, UnitChargeTerms
from dpnb.accounting.individual.arrays import UnitIndices
from dpnb.copying import NotCopyable
from dpnb.progress import Stage, at
from dpnb.schema import Added, Schema

PAIRS_AT_ONCE = 2**15
"""Pairs at which a block ends; its last unit may exceed this."""

BLOCKS_AT_ONCE = 4

COLUMNS_AT_ONCE = 48
"""Approximate number of temporary eight-byte columns of a block, besides two for each column and each sum."""

T = TypeVar("T")

Change = Callable[[PreparedTable], PreparedTable]


class JoinedRows:
    """Every pair of rows that one unit has in two tables.  A private value: it has no repr, and it holds no pairs."""

    def __init__(
        self,
        left: PreparedTable | JoinedRows,
        right: PreparedTable | JoinedRows,
        schemas: tuple[Schema, Schema],
        source: Join,
    ) -> None:
        self._left, self._right, self._schemas, self._source = left, right, schemas, source
        self._changes: tuple[Change, ...] = ()
        limits = left.max_rows, right.max_rows
        self.max_rows: int | None = None if limits[0] is None or limits[1] is None else limits[0] * limits[1]
        """Largest number of rows of a unit; None if unknown."""
        self._max_pairs = self.max_rows or 0

    def then(self, change: Change, max_rows: int | None) -> JoinedRows:
        """The rows that a function makes of the pairs of any block of units; it adds no rows."""
        changed = copy(self)
        changed._changes, changed.max_rows = (*self._changes, change), max_rows
        return changed

    @property
    def names(self) -> Integers:
        """Hash of each unit's name."""
        return self._left.names

    @property
    def nbytes(self) -> int:
        """Memory of both tables."""
        return self._left.nbytes + self._right.nbytes

    def counts(self, units: int) -> Integers:
        """The number of pairs of each of the `units` units, of which its rows are made."""
        return self._left.counts(units) * self._right.counts(units)

    def of_units(self, units: slice) -> PreparedTable:
        """The rows of some units."""
        pairs = join(self._left.of_units(units), self._right.of_units(units), self._schemas, self._source)
        return reduce(lambda table, change: change(table), self._changes, pairs)

    def summed(self, query: LinearQuery, work: Callable[[PreparedTable], Sums]) -> Sums:
        """The exact sums of the results of a function on blocks of pairs."""
        return reduce(added, self.each(query, work))  # there is at least one block

    def each(self, query: LinearQuery, work: Callable[[PreparedTable], T]) -> Iterator[T]:
        """The results of a function on each block of pairs; few blocks exist at a time."""
        with at(Stage.JOINING):
            self._reserve_memory(query)
            blocks = self._blocks()
            for first in range(0, len(blocks), BLOCKS_AT_ONCE):
                yield from by_blocks(lambda block: work(self.of_units(block)), blocks[first : first + BLOCKS_AT_ONCE])

    def _blocks(self) -> list[slice]:
        """Blocks of whole units, at least one, each of fewer than `PAIRS_AT_ONCE` pairs before its last unit."""
        units = len(self.names)
        total = np.cumsum(self.counts(units))
        pairs = int(total[-1]) if units else 0
        ends = np.searchsorted(total, np.arange(PAIRS_AT_ONCE, pairs, PAIRS_AT_ONCE), "left") + 1
        cuts = dict.fromkeys(end for end in ends.tolist() if end < units)
        return [slice(start, end) for start, end in pairwise([0, *cuts, units])]

    def _reserve_memory(self, query: LinearQuery) -> None:
        """Fail here if the largest possible blocks do not fit the memory, whatever the rows are."""
        kept = min(len(query.features), KEPT_BYTES // (8 * PAIRS_AT_ONCE))  # sums share no more results than that
        columns = COLUMNS_AT_ONCE * (1 + len(self._changes)) + 2 * (sum(map(len, self._schemas)) + kept)
        np.empty((BLOCKS_AT_ONCE, PAIRS_AT_ONCE + self._max_pairs, columns))


def _decided(active: Active, blocks: Iterator[tuple[UnitIndices, Floats]], pairs: JoinedRows) -> Active | None:
    """Decide once, over all blocks, which units are active; the result applies that decision to one block."""
    is_active = apply_admission(active, *merge_blocks(list(blocks)), len(pairs.names))
    return None if is_active is None else lambda owners, _: is_active[owners]


def join(left: PreparedTable, right: PreparedTable, schemas: tuple[Schema, Schema], source: Join) -> PreparedTable:
    """Every pair of rows that one unit has in both tables, or in both blocks of the same units."""
    at_left, at_right = _pairs(left.units, right.units)
    sides = left.taken(at_left), right.taken(at_right)
    max_pairs = None if left.max_rows is None or right.max_rows is None else left.max_rows * right.max_rows
    later: dict[str, int] = {}
    table = PreparedTable(sides[0].units, sides[0].names, max_pairs, added=later)
    for side, (part, own) in enumerate(zip(sides, schemas, strict=True)):
        for name in own:
            new = joined_name(name, side, source, schemas[1 - side])
            if name in part.added:
                later[new] = part.added[name]
            for kind in ("numbers", "codes", "texts", "grids"):
                if name in getattr(part, kind):
                    getattr(table, kind)[new] = getattr(part, kind)[name]
    return table


def _pairs(left: ShortIntegers, right: ShortIntegers) -> tuple[Integers, Integers]:
    """Positions of all pairs with equal units; both ascending."""
    first, last = np.searchsorted(right, left, "left"), np.searchsorted(right, left, "right")
    counts = last - first
    at_left = np.repeat(np.arange(len(left)), counts)
    within = np.arange(len(at_left)) - np.repeat(np.cumsum(counts) - counts, counts)
    return at_left, np.repeat(first, counts) + within


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
        if not isinstance(rows, JoinedRows):
            return execute(query, rows, schema, active)
        if active is not None:
            active = _decided(active, rows.each(query, lambda block: affected_units(query, block, schema)), rows)
        return rows.summed(query, lambda block: execute(query, block, schema, active))

    def groups(self, query: LinearQuery, active: Active | None = None) -> Groups:
        """Every group that some unit has; see `present_groups`."""
        query, rows, schema = self.query_and_rows(query)
        if not isinstance(rows, JoinedRows):
            return present_groups(query, rows, schema, active)
        if active is not None:
            affected = rows.each(query, lambda block: group_discovery.affected_units(query, block, schema))
            active = _decided(active, affected, rows)
        return merged(rows.each(query, lambda block: present_groups(query, block, schema, active)), query, schema)

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
