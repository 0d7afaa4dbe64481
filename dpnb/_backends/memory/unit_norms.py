"""The squared norm of each unit's contribution to a query, computed without the vectors themselves.

This covers the common queries; for the others `per_unit.per_unit_vectors` computes the vectors.  Reads rows, sorted by
unit; what it returns is private.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.contribution import Integers, starts_of
from dpnb._backends.unit_vectors import Floats, rounded_up
from dpnb._compile.features import BRANCHING, Feature, GradientFeature, TreeFeature, UnitFeature, ValueFeature
from dpnb._compile.linear import LinearQuery

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


def unit_norms_squared(
    query: LinearQuery, units: Integers, cells: Integers, values: RowValues
) -> tuple[Integers | slice, Floats]:
    """For each unit with rows the index of its first row (a slice for all rows), and its squared norm, rounded up.

    Parameters
    ----------
    query : LinearQuery
    units, cells : int64 array, shape (rows,)
        Unit and cell of each row that counts; units ascending.
    values : callable
    """
    if query.contribution_bounds.max_rows == 1:
        squares = np.zeros(len(units))
        for feature in query.features:
            squares += _row_squares(feature, len(units), *values(feature))
        return slice(None), rounded_up(squares, len(query.features), query.l2_sensitivity_squared)
    starts = starts_of([units])
    sizes = np.diff(np.r_[starts, len(units)])
    rows = _UnitNorms(np.repeat(np.arange(len(starts)), sizes), cells, query.cells, len(starts))
    squares = np.zeros(len(starts))
    for feature in query.features:
        squares += rows.squares(feature, *values(feature))
    levels = max(getattr(feature, "levels", 1) for feature in query.features)
    return starts, rounded_up(squares, sizes * levels * len(query.features), query.l2_sensitivity_squared)


def _row_squares(feature: Feature, rows: int, values: Integers | None, present: Mask | None) -> Floats:
    """The square of what each row adds to a feature."""
    if isinstance(feature, ValueFeature) and values is not None:
        squares = (values.astype(np.float64) * feature.weight) ** 2
    else:
        squares = np.full(rows, float(feature.limit_squared * feature.weight**2))
    return squares if present is None else np.where(present, squares, 0.0)


class _UnitNorms:
    """The units, numbered 0, 1, ..., and the cells of rows that are sorted by unit."""

    def __init__(self, unit: Integers, cells: Integers, width: int, units: int) -> None:
        self._unit, self._cell, self._width, self._units = unit, unit * width + cells, width, units
        self._order: Integers | None = None if width == 1 else np.argsort(self._cell)

    def squares(self, feature: Feature, values: Integers | None, present: Mask | None) -> Floats:
        """The square of what each unit adds to a feature."""
        weight = float(feature.weight) ** 2
        if isinstance(feature, TreeFeature):
            return weight * self._tree_squares(feature, values, present)
        cell = self._cell if self._order is None else self._cell[self._order]
        runs = starts_of([cell])
        if isinstance(feature, UnitFeature):
            return weight * self._by_unit(cell[runs], np.ones(len(runs)))
        added = np.ones(len(cell), np.int64) if values is None else values
        added = added if present is None else np.where(present, added, 0)
        sums = np.add.reduceat(added if self._order is None else added[self._order], runs) if len(runs) else added
        return weight * self._by_unit(cell[runs], sums.astype(np.float64) ** 2)

    def _tree_squares(self, feature: TreeFeature, leaves: Integers | None, present: Mask | None) -> Floats:
        if leaves is None:
            raise TypeError("leaves")
        node = self._cell * feature.leaves + leaves
        node = np.sort(node if present is None else node[present])
        squares = np.zeros(self._units)
        size = feature.leaves
        for _ in range(feature.levels):
            runs = starts_of([node])
            counts = np.diff(np.r_[runs, len(node)]).astype(np.float64)
            squares += self._by_unit(node[runs] // size, counts**2)
            node, size = node // BRANCHING, size // BRANCHING
        return squares

    def _by_unit(self, cell: Integers, squares: Floats) -> Floats:
        """Sums of squares by unit."""
        return np.bincount(cell // self._width, squares, self._units).astype(np.float64)
