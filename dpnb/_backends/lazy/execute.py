"""A linear query over a table that stays in its engine, which returns only exact integer sums.

The same integers as those of `dpnb._backends.memory.execute`; only functions that engines compute differently (`log1p`,
`exp`, powers with a fraction) can change a row's value by a step of the grid.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from dpnb._backends.lazy import arithmetic
from dpnb._backends.lazy.contribution import first_groups, first_rows
from dpnb._backends.lazy.engines.engine import Frame
from dpnb._backends.lazy.expressions import ALWAYS, NarwhalsEvaluator, refuse_expression
from dpnb._backends.lazy.lazy_columns import LazyTable
from dpnb._backends.unit_vectors import Sums
from dpnb._compile.features import (
    BRANCHING,
    CountFeature,
    Feature,
    GradientFeature,
    ModelLossFeature,
    TreeFeature,
    UnitFeature,
    ValueFeature,
)
from dpnb._compile.linear import LinearQuery
from dpnb._plan.expressions.nodes import Expression, Lookup
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import ContributionBounds
from dpnb._plan.schema import Schema
from dpnb.errors import UnsupportedError

PART = 2**17
"""Where an engine's sums could overflow, the higher and the lower part of each value are added up separately."""


def refuse_query(query: LinearQuery, schema: Schema, engine: str) -> None:
    """Refuse, when a query is built, what only a table in memory supports.

    Raises
    ------
    UnsupportedError
    """
    plan = query.plan
    if any(isinstance(feature, GradientFeature | ModelLossFeature) for feature in query.features):
        raise UnsupportedError(f"{plan.words}: is computed only in memory, not on {engine}; {_IN_MEMORY}")
    if query.clip_squared is not None:
        raise UnsupportedError(
            f"{plan.words}: max_norm_per_unit needs a table in memory; this one is on {engine}; bound units by "
            "max_rows_per_unit, or by max_groups_per_unit with max_rows_per_group"
        )
    for node in _expressions(query):
        refuse_expression(node, schema, engine)


_IN_MEMORY = "give the session a data frame in memory, for example of the required columns"


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
    """A feature as columns: whether a row contributes, its value, and its slot; None for a constant."""

    there: str
    value: str | None
    slot: str | None


@dataclass(frozen=True, repr=False)
class SelectedRows:
    """The rows that count, with column ``cell`` and those of the features.  A private value.

    Parameters
    ----------
    table : LazyTable
        The table of the rows.
    frame : LazyFrame
    made : list of FeatureColumns or None
        The columns of each feature; None for features that count units.
    """

    table: LazyTable
    frame: Frame
    made: list[FeatureColumns | None]

    def of(self, units: Frame) -> SelectedRows:
        """The rows of some units."""
        return replace(self, frame=self.frame.join(units, on="unit", how="inner"))


def chosen_rows(query: LinearQuery, table: LazyTable, schema: Schema) -> SelectedRows:
    """The rows that count in a query."""
    limits = query.contribution_bounds
    by_rank = limits.by_rank(table.most)
    table = table.with_ranks() if by_rank else table
    rows = NarwhalsEvaluator(table, schema)
    columns: dict[str, nw.Expr] = {"cell": cell_codes(query.plan, rows)}
    made = [_feature(place, feature, rows, columns) for place, feature in enumerate(query.features)]
    counts = counts_of(query.plan.where, query.required, rows)
    if limits.max_groups is not None:
        columns["content"] = columns["cell"]
    kept = [*(["unit", "name"] if table.has_units else []), *(["rank"] if by_rank else [])]
    # In several steps: selecting only a constant would return a single row.
    frame = rows.frame.with_columns(**columns, counts=nw.all_horizontal(*counts, ignore_nulls=False))
    frame = frame.filter((nw.col("cell") >= 0) & nw.col("counts")).select(*kept, *columns)
    frame = limited(frame, limits, table, ["cell"])
    if limits.max_rows_per_group is not None:
        frame = first_rows(frame, limits.max_rows_per_group, ("unit", "cell"))
    return SelectedRows(table, frame, made)


def limited(frame: Frame, limits: ContributionBounds, table: LazyTable, cell: list[str]) -> Frame:
    """The rows within a query's bounds on rows and groups."""
    max_rows = limits.rows_below(table.most)
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


def counts_of(where: Expression | None, given: tuple[Expression, ...], rows: NarwhalsEvaluator) -> list[nw.Expr]:
    """The conditions that a row must satisfy to count."""
    conditions = [ALWAYS] if where is None else [rows.truth(where).true]
    return conditions + [rows.present(node) for node in given]


def _feature(
    place: int, feature: Feature, rows: NarwhalsEvaluator, columns: dict[str, nw.Expr]
) -> FeatureColumns | None:
    if isinstance(feature, UnitFeature | GradientFeature):
        return None
    given = (feature.expression,) if isinstance(feature, TreeFeature) else feature.required
    there = ALWAYS
    for node in given:
        there = there & rows.present(node)
    value = slot = None
    if isinstance(feature, TreeFeature):
        slot = rows.divided(rows.numbers(feature.expression).value - feature.low, feature.width).floor()
        slot = arithmetic.clipped(slot, 0.0, feature.leaves - 1.0).cast(nw.Int64)
    elif feature.split.by:
        levels = [(rows.level_codes(node)[0] - 1, size) for node, size in zip(*_split(feature), strict=True)]
        slot = _combined(levels)
        there = there & (slot >= 0)
    if isinstance(feature, ValueFeature):
        value = arithmetic.to_grid(rows.numbers(feature.expression).value, feature) - feature.centre
    names = [f"f{place}_there", f"f{place}_value", f"f{place}_slot"]
    for name, column in zip(names, (there, value, slot), strict=True):
        if column is not None:
            columns[name] = column
    return FeatureColumns(names[0], names[1] if value is not None else None, names[2] if slot is not None else None)


