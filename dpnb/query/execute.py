"""A linear query over prepared columns: exact integer sums.  Reads rows; what it returns is private until noised."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb.query import gradient, grid
from dpnb.query.contribution import Integers, first_groups, first_in_groups, starts_of
from dpnb.query.expressions.evaluate import Rows, combined_codes, level_codes
from dpnb.query.expressions.nodes import Column, Expression, Lookup
from dpnb.query.linear.features import BRANCHING, Feature, Missed, Nodes, Ones, Present, Slopes, Value
from dpnb.query.linear.query import LinearQuery
from dpnb.query.plan import Plan
from dpnb.query.prepare import Prepared
from dpnb.query.schema import Schema
from dpnb.query.unit import Limits
from dpnb.query.unit_squares import has_quick_squares, unit_squares
from dpnb.query.unit_vectors import UnitVectors

Mask = NDArray[np.bool_]
Active = Callable[[Integers, NDArray[np.float64]], Mask | None]
"""Of units and the squares of their norms, rounded up, says which take part; None if it is public that all do."""

CHUNK = 2**21
"""Rows added up at a time.  A row's value is at most 2**32 in size, so a chunk's sums stay at most 2**53: float64
(which `numpy.bincount` uses) adds them exactly, and so does int64.  Chunks are added up in int64: up to 2**31 rows."""

BIG = 2**62
"""Sums that may be larger are Python integers."""


def execute(
    query: LinearQuery, table: Prepared, schema: Schema, active: Active | None = None
) -> NDArray[np.int64] | NDArray[np.object_]:
    """Sum what the rows that count give, cell by cell.

    Parameters
    ----------
    query : LinearQuery
    table : Prepared
    schema : dict
    active : callable, optional
        Of the units that have a row which counts and of the squares of their norms, rounded up, says which take part.

    Returns
    -------
    array of int, shape (measured cells * slots,)
        The slots of the first cell, of the second, ...; exact: int64, or Python integers where one needs more bits.
    """
    if query.clip_squared is not None or (active is not None and not has_quick_squares(query)):
        vectors = unit_vectors(query, table, schema)
        return vectors.sums(None if active is None else active(vectors.owners, vectors.squares()))
    with np.errstate(all="ignore"):
        rows = Rows(table, schema)
        cells = cell_codes(query.plan, rows)
        chosen = counted_rows(query.plan.where, query.given, cells, query.limits, rows, table)
        slopes = query.features[0]
        if isinstance(slopes, Slopes):
            return gradient.total(slopes, rows, table.units, chosen)
        cells = cells[chosen]
        kept = None if active is None else _kept(query, rows, table, chosen, cells, active)
        sums = np.concatenate(
            [
                _weighted(_sums(feature, query.cells, rows, table, chosen, cells, kept), feature.weight)
                for feature in query.features
            ],
            axis=1,
        )
        return (sums if query.only is None else sums[list(query.only)]).ravel()


def counted_rows(
    where: Expression | None,
    given: tuple[Expression, ...],
    cells: Integers,
    limits: Limits,
    rows: Rows,
    table: Prepared,
    *,
    contents: Integers | None = None,
) -> Integers | slice:
    """Positions of the rows that count; a slice where all do.

    Parameters
    ----------
    where : expression, optional
    given : tuple of expression
        Rows have something in all of them.
    cells : int64 array
        The row's group, or -1 for none.
    limits : Limits
    rows : Rows
    table : Prepared
    contents : int64 array, optional
        For `first_groups`; the cells themselves if left out.
    """
    counts = cells >= 0
    if where is not None:
        counts &= rows.truth(where)[0]
    for node in given:
        counts &= rows.present(node)
    chosen = np.flatnonzero(counts)
    if limits.rows is not None and (table.most is None or limits.rows < table.most):
        units = table.units[chosen]
        chosen = chosen[first_in_groups(units, np.zeros_like(units), table.ranks[chosen], limits.rows)]
    if limits.groups is not None:
        numbers = cells if contents is None else contents
        units, names = table.units[chosen], table.names[chosen]
        chosen = chosen[first_groups(units, names, cells[chosen], numbers[chosen], limits.groups)]
    if limits.rows_per_group is not None:
        units = table.units[chosen]
        chosen = chosen[first_in_groups(units, cells[chosen], table.ranks[chosen], limits.rows_per_group)]
    return slice(None) if len(chosen) == table.rows else chosen


def cell_codes(plan: Plan, rows: Rows) -> Integers:
    """The cell of each row's group; -1 for a row in none."""
    if not plan.by:
        return rows.zeros
    if plan.keys is not None:
        return rows.looked_up(Lookup("keys", tuple(group.of for group in plan.by), plan.keys, ()))
    levels = [level_codes(group.of, rows) for group in plan.by]
    return combined_codes([codes for codes, _ in levels], [size for _, size in levels])[0]


