"""A linear query over a table that stays in its engine, which returns only exact integer sums.

The same integers as in memory; only logarithms, `exp` and powers with a fraction can move a row by a step of the grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from dpnb._backends.lazy import arithmetic
from dpnb._backends.lazy.contribution import first_groups, first_rows
from dpnb._backends.lazy.engines.engine import Engine, InProcessEngine, LazyFrame
from dpnb._backends.lazy.expressions import ALWAYS, NarwhalsEvaluator
from dpnb._backends.lazy.lazy_table import LazyTable
from dpnb._backends.unit_vectors import Sums
from dpnb._compile import grid
from dpnb._compile.features import (
    BRANCHING,
    IN_MEMORY,
    CountFeature,
    Feature,
    GradientFeature,
    TreeFeature,
    UnitFeature,
    ValueFeature,
)
from dpnb._compile.sensitivity import LinearQuery
from dpnb._plan.expressions.dtypes import Numeric
from dpnb._plan.expressions.nodes import Arithmetic, Column, Expression, Literal, Lookup, Node, arguments, columns_of
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import ContributionBounds
from dpnb.errors import UnsupportedError
from dpnb.schema import Categories, Schema


def refuse_expression(node: Node, schema: Schema, engine: Engine) -> None:
    """Refuse operations that engines round differently, or that this one cannot compute."""
    engine.refuse(node, schema)
    if isinstance(node, Arithmetic) and node.operator in ("//", "%") and node.right not in (Literal(1), Literal(1.0)):
        kind = dtype_of(node.left, schema)
        by = node.right.value if isinstance(node.right, Literal) else 0.5
        whole = isinstance(kind, Numeric) and kind.whole and float(by).is_integer()
        if not whole or kind.magnitude >= 2**52:  # type: ignore[union-attr]
            raise UnsupportedError(
                f"{words(node)}: on {engine.name} {node.operator} needs whole numbers on both sides, the left below "
                "2**52, or 1 on the right: engines round other remainders differently; .round() both sides first, or "
                "add the column in the engine"
            )
    for inner in arguments(node):
        refuse_expression(inner, schema, engine)


# --- a linear query over a table that stays in its engine -------------------------------------------------------------


LOW_PART = 2**17
"""Where an engine's sums could overflow, each value's quotient and remainder by this number are summed separately; sums
of more than 64 bits are divided by it."""

FEATURES_AT_ONCE = 32
"""Features that are summed in one pass over the table."""

FITS = 2.0**62
"""Integers below this bound, which is compared with doubles, fit 64 bits."""


def refuse_query(query: LinearQuery, schema: Schema, engine: Engine) -> None:
    """Refuse, when a query is built, what only a table in memory supports."""
    plan = query.plan
    if any(isinstance(feature, IN_MEMORY) for feature in query.features):
        raise UnsupportedError(
            f"{plan.words}: needs a table in memory; this one is on {engine.name}; open the session on a data frame in "
            "memory, for example with only the required columns"
        )
    if query.clip_squared is not None:
        raise UnsupportedError(
            f"{plan.words}: max_norm_per_unit needs a table in memory; this one is on {engine.name}; bound units by "
            "max_rows_per_unit, or by max_groups_per_unit with max_rows_per_group"
        )
    for node in _expressions(query):
        refuse_expression(node, schema, engine)


def _expressions(query: LinearQuery) -> Iterable[Expression]:
    plan = query.plan
    yield from (group.expression for group in plan.group_by)
    if plan.where is not None:
        yield plan.where
    for feature in query.features:
        if isinstance(feature, ValueFeature | TreeFeature):
            yield feature.expression
        if isinstance(feature, CountFeature | ValueFeature):
            yield from feature.required
            yield from feature.split.by


@dataclass(frozen=True)
class FeatureColumns:
    """The names of a feature's columns: whether a row contributes, its value, and its slot.

    None if every row contributes, if the value is 1, or if there is one slot.
    """

    present: str | None
    value: str | None
    slot: str | None

    def contributing(self, frame: LazyFrame) -> LazyFrame:
        """The rows that contribute."""
        return frame if self.present is None else frame.filter(nw.col(self.present))

    @property
    def number(self) -> nw.Expr:
        """What each row contributes."""
        value = nw.lit(1).cast(nw.Int64) if self.value is None else nw.col(self.value)
        if self.present is None:
            return value
        return nw.when(nw.col(self.present)).then(value).otherwise(nw.lit(0)).cast(nw.Int64)


@dataclass(frozen=True, repr=False)
class SelectedRows:
    """The rows that count, with column ``cell`` and those of the features.  A private value."""

    table: LazyTable
    frame: LazyFrame
    columns: list[FeatureColumns | None]  # of each feature; None for features that count units
    # The columns with the values of the groups, in place of ``cell``: then sums are grouped by these, and the few sums,
    # not the many rows, are given their cells.
    values: tuple[str, ...] = ()

    def of_units(self, units: LazyFrame) -> SelectedRows:
        """The rows of some units."""
        return replace(self, frame=self.frame.join(units, on="unit", how="inner"))


def selected_rows(query: LinearQuery, table: LazyTable, schema: Schema) -> SelectedRows:
    """The rows that count in a query."""
    limits = query.contribution_bounds
    by_rank = limits.by_rank(table.max_rows)
    table = table.with_ranks() if by_rank else table
    rows = NarwhalsEvaluator(table, schema)
    keep_counting(query.plan.where, query.required, rows)
    plain = all(isinstance(of, CountFeature | ValueFeature) and not of.split.by for of in query.features)
    # Any other column may have as many values as rows.
    values = value_columns(query.plan, table, (Categories,)) if plain else ()
    columns: dict[str, nw.Expr] = {} if values else {"cell": cell_codes(query.plan, rows)}
    if query.plan.group_by and not values:
        rows.keep([columns["cell"] >= 0])
    features = [_feature(query, index, feature, rows, columns) for index, feature in enumerate(query.features)]
    if limits.max_groups is not None:
        columns["content"] = columns["cell"]
    kept = [*(["unit", "name"] if table.has_units else []), *(["rank"] if by_rank else []), *values]
    # In several steps: selecting only a constant would return a single row.
    frame = (rows.frame.with_columns(**columns) if columns else rows.frame).select(*kept, *columns)
    frame = limited(frame, limits, table, ["cell"])
    if limits.max_rows_per_group is not None:
        frame = first_rows(frame, limits.max_rows_per_group, ("unit", "cell"))
    return SelectedRows(table, table.engine.planned(frame), features, values)


def value_columns(plan: Plan, table: LazyTable, kinds: tuple[type, ...]) -> tuple[str, ...]:
    """The columns, all of these kinds, by whose values rows can be grouped before the values are looked up; or none.

    For rows that are units.  A lookup is a join, which takes longer than grouping.
    """
    if table.has_units or not isinstance(table.engine, InProcessEngine):
        return ()
    names = sorted({name for group in plan.group_by for name in columns_of(group.expression)})
    if not all(isinstance(table.schema[name], kinds) for name in names):
        return ()
    return tuple(table.stems[name] for name in names)


def limited(frame: LazyFrame, limits: ContributionBounds, table: LazyTable, cell: list[str]) -> LazyFrame:
    """The rows within a query's bounds on rows and groups."""
    max_rows = limits.rows_below(table.max_rows)
    if max_rows is not None:
        frame = first_rows(frame, max_rows)
    if limits.max_groups is not None:
        frame = first_groups(table.engine, frame, limits.max_groups, cell)
    return frame


