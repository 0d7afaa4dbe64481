"""A linear query over prepared columns: exact integer sums.  Reads rows; what it returns is private until noised."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb.query.expressions import And, Column, Compare, Condition, Not, Operator, Or
from dpnb.query.linear import Feature, LinearQuery
from dpnb.query.prepare import Prepared
from dpnb.query.schema import Categories, Schema

Mask = NDArray[np.bool_]

CHUNK = 2**21
"""Rows added up at a time.  A feature is at most 2**32 in size, so a chunk's sums stay at most 2**53: float64
(which `numpy.bincount` uses) adds them exactly, and so does int64.  Chunks are added as Python integers."""

COMPARE: dict[Operator, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def execute(query: LinearQuery, table: Prepared, schema: Schema) -> list[int]:
    """Sum the features of the rows that count, cell by cell.

    Returns
    -------
    list of int, length ``cells * features``
        The features of the first cell, of the second, ...; exact.
    """
    with np.errstate(all="ignore"):
        cells = _cells(query, table)
        counts = cells >= 0
        if query.plan.where is not None:
            counts &= evaluate(query.plan.where, table, schema)[0]
        for name in _needed(query):
            counts &= _present(name, table)
        if query.distinct:
            pairs = np.unique(table.units[counts] * query.cells + cells[counts])
            return cell_sums(None, (pairs % query.cells).astype(np.int64), query.cells)
        chosen = None if counts.all() else np.flatnonzero(counts)
        cells = cells if chosen is None else cells[chosen]
        sums = [_feature_sums(feature, table, chosen, cells, query.cells) for feature in query.features]
        return [value for cell in zip(*sums, strict=True) for value in cell]


def cell_sums(values: NDArray[np.int64] | None, cells: NDArray[np.int64], count: int) -> list[int]:
    """Exact sums of `values` (of ones for None) by cell, for any number of rows.

    Parameters
    ----------
    values : int64 array, shape (rows,), optional
        At most 2**32 in size.
    cells : int64 array, shape (rows,)
        From 0 to ``count - 1``.
    count : int
        Number of cells.
    """
    totals = [0] * count
    for start in range(0, len(cells), CHUNK):
        part = slice(start, start + CHUNK)
        if count == 1:
            sums = [len(cells[part]) if values is None else int(values[part].sum(dtype=np.int64))]
        else:
            weights = None if values is None else values[part]
            sums = [int(value) for value in np.bincount(cells[part], weights, minlength=count)]
        totals = [total + value for total, value in zip(totals, sums, strict=True)]
    return totals


def evaluate(condition: Condition, table: Prepared, schema: Schema) -> tuple[Mask, Mask]:
    """Where a condition is true and where it is false; a row in neither lacks what the condition asks about."""
    match condition:
        case And(left, right):
            a, b = evaluate(left, table, schema), evaluate(right, table, schema)
            return a[0] & b[0], a[1] | b[1]
        case Or(left, right):
            a, b = evaluate(left, table, schema), evaluate(right, table, schema)
            return a[0] | b[0], a[1] & b[1]
        case Not(inner):
            true, false = evaluate(inner, table, schema)
            return false, true
        case Compare():
            true = _compare(condition, table, schema)
            known = _present(condition.left.name, table)
            if isinstance(condition.right, Column):
                known = known & _present(condition.right.name, table)
            return true & known, ~true & known


def _compare(comparison: Compare, table: Prepared, schema: Schema) -> Mask:
    compare = COMPARE[comparison.operator]
    name, right = comparison.left.name, comparison.right
    declared = schema[name]
    if isinstance(right, Column):
        mask: Mask = compare(table.numbers[name], table.numbers[right.name])
    elif isinstance(declared, Categories):
        outcome = np.array([bool(compare(key, right.value)) for key in declared.values] + [False])
        mask = outcome[table.codes[name]]
    else:
        mask = compare(table.numbers[name], float(right.value))
    return mask


def _present(name: str, table: Prepared) -> Mask:
    if name in table.codes:
        return table.codes[name] >= 0
    present: Mask = ~np.isnan(table.numbers[name])
    return present


def _needed(query: LinearQuery) -> list[str]:
    column = getattr(query.plan.aggregation, "column", None)
    return [] if column is None else [column]


def _cells(query: LinearQuery, table: Prepared) -> NDArray[np.int64]:
    if not query.plan.by:
        return np.zeros(table.rows, np.int64)
    return table.codes[query.plan.by[0]].astype(np.int64)


def _feature_sums(
    feature: Feature, table: Prepared, chosen: NDArray[np.int64] | None, cells: NDArray[np.int64], count: int
) -> list[int]:
    if feature.column is None:
        return [feature.limit * total for total in cell_sums(None, cells, count)]
    steps = table.steps[feature.column]
    return cell_sums((steps if chosen is None else steps[chosen]) - feature.centre, cells, count)
