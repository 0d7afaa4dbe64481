"""A linear query over prepared columns: exact integer sums.  Reads rows; what it returns is private until noised."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import accumulate
from operator import iadd
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.contribution import Integers
from dpnb._backends.memory import gradient
from dpnb._backends.memory.blocks import (
    blocks_at_once,
    by_blocks,
    entries_at_once,
    numbers_at_once,
    rows_at_once,
    sum_of_blocks,
)
from dpnb._backends.memory.counted_rows import (
    Mask,
    cell_codes,
    has_values,
    keys_looked_up,
    leaves_of,
    row_mask,
    slots_of,
    steps_of,
)
from dpnb._backends.memory.expressions import NumpyEvaluator
from dpnb._backends.memory.kernels import cell_sums, sums_and_counts
from dpnb._backends.memory.prepare.prepared_table import PreparedTable
from dpnb._backends.memory.unit_contributions import (
    BIG,
    RowValues,
    each_part,
    first_per_unit_cell,
    has_fast_norms,
    is_dense,
    row_norms_squared,
    unit_norms_squared,
)
from dpnb._backends.unit_vectors import Floats, Sums, UnitVectors, added
from dpnb._compile.features import (
    BRANCHING,
    CountFeature,
    Feature,
    GradientFeature,
    SlotLayout,
    TreeFeature,
    UnitFeature,
    ValueFeature,
)
from dpnb._compile.sensitivity import LinearQuery
from dpnb._plan.expressions.nodes import Column, Expression, Lookup
from dpnb.accounting.individual.arrays import UnitIndices
from dpnb.schema import Schema

T = TypeVar("T")

MIN_SHARE = 4
"""If rows are units, those that add nothing are left out where there are more than this many for each that does not."""

Active = Callable[[UnitIndices, Floats], Mask | None]
"""Maps units and their squared norms, rounded up, to a mask of active units; None if publicly all are active."""


def execute(query: LinearQuery, table: PreparedTable, schema: Schema, active: Active | None = None) -> Sums:
    """Sum the contributions of the rows that count, cell by cell.

    `active` maps the units that have a row which counts, and their squared norms, rounded up, to a mask of active
    units.  The result has the slots of the first cell, of the second, ..., and is exact: int64, or Python integers if
    one needs more bits.
    """
    if query.clip_squared is not None or (active is not None and not has_fast_norms(query)):
        return UnitBlocks(query, table, schema).sums(active)
    rows, keys, blocks = _query_blocks(query, table, schema)
    is_active = None
    if active is not None:
        is_active = apply_admission(active, *_squares(query, keys, rows, blocks), len(table.names))
    sums = sum_of_blocks(
        lambda block: _RowBlock(query, keys, rows.block(block), is_active).sums(), blocks, iadd, blocks_at_once(query)
    )
    weighted = _weighted(sums, query.features)
    return (weighted if query.cell_subset is None else weighted[list(query.cell_subset)]).ravel()


def affected_units(query: LinearQuery, table: PreparedTable, schema: Schema) -> tuple[UnitIndices, Floats]:
    """The units that have a row which counts, ascending, and their squared norms, rounded up."""
    if not has_fast_norms(query):
        return UnitBlocks(query, table, schema).squares()
    rows, keys, blocks = _query_blocks(query, table, schema)
    return _squares(query, keys, rows, blocks)


def apply_admission(active: Active, owners: UnitIndices, squares: Floats, units: int) -> Mask | None:
    """Whether each of the `units` units is active; None if all are."""
    admitted = active(owners, squares)
    if admitted is None or len(admitted) == units:
        return admitted
    is_active = np.ones(units, np.bool_)
    is_active[owners] = admitted
    return is_active


def scaled_sums(query: LinearQuery, table: PreparedTable, schema: Schema, norms: Floats) -> Sums:
    """The sums of `execute` over the units with a norm that is not negative, their vectors scaled down to it."""
    chosen = norms >= 0
    units = UnitBlocks(query, table, schema)

    def sums_of(block: slice) -> Sums:
        if not units.rows.block(block).of_units(chosen).any():  # in most queries few units or none
            return np.zeros(query.numbers, np.int64)
        return reduce(added, units.each(block, lambda of: of.within(norms[of.owners]).sums(), chosen))

    return sum_of_blocks(sums_of, units.blocks, added)


class UnitBlocks:
    """The vectors of the units of a query, in blocks of whole units."""

    def __init__(self, query: LinearQuery, table: PreparedTable, schema: Schema) -> None:
        self._query, self._units = query, len(table.names)
        self.rows, self._keys, _ = _query_blocks(query, table, schema)
        entries = sum(getattr(feature, "levels", 1) for feature in query.features)
        self._few = table.rows * entries <= entries_at_once()
        at_once = numbers_at_once() if is_dense(query) else entries_at_once()
        self.blocks = table.blocks_for(1, min(rows_at_once(query), max(1, at_once // entries)))

    def each(self, block: slice, use: Callable[[UnitVectors], T], chosen: Mask | None = None) -> list[T]:
        """The results of `use` for parts of a block; see `each_part`."""
        return each_part(self._query, self._keys, self.rows.block(block), use, chosen)

    def squares(self) -> tuple[UnitIndices, Floats]:
        """The units that have a row which counts, ascending, and their squared norms, rounded up."""

        def squares_of(block: slice) -> tuple[UnitIndices, Floats]:
            return merge_blocks(self.each(block, lambda of: (of.owners, of.squares())))

        return merge_blocks(by_blocks(squares_of, self.blocks))

    def sums(self, active: Active | None) -> Sums:
        """The sums of the vectors of the active units."""
        if active is not None and self._few:
            parts = [part for block in self.blocks for part in self.each(block, lambda of: of)]
            admitted = active(*merge_blocks([(of.owners, of.squares()) for of in parts]))
            ends = np.cumsum([len(of.owners) for of in parts])
            masks = [None] * len(parts) if admitted is None else np.split(admitted, ends[:-1])
            return reduce(added, (of.sums(mask) for of, mask in zip(parts, masks, strict=True)))
        # The vectors of all units may not fit the memory, so they are computed again once it is known which are active.
        is_active = None if active is None else apply_admission(active, *self.squares(), self._units)
        return sum_of_blocks(
            lambda block: reduce(added, self.each(block, UnitVectors.sums, is_active)), self.blocks, added
        )


def merge_blocks(blocks: list[tuple[UnitIndices, Floats]]) -> tuple[UnitIndices, Floats]:
    """The units of several blocks and their squared norms."""
    owners, squares = zip(*blocks, strict=True)
    return np.concatenate(owners), np.concatenate(squares)


def _query_blocks(
    query: LinearQuery, table: PreparedTable, schema: Schema
) -> tuple[NumpyEvaluator, Lookup | None, list[slice]]:
    """The rows of a query, the lookup of a row's cell if keys are given, and the blocks."""
    if query.contribution_bounds.by_rank(table.max_rows):
        _ = table.ranks  # once, before several threads need them
    for feature in query.features:
        if isinstance(feature, ValueFeature) and isinstance(feature.expression, Column):
            table.steps(feature.expression.name)
    table.prepare_comparisons(query.plan.where)
    size = rows_at_once(query)
    # At least as many rows as components, so that these do not dominate the time.
    return (
        NumpyEvaluator(table, schema, size),
        keys_looked_up(query.plan),
        table.blocks_for(query.cells * query.slots, size),
    )