def _split(feature: CountFeature | ValueFeature) -> tuple[tuple[Expression, ...], tuple[int, ...]]:
    return feature.split.by, feature.split.sizes


# --- adding up -------------------------------------------------------------------------------------------------------


def added_up(query: LinearQuery, shares: Iterable[SelectedRows]) -> Sums:
    """Sum the contributions of rows, cell by cell, over shares of the units; see `dpnb._backends.memory.execute`."""
    total = sum(_added_up(query, chosen) for chosen in shares)
    return _narrow(np.ravel(total))


def _added_up(query: LinearQuery, chosen: SelectedRows) -> Any:
    """Python integers, shape (measured cells, slots)."""
    table, frame, made = chosen.table, chosen.frame, chosen.made
    parts: list[Any] = [None] * len(query.features)
    plain = [place for place, of in enumerate(made) if of is not None and of.slot is None]
    for place, found in zip(plain, _plain_sums(query, table, frame, [made[place] for place in plain]), strict=True):
        parts[place] = found
    for place, feature in enumerate(query.features):
        of = made[place]
        if of is None:
            parts[place] = _present(query, table, frame)
        elif of.slot is not None:
            parts[place] = _slots(query, table, frame, feature, of)
    total = np.concatenate(
        [found * feature.weight for found, feature in zip(parts, query.features, strict=True)], axis=1
    )
    return total if query.cell_subset is None else total[list(query.cell_subset)]


def _plain_sums(query: LinearQuery, table: LazyTable, frame: Frame, made: list[Any]) -> list[Any]:
    """Sums of the features with one slot, in a single pass; shape (cells, 1) each."""
    if not made:
        return []
    sums: dict[str, list[nw.Expr]] = {}
    for number, of in enumerate(made):
        value = nw.lit(1) if of.value is None else nw.col(of.value)
        counted = nw.when(nw.col(of.there)).then(value).otherwise(nw.lit(0)).cast(nw.Int64)
        sums[f"s{number}"] = _parts(counted, of.value is not None and not table.engine.wide_sums)
    rows = grouped(table, frame, ["cell"] if query.plan.group_by else [], sums)
    found = [np.zeros((query.cells, 1), object) for _ in made]
    for row in rows:
        for number in range(len(made)):
            found[number][int(row.get("cell", 0)), 0] += _whole(row, f"s{number}")
    return found


def _slots(query: LinearQuery, table: LazyTable, frame: Frame, feature: Feature, of: FeatureColumns) -> Any:
    """Sums of a feature with several slots; shape (cells, slots)."""
    width = feature.leaves if isinstance(feature, TreeFeature) else feature.slots
    value = nw.lit(1).cast(nw.Int64) if of.value is None else nw.col(of.value)
    sums = {"s": _parts(value, of.value is not None and not table.engine.wide_sums)}
    keys = ["cell", str(of.slot)] if query.plan.group_by else [str(of.slot)]
    found = np.zeros((query.cells, width), object)
    for row in grouped(table, frame.filter(nw.col(of.there)), keys, sums):
        found[int(row.get("cell", 0)), int(row[str(of.slot)])] += _whole(row, "s")
    if not isinstance(feature, TreeFeature):
        return found
    levels = [found]
    for _ in range(feature.levels - 1):
        levels.append(levels[-1].reshape(query.cells, -1, BRANCHING).sum(axis=2))
    return np.concatenate(levels[::-1], axis=1)


def _present(query: LinearQuery, table: LazyTable, frame: Frame) -> Any:
    """The number of units with a row in each cell; shape (cells, 1)."""
    keys = ["cell"] if query.plan.group_by else []
    if table.has_units:
        frame = frame.select("unit", "cell").unique()
    found = np.zeros((query.cells, 1), object)
    for row in grouped(table, frame, keys, {"s": _parts(nw.lit(1).cast(nw.Int64), False)}):
        found[int(row.get("cell", 0)), 0] += _whole(row, "s")
    return found


def _parts(value: nw.Expr, apart: bool) -> list[nw.Expr]:
    """A value, or its higher and lower parts."""
    if not apart:
        return [value]
    high = (value.cast(nw.Float64) * (1 / PART)).floor().cast(nw.Int64)
    return [high, value - high * PART]


def grouped(table: LazyTable, frame: Frame, keys: list[str], sums: dict[str, list[nw.Expr]]) -> list[dict[str, Any]]:
    """Sums grouped by some columns, or over all rows if there are none."""
    columns = {f"{name}_{place}": part for name, parts in sums.items() for place, part in enumerate(parts)}
    frame = frame.with_columns(**columns).select(*keys, *columns)
    added = [nw.col(name).sum() for name in columns]
    return table.engine.collected(frame.group_by(*keys).agg(*added) if keys else frame.select(*added))


def _whole(row: dict[str, Any], name: str) -> int:
    """A sum as an integer; that of no rows is 0."""
    high, low = row.get(f"{name}_0"), row.get(f"{name}_1")
    return int(high or 0) if f"{name}_1" not in row else int(high or 0) * PART + int(low or 0)


def _narrow(sums: Any) -> Sums:
    """Sums as 64-bit integers, if they fit."""
    try:
        return np.array(sums.tolist(), np.int64)
    except OverflowError:
        return sums  # type: ignore[no-any-return]
