"""The groups of a table in an engine and their numbers of units; see `dpnb._backends.memory.group_discovery`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from dpnb._backends.contribution import MULTIPLIER, PRIME, Integers, label_hash
from dpnb._backends.lazy.engines.engine import LazyFrame
from dpnb._backends.lazy.execute import grouped, keep_counting, limited, value_columns
from dpnb._backends.lazy.expressions import NarwhalsEvaluator
from dpnb._backends.lazy.lazy_table import LazyTable
from dpnb._compile.sensitivity import LinearQuery
from dpnb._plan.expressions.dtypes import Boolean, Categorical, String
from dpnb._plan.expressions.nodes import Expression
from dpnb.schema import Categories, Key, Schema, Text

ToKey = Callable[[Any], Key]
"""Converts a value of a level's column to its key."""

COUNTS: dict[str, list[nw.Expr]] = {"s": []}
"""Numbers of rows, as `grouped` is asked for them."""


@dataclass(frozen=True, repr=False)
class UnitGroups:
    """The pairs of units and groups, without repetition.  A private value."""

    table: LazyTable
    frame: LazyFrame
    cell: list[str]  # the columns that identify a group
    to_keys: list[ToKey]  # convert the values of these columns to keys
    is_counted: bool = False  # the pairs have been counted already, in column ``s_0``

    def of_units(self, units: LazyFrame) -> UnitGroups:
        """The pairs of some units."""
        return replace(self, frame=self.frame.join(units, on="unit", how="inner"))

    def squares(self) -> LazyFrame:
        """``unit`` and ``square``, its squared norm, which is its number of groups."""
        return self.frame.group_by("unit").agg(square=nw.len()).with_columns(nw.col("square").cast(nw.Float64))

    def sizes(self) -> Counter[tuple[Any, ...]]:
        """The number of units of every group that some unit has, by the values of its columns."""
        engine = self.table.engine
        counts = self.frame if self.is_counted else grouped(engine, self.frame, self.cell, COUNTS)
        found = engine.collected(counts)
        cells = zip(*(found[name].tolist() for name in self.cell), strict=True)
        sizes: Counter[tuple[Any, ...]] = Counter()
        for cell, size in zip(cells, found["s_0"].tolist(), strict=True):
            sizes[cell] += size
        return sizes


def counted(shares: Iterable[UnitGroups]) -> tuple[list[tuple[Key, ...]], Integers]:
    """Every group that some unit of some share has, with its number of units; as `present_groups` in memory."""
    sizes: Counter[tuple[Any, ...]] = Counter()
    to_keys: list[ToKey] = []
    for groups in shares:
        sizes, to_keys = sizes + groups.sizes(), groups.to_keys
    ordered = sorted(sizes.items())
    keys = [tuple(to_key(value) for to_key, value in zip(to_keys, cell, strict=True)) for cell, _ in ordered]
    return keys, np.array([size for _, size in ordered], np.int64)


def groups_of_units(query: LinearQuery, table: LazyTable, schema: Schema) -> UnitGroups:
    """The pairs of units and groups in which they have a row that counts."""
    limits = query.contribution_bounds
    by_rank = limits.rows_below(table.max_rows) is not None
    table = table.with_ranks() if by_rank else table
    rows = NarwhalsEvaluator(table, schema)
    keep_counting(query.plan.where, (), rows)
    values = value_columns(query.plan, table, (Categories, Text))
    if values:
        counts = grouped(table.engine, rows.frame.select(*values), [*values], COUNTS)
        rows = NarwhalsEvaluator(replace(table, frame=counts), schema)
    columns: dict[str, nw.Expr] = {}
    to_keys: list[ToKey] = []
    content: nw.Expr | None = None
    for index, group in enumerate(query.plan.group_by):
        columns[f"g{index}"], present, number, to_key = _level(group.expression, rows)
        rows.keep([present])
        to_keys.append(to_key)
        combined = number % PRIME if content is None else (content * MULTIPLIER + number % PRIME) % PRIME
        content = rows.materialized(combined)
    cell = list(columns)
    if limits.max_groups is not None and content is not None:
        columns["content"] = content
    sizes = ["s_0"] if values else []
    kept = [*(["unit", "name"] if table.has_units else []), *(["rank"] if by_rank else []), *sizes]
    frame = limited(rows.frame.with_columns(**columns).select(*kept, *columns), limits, table, cell)
    frame = table.engine.distinct(frame.select("unit", *cell)) if table.has_units else frame.select(*cell, *sizes)
    return UnitGroups(table, frame, cell, to_keys, is_counted=bool(values))


def _level(node: Expression, rows: NarwhalsEvaluator) -> tuple[nw.Expr, nw.Expr, nw.Expr, ToKey]:
    """A value for each row, which orders the groups; where it is present; its number; its conversion to a key."""
    kind = rows.kind(node)
    if isinstance(kind, String):
        text = rows.text(node)
        return text.value, text.present, rows.text_hash(node), str
    if isinstance(kind, Categorical):
        codes, values = rows.codes(node), kind.values
        number = rows.translated(codes, [label_hash(value) % PRIME for value in values])
        return codes, codes >= 0, nw.when(codes >= 0).then(number).otherwise(nw.lit(0)), lambda code: values[code]
    if isinstance(kind, Boolean):
        codes, _ = rows.level_codes(node)
        return codes, codes >= 0, codes, bool
    numbers = rows.numbers(node)
    value = numbers.value.cast(nw.Int64)
    return value, numbers.present, value.abs(), int
