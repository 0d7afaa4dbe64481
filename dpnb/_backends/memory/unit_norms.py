"""How much each unit adds to a question: the square of its vector's norm, without making the vectors.

For the questions that are asked most; of the others `by_unit.unit_vectors` makes the vectors themselves.  Reads rows,
in the order of their units; what it returns is private.
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
"""One bool a row."""

RowValues = Callable[[Feature], tuple[Integers | None, Mask | None]]
"""Of a feature: each row's integer before weighting (the leaf of a tree; None for ones), and which rows give one."""


def has_fast_norms(query: LinearQuery) -> bool:
    """Whether :func:`unit_norms_squared` knows the query: of all cells, nothing scaled down, no split by categories."""
    usual = all(
        isinstance(feature, UnitFeature | TreeFeature)
        or (not isinstance(feature, GradientFeature) and not feature.split.by)
        for feature in query.features
    )
    return usual and query.cell_subset is None and query.clip_squared is None


def unit_norms_squared(
    query: LinearQuery, units: Integers, cells: Integers, values: RowValues
) -> tuple[Integers, Floats]:
    """Where the rows of each unit that has some begin, and the square of its norm, rounded up.

    Parameters
    ----------
    query : LinearQuery
    units, cells : int64 array, shape (rows,)
        Of the rows that count; units ascending.
    values : callable
    """
    if query.contribution_bounds.max_rows == 1:
        starts, squares = np.arange(len(units)), np.zeros(len(units))
        for feature in query.features:
            squares += _of_row(feature, len(units), *values(feature))
        return starts, rounded_up(squares, len(query.features), query.l2_sensitivity_squared)
    starts = starts_of([units])
    sizes = np.diff(np.r_[starts, len(units)])
    rows = _UnitNorms(np.repeat(np.arange(len(starts)), sizes), cells, query.cells, len(starts))
    squares = np.zeros(len(starts))
    for feature in query.features:
        squares += rows.squares(feature, *values(feature))
    levels = max(getattr(feature, "levels", 1) for feature in query.features)
    return starts, rounded_up(squares, sizes * levels * len(query.features), query.l2_sensitivity_squared)


def _of_row(feature: Feature, rows: int, values: Integers | None, there: Mask | None) -> Floats:
    """Of one row each."""
    if isinstance(feature, ValueFeature) and values is not None:
        squares = (values.astype(np.float64) * feature.weight) ** 2
    else:
        squares = np.full(rows, float(feature.limit_squared * feature.weight**2))
    return squares if there is None else np.where(there, squares, 0.0)


class _UnitNorms:
    """Rows in the order of their units' numbers 0, 1, ..., and in which cell each is."""

    def __init__(self, unit: Integers, cells: Integers, width: int, units: int) -> None:
        self._unit, self._cell, self._width, self._units = unit, unit * width + cells, width, units
        self._order: Integers | None = None if width == 1 else np.argsort(self._cell)

    def squares(self, feature: Feature, values: Integers | None, there: Mask | None) -> Floats:
        """The square of what each unit adds to a feature."""
        weight = float(feature.weight) ** 2
        if isinstance(feature, TreeFeature):
            return weight * self._of_nodes(feature, values, there)
        cell = self._cell if self._order is None else self._cell[self._order]
        runs = starts_of([cell])
        if isinstance(feature, UnitFeature):
            return weight * self._by_unit(cell[runs], np.ones(len(runs)))
        each = np.ones(len(cell), np.int64) if values is None else values
        each = each if there is None else np.where(there, each, 0)
        sums = np.add.reduceat(each if self._order is None else each[self._order], runs) if len(runs) else each
        return weight * self._by_unit(cell[runs], sums.astype(np.float64) ** 2)

    def _of_nodes(self, feature: TreeFeature, leaves: Integers | None, there: Mask | None) -> Floats:
        if leaves is None:
            raise TypeError("leaves")
        node = self._cell * feature.leaves + leaves
        node = np.sort(node if there is None else node[there])
        squares = np.zeros(self._units)
        size = feature.leaves
        for _ in range(feature.levels):
            runs = starts_of([node])
            counts = np.diff(np.r_[runs, len(node)]).astype(np.float64)
            squares += self._by_unit(node[runs] // size, counts**2)
            node, size = node // BRANCHING, size // BRANCHING
        return squares

    def _by_unit(self, cell: Integers, squares: Floats) -> Floats:
        return np.bincount(cell // self._width, squares, self._units).astype(np.float64)
