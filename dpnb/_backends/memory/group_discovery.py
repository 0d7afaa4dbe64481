"""The groups of a table and their numbers of units.  Reads rows; what it returns is private until thresholded.

See `dpnb.mechanisms.selection` for what may then be released.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from dpnb._backends.contribution import MULTIPLIER, PRIME, Integers, label_hash, starts_of
from dpnb._backends.memory.blocks import by_blocks, gathered, rows_at_once
from dpnb._backends.memory.codes import dense_codes
from dpnb._backends.memory.counted_rows import Mask, row_mask
from dpnb._backends.memory.execute import Active, apply_admission, merge_blocks
from dpnb._backends.memory.expressions import NumpyEvaluator
from dpnb._backends.memory.kernels import cell_sums
from dpnb._backends.memory.prepare.prepared_table import PreparedTable
from dpnb._backends.memory.prepare.values import Codes
from dpnb._backends.unit_vectors import Floats
from dpnb._compile.sensitivity import LinearQuery
from dpnb._plan.expressions.dtypes import Boolean, Categorical, String
from dpnb._plan.expressions.nodes import Column, Expression
from dpnb._plan.expressions.rules import dtype_of
from dpnb.accounting.individual.arrays import UnitIndices
from dpnb.schema import Key, Schema


def present_groups(
    query: LinearQuery, table: PreparedTable, schema: Schema, active: Active | None = None
) -> tuple[list[tuple[Key, ...]], Integers]:
    """Every group that some unit has, in an order that does not depend on rows, with its number of units.

    A unit counts in at most as many groups as its bounds allow, chosen by a hash of its name and the group's key.
    `active` maps units and their squared norms, which are their numbers of groups, to a mask of active units.
    """
    with np.errstate(all="ignore"):
        groups = _BlockwiseUnitGroups(query, NumpyEvaluator(table, schema, rows_at_once(query)), table)
        blocks = table.blocks_for(groups.width)
        is_active = None if active is None else apply_admission(active, *groups.affected(blocks), len(table.names))
        sizes = np.sum(by_blocks(lambda block: groups.sizes(block, is_active), blocks), axis=0)
        present = np.flatnonzero(sizes)
        return groups.keys(present), sizes[present]


def merged(
    tables: Iterable[tuple[list[tuple[Key, ...]], Integers]], query: LinearQuery, schema: Schema
) -> tuple[list[tuple[Key, ...]], Integers]:
    """The groups of tables without common units, in the order that a single table would have."""
    sizes: Counter[tuple[Key, ...]] = Counter()
    for keys, counts in tables:
        for key, count in zip(keys, counts.tolist(), strict=True):
            sizes[key] += count
    kinds = [dtype_of(group.expression, schema) for group in query.plan.group_by]
    categories = [kind.values if isinstance(kind, Categorical) else None for kind in kinds]

    def order(key: tuple[Key, ...]) -> list[Key]:
        return [part if values is None else values.index(part) for part, values in zip(key, categories, strict=True)]

    keys = sorted(sizes, key=order)
    return keys, np.array([sizes[key] for key in keys], np.int64)


def affected_units(query: LinearQuery, table: PreparedTable, schema: Schema) -> tuple[UnitIndices, Floats]:
    """The units that are in a group, ascending, and the number of groups of each."""
    with np.errstate(all="ignore"):
        groups = _BlockwiseUnitGroups(query, NumpyEvaluator(table, schema, rows_at_once(query)), table)
        return groups.affected(table.blocks_for(groups.width))


class _BlockwiseUnitGroups:
    """The pairs of units and groups, block by block."""

    def __init__(self, query: LinearQuery, rows: NumpyEvaluator, table: PreparedTable) -> None:
        nodes = [group.expression for group in query.plan.group_by]
        self._rank: Codes | None = None
        if len(nodes) == 1 and isinstance(rows.kind(nodes[0]), String):  # the codes are put in order block by block
            self._rank, keys = _ranks(nodes[0], rows)
            levels: list[tuple[Codes, list[Key]]] = [(_codes(nodes[0], rows), keys)]
        else:
            levels = [_level(node, rows) for node in nodes]
        self._query, self._rows, self._levels = query, rows, levels
        if query.contribution_bounds.by_rank(table.max_rows):
            _ = table.ranks  # once, before several threads need them
        table.prepare_comparisons(query.plan.where)
        codes, keys = levels[0]
        self._cells = codes if len(levels) == 1 else dense_codes([codes for codes, _ in levels])
        self.width = len(keys) if len(levels) == 1 else int(self._cells.max(initial=-1)) + 1
        self._hashes = [
            _hashes(group.expression, keys, rows) for group, (_, keys) in zip(query.plan.group_by, levels, strict=True)
        ]

    def _chosen(self, block: slice) -> tuple[NumpyEvaluator, Codes, Mask]:
        """The rows of a block, their groups, and which of them count."""
        query, rows = self._query, self._rows.block(block)
        cells = self._ordered(self._cells[block])
        contents = self._contents(block) if query.contribution_bounds.max_groups is not None else None
        counts = row_mask(query.plan.where, (), cells, query.contribution_bounds, rows, contents=contents)
        return rows, cells, counts

    def _ordered(self, codes: Codes) -> Codes:
        return codes if self._rank is None else self._rank.take(codes)

    def _pairs(self, block: slice) -> tuple[Integers, Integers]:
        """Pairs of units and groups, without repetition; units ascending."""
        rows, cells, counts = self._chosen(block)
        chosen = np.flatnonzero(counts)
        units, cell = rows.units[chosen], cells[chosen].astype(np.int64)
        if self._query.contribution_bounds.max_rows != 1:
            units, cell = np.divmod(np.unique(units * self.width + cell), max(self.width, 1))
        return units, cell

    def _contents(self, block: slice) -> Integers:
        """A number for each row's group that does not depend on other units."""
        contents = np.zeros(block.stop - block.start, np.int64)
        for (codes, _), hashes in zip(self._levels, self._hashes, strict=True):
            contents = (contents * MULTIPLIER + hashes[self._ordered(codes[block])]) % PRIME
        return contents

    def affected(self, blocks: list[slice]) -> tuple[UnitIndices, Floats]:
        """The units that are in a group, ascending, and the number of groups of each."""

        def units_in(block: slice) -> tuple[UnitIndices, Floats]:
            units, _ = self._pairs(block)
            starts = starts_of([units])
            return units[starts], np.diff(np.r_[starts, len(units)]).astype(np.float64)

        return merge_blocks(by_blocks(units_in, blocks))

    def sizes(self, block: slice, is_active: Mask | None) -> Integers:
        """The number of active units in each group."""
        if self._query.contribution_bounds.max_rows == 1:
            rows, cells, counts = self._chosen(block)
            if is_active is not None:
                counts = counts & is_active[rows.units]
            return cell_sums(None, cells, counts, self.width)
        units, cell = self._pairs(block)
        return np.bincount(cell if is_active is None else cell[is_active[units]], minlength=self.width)

    def keys(self, present: Integers) -> list[tuple[Key, ...]]:
        """The keys of some groups."""
        if len(self._levels) == 1:
            return [(self._levels[0][1][code],) for code in present.tolist()]
        example = np.zeros(self.width, np.int64)  # one row of each group, from which its key is read
        rows = np.flatnonzero(self._cells >= 0)
        example[self._cells[rows]] = rows
        levels = [[keys[code] for code in codes[example[present]].tolist()] for codes, keys in self._levels]
        return list(zip(*levels, strict=True))


