"""Which groups a table has, and how many privacy units each.  Reads rows; what it returns is private until thresholded.

See `dpnb.mechanisms.threshold` for what may then be released.
"""

from __future__ import annotations

import numpy as np

from dpnb.query.contribution import MULTIPLIER, PRIME, Integers, name_number, starts_of
from dpnb.query.counted import counted
from dpnb.query.execute import Active
from dpnb.query.expressions.evaluate import Rows, dense_codes
from dpnb.query.expressions.kinds import Category, Truth, Words
from dpnb.query.expressions.nodes import Column, Expression
from dpnb.query.linear.query import LinearQuery
from dpnb.query.prepare import Prepared
from dpnb.query.schema import Key, Schema


def present_groups(
    query: LinearQuery, table: Prepared, schema: Schema, active: Active | None = None
) -> tuple[list[tuple[Key, ...]], Integers]:
    """Every group that some unit has, in an order that no row decides, with its number of units.

    A unit counts in at most as many groups as its limits say, chosen by a hash of its name and the group's own key.

    Parameters
    ----------
    query : LinearQuery
    table : Prepared
    schema : dict
    active : callable, optional
        Of units and of the squares of what each adds, which is its number of groups, says which of them take part.
    """
    with np.errstate(all="ignore"):
        rows = Rows(table, schema)
        levels = [_level(group.of, rows, table) for group in query.plan.by]
        cells = dense_codes([codes for codes, _ in levels])
        contents = _hashed(levels) if query.limits.groups is not None else None
        chosen = counted(query.plan.where, (), cells, query.limits, rows, contents=contents)
        units, cell, width = table.units[chosen], cells[chosen], int(cells.max(initial=-1)) + 1
        if query.limits.rows != 1:  # each unit once in a group
            units, cell = np.divmod(np.unique(units * width + cell), max(width, 1))
        if active is not None:
            starts = starts_of([units])
            each = np.diff(np.r_[starts, len(units)])
            taking_part = active(units[starts], each.astype(np.float64))
            cell = cell if taking_part is None else cell[np.repeat(taking_part, each)]
        sizes = np.bincount(cell, minlength=width)
        present = np.flatnonzero(sizes)
        example = np.zeros(width, np.int64)  # of each group a row, which tells its values
        example[cells[cells >= 0]] = np.flatnonzero(cells >= 0)
        named = [[keys[code] for code in codes[example[present]].tolist()] for codes, keys in levels]
        return list(zip(*named, strict=True)), sizes[present]


def _hashed(levels: list[tuple[Integers, list[Key]]]) -> Integers:
    """A number for each row's group that does not depend on other units."""
    contents = np.zeros(len(levels[0][0]), np.int64)
    for codes, keys in levels:
        numbers = np.array([*(name_number(key) % PRIME for key in keys), 0], np.int64)
        contents = (contents * MULTIPLIER + numbers[codes]) % PRIME
    return contents


def _level(node: Expression, rows: Rows, table: Prepared) -> tuple[Integers, list[Key]]:
    """A code for each row, and the value of each code, in an order that does not depend on which values there are."""
    kind = rows.kind(node)
    if isinstance(kind, Words) and isinstance(node, Column):
        texts = table.texts[node.name]
        ordered = sorted(texts)
        place = np.full(len(texts) + 1, -1)
        place[[texts[text] for text in ordered]] = np.arange(len(ordered))
        return place[rows.codes(node)], list(ordered)
    if isinstance(kind, Category):
        return rows.codes(node).astype(np.int64), list(kind.values)
    if isinstance(kind, Truth):
        true, false = rows.truth(node)
        return np.where(true, 1, np.where(false, 0, -1)), [False, True]
    numbers = rows.numbers(node)
    values, codes = np.unique(numbers, return_inverse=True)
    values = values[~np.isnan(values)]
    keys: list[Key] = [int(value) if value.is_integer() else value for value in values.tolist()]
    return np.where(np.isnan(numbers), -1, codes), keys
