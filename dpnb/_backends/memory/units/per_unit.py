"""The contribution of each unit to a query: `execute` unit by unit.  Reads rows; all of it is private until noised."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.contribution import Integers, starts_of
from dpnb._backends.memory import gradient
from dpnb._backends.memory.blocks import blocks_of, entries_at_once, numbers_at_once
from dpnb._backends.memory.evaluate import NumpyEvaluator
from dpnb._backends.memory.prepare.prepared_table import PreparedTable
from dpnb._backends.memory.row_mask import (
    cell_codes,
    has_values,
    keys_looked_up,
    leaves_of,
    row_mask,
    slots_of,
    steps_of,
)
from dpnb._backends.unit_vectors import UnitVectors
from dpnb._compile.features import (
    BRANCHING,
    CountFeature,
    Feature,
    GradientFeature,
    TreeFeature,
    UnitFeature,
    ValueFeature,
)
from dpnb._compile.linear import LinearQuery
from dpnb._plan.expressions.nodes import Lookup
from dpnb.schema import Schema

T = TypeVar("T")

BIG = 2**62
"""Sums that may be larger are Python integers."""


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
