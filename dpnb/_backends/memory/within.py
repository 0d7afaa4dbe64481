"""Values that are computed from the rows of one unit, in memory.  Reads rows; every value in here is private.

See `dpnb._compile.within` for what may be computed.  The rows of a table are in the order of their units, so a block of
whole units is computed alone: its rows are sorted into *runs*, the rows of one unit with the same keys, and every
function is a few operations on all runs of the block at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.contribution import Integers
from dpnb._backends.memory.blocks import by_blocks, where_true
from dpnb._backends.memory.expressions import Floats, Mask, NumpyEvaluator
from dpnb._backends.memory.prepare.prepared_table import PreparedTable
from dpnb._backends.memory.prepare.values import Codes
from dpnb._backends.protocol import ChosenRows
from dpnb._compile import grid
from dpnb._compile.within import is_any_number
from dpnb._plan.expressions.dtypes import Boolean, Categorical, String, as_column
from dpnb._plan.expressions.nodes import Expression, WithinUnit
from dpnb._plan.expressions.rules import TypedSchema, column_type, dtype_of
from dpnb._plan.expressions.within import by_value, order_of
from dpnb.schema import Bounded, Categories, Schema

WINDOW_VALUES, MIN_ROWS = 2**22, 2**12
"""Values within units in a block, and its rows at least, while a table of rows per unit is made."""


@dataclass(frozen=True)
class Runs:
    """The rows of a block that are computed together, run by run."""

    rows: Integers  # shape (n,): indices into the block, the rows of a run together and in their order
    starts: Integers  # shape (runs,): where each run begins in `rows`
    in_order: Mask  # shape (n,): whether a row has an order; those that have none are the last of their run

    @cached_property
    def lengths(self) -> Integers:
        """The number of rows of each run."""
        return np.diff(self.starts, append=len(self.rows))

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """The value of each row's run."""
        return np.repeat(values, self.lengths)

    @cached_property
    def first(self) -> Integers:
        """Where the run of each row begins."""
        return self.spread(self.starts)

    @cached_property
    def number(self) -> Integers:
        """The number of rows before each row in its run."""
        return np.arange(len(self.rows)) - self.first

    def total(self, values: Integers) -> Integers:
        """The sum over each run."""
        return np.asarray(np.add.reduceat(values, self.starts) if len(self.starts) else values[:0])

    def running(self, values: Integers) -> Integers:
        """The sum of each row and those before it in its run."""
        sums = np.cumsum(values)  # exact modulo 2**64, as are the differences
        return np.asarray(sums - self.spread(sums[self.starts] - values[self.starts]))

    def before(self, rows: int) -> Integers:
        """Where the row is that is some rows before each row of its run; -1 if there is none."""
        number = self.number - rows
        at = np.arange(len(self.rows)) - rows
        return np.where((number >= 0) & (number < self.spread(self.lengths)), at, -1)


def _runs(table: PreparedTable, rows: NumpyEvaluator, part: slice, node: WithinUnit) -> Runs:
    """The rows in which a value is computed: those of the condition that have all keys."""
    by = order_of(node)
    counts: Mask = rows.holds(node.where)
    codes = [rows.level_codes(key)[0] for key in node.keys]  # at most as many as the values are that were counted
    for code in codes:
        counts = rows.both(counts, code >= 0)
    at = np.flatnonzero(counts)
    in_order = rows.everywhere
    for one, _ in by:
        in_order = rows.both(in_order, rows.present(one))
    in_order = in_order[at]
    keys = [code[at] for code in codes]
    order = [np.where(in_order, (-1 if down else 1) * _sortable(rows, one)[at], 0) for one, down in by]
    levels = [rows.short_units[at], *keys, *([~in_order] if order else []), *order]
    if not _is_sorted(levels):
        sorting = np.lexsort(levels[::-1])
        levels, at, in_order = [level[sorting] for level in levels], at[sorting], in_order[sorting]
    if order or (node.function == "number" and not is_any_number(node)):
        at = _without_ties(table, part.start, levels, at)
    return Runs(at, np.flatnonzero(_differs(levels[: 1 + len(keys)])), in_order)