def _level(node: Expression, rows: NumpyEvaluator) -> tuple[Codes, list[Key]]:
    """A code for each row, and the value of each code, in an order that does not depend on which values occur."""
    kind = rows.kind(node)
    if isinstance(kind, String):
        rank, ordered = _ranks(node, rows)
        return gathered(rank, _codes(node, rows)), ordered
    if isinstance(kind, Categorical):
        return _codes(node, rows), list(kind.values)
    if isinstance(kind, Boolean):
        return rows.by_pieces(lambda piece: piece.level_codes(node)[0]), [False, True]
    numbers = rows.by_pieces(lambda piece: piece.numbers(node))
    values, codes = np.unique(numbers, return_inverse=True)
    values = values[~np.isnan(values)]
    keys: list[Key] = [int(value) if value.is_integer() else value for value in values.tolist()]
    return np.where(np.isnan(numbers), -1, codes), keys


def _codes(node: Expression, rows: NumpyEvaluator) -> Codes:
    """The code of each row; a column's own array."""
    return rows.codes(node) if isinstance(node, Column) else rows.by_pieces(lambda piece: piece.codes(node))


def _ranks(node: Expression, rows: NumpyEvaluator) -> tuple[Codes, list[Key]]:
    """The rank of each code of a column of texts in the order of the texts, -1 for -1; and the texts in that order."""
    texts = rows.texts(node)
    rank = np.full(len(texts) + 1, -1, rows.block(slice(0, 0)).codes(node).dtype)
    rank[texts.ordered_codes] = np.arange(len(texts))
    return rank, list(texts.ordered)


def _hashes(node: Expression, keys: list[Key], rows: NumpyEvaluator) -> Integers:
    """The hash of the value of each code; 0 for none."""
    if isinstance(rows.kind(node), String):
        texts = rows.texts(node)
        return np.append(texts.hashes[texts.ordered_codes] % PRIME, 0)
    return np.array([*(label_hash(key) % PRIME for key in keys), 0], np.int64)