def cell_codes(plan: Plan, rows: NarwhalsEvaluator) -> nw.Expr:
    """The cell of each row's group; -1 for a row in none."""
    if not plan.group_by:
        return nw.lit(0)
    if plan.group_keys is not None:
        return rows.looked_up(Lookup("keys", tuple(group.expression for group in plan.group_by), plan.group_keys, ()))
    return _combined([rows.level_codes(group.expression) for group in plan.group_by])


def _combined(levels: list[tuple[nw.Expr, int]]) -> nw.Expr:
    """Several codes combined into one number, the last varying fastest; -1 where any is."""
    (combined, _), *others = levels
    for codes, size in others:
        combined = nw.when((combined < 0) | (codes < 0)).then(nw.lit(-1)).otherwise(combined * size + codes)
    return combined


def keep_counting(where: Expression | None, required: tuple[Expression, ...], rows: NarwhalsEvaluator) -> None:
    """Keep the rows that satisfy the conditions to count."""
    if where is not None:
        rows.keep([rows.holds(where)])
    rows.keep([rows.present(node) for node in required])


def _feature(
    query: LinearQuery, index: int, feature: Feature, rows: NarwhalsEvaluator, columns: dict[str, nw.Expr]
) -> FeatureColumns | None:
    """Add the columns of a feature to `columns`; None for a feature that counts units."""
    if isinstance(feature, UnitFeature | GradientFeature):
        return None
    present = ALWAYS
    for node in (feature.expression,) if isinstance(feature, TreeFeature) else feature.required:
        if node not in query.required:
            present = rows.both(present, rows.present(node))
    value = slot = None
    if isinstance(feature, TreeFeature):
        slot = _leaf(feature, rows).cast(nw.Int64)
    elif feature.split.by:
        split = zip(feature.split.by, feature.split.sizes, strict=True)
        slot = _combined([(rows.level_codes(node)[0] - feature.split.first, size) for node, size in split])
        present = rows.both(present, slot >= 0)
    if isinstance(feature, ValueFeature):
        number = rows.numbers(feature.expression).value
        if not isinstance(feature.expression, Column):  # a column is within its bounds, which are those of the feature
            number = arithmetic.clipped(number, feature.low, feature.high)
        value = rows.truncated(number * 2.0 ** -grid.exponent(feature), feature.low)
        value = value - feature.centre if feature.centre else value
    found = {"present": None if present is ALWAYS else present, "value": value, "slot": slot}
    columns |= {f"f{index}_{what}": column for what, column in found.items() if column is not None}
    return FeatureColumns(**{what: None if column is None else f"f{index}_{what}" for what, column in found.items()})