def _sortable(rows: NumpyEvaluator, node: Expression) -> NDArray[Any]:
    """Numbers by which rows are sorted; arbitrary where missing."""
    kind = rows.kind(node)
    if isinstance(kind, Categorical):
        places = {value: place for place, value in enumerate(sorted(kind.values, key=by_value))}
        return np.asarray(np.array([*(places[value] for value in kind.values), -1])[rows.codes(node)])
    return np.asarray(rows.numbers(node))


def _is_sorted(levels: list[NDArray[Any]]) -> bool:
    before = np.zeros(max(len(levels[0]) - 1, 0), np.bool_)
    same = ~before
    for level in levels:
        before |= same & (level[1:] < level[:-1])
        same &= level[1:] == level[:-1]
    return not before.any()


def _differs(levels: list[NDArray[Any]]) -> Mask:
    """Whether a row differs from the one before it."""
    differs = np.zeros(len(levels[0]), np.bool_)
    differs[:1] = True
    for level in levels:
        differs[1:] |= level[1:] != level[:-1]
    return differs


def _without_ties(table: PreparedTable, start: int, levels: list[NDArray[Any]], at: Integers) -> Integers:
    """Sorted rows, with rows of the same order in that of their contents; equal rows are interchangeable."""
    differs = _differs(levels)
    if differs.all():
        return at
    tied = np.flatnonzero(~differs | np.append(~differs[1:], False))
    contents, finer = table.contents(at[tied] + start)
    sorting = np.lexsort([*finer[::-1], *contents[::-1], np.cumsum(differs)[tied]])
    at[tied] = at[tied][sorting]
    return at


