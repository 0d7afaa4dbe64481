"""Joins of two tables of one session, and parts of a partition: rows that are selected by the public plan.

A unit has at most k rows in one table and m in the other, hence at most k m pairs, and a pair holds rows of that unit
alone; so a unit's contribution is bounded as in a table with k m rows per unit.

Pairs multiply the time and memory that one unit can take, and both are outside the guarantee.  So that neither depends
much on one unit, a table can be in a join only once, a unit has few pairs, and pairs are formed one block at a time.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from dpnb._plan.expressions.nodes import Expression, Literal, WithinUnit
from dpnb._plan.expressions.rules import MAX_KEYS, column_type, dtype_of, public_key_count, public_keys_of
from dpnb._plan.expressions.text import words
from dpnb._plan.plan import Join, PartSource, PerUnit, TableSource
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb._plan.structure import refuse_rows_as_units
from dpnb.errors import PlanError
from dpnb.schema import Key, Schema, whole_number

MAX_PAIRS = 10**4
"""Largest number of pairs of one unit."""


def joined_name(name: str, side: int, source: Join, other: Schema) -> str:
    """The name of a column in the join: with a suffix if both tables have a column of that name, as in pandas."""
    return name + source.suffixes[side] if name in other else name


def schema_of(source: TableSource, schemas: dict[str, Schema]) -> Schema:
    """The columns of a table, join or part; raises `PlanError` if two columns of a join have one name."""
    if isinstance(source, PartSource):
        return schema_of(source.source, schemas)
    if isinstance(source, PerUnit):
        own = schema_of(source.source, schemas)
        return {level.name: column_type(level.expression, own) for level in source.columns}
    if isinstance(source, Join):
        sides = schema_of(source.left, schemas), schema_of(source.right, schemas)
        schema: Schema = {}
        for side, own in enumerate(sides):
            for name, column in own.items():
                new = joined_name(name, side, source, sides[1 - side])
                if new in schema:
                    raise PlanError(f"merge: the result would have two columns {new!r}; choose other suffixes=")
                schema[new] = column
        return schema
    if source not in schemas:
        raise PlanError(f"table {source!r}: is not in the session; its tables are {', '.join(map(repr, schemas))}")
    return schemas[source]


def tables_of(source: TableSource) -> tuple[str, ...]:
    """Names of the session's tables that provide the rows of a table, join or part."""
    while isinstance(source, PartSource | PerUnit):
        source = source.source
    if isinstance(source, Join):
        return (*tables_of(source.left), *tables_of(source.right))
    return (source,)


def refuse_repeats(source: TableSource) -> None:
    """Refuse a join that contains a table more than once, whole or in part."""
    names = tables_of(source)
    for name in names:
        if names.count(name) > 1:
            what = f"table {name!r}" if name else "the table"
            raise PlanError(
                f"merge: {what} would be in the join more than once; a table of the session, or a part of it, can be "
                "in a join only once; filter it, or add columns with .assign(), instead of joining it with itself"
            )


def unit_of(source: TableSource, units: dict[str, PrivacyUnit], schemas: dict[str, Schema]) -> PrivacyUnit:
    """The privacy unit and its limits in a table, join or part.

    Refuses a join in which a table occurs more than once, each row is a unit, or a unit can have more than `MAX_PAIRS`
    pairs.
    """
    if isinstance(source, PartSource):
        return unit_of(source.source, units, schemas)
    if isinstance(source, PerUnit):
        return _unit_of_rows(source, unit_of(source.source, units, schemas), schema_of(source.source, schemas))
    if not isinstance(source, Join):
        return units[source]
    refuse_repeats(source)
    left, right = unit_of(source.left, units, schemas), unit_of(source.right, units, schemas)
    if left.column is None:
        raise PlanError(
            "merge: tables are joined on the privacy unit, but in this session each row is a unit; open one with "
            "privacy_unit="
        )
    if left.max_rows is None or right.max_rows is None:
        raise PlanError(
            "merge: the number of pairs is not bounded; open a session with max_rows_per_unit= for both tables"
        )
    if left.max_rows * right.max_rows > MAX_PAIRS:
        raise PlanError(
            f"merge: a unit could have {left.max_rows * right.max_rows:,} pairs of rows; at most {MAX_PAIRS:,} are "
            "possible; lower max_rows_per_unit of one of the tables"
        )
    limits = left.contribution_bounds.tightened(right.contribution_bounds)
    return PrivacyUnit(
        left.column,
        left.max_rows * right.max_rows,
        ContributionBounds(max_norm=limits.max_norm, max_groups=limits.max_groups),
        label=left.label,
    )


