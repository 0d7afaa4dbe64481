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
    parts: list[tuple[Integers, Integers, NDArray[Any]]] = []
    first = np.cumsum([0, *(feature.slots for feature in query.features)]).tolist()
    for index in indices:
        feature = query.features[index]
        for which, feature_slot, value in _entries(feature, rows, at, cells):
            slot = cells[which] * query.slots + first[index] + feature_slot
            parts.append((units[which], slot, value.astype(kind) * feature.weight))
    owners, slots, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    width = query.cells * query.slots
    return UnitVectors.summed(owners, slots, values, width, query.l2_sensitivity_squared)


def _entries(
    feature: Feature, rows: NumpyEvaluator, at: Integers, cells: Integers
) -> list[tuple[Integers, Integers, Integers]]:
    """Entries of single rows: indices among the rows that count, slots of the feature, values."""
    if isinstance(feature, UnitFeature):
        which = first_per_unit_cell(rows.units[at], cells)
        return [(which, np.zeros(len(which), np.int64), np.ones(len(which), np.int64))]
    if isinstance(feature, GradientFeature):  # handled by `per_unit_vectors`
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
