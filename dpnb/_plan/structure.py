"""The form of a plan, without its schema: sizes, constants, and lists that belong together.

Everything that walks a plan afterwards does so recursively, and indexes lists by codes of rows.  So a plan that is too
deep, or whose lists have different lengths, must not get there: an index out of range in some row would be a failure
that depends on that row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NoReturn

import msgspec

from dpnb._plan.expressions.nodes import MAX_DEPTH, Cut, FillNull, IsIn, Literal, Lookup, Node, WithinUnit
from dpnb._plan.expressions.rules import MAX_KEYS
from dpnb._plan.measurements import (
    CumulativeCount,
    DeviationProducts,
    Discovery,
    JointAggregation,
    Moments,
    ScoreSums,
    UnitProducts,
    weighted_parts,
)
from dpnb._plan.plan import Join, PartSource, PerUnit, Plan, TableSource, within_units
from dpnb._plan.privacy_unit import MAX_LIMIT, NO_LIMITS, PrivacyUnit
from dpnb._plan.regression import MAX_SCORE_TERMS
from dpnb.errors import PlanError
from dpnb.schema import Key, encodable

MAX_PLAN_DEPTH = 2 * MAX_DEPTH
"""Largest depth of an expression with the conditions of all filters."""

MAX_PLAN_NODES = 100_000
"""Largest number of nodes of all expressions."""

MAX_LISTED_VALUES = 1_000_000
"""Largest number of constants of all lists in expressions."""

MAX_LEVELS = 100
"""Largest number of levels of groups."""

MAX_PARTS = 1000
"""Largest number of parts of a joint aggregation."""

MAX_MOMENTS = 500
"""Largest number of columns and categories whose products are summed."""

MAX_SOURCES = 20
"""Largest number of joins and parts in a table of rows."""

MAX_WINDOWS = 100
"""Largest number of values within units in a query of rows: each becomes a column of all rows."""

MAX_ADDED = 2**20
"""Largest number of rows of a unit that products add up: see `dpnb._compile.products`."""

MAX_INTEGER = 2**63 - 1

_INSIDE = (msgspec.Struct, tuple)  # which `isinstance` tests twice as fast as a union; a plan may have many constants


def check_structure(plan: Plan) -> bool:
    """Refuse a plan whose form is invalid, whatever the schema is; whether it computes anything within units.

    Refuses one that is too large or too deep, a constant that is not finite, keys that do not belong to levels, a
    lookup without one value for each key, and an aggregation without parts.
    """
    _check_source(plan.source)
    windows = _check_nodes(plan)
    if windows > MAX_WINDOWS:
        _check_number_of_windows(plan)
    aggregations, products = [aggregation for aggregation, _ in weighted_parts(plan.aggregation)], 0
    if isinstance(plan.aggregation, JointAggregation) and not 1 <= len(aggregations) <= MAX_PARTS:
        raise PlanError(f"agg: must have 1 to {MAX_PARTS:,} parts; got {len(aggregations):,}; use several queries")
    for aggregation in aggregations:
        if isinstance(aggregation, DeviationProducts):
            _check_deviations(aggregation, plan)
            windows += 1
        if isinstance(aggregation, UnitProducts):
            _check_products(aggregation, plan)
            products += (len(aggregation.columns) + 1) * (aggregation.max_rows > 1)
        if isinstance(aggregation, ScoreSums) and aggregation.part == "products" and aggregation.max_rows != 1:
            _check_unit_rows(aggregation.max_rows, plan)
            # One for each term, of which the schema alone tells the number if there are categories.
            model = aggregation.model
            products += 1 + (MAX_SCORE_TERMS if model.categories else 1 + len(model.columns))
        if isinstance(aggregation, Moments):
            number = len(aggregation.columns) + len(aggregation.categories)
            if not aggregation.columns or number > MAX_MOMENTS:
                raise PlanError(
                    f"moments: must have a number, and at most {MAX_MOMENTS} columns; got {number}; leave out columns"
                )
    if products > MAX_WINDOWS:
        _refuse_windows()
    if isinstance(plan.aggregation, Discovery) and (not plan.group_by or plan.group_keys is not None):
        raise PlanError("discover: must have a level of groups, and no keys; give keys to .groupby() instead")
    if isinstance(plan.aggregation, CumulativeCount) and len(plan.group_by) != 1:
        raise PlanError(
            f"cumsum: must have one level of groups, in whose order it adds up; got {len(plan.group_by)}; filter "
            "the rows of one group first, as in df[df['a'] == 1].groupby('b').size().cumsum()"
        )
    _check_group_keys(plan)
    return windows + products > 0 or any(isinstance(source, PerUnit) for source in _derived(plan.source))


def _check_group_keys(plan: Plan) -> None:
    names, keys = [group.name for group in plan.group_by], plan.group_keys
    if len(names) > MAX_LEVELS:
        raise PlanError(f"groups: must have at most {MAX_LEVELS} levels; got {len(names)}; group by fewer columns")
    if keys is None:
        return
    if not names or not keys or len(keys) > MAX_KEYS:
        raise PlanError(
            f"keys: must be 1 to {MAX_KEYS:,} keys of the levels of groups; got {len(keys):,} for {len(names)} levels"
        )
    if any(len(key) != len(names) for key in keys):
        raise PlanError(f"keys: each must have {len(names)} values, one for each level; got another number")
    if len(set(keys)) != len(keys):
        raise PlanError("keys: must differ; got one twice; leave out repetitions")
    _check_constants(part for key in keys for part in key)


def _check_nodes(plan: Plan) -> int:
    """Check every expression of a plan, also those of its source, at any depth; the number of values within units."""
    waiting: list[tuple[object, int]] = [
        (part, 0) for part in (plan.aggregation, plan.where, plan.group_by, *_derived(plan.source))
    ]
    nodes = listed = windows = 0
    while waiting:
        part, depth = waiting.pop()
        if isinstance(part, tuple):
            waiting += [(inner, depth) for inner in part if isinstance(inner, _INSIDE)]
        elif isinstance(part, PartSource):
            waiting.append((part.by, 0))
        elif isinstance(part, PerUnit):
            waiting.append(((part.columns, part.terms), 0))
        elif isinstance(part, msgspec.Struct):
            inside = depth + isinstance(part, Node)
            nodes += 1
            windows += isinstance(part, WithinUnit)
            listed += _check_lists(part) if isinstance(part, Node) else 0
            if inside > MAX_PLAN_DEPTH or nodes > MAX_PLAN_NODES or listed > MAX_LISTED_VALUES:
                raise PlanError(
                    f"expression: must have at most {MAX_PLAN_DEPTH} levels, and all of a query together "
                    f"{MAX_PLAN_NODES:,} parts and {MAX_LISTED_VALUES:,} listed values; this has more; group long sums "
                    "in pairs, and use .isin([...]) for long lists of values"
                )
            waiting += [
                (inner, inside)
                for name in part.__struct_fields__
                if isinstance(inner := getattr(part, name), _INSIDE)
                and not (isinstance(part, Lookup) and name != "inner")
            ]
    return windows


def _check_lists(node: Node) -> int:
    """Check the constants of a node; the number of its listed values."""
    match node:
        case Literal(value) | FillNull(_, value):
            _check_constants((value,))
        case IsIn(_, values):
            _check_constants(values)
            return len(values)
        case Cut(_, edges, labels):
            _check_constants(edges)
            _check_constants(labels)
            return len(edges)
        case Lookup(_, inner, keys, values, low, high):
            if not inner or len(keys) != len(values) or any(len(key) != len(inner) for key in keys):
                raise PlanError("merge: a lookup must have one value for each key, and a part for each key column")
            if len(set(keys)) != len(keys):
                raise PlanError("merge: the keys of a lookup must differ; got one twice")
            if (low is None) != (high is None) or (low is not None and high is not None and not low <= high):
                raise PlanError("merge: the numbers of a lookup must have two bounds in ascending order, or none")
            _check_constants(part for key in keys for part in key)
            _check_constants(value for value in values if value is not None)
            return len(keys) * (len(inner) + 1)
        case WithinUnit():
            _check_window(node)
    return 0


def _check_deviations(aggregation: DeviationProducts, plan: Plan) -> None:
    if not 2 <= len(aggregation.columns) <= 1 + MAX_SCORE_TERMS or not 1 <= aggregation.max_rows <= MAX_LIMIT:
        raise PlanError(f"regress: takes 2 to {1 + MAX_SCORE_TERMS} columns within each unit; got another number")
    if plan.group_by or plan.contribution_bounds != NO_LIMITS:
        raise PlanError("regress: fixed effects are of all rows: leave out .groupby() and .bound_contributions()")


def _check_products(aggregation: UnitProducts, plan: Plan) -> None:
    if not 1 <= len(aggregation.columns) <= MAX_MOMENTS:
        raise PlanError(f"population: takes 1 to {MAX_MOMENTS} numbers; got another number")
    _check_unit_rows(aggregation.max_rows, plan)


def _check_unit_rows(rows: int, plan: Plan) -> None:
    if not 1 <= rows <= MAX_ADDED:
        raise PlanError(f"population: takes 1 to {MAX_ADDED:,} rows of a unit; got another number")
    if rows > 1 and plan.contribution_bounds != NO_LIMITS:
        raise PlanError("population: the rows of a unit are those of the session: leave out .bound_contributions()")


def _check_number_of_windows(plan: Plan) -> None:
    rows = msgspec.structs.replace(plan, source="")
    if len({msgspec.json.encode(node) for node in within_units(rows)}) > MAX_WINDOWS:
        _refuse_windows()


def _refuse_windows() -> NoReturn:
    raise PlanError(
        f"groupby: a query can have at most {MAX_WINDOWS} values within units beside rows; this has more; use several "
        "queries"
    )


def _check_window(node: WithinUnit) -> None:
    least = int(node.function.startswith("rolling"))
    if node.max_rows is not None and not 1 <= node.max_rows <= MAX_LIMIT:
        raise PlanError("groupby: a unit must have 1 to 2**31 rows; got another number")
    if abs(node.offset) > MAX_LIMIT or not least <= node.least <= MAX_LIMIT or (node.offset < least and least):
        raise PlanError("groupby: a number of rows must be at most 2**31, and above 0 for .rolling(); got another")
    if node.function == "number" and node.offset:
        raise PlanError("cumcount: has no offset; got one")
    _check_order(node)


def _check_order(rows: WithinUnit | PerUnit) -> None:
    if rows.descending and len(rows.descending) != len(rows.order):
        raise PlanError("sort_values: ascending must have one value for each column; got another number")
    if len(rows.order) + len(rows.keys) > MAX_LEVELS:
        raise PlanError(f"groupby: rows of a unit must have at most {MAX_LEVELS} levels and sort columns; got more")


def refuse_rows_as_units(unit: PrivacyUnit) -> None:
    """Refuse values that are computed from the rows of one unit, if each row is a unit."""
    if unit.column is None:
        raise PlanError(
            "groupby: rows of one privacy unit are computed together, but in this session each row is a unit; open one "
            "with privacy_unit="
        )


def _check_constants(values: Iterator[Key] | tuple[Key, ...]) -> None:
    for value in values:
        if isinstance(value, float):
            sound = math.isfinite(value)
        else:
            sound = encodable(value) if isinstance(value, str) else abs(value) <= MAX_INTEGER
        if not sound:
            raise PlanError("constant: must be a finite number of at most 64 bits, a truth value or a str; got another")


def _derived(source: TableSource) -> list[PartSource | PerUnit]:
    """The parts and the rows per unit in a source; `_check_source` has limited its depth."""
    if isinstance(source, Join):
        return [*_derived(source.left), *_derived(source.right)]
    return [] if isinstance(source, str) else [source, *_derived(source.source)]


def _check_source(source: TableSource) -> None:
    """Check the joins, parts and rows per unit of a source; works at any depth."""
    waiting, seen = [source], 0
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str):
            continue
        seen += 1
        if seen > MAX_SOURCES:
            raise PlanError(f"table: must be made of at most {MAX_SOURCES} joins, parts and tables; this has more")
        if isinstance(inner, Join):
            waiting += [inner.left, inner.right]
            continue
        waiting.append(inner.source)
        if isinstance(inner, PerUnit):
            _check_per_unit(inner)
            continue
        if isinstance(inner.source, Join):
            raise PlanError("partition: must be of a table or a part of one; got a join; join the parts instead")
        _check_constants((inner.key,))
        if inner.max_parts_per_unit is not None and not 1 <= inner.max_parts_per_unit <= MAX_INTEGER:
            raise PlanError("max_parts_per_unit: must be a whole number of at least 1; got another number")


def _check_per_unit(source: PerUnit) -> None:
    _check_order(source)
    names = {level.name for level in source.columns}
    if not 1 <= len(names) == len(source.columns) <= MAX_PARTS or "" in names:
        raise PlanError(f"groupby: must have 1 to {MAX_PARTS:,} columns with different names; got others")
    if not 1 <= source.rows <= MAX_LIMIT:
        raise PlanError("head: must be a whole number from 1 to 2**31; got another number")
