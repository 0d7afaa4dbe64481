"""The contribution of each unit to a query: `execute` unit by unit.  Reads rows; all of it is private until noised."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.contribution import Integers, starts_of
from dpnb._backends.memory import gradient
from dpnb._backends.memory.evaluate import NumpyEvaluator
from dpnb._backends.memory.prepare.prepared_table import PreparedTable
from dpnb._backends.memory.row_mask import (
    Mask,
    cell_codes,
    has_values,
    keys_looked_up,
    leaves_of,
    row_mask,
    slots_of,
    steps_of,
)
from dpnb._backends.memory.working_set import entries_at_once
from dpnb._backends.unit_vectors import UnitVectors
from dpnb._compile.features import BRANCHING, CountFeature, Feature, GradientFeature, TreeFeature, UnitFeature
from dpnb._compile.linear import LinearQuery
from dpnb._plan.expressions.nodes import Lookup
from dpnb._plan.schema import Schema

BIG = 2**62
"""Sums that may be larger are Python integers."""


def per_unit_vectors(query: LinearQuery, table: PreparedTable, schema: Schema) -> UnitVectors:
    """The contribution of each unit to a query, clipped to the query's bounds."""
    return block_vectors(query, keys_looked_up(query.plan), NumpyEvaluator(table, schema))


def block_vectors(
    query: LinearQuery, keys: Lookup | None, rows: NumpyEvaluator, chosen: Mask | None = None
) -> UnitVectors:
    """`per_unit_vectors` of a block of whole units; with `chosen` only of the units for which it is true."""
    with np.errstate(all="ignore"):
        cells = cell_codes(query.plan, keys, rows)
        at = np.flatnonzero(row_mask(query.plan.where, query.required, cells, query.contribution_bounds, rows))
        if chosen is not None:
            at = at[chosen[rows.units[at]]]
        first = query.features[0]
        if isinstance(first, GradientFeature):
            return gradient.vectors(first, rows, rows.units, at, query.l2_sensitivity_squared)
        row_cells = np.zeros(len(at), np.int64) if cells is None else cells[at].astype(np.int64)
        indices = list(range(len(query.features)))
        if query.clip_squared is None:
            vectors = _vectors(query, indices, rows, at, row_cells)
        else:
            by_unit = [index for index in indices if isinstance(query.features[index], UnitFeature)]
            by_row = [index for index in indices if index not in by_unit]
            vectors = _vectors(query, by_row, rows, at, row_cells).shortened(query.clip_squared)
            vectors = vectors.joined(_vectors(query, by_unit, rows, at, row_cells)) if by_unit else vectors
        return vectors if query.cell_subset is None else vectors.taken(query.cell_subset, query.slots)


def first_per_unit_cell(units: Integers, cells: NDArray[Any] | None) -> Integers:
    """Indices of one row for each pair of a unit and a cell in which it has rows; units ascending."""
    if cells is None:
        return starts_of([units])
    order = np.lexsort((cells, units))
    return np.asarray(order[starts_of([units[order], cells[order]])])


def _vectors(
    query: LinearQuery, indices: list[int], rows: NumpyEvaluator, at: Integers, cells: Integers
) -> UnitVectors:
    """The vectors of some features.  If a sum could need more than 62 bits, all values are Python integers.

    Parameters
    ----------
    query : LinearQuery
    indices : list of int
        Indices of the features.
    rows : NumpyEvaluator
    at : int64 array
        Rows that count, ascending.
    cells : int64 array
        Cells of these rows.
    """
    units = rows.units[at]
    max_norm = max(feature.weight * math.isqrt(feature.limit_squared) for feature in query.features)
    kind = np.int64 if (len(units) + 1) * max(max_norm, math.isqrt(query.clip_squared or 0)) < BIG else object
    first = np.cumsum([0, *(feature.slots for feature in query.features)]).tolist()
    entries = _Entries(query)
    start = 0
    for piece in rows.pieces:
        part = slice(*np.searchsorted(at, [start, start + piece.size]).tolist())
        for index in indices:
            feature = query.features[index]
            if isinstance(feature, UnitFeature):
                continue
            for which, feature_slot, value in _entries(feature, piece, at[part] - start):
                slot = cells[part][which] * query.slots + first[index] + feature_slot
                entries.add(units[part][which], slot, value.astype(kind) * feature.weight)
            piece.forget()
        start += piece.size
    for index in indices:
        if isinstance(query.features[index], UnitFeature):
            which = first_per_unit_cell(units, cells)
            ones = np.ones(len(which), np.int64)
            entries.add(
                units[which],
                cells[which] * query.slots + first[index],
                ones.astype(kind) * query.features[index].weight,
            )
    return entries.vectors()


class _Entries:
    """Entries of single rows, which are added up whenever there are many: then a unit has one for each component.

    Parameters
    ----------
    query : LinearQuery
    """

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