def _leaf(feature: TreeFeature, rows: NarwhalsEvaluator) -> nw.Expr:
    """The leaf of each row; for leaves of several widths see `dpnb._compile.grid`."""
    number = rows.numbers(feature.expression).value
    if not feature.pieces:
        leaf = rows.divided(number - feature.low, feature.width).floor()
        return arithmetic.clipped(leaf, 0.0, feature.leaves - 1.0)
    number = rows.materialized(number)
    below = float(sum(-piece.count for piece in feature.pieces if piece.count < 0))
    leaf = nw.lit(below)
    for piece in feature.pieces:
        steps = (number - piece.start) * (1 / piece.width)
        leaf = leaf + arithmetic.clipped(steps, min(piece.count, 0.0), max(piece.count, 0.0)).floor()
    # As a column: what follows refers to it several times, and an expression of all pieces takes long to plan.
    leaf = arithmetic.clipped(rows.materialized(leaf), 0.0, len(feature.edges) - 2.0)
    return nw.when(number < 0).then(arithmetic.clipped(leaf, None, below - 1)).otherwise(leaf) if below else leaf


# --- sums ------------------------------------------------------------------------------------------------------------


def by_features(query: LinearQuery, work: Callable[[LinearQuery], Sums]) -> Sums:
    """The sums that `work` returns, for a few features at a time, so that memory does not grow with their number."""
    starts = range(0, len(query.features), FEATURES_AT_ONCE)
    if len(starts) == 1:
        return work(query)
    parts = [query.of_features(slice(start, start + FEATURES_AT_ONCE)) for start in starts]
    sums: Sums = np.concatenate([work(part).reshape(-1, part.slots) for part in parts], axis=1)
    return sums.ravel()


def added_up(query: LinearQuery, shares: Iterable[SelectedRows]) -> Sums:
    """Sum the contributions of rows, cell by cell, over shares of the units; see `dpnb._backends.memory.execute`."""
    first, *others = (np.ravel(_share_sums(query, selected)) for selected in shares)
    return _narrow(sum((total.astype(object) for total in others), first.astype(object))) if others else _narrow(first)


def _share_sums(query: LinearQuery, selected: SelectedRows) -> NDArray[Any]:
    """Sums of shape (measured cells, slots)."""
    parts: list[Any] = [None] * len(query.features)
    plain = {index: of for index, of in enumerate(selected.columns) if of is not None and of.slot is None}
    for index, sums in zip(plain, _plain_sums(query, selected, list(plain.values())), strict=True):
        parts[index] = sums
    for index, (feature, of) in enumerate(zip(query.features, selected.columns, strict=True)):
        if of is None:
            parts[index] = _unit_counts(query, selected)
        elif of.slot is not None:
            parts[index] = _slot_sums(query, selected, feature, of)
    weighted = [_times(sums, feature.weight) for sums, feature in zip(parts, query.features, strict=True)]
    total: NDArray[Any] = np.concatenate(weighted, axis=1)
    return total if query.cell_subset is None else total[list(query.cell_subset)]


def _plain_sums(query: LinearQuery, selected: SelectedRows, features: list[FeatureColumns]) -> list[NDArray[Any]]:
    """Sums of the features with one slot, in a single pass; shape (cells, 1) each."""
    if not features:
        return []
    engine = selected.table.engine
    columns = {f"s{number}": _parts(of, engine) for number, of in enumerate(features)}
    keys = [*selected.values] or (["cell"] if query.plan.group_by else [])
    totals = grouped(engine, selected.frame, keys, columns)
    if selected.values:
        totals = _with_cells(query.plan, selected, totals)
    found = engine.collected(totals)
    return [_placed(_whole(found, name), (query.cells, 1), found.get("cell", 0), 0) for name in columns]


def _with_cells(plan: Plan, selected: SelectedRows, totals: LazyFrame) -> LazyFrame:
    """Sums for each combination of values, with the cell of that combination; without those in no cell."""
    names = [name for name in totals.collect_schema().names() if name not in selected.values]
    rows = NarwhalsEvaluator(replace(selected.table, frame=totals), selected.table.schema)
    cell = cell_codes(plan, rows)
    rows.keep([cell >= 0])
    return rows.frame.select(*names, cell=cell)