class _Values:
    """The values of a node in the rows of the runs."""

    def __init__(self, rows: NumpyEvaluator, runs: Runs, node: WithinUnit) -> None:
        self._runs, self._node = runs, node
        self._kind = rows.kind(node.inner)
        self.are_codes = isinstance(self._kind, Categorical)
        if node.function in ("size", "number"):
            self.values: NDArray[Any] = np.zeros(0)
            self.present = np.ones(len(runs.rows), np.bool_)
            return
        self.present = rows.present(node.inner)[runs.rows] & runs.in_order
        if isinstance(self._kind, Boolean | String):
            self.values = np.zeros(0)  # only whether it is missing matters
        else:
            self.values = (rows.codes if self.are_codes else rows.numbers)(node.inner)[runs.rows]

    def result(self) -> NDArray[Any]:
        """The value of the node in each row of the runs; NaN, or -1 for codes, where it is missing."""
        runs, function = self._runs, self._node.function
        match function:
            case "size":
                return runs.spread(runs.lengths).astype(np.float64)
            case "number":
                return runs.number.astype(np.float64)
            case "count":
                return runs.spread(runs.total(self._counted)).astype(np.float64)
            case "nunique":
                return runs.spread(runs.total(self._new_values())).astype(np.float64)
            case "sum":
                return self._from_grid(runs.spread(runs.total(self._steps)))
            case "cumsum":
                return np.where(self.present, self._from_grid(runs.running(self._steps)), np.nan)
            case "mean":
                sums, counts = (runs.spread(runs.total(values)) for values in (self._steps, self._counted))
                return self._mean(sums, counts)
            case "rolling_sum" | "rolling_mean":
                return self._rolling()
            case "min" | "max":
                return runs.spread(self._extreme())
            case "cummin" | "cummax":
                return np.where(self.present, self._running_extreme(), np.nan)
            case "rank":
                return self._ranks()
        return self._taken(self._places())

    # --- sums ---

    @cached_property
    def _counted(self) -> Integers:
        return self.present.astype(np.int64)

    @cached_property
    def _grid(self) -> Bounded:
        column = as_column(self._node.inner, self._kind)
        if not isinstance(column, Bounded):
            raise TypeError(type(column).__name__)
        return column

    @cached_property
    def _steps(self) -> Integers:
        return grid.to_grid(self.values, self._grid).astype(np.int64)  # 0 where it is missing

    def _from_grid(self, steps: Integers) -> Floats:
        return steps.astype(np.float64) * 2.0 ** grid.exponent(self._grid)

    def _mean(self, steps: Integers, counts: Integers) -> Floats:
        mean = steps.astype(np.float64) / np.maximum(counts, 1).astype(np.float64)
        return np.where(counts > 0, mean * 2.0 ** grid.exponent(self._grid), np.nan)

    def _rolling(self) -> Floats:
        runs, node = self._runs, self._node
        at = runs.before(node.offset)
        sums, counts = (
            running - np.where(at >= 0, running[at], 0)
            for running in (runs.running(self._steps), runs.running(self._counted))
        )
        result = self._from_grid(sums) if node.function == "rolling_sum" else self._mean(sums, counts)
        return np.where(runs.in_order & (counts >= node.least), result, np.nan)

    # --- order statistics ---

    def _new_values(self) -> Integers:
        """1 in one row of each distinct value of a run, else 0."""
        run = self._runs.first
        sorting = np.lexsort((self.values, ~self.present, run))
        new = _differs([run[sorting], self.values[sorting]]) & self.present[sorting]
        result = np.zeros(len(run), np.int64)
        result[sorting] = new
        return result

    @property
    def _smallest(self) -> bool:
        return self._node.function.endswith("min")

    @property
    def _filled(self) -> Floats:
        return np.where(self.present, self.values, np.inf if self._smallest else -np.inf)

    def _extreme(self) -> Floats:
        extreme = np.minimum if self._smallest else np.maximum
        starts = self._runs.starts
        found = extreme.reduceat(self._filled, starts) if len(starts) else self._filled
        return np.where(np.isinf(found), np.nan, found)

    def _running_extreme(self) -> Floats:
        extreme, values, number = np.minimum if self._smallest else np.maximum, self._filled, self._runs.number
        step, most = 1, int(number.max(initial=0))
        while step <= most:  # twice as many rows each time
            longer = values.copy()
            extreme(values[step:], values[:-step], out=longer[step:], where=number[step:] >= step)
            values, step = longer, 2 * step
        return values

    def _ranks(self) -> Floats:
        """The average rank of each value among those of its run, as in pandas."""
        run = self._runs.first
        sorting = np.lexsort((self.values, ~self.present, run))
        new = _differs([run[sorting], ~self.present[sorting], self.values[sorting]])
        starts = np.flatnonzero(new)
        ends = np.append(starts[1:], len(sorting))
        number = starts - run[sorting][starts]  # rows of the run before the first equal one
        ranks = np.empty(len(sorting))
        ranks[sorting] = np.repeat((2 * number + (ends - starts) + 1) / 2, ends - starts)
        return np.where(self.present, ranks, np.nan)

    # --- values of other rows ---

    def _places(self) -> Integers:
        """Where in the runs each row's value is; -1 for none."""
        runs, node = self._runs, self._node
        here = np.arange(len(runs.rows))
        match node.function:
            case "shift":
                at = runs.before(node.offset)
                return np.where(runs.in_order & runs.in_order[at], at, -1) if len(at) else at
            case "nth":
                lengths = runs.total(runs.in_order.astype(np.int64))
                place = node.offset if node.offset >= 0 else lengths + node.offset
                return runs.spread(np.where((place >= 0) & (place < lengths), runs.starts + place, -1))
            case "ffill":
                last = np.maximum.accumulate(np.where(self.present, here, -1)) if len(here) else here
                return np.where(runs.in_order & (last >= runs.first), last, -1)
            case "first":
                places = np.where(self.present, here, len(here))
                found = np.minimum.reduceat(places, runs.starts) if len(runs.starts) else places
                return runs.spread(np.where(found < len(here), found, -1))
        places = np.where(self.present, here, -1)  # the last one
        return runs.spread(np.maximum.reduceat(places, runs.starts) if len(runs.starts) else places)

    def _taken(self, at: Integers) -> NDArray[Any]:
        missing: Any = np.int32(-1) if self.are_codes else np.nan
        return np.where(at >= 0, self.values[at], missing) if len(at) else self.values


