"""Which rows of a block count in a query, under its filter and limits, in which cell.  Reads rows; all is private."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.contribution import Integers, first_groups, first_in_groups
from dpnb._backends.memory import gradient
from dpnb._backends.memory.codes import combined_codes
from dpnb._backends.memory.expressions import NumpyEvaluator
from dpnb._compile import grid
from dpnb._compile.features import CountFeature, ModelLossFeature, TreeFeature, ValueFeature
from dpnb._plan.expressions.nodes import Column, Expression, Lookup, conjuncts
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import ContributionBounds

Mask = NDArray[np.bool_]
"""One bool for each row."""


def keys_looked_up(plan: Plan) -> Lookup | None:
    """The lookup of a row's index among the keys of a plan; None if no keys were given."""
    return (
        None
        if plan.group_keys is None
        else Lookup("keys", tuple(group.expression for group in plan.group_by), plan.group_keys, ())
    )


def cell_codes(plan: Plan, keys: Lookup | None, rows: NumpyEvaluator) -> NDArray[Any] | None:
    """The cell of each row's group, -1 for a row in none; None if there is only one cell."""
    if not plan.group_by:
        return None

    def of_piece(piece: NumpyEvaluator) -> NDArray[Any]:
        if keys is not None:
            return piece.looked_up(keys)
        return level_product([piece.level_codes(group.expression) for group in plan.group_by])

    return rows.by_pieces(of_piece)


def level_product(levels: list[tuple[NDArray[Any], int]]) -> NDArray[Any]:
    """The codes of several levels combined into one code; those of a single level unchanged."""
    return levels[0][0] if len(levels) == 1 else combined_codes(*map(list, zip(*levels, strict=True)))[0]


def row_mask(
    where: Expression | None,
    required: tuple[Expression, ...],
    cells: NDArray[Any] | None,
    limits: ContributionBounds,
    rows: NumpyEvaluator,
    *,
    contents: Integers | None = None,
) -> Mask:
    """Which rows count: those that pass `where`, have a group and no missing expression, and are within the limits.

    `cells` is the cell of each row's group, -1 for none; by default all rows are in one cell.  `contents` is for
    `first_groups`; by default the cells.
    """

    def of_piece(piece: NumpyEvaluator) -> Mask:
        counts = has_values(required, piece)
        for condition in conjuncts(where):
            counts = piece.both(counts, piece.holds(condition))
            piece.forget()
        return counts

    counts: Mask = rows.by_pieces(of_piece)
    if cells is not None:
        counts = rows.both(counts, cells >= 0)
    max_rows = limits.rows_below(rows.max_rows)
    if max_rows is not None:
        at = np.flatnonzero(counts)
        units = rows.units[at]
        counts = select_rows(at, first_in_groups(units, np.zeros_like(units), rows.ranks[at], max_rows), rows)
    if limits.max_groups is None and limits.max_rows_per_group is None:
        return counts
    if cells is None:
        cells = np.zeros(rows.size, np.int64)
    if limits.max_groups is not None:
        at = np.flatnonzero(counts)
        numbers = (cells if contents is None else contents)[at].astype(np.int64)
        counts = select_rows(
            at, first_groups(rows.units[at], rows.names[at], cells[at], numbers, limits.max_groups), rows
        )
    if limits.max_rows_per_group is not None:
        at = np.flatnonzero(counts)
        counts = select_rows(
            at, first_in_groups(rows.units[at], cells[at], rows.ranks[at], limits.max_rows_per_group), rows
        )
    return counts


def select_rows(at: Integers, kept: Mask, rows: NumpyEvaluator) -> Mask:
    """A mask of the kept rows among the rows at some indices."""
    counts = np.zeros(rows.size, np.bool_)
    counts[at] = kept
    return counts


def has_values(required: tuple[Expression, ...], rows: NumpyEvaluator) -> Mask:
    """The rows where none of the expressions is missing."""
    present = rows.everywhere
    for node in required:
        its_values = rows.present(node)
        if its_values is not rows.everywhere:
            present = rows.both(present, its_values)
            rows.forget()
    return present


def slots_of(feature: CountFeature | ValueFeature, rows: NumpyEvaluator) -> NDArray[Any] | None:
    """The slot of each row, -1 for a row in none; None if there is only one slot."""
    if not feature.split.by:
        return None
    # The first values of each category may have no slot.
    levels, first = [rows.level_codes(node)[0] for node in feature.split.by], feature.split.first
    return level_product([(codes - first, size) for codes, size in zip(levels, feature.split.sizes, strict=True)])


def steps_of(feature: ValueFeature, rows: NumpyEvaluator) -> NDArray[np.int32]:
    """Each row's number in grid steps, before the centre is subtracted; arbitrary where it is missing."""
    if isinstance(feature, ModelLossFeature):
        return grid.to_grid(gradient.model_losses(feature, rows), feature)
    steps = rows.steps(feature.expression.name) if isinstance(feature.expression, Column) else None
    return grid.to_grid(rows.numbers(feature.expression), feature) if steps is None else steps


def leaves_of(feature: TreeFeature, rows: NumpyEvaluator) -> tuple[Integers, Mask]:
    """The leaf of each row, and which rows have one."""
    numbers = rows.numbers(feature.expression)
    present = rows.both(rows.present(feature.expression), ~np.isnan(numbers))
    if feature.pieces:
        found = np.searchsorted(feature.edges, numbers, side="right") - 1
        return np.where(present, np.clip(found, 0, len(feature.edges) - 2), 0), present
    leaves = (numbers - feature.low) / feature.width
    np.clip(np.floor(leaves, out=leaves), 0, feature.leaves - 1, out=leaves)
    leaves[~present] = 0.0
    return leaves.astype(np.int64), present