def _unit_of_rows(source: PerUnit, unit: PrivacyUnit, schema: Schema) -> PrivacyUnit:
    """The privacy unit in a table of the first rows of each unit, and of each combination of keys if there are any."""
    refuse_rows_as_units(unit)
    counts = [public_key_count(key, schema) for key in source.keys]
    limits = [unit.max_rows] if None in counts else [unit.max_rows, source.rows * math.prod(filter(None, counts))]
    known = [limit for limit in limits if limit is not None]
    return msgspec.structs.replace(unit, max_rows=min(known, default=None))


# --- the parts of a partition -----------------------------------------------------------------------------------------


def part_keys(by: Expression, schema: Schema) -> tuple[Key, ...]:
    """The public keys of a partition; raises `PlanError` if the keys are not public or too many."""
    keys = public_keys_of(by, schema)
    if keys is None:
        raise PlanError(
            f"partition: the values of {words(by)} are texts, and the set of texts is private; partition by a column "
            "of dpnb.Categories, or by a condition"
        )
    if len(keys) > MAX_KEYS:
        raise PlanError(
            f"partition: {words(by)} has {len(keys):,} values; at most {MAX_KEYS:,} are possible; .cut() it"
        )
    return keys


def parts_of_unit(unit: PrivacyUnit, keys: int, requested: Any) -> tuple[int, int | None]:
    """The number of parts in which one unit can have rows, and the limit that must be enforced, if any."""
    possible = min(keys, unit.max_rows) if unit.max_rows is not None else keys
    if requested is None:
        return possible, None
    number = whole_number(requested)
    if number is None or number < 1:
        raise PlanError(
            f"max_parts_per_unit: must be a whole number of at least 1; got {requested!r}; leave it out for all"
        )
    if unit.column is None and number != 1:
        raise PlanError(f"max_parts_per_unit: each row is a unit and in one part; got {requested!r}; leave it out")
    return min(number, possible), number if number < possible else None


def table_of(source: TableSource) -> str:
    """The name of the table that contains a part; empty for a join."""
    while isinstance(source, PartSource | PerUnit):
        source = source.source
    return source if isinstance(source, str) else ""


def check_parts(source: TableSource, schemas: dict[str, Schema], units: dict[str, PrivacyUnit]) -> None:
    """Refuse a source with a part that no partition of its table has.

    The groups of a part must be public, its key one of them, and its limit on the parts of a unit that of a partition.
    """
    if isinstance(source, Join):
        check_parts(source.left, schemas, units)
        check_parts(source.right, schemas, units)
    elif isinstance(source, PerUnit):
        check_parts(source.source, schemas, units)
        check_per_unit(source, schema_of(source.source, schemas))
    elif isinstance(source, PartSource):
        check_parts(source.source, schemas, units)
        keys = part_keys(source.by.expression, schema_of(source.source, schemas))
        limit = source.max_parts_per_unit
        if (
            source.key not in keys
            or parts_of_unit(unit_of(source.source, units, schemas), len(keys), limit)[1] != limit
        ):
            raise PlanError("partition: has no such part; take one of the parts of session.partition()")


def check_per_unit(source: PerUnit, schema: Schema) -> None:
    """Refuse a table of rows per unit whose condition, columns or order are not valid in the table of its rows."""
    where = Literal(True) if source.where is None else source.where
    dtype_of(WithinUnit("number", Literal(True), 1, where, source.keys, source.order, source.descending), schema)
    for level in source.columns:
        column_type(level.expression, schema)


def is_within(source: TableSource, part: PartSource) -> bool:
    """Whether a table contains rows of units in a part only: the part, a part of it, or a join with it.

    A join has pairs of rows of one unit, so that a unit without rows in the part has none.
    """
    if source == part:
        return True
    if isinstance(source, PartSource | PerUnit):
        return is_within(source.source, part)
    return isinstance(source, Join) and (is_within(source.left, part) or is_within(source.right, part))