def cell_sums(values: Integers | None, cells: Integers, count: int) -> Integers:
    """Exact sums of `values` (of ones for None) by cell, for up to 2**31 rows.

    Parameters
    ----------
    values : int64 array, shape (rows,), optional
        At most 2**32 in size.
    cells : int64 array, shape (rows,)
        From 0 to ``count - 1``.
    count : int
        Number of cells.
    """
    totals = np.zeros(count, np.int64)
    for start in range(0, len(cells), CHUNK):
        part = slice(start, start + CHUNK)
        if count == 1:
            totals += len(cells[part]) if values is None else values[part].sum(dtype=np.int64)
        else:
            weights = None if values is None else values[part]
            totals += np.bincount(cells[part], weights, minlength=count).astype(np.int64)
    return totals


def _sums(
    feature: Feature,
    count: int,
    rows: Rows,
    table: Prepared,
    chosen: Integers | slice,
    cells: Integers,
    kept: Mask | None = None,
) -> Integers:
    """Sums of one feature over the rows that are kept, shape (cells, slots), before weighting."""
    if isinstance(feature, Present):
        first = _first_of_unit(table, chosen, cells)
        return cell_sums(None, cells[first if kept is None else first[kept[first]]], count)[:, None]
    if isinstance(feature, Slopes):  # its own way, above
        raise TypeError(type(feature).__name__)
    if isinstance(feature, Nodes):
        leaves, known = _leaves(feature, rows, chosen)
        known = known if kept is None else known & kept
        counts = cell_sums(None, (cells * feature.leaves + leaves)[known], count * feature.leaves)
        levels = [counts.reshape(count, feature.leaves)]
        for _ in range(feature.levels - 1):
            levels.append(levels[-1].reshape(count, -1, BRANCHING).sum(axis=2))
        return np.concatenate(levels[::-1], axis=1)
    there = _there(feature.given, rows, chosen)
    if kept is not None:
        there = kept if there is None else there & kept
    slot, inside = _slots(feature, rows, chosen)
    if inside is not None:
        there = inside if there is None else there & inside
        cells = cells * feature.slots + slot
    values = None if isinstance(feature, Ones) else _steps(feature, rows, table)[chosen] - feature.centre
    if there is not None:
        cells, values = cells[there], None if values is None else values[there]
    return cell_sums(values, cells, count * feature.slots).reshape(count, feature.slots)


def _slots(feature: Ones | Value, rows: Rows, chosen: Integers | slice) -> tuple[Integers, Mask | None]:
    """The slot of each chosen row, and which rows are in one; None where there is only one slot."""
    if not feature.split.by:
        return rows.zeros[chosen], None
    # The first value of each category has no slot.
    levels = [level_codes(node, rows)[0][chosen] - 1 for node in feature.split.by]
    slot, _ = combined_codes(levels, list(feature.split.sizes))
    return slot, slot >= 0


def _there(given: tuple[Expression, ...], rows: Rows, chosen: Integers | slice) -> Mask | None:
    """Which of the chosen rows have something in all of the given expressions; None for all of them."""
    there: Mask | None = None
    for node in given:
        here = rows.present(node)[chosen]
        there = here if there is None else there & here
    return None if there is None or there.all() else there


def _steps(feature: Value, rows: Rows, table: Prepared) -> Integers:
    if isinstance(feature, Missed):
        return grid.to_grid(gradient.missed(feature, rows), feature)
    if isinstance(feature.of, Column) and feature.of.name in table.steps:
        return table.steps[feature.of.name]
    return grid.to_grid(rows.numbers(feature.of), feature)


def _leaves(feature: Nodes, rows: Rows, chosen: Integers | slice) -> tuple[Integers, Mask]:
    """The leaf of each chosen row, and which rows have one."""
    numbers = rows.numbers(feature.of)[chosen]
    there = ~np.isnan(numbers)
    places = np.floor((np.where(there, numbers, feature.low) - feature.low) / feature.width)
    return np.clip(places, 0, feature.leaves - 1).astype(np.int64), there


def _weighted(sums: Integers, weight: int) -> NDArray[np.int64] | NDArray[np.object_]:
    largest = int(np.abs(sums).max(initial=1))
    return sums * weight if largest * weight < BIG else sums.astype(object) * weight


