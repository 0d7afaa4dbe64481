"""A join of tables in memory: pairs of rows are formed for each query, a block of whole units at a time.

One unit may have many times more pairs than rows, so the memory of a query must not depend on them.  Pairs are never
kept.  A block has a fixed size, which its last unit exceeds by no more pairs than a unit may have.  Before the first
block is formed, as much memory is requested as the largest blocks can need, so that whether a query fails for lack of
memory does not depend on the rows.  Memory is nevertheless outside the guarantee, as timing is: see
`dpnb._backends.memory.memory_backend`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import reduce
from itertools import pairwise
from typing import TypeVar

import numpy as np

from dpnb._backends.contribution import Integers
from dpnb._backends.memory import group_discovery
from dpnb._backends.memory.blocks import KEPT_BYTES, by_blocks
from dpnb._backends.memory.execute import Active, affected_units, apply_admission, execute, merge_blocks
from dpnb._backends.memory.prepare.prepared_table import PreparedTable
from dpnb._backends.memory.prepare.unit_ids import ShortIntegers
from dpnb._backends.unit_vectors import Floats, Sums, added
from dpnb._compile.linear import LinearQuery
from dpnb._plan.join import joined_name
from dpnb._plan.plan import Join
from dpnb.accounting.individual.units import UnitIndices
from dpnb.progress import Stage, at
from dpnb.schema import Key, Schema

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


def joined_sums(query: LinearQuery, pairs: JoinedRows, schema: Schema, active: Active | None) -> Sums:
    """The exact sums of a query; see `execute`."""
    if active is not None:
        active = _decided(active, pairs.each(query, lambda block: affected_units(query, block, schema)), pairs)
    return pairs.summed(query, lambda block: execute(query, block, schema, active))


def joined_groups(
    query: LinearQuery, pairs: JoinedRows, schema: Schema, active: Active | None
) -> tuple[list[tuple[Key, ...]], Integers]:
    """Every group that some unit has; see `group_discovery.present_groups`."""
    if active is not None:
        active = _decided(
            active, pairs.each(query, lambda block: group_discovery.affected_units(query, block, schema)), pairs
        )
    blocks = pairs.each(query, lambda block: group_discovery.present_groups(query, block, schema, active))
    return group_discovery.merged(blocks, query, schema)


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
