"""The contribution of each unit to a query, and its squared norm.  Reads rows; all of it is private until noised.

The norm is computed without the vectors themselves for the common queries, of rows that are sorted by unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.contribution import MAX_COMPARED, Integers, starts_of
from dpnb._backends.memory import gradient
from dpnb._backends.memory.blocks import blocks_of, entries_at_once, numbers_at_once
from dpnb._backends.memory.counted_rows import (
    cell_codes,
    has_values,
    keys_looked_up,
    leaves_of,
    row_mask,
    slots_of,
    steps_of,
)
from dpnb._backends.memory.expressions import NumpyEvaluator
from dpnb._backends.memory.prepare.prepared_table import PreparedTable
from dpnb._backends.unit_vectors import Floats, UnitVectors, rounded_up
from dpnb._compile.features import (
    BRANCHING,
    CountFeature,
    Feature,
    GradientFeature,
    TreeFeature,
    UnitFeature,
    ValueFeature,
)
from dpnb._compile.sensitivity import LinearQuery
from dpnb._plan.expressions.nodes import Lookup
from dpnb.schema import Schema

T = TypeVar("T")

BIG = 2**62
"""Sums that may be larger are Python integers."""


LEVEL_BITS = BRANCHING.bit_length() - 1
"""Bits of the number of a node by which its siblings differ: the number of children is a power of two."""

Mask = NDArray[np.bool_]
"""One bool for each row."""

RowValues = Callable[[Feature], tuple[Integers | None, Mask | None]]
"""Maps a feature to each row's integer before weighting (for a tree the leaf; None for ones) and the rows with one."""


def per_unit_vectors(query: LinearQuery, table: PreparedTable, schema: Schema) -> UnitVectors:
    """The contribution of each unit to a query, clipped to the query's bounds."""
    return reduce(
        UnitVectors.joined, each_part(query, keys_looked_up(query.plan), NumpyEvaluator(table, schema), lambda of: of)
    )


def each_part(
    query: LinearQuery,
    keys: Lookup | None,
    rows: NumpyEvaluator,
    use: Callable[[UnitVectors], T],
    chosen: Mask | None = None,
) -> list[T]:
    """The results of `use` for parts of the `per_unit_vectors` of a block of whole units; there is at least one.

    With `chosen` only the units for which it is true.
    """
    with np.errstate(all="ignore"):
        cells = cell_codes(query.plan, keys, rows)
        at = np.flatnonzero(row_mask(query.plan.where, query.required, cells, query.contribution_bounds, rows))
        if chosen is not None:
            at = at[chosen[rows.units[at]]]
        first = query.features[0]
        if isinstance(first, GradientFeature):
            return [use(gradient.vectors(first, rows, rows.units, at, query.l2_sensitivity_squared))]
        row_cells = np.zeros(len(at), np.int64) if cells is None else cells[at].astype(np.int64)
        return [use(vectors) for vectors in _Vectors(query, rows, at, row_cells).parts()]


def is_dense(query: LinearQuery) -> bool:
    """Whether every row that counts has one entry for each feature that is a sum over rows."""
    return all(
        isinstance(feature, UnitFeature)
        or (
            isinstance(feature, CountFeature | ValueFeature)
            and not feature.split.by
            and feature.required in ((), query.required)
        )
        for feature in query.features
    )


def first_per_unit_cell(units: Integers, cells: NDArray[Any] | None) -> Integers:
    """Indices of one row for each pair of a unit and a cell in which it has rows; units ascending."""
    if cells is None:
        return starts_of([units])
    order = np.lexsort((cells, units))
    return np.asarray(order[starts_of([units[order], cells[order]])])