def _squares(
    query: LinearQuery, keys: Lookup | None, rows: NumpyEvaluator, blocks: list[slice]
) -> tuple[UnitIndices, Floats]:
    if not rows.rows_are_units:
        return merge_blocks(by_blocks(lambda block: _RowBlock(query, keys, rows.block(block)).squares(), blocks))
    squares = np.concatenate(
        by_blocks(lambda block: _RowBlock(query, keys, rows.block(block)).row_squares(slice(None)), blocks)
    )
    if rows.size > MIN_SHARE * np.count_nonzero(squares):  # without the rows that add nothing
        owners = np.flatnonzero(squares)
        return owners, squares[owners]
    return rows.short_units, squares


class _RowBlock:
    """The contribution of a block of rows to a query; `keys` looks up a row's cell, if keys are given."""

    def __init__(
        self, query: LinearQuery, keys: Lookup | None, rows: NumpyEvaluator, is_active: Mask | None = None
    ) -> None:
        self._query, self._rows = query, rows
        self._cells = cell_codes(query.plan, keys, rows)
        self._counts = row_mask(query.plan.where, query.required, self._cells, query.contribution_bounds, rows)
        if is_active is not None:
            self._counts = rows.both(self._counts, rows.of_units(is_active))

    def sums(self) -> Integers:
        """Sums of every feature, before weighting, shape (cells, slots)."""
        first = self._query.features[0]
        if isinstance(first, GradientFeature):
            return gradient.total(first, self._rows, self._rows.units, np.flatnonzero(self._counts))[None, :]
        # Values first: compiled sums of values count their rows too.
        features, starts = self._query.features, list(accumulate([of.slots for of in self._query.features], initial=0))
        values = [index for index, feature in enumerate(features) if isinstance(feature, ValueFeature)]
        others = [index for index in range(len(features)) if index not in values]
        sums = np.zeros((self._query.cells, starts[-1]), np.int64)
        start = 0
        for rows in self._rows.pieces:
            part = slice(start, start + rows.size)
            piece = _RowSums(self._query, rows, None if self._cells is None else self._cells[part], self._counts[part])
            for index in (*values, *others):
                if not isinstance(features[index], UnitFeature):
                    sums[:, starts[index] : starts[index + 1]] += piece.sums(features[index])
                    rows.forget()
            start = part.stop
        for index in others:
            if isinstance(features[index], UnitFeature):
                sums[:, starts[index] : starts[index + 1]] = self._unit_counts()
        return sums

    def _unit_counts(self) -> Integers:
        """The number of units with a row in each cell, shape (cells, 1)."""
        counts, rows = self._counts, self._rows
        if self._query.contribution_bounds.max_rows != 1:
            counts = np.zeros_like(counts)
            at = np.flatnonzero(self._counts)
            counts[at[first_per_unit_cell(rows.units[at], None if self._cells is None else self._cells[at])]] = True
        return cell_sums(None, self._cells, counts, self._query.cells)[:, None]

    def squares(self) -> tuple[Integers, NDArray[np.float64]]:
        """The units that have a row which counts, ascending, and their squared norms, rounded up."""
        at = np.flatnonzero(self._counts)
        units = self._rows.units.take(at)
        if self._query.contribution_bounds.max_rows == 1:
            return units, self.row_squares(at)
        cells = None if self._cells is None else self._cells[at].astype(np.int64)
        starts, squares = unit_norms_squared(self._query, units, cells, self._values_at(at))
        return units[starts], squares

    def row_squares(self, at: Integers | slice) -> Floats:
        """The squared norms of the vectors of single rows, rounded up; 0 for rows that do not count."""
        return row_norms_squared(self._query, self._counts[at], self._values_at(at))

    def _values_at(self, at: Integers | slice) -> RowValues:
        """The integers of some rows."""

        def joined(value: Callable[[NumpyEvaluator], NDArray[Any]]) -> NDArray[Any]:
            return np.asarray(self._rows.by_pieces(value)[at])

        def values(feature: Feature) -> tuple[Integers | None, Mask | None]:
            if isinstance(feature, TreeFeature):
                return (
                    joined(lambda rows: leaves_of(feature, rows)[0]),
                    joined(lambda rows: leaves_of(feature, rows)[1]),
                )
            if isinstance(feature, UnitFeature | GradientFeature):
                return None, None
            number = None
            if isinstance(feature, ValueFeature):
                number = np.subtract(joined(lambda rows: steps_of(feature, rows)), feature.centre, dtype=np.int64)
            if feature.required == self._query.required:  # these rows have it
                return number, None
            return number, joined(lambda rows: has_values(feature.required, rows))

        return values


