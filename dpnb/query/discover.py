"""Which groups a table has, and how many privacy units each.  Reads rows; what it returns is private until thresholded.

See `dpnb.mechanisms.threshold` for what may then be released.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpnb.query.blocks import by_blocks, gathered
from dpnb.query.contribution import MULTIPLIER, PRIME, Integers, name_number, starts_of
from dpnb.query.counted import Mask, counted
from dpnb.query.execute import Active, taking_part
from dpnb.query.expressions.evaluate import Rows, dense_codes
from dpnb.query.expressions.kinds import Category, Truth, Words
from dpnb.query.expressions.nodes import Column, Expression
from dpnb.query.linear.query import LinearQuery
from dpnb.query.prepare import Prepared
from dpnb.query.schema import Key, Schema
from dpnb.query.values import Codes


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
        groups = _Groups(query, rows, levels)
        if query.limits.by_rank(table.most):
            _ = table.ranks  # once, before several threads ask for them
        blocks = table.blocks_for(groups.width)
        kept = None if active is None else taking_part(active, by_blocks(groups.units, blocks), table)
        sizes = np.sum(by_blocks(lambda block: groups.sizes(block, kept), blocks), axis=0)
        present = np.flatnonzero(sizes)
        return groups.keys(present), sizes[present]


class _Groups:
    """Which unit is in which group, block by block.

    Parameters
    ----------
    query : LinearQuery
    rows : Rows
    levels : list of array and list
        A code for each row, -1 for none, and the value of each code.
    """

    def __init__(self, query: LinearQuery, rows: Rows, levels: list[tuple[Codes, list[Key]]]) -> None:
        self._query, self._rows, self._levels = query, rows, levels
        codes, keys = levels[0]
        self._cells = codes if len(levels) == 1 else dense_codes([codes for codes, _ in levels])
        self.width = len(keys) if len(levels) == 1 else int(self._cells.max(initial=-1)) + 1
        self._numbers = [np.array([*(name_number(key) % PRIME for key in keys), 0], np.int64) for _, keys in levels]

    def _once(self, block: slice) -> tuple[Integers, Integers]:
        """Units and groups, each pair once; units ascending."""
        query, rows, cells = self._query, self._rows.block(block), self._cells[block]
        contents = self._contents(block) if query.limits.groups is not None else None
        chosen = np.flatnonzero(counted(query.plan.where, (), cells, query.limits, rows, contents=contents))
        units, cell = rows.units[chosen], cells[chosen].astype(np.int64)
        if query.limits.rows != 1:
            units, cell = np.divmod(np.unique(units * self.width + cell), max(self.width, 1))
        return units, cell

    def _contents(self, block: slice) -> Integers:
        """A number for each row's group that does not depend on other units."""
        contents = np.zeros(block.stop - block.start, np.int64)
        for (codes, _), numbers in zip(self._levels, self._numbers, strict=True):
            contents = (contents * MULTIPLIER + numbers[codes[block]]) % PRIME
        return contents

    def units(self, block: slice) -> tuple[Integers, NDArray[np.float64]]:
        """The units that are in a group, and in how many."""
        units, _ = self._once(block)
        starts = starts_of([units])
        return units[starts], np.diff(np.r_[starts, len(units)]).astype(np.float64)

    def sizes(self, block: slice, kept: Mask | None) -> Integers:
        """How many units each group has, of those that take part, by unit."""
        units, cell = self._once(block)
        return np.bincount(cell if kept is None else cell[kept[units]], minlength=self.width)

    def keys(self, present: Integers) -> list[tuple[Key, ...]]:
        """The values of some groups."""
        if len(self._levels) == 1:
            return [(self._levels[0][1][code],) for code in present.tolist()]
        example = np.zeros(self.width, np.int64)  # of each group a row, which tells its values
        known = np.flatnonzero(self._cells >= 0)
        example[self._cells[known]] = known
        named = [[keys[code] for code in codes[example[present]].tolist()] for codes, keys in self._levels]
        return list(zip(*named, strict=True))


def _level(node: Expression, rows: Rows, table: Prepared) -> tuple[Codes, list[Key]]:
    """A code for each row, and the value of each code, in an order that does not depend on which values there are."""
    kind = rows.kind(node)
    if isinstance(kind, Words) and isinstance(node, Column):
        texts = table.texts[node.name]
        ordered = sorted(texts)
        codes = rows.codes(node)
        place = np.full(len(texts) + 1, -1, codes.dtype)
        place[[texts[text] for text in ordered]] = np.arange(len(ordered))
        return gathered(place, codes), list(ordered)
    if isinstance(kind, Category):
        return rows.codes(node), list(kind.values)
    if isinstance(kind, Truth):
        true, false = rows.truth(node)
        return np.where(true, 1, np.where(false, 0, -1)), [False, True]
    numbers = rows.numbers(node)
    values, codes = np.unique(numbers, return_inverse=True)
    values = values[~np.isnan(values)]
    keys: list[Key] = [int(value) if value.is_integer() else value for value in values.tolist()]
    return np.where(np.isnan(numbers), -1, codes), keys