class _Vectors:
    """The vectors of a block, whose counted rows are at the ascending indices `at`, in `cells`.

    If a sum could need more than 62 bits, all values are Python integers.
    """

    def __init__(self, query: LinearQuery, rows: NumpyEvaluator, at: Integers, cells: Integers) -> None:
        self._query, self._rows, self._at, self._cells = query, rows, at, cells
        self._units = rows.units[at]
        indices = range(len(query.features))
        self._by_unit = [index for index in indices if isinstance(query.features[index], UnitFeature)]
        self._by_row = [index for index in indices if index not in set(self._by_unit)]
        self._slots = np.cumsum([0, *(feature.slots for feature in query.features)])[:-1]
        longest = max(feature.weight * math.isqrt(feature.limit_squared) for feature in query.features)
        fits = (len(at) + 1) * max(longest, math.isqrt(query.clip_squared or 0)) < BIG
        self._kind = np.int64 if fits else object

    def parts(self) -> Iterator[UnitVectors]:
        """The vectors of some of the units after those of others."""
        numbers = len(self._at) * len(self._by_row)
        if self._kind is object or not is_dense(self._query) or not 0 < numbers <= 2 * numbers_at_once():
            yield self._finished(self._sparse(), slice(None))
            return
        values = self._values()
        for part in blocks_of(self._units, max(1, entries_at_once() // len(self._by_row))):
            yield self._finished(self._dense(values, part), part)

    def _finished(self, vectors: UnitVectors | None, part: slice) -> UnitVectors:
        """Vectors of sums over rows, clipped, together with those of sums over units, in the measured cells."""
        query = self._query
        if vectors is not None and query.clip_squared is not None:
            vectors = vectors.shortened(query.clip_squared)
        if self._by_unit:
            entries, units, cells = _Entries(query), self._units[part], self._cells[part]
            which = first_per_unit_cell(units, cells)
            for index in self._by_unit:
                weights = np.full(len(which), query.features[index].weight, self._kind)
                entries.add(units[which], cells[which] * query.slots + self._slots[index], weights)
            vectors = entries.vectors() if vectors is None else vectors.joined(entries.vectors())
        if vectors is None:  # never true: a query has features
            raise TypeError("features")
        return vectors if query.cell_subset is None else vectors.taken(query.cell_subset, query.slots)

    def _pieces(self) -> Iterator[tuple[NumpyEvaluator, slice, Integers]]:
        """The pieces of the block, which of the rows that count are in each, and their indices there."""
        start = 0
        for piece in self._rows.pieces:
            part = slice(*np.searchsorted(self._at, [start, start + piece.size]).tolist())
            yield piece, part, self._at[part] - start
            start += piece.size

    def _sparse(self) -> UnitVectors | None:
        """The sums over rows, entry by entry."""
        query, entries = self._query, _Entries(self._query)
        for piece, part, at in self._pieces():
            for index in self._by_row:
                feature = query.features[index]
                for which, feature_slot, value in _entries(feature, piece, at):
                    slot = self._cells[part][which] * query.slots + self._slots[index] + feature_slot
                    entries.add(self._units[part][which], slot, value.astype(self._kind) * feature.weight)
                piece.forget()
        return entries.vectors() if self._by_row else None

    def _values(self) -> Integers:
        """What each row adds to each feature, shape (features, rows); see `is_dense`."""
        values = np.empty((len(self._by_row), len(self._at)), np.int64)
        for piece, part, at in self._pieces():
            for own, index in zip(values, self._by_row, strict=True):
                for _, _, value in _entries(self._query.features[index], piece, at):
                    np.multiply(value, self._query.features[index].weight, out=own[part])
                piece.forget()
        return values

    def _dense(self, values: Integers, part: slice) -> UnitVectors:
        """The vectors of some units: as `_sparse`, for all features at a time."""
        units, cells, values = self._units[part], self._cells[part], values[:, part]
        if self._query.cells > 1:
            order = np.lexsort((cells, units))
            units, cells, values = units[order], cells[order], values[:, order]
        runs = starts_of([units, cells])
        if len(runs) < len(units):
            values = np.add.reduceat(values, runs, axis=1)
        slots = cells[runs][:, None] * self._query.slots + self._slots[self._by_row]
        owners = np.repeat(units[runs], len(self._by_row))
        width = self._query.cells * self._query.slots
        return UnitVectors.summed(owners, slots.ravel(), values.T.ravel(), width, self._query.l2_sensitivity_squared)


class _Entries:
    """Entries of single rows, which are added up whenever there are many: then a unit has one for each component."""

    def __init__(self, query: LinearQuery) -> None:
        self._width, self._max_norm_squared = query.cells * query.slots, query.l2_sensitivity_squared
        self._parts: list[tuple[Integers, Integers, NDArray[Any]]] = []
        self._size, self._limit = 0, entries_at_once()

    def add(self, owners: Integers, slots: Integers, values: NDArray[Any]) -> None:
        """Add entries of single rows: their units, components and values."""
        self._parts.append((owners, slots, values))
        self._size += len(owners)
        if self._size > self._limit:
            vectors = self.vectors()
            self._parts = [(np.repeat(vectors.owners, vectors.sizes), vectors.slots, vectors.values)]
            self._size = len(vectors.slots)
            self._limit = max(self._limit, 2 * self._size)

    def vectors(self) -> UnitVectors:
        """The vectors that have these entries; there is at least one array of them."""
        owners, slots, values = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        return UnitVectors.summed(owners, slots, values, self._width, self._max_norm_squared)


def _entries(feature: Feature, rows: NumpyEvaluator, at: Integers) -> list[tuple[Integers, Integers, Integers]]:
    """Entries of single rows: indices among the rows that count, slots of the feature, values."""
    if isinstance(feature, UnitFeature | GradientFeature):  # not sums over rows
        raise TypeError(type(feature).__name__)
    if isinstance(feature, TreeFeature):
        leaves, present = leaves_of(feature, rows)
        leaves, which = leaves[at], np.flatnonzero(present[at])
        entries, start = [], 0
        for level in range(1, feature.levels + 1):
            node = leaves[which] // BRANCHING ** (feature.levels - level)
            entries.append((which, start + node, np.ones(len(which), np.int64)))
            start += BRANCHING**level
        return entries
    present, slots = has_values(feature.required, rows)[at], slots_of(feature, rows)
    slot = np.zeros(len(at), np.int64) if slots is None else slots[at].astype(np.int64)
    which = np.flatnonzero(present & (slot >= 0))
    if isinstance(feature, CountFeature):
        return [(which, slot[which], np.ones(len(which), np.int64))]
    return [(which, slot[which], steps_of(feature, rows)[at[which]].astype(np.int64) - feature.centre)]


def has_fast_norms(query: LinearQuery) -> bool:
    """Whether :func:`unit_norms_squared` supports the query: all cells, no scaling down, no split by categories."""
    supported = all(
        isinstance(feature, UnitFeature | TreeFeature)
        or (not isinstance(feature, GradientFeature) and not feature.split.by)
        for feature in query.features
    )
    return supported and query.cell_subset is None and query.clip_squared is None


def row_norms_squared(query: LinearQuery, counts: Mask, values: RowValues) -> Floats:
    """The squared norm of each row, rounded up, if rows are units; 0 for rows that do not count."""
    squares: Floats | float = 0.0
    for feature in query.features:
        squares = squares + _row_squares(feature, *values(feature))
    return rounded_up(np.asarray(squares * counts, np.float64), len(query.features), query.l2_sensitivity_squared)


def unit_norms_squared(
    query: LinearQuery, units: Integers, cells: Integers | None, values: RowValues
) -> tuple[Integers, Floats]:
    """For each unit with rows the index of its first row, and its squared norm, rounded up.

    `units` is the unit, and `cells` the cell (None if there is only one), of each row that counts; units are ascending.
    """
    starts = starts_of([units])
    sizes = _sizes(starts, len(units))
    rows = _UnitNorms(starts, sizes, cells, query.cells)
    squares = np.zeros(len(starts))
    for feature in query.features:
        squares += rows.squares(feature, *values(feature))
    levels = max(getattr(feature, "levels", 1) for feature in query.features)
    return starts, rounded_up(squares, sizes * levels * len(query.features), query.l2_sensitivity_squared)


def _row_squares(feature: Feature, values: Integers | None, present: Mask | None) -> Floats | float:
    """The square of what each row adds to a feature; one number if it is the same for all."""
    squares: Floats | float = float(feature.limit_squared * feature.weight**2)
    if isinstance(feature, ValueFeature) and values is not None:
        squares = np.square(values * float(feature.weight), dtype=np.float64)
    return squares if present is None else np.asarray(squares * present, np.float64)


def _sizes(starts: Integers, rows: int) -> Integers:
    """Numbers of rows of runs."""
    return np.diff(starts, append=rows)


class _UnitNorms:
    """The cells of rows that are in the order of their units, which are numbered 0, 1, ...

    A run is the rows of one unit in one cell.  Runs are in the order of units and cells, so that rows in the order of
    their runs are still in the order of their units.

    `starts` and `sizes` are the first row of each unit and the number of its rows; `cells` is the cell of each row,
    None if there is only one, and `width` the number of cells.
    """

    def __init__(self, starts: Integers, sizes: Integers, cells: Integers | None, width: int) -> None:
        self._units, self._cell, self._order = sizes, None, None
        self._runs, self._run_sizes = starts, sizes
        if cells is not None:
            self._cell = self._unit * width + cells
            # A stable sort is several times as fast, since the rows are nearly in order.
            self._order = np.argsort(self._cell, kind="stable")
            self._runs = starts_of([self._cell[self._order]])
            self._run_sizes = _sizes(self._runs, len(cells))

    @cached_property
    def _unit(self) -> Integers:
        """The unit of each row."""
        return np.repeat(np.arange(len(self._units)), self._units)

    @cached_property
    def _run_units(self) -> Integers:
        """The unit of each run."""
        return self._unit[self._runs]

    def squares(self, feature: Feature, values: Integers | None, present: Mask | None) -> Floats:
        """The square of what each unit adds to a feature."""
        weight = float(feature.weight) ** 2
        if isinstance(feature, TreeFeature):
            return weight * self._tree_squares(feature, values, present)
        if isinstance(feature, UnitFeature):
            squares = np.ones(len(self._runs))
        else:
            squares = self._sums(values, present).astype(np.float64) ** 2
        return weight * (squares if self._order is None else self._by_unit(self._run_units, squares))

    def _sums(self, values: Integers | None, present: Mask | None) -> Integers:
        """The sum of each run."""
        if values is None and present is None:
            return self._run_sizes
        added = values if values is not None else np.ones(len(self._unit), np.int64)
        added = added if present is None else added * present
        added = added if self._order is None else added[self._order]
        return np.add.reduceat(added, self._runs) if len(self._runs) else added

    def _tree_squares(self, feature: TreeFeature, leaves: Integers | None, present: Mask | None) -> Floats:
        if leaves is None:
            raise TypeError("leaves")
        cell = self._unit if self._cell is None else self._cell
        unit = self._unit
        if present is not None:
            cell, leaves, unit = cell[present], leaves[present], unit[present]
        if self._units.max(initial=0) <= MAX_COMPARED:
            return self._by_unit(unit, _shared_nodes(cell, leaves, feature.levels, int(self._units.max(initial=0))))
        node = np.sort(cell * feature.leaves + leaves, kind="stable")
        rows, first = len(node), np.arange(len(node))
        squares = np.zeros(len(self._units))
        for _ in range(feature.levels):
            # Kept are only the nodes that have rows, with the first of these.
            runs = starts_of([node])
            node, unit, first = node[runs], unit[runs], first[runs]
            squares += self._by_unit(unit, _sizes(first, rows).astype(np.float64) ** 2)
            node >>= LEVEL_BITS
        return squares

    def _by_unit(self, units: Integers, squares: Floats) -> Floats:
        """Sums of squares by unit, added in their order."""
        return np.bincount(units, squares, len(self._units)).astype(np.float64)


def _shared_nodes(cell: Integers, leaves: Integers, levels: int, max_rows: int) -> Floats:
    """For each row the number of its nodes, and twice those that it shares with each earlier row of its cell.

    Their sum is that of the squares of the numbers of rows in the nodes.  Compares all pairs of a unit's rows: if units
    are small, this is many times as fast as sorting.

    `cell` differs between units, and the rows of a unit are together.  `max_rows` is the largest number of rows of a
    unit.
    """
    kind = np.dtype(np.int16 if BRANCHING**levels < 2**14 else np.int64)
    leaf: NDArray[Any] = leaves.astype(kind)
    apart = kind.type(BRANCHING**levels)
    shared = np.zeros(len(cell), np.int16)  # a level fewer than `MAX_COMPARED` for each of at most 31 levels
    for lag in range(1, max_rows):
        # Two leaves are in one node unless they differ in the bits above it.
        difference = leaf[lag:] ^ leaf[:-lag]
        difference |= (cell[lag:] != cell[:-lag]) * apart
        for level in range(levels):
            shared[lag:] += difference < BRANCHING**level
    return np.asarray(levels + 2.0 * shared, np.float64)