def _kept(
    query: LinearQuery, rows: Rows, table: Prepared, chosen: Integers | slice, cells: Integers, active: Active
) -> Mask | None:
    """Which of the chosen rows are of units that take part; None if it is public that all are."""
    units = table.units[chosen]

    def values(feature: Feature) -> tuple[Integers | None, Mask | None]:
        if isinstance(feature, Nodes):
            return _leaves(feature, rows, chosen)
        if isinstance(feature, Present):
            return None, None
        number = _steps(feature, rows, table)[chosen] - feature.centre if isinstance(feature, Value) else None
        return number, _there(feature.given, rows, chosen)

    starts, squares = unit_squares(query, units, cells, values)
    taking_part = active(units if query.limits.rows == 1 else units[starts], squares)
    if taking_part is None or query.limits.rows == 1:
        return taking_part
    return np.repeat(taking_part, np.diff(np.r_[starts, len(units)]))


# --- unit by unit ----------------------------------------------------------------------------------------------------


def unit_vectors(query: LinearQuery, table: Prepared, schema: Schema) -> UnitVectors:
    """What each unit adds to a question, clipped to what the question's limits allow: :func:`execute` unit by unit."""
    with np.errstate(all="ignore"):
        rows = Rows(table, schema)
        cells = cell_codes(query.plan, rows)
        chosen = counted_rows(query.plan.where, query.given, cells, query.limits, rows, table)
        slopes = query.features[0]
        if isinstance(slopes, Slopes):
            return gradient.vectors(slopes, rows, table.units, chosen, query.l2_sensitivity_squared)
        cells = cells[chosen]
        everything = list(range(len(query.features)))
        if query.clip_squared is None:
            vectors = _vectors(query, everything, rows, table, chosen, cells)
        else:
            present = [place for place in everything if isinstance(query.features[place], Present)]
            others = [place for place in everything if place not in present]
            vectors = _vectors(query, others, rows, table, chosen, cells).shortened(query.clip_squared)
            vectors = vectors.joined(_vectors(query, present, rows, table, chosen, cells)) if present else vectors
        return vectors if query.only is None else vectors.taken(query.only, query.slots)


def _vectors(
    query: LinearQuery,
    places: list[int],
    rows: Rows,
    table: Prepared,
    chosen: Integers | slice,
    cells: Integers,
) -> UnitVectors:
    """The vectors of some features.  Where a sum could need more than 62 bits, everything is in Python integers."""
    units = table.units[chosen]
    most = max(feature.weight * math.isqrt(feature.limit_squared) for feature in query.features)
    kind = np.int64 if (len(units) + 1) * max(most, math.isqrt(query.clip_squared or 0)) < BIG else object
    parts: list[tuple[Integers, Integers, NDArray[Any]]] = []
    first = np.cumsum([0, *(feature.slots for feature in query.features)]).tolist()
    for number in places:
        feature = query.features[number]
        for at, place, value in _entries(feature, rows, table, chosen, cells):
            slot = cells[at] * query.slots + first[number] + place
            parts.append((units[at], slot, value.astype(kind) * feature.weight))
    owners, slots, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    width = query.cells * query.slots
    return UnitVectors.summed(owners, slots, values, width, query.l2_sensitivity_squared)


def _entries(
    feature: Feature, rows: Rows, table: Prepared, chosen: Integers | slice, cells: Integers
) -> list[tuple[Integers, Integers, Integers]]:
    """What single rows add: places among the chosen rows, slots of the feature, values."""
    if isinstance(feature, Present):
        at = _first_of_unit(table, chosen, cells)
        return [(at, np.zeros(len(at), np.int64), np.ones(len(at), np.int64))]
    if isinstance(feature, Slopes):  # likewise
        raise TypeError(type(feature).__name__)
    if isinstance(feature, Nodes):
        leaves, known = _leaves(feature, rows, chosen)
        at = np.flatnonzero(known)
        entries, start = [], 0
        for level in range(1, feature.levels + 1):
            node = leaves[at] // BRANCHING ** (feature.levels - level)
            entries.append((at, start + node, np.ones(len(at), np.int64)))
            start += BRANCHING**level
        return entries
    slot, inside = _slots(feature, rows, chosen)
    there = _there(feature.given, rows, chosen)
    counted = np.ones(len(slot), np.bool_)
    for mask in (there, inside):
        counted = counted if mask is None else counted & mask
    at = np.flatnonzero(counted)
    if isinstance(feature, Ones):
        return [(at, slot[at], np.ones(len(at), np.int64))]
    return [(at, slot[at], (_steps(feature, rows, table)[chosen] - feature.centre)[at])]


def _first_of_unit(table: Prepared, chosen: Integers | slice, cells: Integers) -> Integers:
    """One of the chosen rows for each unit and cell in which it has some."""
    units = table.units[chosen]
    order = np.lexsort((cells, units))
    return np.asarray(order[starts_of([units[order], cells[order]])])
