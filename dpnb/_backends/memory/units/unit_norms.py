"""The squared norm of each unit's contribution to a query, computed without the vectors themselves.

This covers the common queries; for the others `per_unit.per_unit_vectors` computes the vectors.  Reads rows, sorted by
unit; what it returns is private.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.contribution import MAX_COMPARED, Integers, starts_of
from dpnb._backends.unit_vectors import Floats, rounded_up
from dpnb._compile.features import BRANCHING, Feature, GradientFeature, TreeFeature, UnitFeature, ValueFeature
from dpnb._compile.linear import LinearQuery

LEVEL_BITS = BRANCHING.bit_length() - 1
"""Bits of the number of a node by which its siblings differ: the number of children is a power of two."""

Mask = NDArray[np.bool_]
"""One bool for each row."""

RowValues = Callable[[Feature], tuple[Integers | None, Mask | None]]
"""Maps a feature to each row's integer before weighting (for a tree the leaf; None for ones) and the rows with one."""


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