class _RowSums:
    """Some rows of a block, for features that are sums over rows."""

    def __init__(self, query: LinearQuery, rows: NumpyEvaluator, cells: NDArray[Any] | None, counts: Mask) -> None:
        self._query, self._rows, self._cells, self._counts = query, rows, cells, counts
        self._ones: dict[tuple[tuple[Expression, ...], SlotLayout], Integers] = {}

    def sums(self, feature: Feature) -> Integers:
        """Sums of a feature, before weighting, shape (cells, slots)."""
        match feature:
            case CountFeature():
                return self._slot_sums(feature, None)
            case ValueFeature():
                sums = self._slot_sums(feature, steps_of(feature, self._rows))
                return sums - feature.centre * self._slot_sums(feature, None) if feature.centre else sums
            case TreeFeature():
                leaves, present = leaves_of(feature, self._rows)
                count = self._query.cells
                index = leaves if self._cells is None else self._cells * np.int64(feature.leaves) + leaves
                counts = cell_sums(None, index, self._counts & present, count * feature.leaves)
                levels = [counts.reshape(count, feature.leaves)]
                for _ in range(feature.levels - 1):
                    levels.append(levels[-1].reshape(count, -1, BRANCHING).sum(axis=2))
                return np.concatenate(levels[::-1], axis=1)
        raise TypeError(type(feature).__name__)  # others are sums over units

    def _slot_sums(self, feature: CountFeature | ValueFeature, values: NDArray[Any] | None) -> Integers:
        """Sums of values, or of ones for None, over the rows of a feature, shape (cells, slots)."""
        more = feature.required if feature.required != self._query.required else ()
        key = more, feature.split
        if values is None and key in self._ones:
            return self._ones[key]
        counts = self._counts
        if more:
            counts = self._rows.both(counts, has_values(feature.required, self._rows))
        index = self._cells
        if feature.split.by and (slots := slots_of(feature, self._rows)) is not None:
            counts = self._rows.both(counts, slots >= 0)
            index = slots if index is None else index * np.int64(feature.slots) + slots
        shape = self._query.cells, feature.slots
        if values is None:
            self._ones[key] = cell_sums(None, index, counts, shape[0] * shape[1]).reshape(shape)
            return self._ones[key]
        sums, ones = sums_and_counts(values, index, counts, shape[0] * shape[1])
        if ones is not None:
            self._ones[key] = ones.reshape(shape)
        return sums.reshape(shape)


def _weighted(sums: Integers, features: tuple[Feature, ...]) -> Sums:
    """Sums by cell and slot, each times the weight of its feature."""
    weights, slots = [feature.weight for feature in features], [feature.slots for feature in features]
    largest = int(np.abs(sums).max(initial=1))
    total: Sums = (
        sums * np.repeat(np.array(weights, np.int64), slots)
        if largest * max(weights) < BIG
        else sums.astype(object) * np.repeat(np.array(weights, object), slots)
    )
    return total