# --- tables -----------------------------------------------------------------------------------------------------------


def windowed(table: PreparedTable, schema: Schema, columns: tuple[tuple[str, WithinUnit], ...]) -> PreparedTable:
    """A table with further columns, each computed from the rows of one unit."""
    numbers: dict[str, Floats] = {}
    codes: dict[str, Codes] = {}
    schema = TypedSchema(schema)  # products of what a unit's rows add have most of their parts in common
    types = {name: column_type(node, schema) for name, node in columns}
    for name, kind in types.items():
        if isinstance(kind, Categories):
            codes[name] = np.full(table.rows, -1, np.int32)
        else:
            numbers[name] = np.full(table.rows, np.nan)
    whole = NumpyEvaluator(table, schema)

    def fill(part: slice) -> None:
        rows = whole.block(part)
        known: dict[tuple[Any, ...], Runs] = {}
        for name, node in columns:
            order = order_of(node)
            numbered = node.function == "number" and not is_any_number(node)
            key = node.where, node.keys, order, numbered
            if key not in known:
                known[key] = _runs(table, rows, part, node)
            runs = known[key]
            values = _Values(rows, runs, node).result()
            if name in codes:
                codes[name][part][runs.rows] = values
            else:
                kind = types[name]
                numbers[name][part][runs.rows] = np.clip(values, kind.low, kind.high)  # type: ignore[union-attr]

    by_blocks(fill, table.blocks_for(1))
    grids = {name: kind for name, kind in types.items() if isinstance(kind, Bounded)}
    return replace(
        table,
        numbers=table.numbers | numbers,
        codes=table.codes | codes,
        grids=table.grids | grids,
        derived=table.derived | set(types),
    )


def chosen_by_blocks(table: PreparedTable, chosen: ChosenRows) -> PreparedTable:
    """Some rows of each unit, with other columns, by blocks of units: windows are columns of all of their rows."""
    windows = sum(len(one.columns) for one in chosen.windows)
    blocks = table.blocks_for(1, max(MIN_ROWS, WINDOW_VALUES // (1 + windows)))
    parts = by_blocks(lambda part: chosen_rows(table.taken(part), chosen), blocks)
    first = parts[0]

    def joined(arrays: list[NDArray[Any]]) -> NDArray[Any]:
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    numbers = {name: joined([part.numbers[name] for part in parts]) for name in first.numbers}
    codes = {name: joined([part.codes[name] for part in parts]) for name in first.codes}
    return replace(first, units=joined([part.units for part in parts]), numbers=numbers, codes=codes)


def chosen_rows(table: PreparedTable, chosen: ChosenRows) -> PreparedTable:
    """Some rows of each unit, with other columns."""
    for windows in chosen.windows:
        table = windowed(table, *windows)
    rows = NumpyEvaluator(table, chosen.schema)
    kept = rows.holds(chosen.row)
    result = PreparedTable(where_true(table.units, kept), table.names, chosen.max_rows)
    for level in chosen.columns:
        name, node = level.name, level.expression
        kind, column = dtype_of(node, chosen.schema), column_type(node, chosen.schema)
        if isinstance(kind, Boolean):
            result.codes[name] = np.asarray(rows.level_codes(node)[0][kept], np.int32)
        elif isinstance(kind, Categorical | String):
            result.codes[name] = np.asarray(rows.codes(node)[kept], np.int32)
        else:
            values = rows.numbers(node)[kept]
            result.numbers[name] = np.clip(values, column.low, column.high)  # type: ignore[union-attr]
        if isinstance(kind, String):
            result.texts[name] = rows.texts(node)
        if isinstance(column, Bounded):
            result.grids[name] = column
    return result