def _slot_sums(query: LinearQuery, selected: SelectedRows, feature: Feature, of: FeatureColumns) -> NDArray[Any]:
    """Sums of a feature with several slots; shape (cells, slots)."""
    width = feature.leaves if isinstance(feature, TreeFeature) else feature.slots
    slot, engine = str(of.slot), selected.table.engine
    columns = {"s": _parts(replace(of, present=None), engine)}
    keys = ["cell", slot] if query.plan.group_by else [slot]
    found = engine.collected(grouped(engine, of.contributing(selected.frame), keys, columns))
    sums = _placed(_whole(found, "s"), (query.cells, width), found.get("cell", 0), found[slot])
    if not isinstance(feature, TreeFeature):
        return sums
    levels = [sums]
    for _ in range(feature.levels - 1):
        levels.append(levels[-1].reshape(query.cells, -1, BRANCHING).sum(axis=2))
    return np.concatenate(levels[::-1], axis=1)


def _unit_counts(query: LinearQuery, selected: SelectedRows) -> NDArray[Any]:
    """The number of units with a row in each cell; shape (cells, 1)."""
    table, frame = selected.table, selected.frame
    if table.has_units:
        frame = table.engine.distinct(frame.select("unit", "cell"))
    found = table.engine.collected(grouped(table.engine, frame, ["cell"] if query.plan.group_by else [], {"s": []}))
    return _placed(_whole(found, "s"), (query.cells, 1), found.get("cell", 0), 0)


def _parts(of: FeatureColumns, engine: Engine) -> list[nw.Expr]:
    """What is summed for a feature: a number, or its higher and lower parts; nothing if each row contributes 1."""
    if of.value is None:
        return [] if of.present is None else [of.number]
    value = of.number
    if engine.summed_as is not None:
        return [value.cast(engine.summed_as)]
    high = (value.cast(nw.Float64) * (1 / LOW_PART)).floor().cast(nw.Int64)
    return [high, value - high * LOW_PART]


def grouped(engine: Engine, frame: LazyFrame, keys: list[str], sums: dict[str, list[nw.Expr]]) -> LazyFrame:
    """Sums, or numbers of rows for an empty list, grouped by some columns or over all rows if there are none."""
    columns = {f"{name}_{index}": part for name, parts in sums.items() for index, part in enumerate(parts)}
    frame = frame.with_columns(**columns).select(*keys, *columns) if columns else frame
    totals = [nw.col(name).sum() for name in columns]
    totals += [nw.len().alias(f"{name}_0") for name, parts in sums.items() if not parts]
    frame = frame.group_by(*keys).agg(*totals) if keys else frame.select(*totals)
    if engine.summed_as is None or not columns:
        return frame
    # What comes out of the engine has at most 64 bits.
    low = {f"{name}_1": nw.col(f"{name}_0") % LOW_PART for name, parts in sums.items() if parts}
    high = {f"{name}_0": nw.col(f"{name}_0") // LOW_PART for name, parts in sums.items() if parts}
    return frame.with_columns(**low).with_columns(**{name: of.cast(nw.Int64) for name, of in (high | low).items()})


def _whole(found: dict[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """Sums that came out of an engine; as Python integers unless all of them together fit 64 bits."""
    high, low = found[f"{name}_0"].astype(np.int64), found.get(f"{name}_1")
    factor = 1 if low is None else LOW_PART
    if np.abs(high.astype(np.float64)).sum() * factor >= FITS:
        high = high.astype(object)
    return high * factor + (0 if low is None else low.astype(np.int64))


def _placed(sums: NDArray[Any], shape: tuple[int, int], cells: Any, slots: Any) -> NDArray[Any]:
    """An array of sums, each added to the one of its cell and slot."""
    total = np.zeros(shape, sums.dtype)
    np.add.at(total, (cells + np.zeros(len(sums), np.int64), slots), sums)
    return total


def _times(sums: NDArray[Any], weight: int) -> NDArray[Any]:
    """The sums, multiplied; as Python integers unless they fit 64 bits."""
    fits = sums.dtype == np.int64 and abs(float(weight)) * np.abs(sums.astype(np.float64)).max(initial=0.0) < FITS
    return sums * weight if fits else sums.astype(object) * weight


def _narrow(sums: NDArray[Any]) -> Sums:
    """Sums as 64-bit integers, if they fit."""
    try:
        return np.asarray(sums if sums.dtype == np.int64 else np.array(sums.tolist(), np.int64))
    except OverflowError:
        return sums
