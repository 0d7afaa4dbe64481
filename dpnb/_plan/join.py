"""The join of two tables of one session: every pair of rows that one unit has in both.

A unit has at most k rows in one table and m in the other, hence at most k m pairs, and a pair holds rows of that unit
alone; so a unit's contribution is bounded as in a table with k m rows per unit.

Pairs multiply the time and memory that one unit can take, and both are outside the guarantee.  So that neither depends
much on one unit, a table can be in a join only once, a unit has few pairs, and pairs are formed one block at a time.
"""

from __future__ import annotations

from dpnb._plan.plan import Join, PartSource, TableSource
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb._plan.schema import Schema
from dpnb.errors import PlanError

MAX_PAIRS = 10**4
"""Largest number of pairs of one unit."""


def joined_name(name: str, side: int, source: Join, other: Schema) -> str:
    """The name of a column in the join: with a suffix if both tables have a column of that name, as in pandas."""
    return name + source.suffixes[side] if name in other else name


def schema_of(source: TableSource, schemas: dict[str, Schema]) -> Schema:
    """The columns of a table, join or part; raises `PlanError` if two columns of a join have one name."""
    if isinstance(source, PartSource):
        return schema_of(source.source, schemas)
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
    while isinstance(source, PartSource):
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


def unit_of(source: TableSource, units: dict[str, PrivacyUnit]) -> PrivacyUnit:
    """The privacy unit and its limits in a table, join or part.

    Refuses a join in which rows are the unit, nothing bounds the number of pairs, or a table is joined with itself.
    """
    if isinstance(source, PartSource):
        return unit_of(source.source, units)
    if not isinstance(source, Join):
        return units[source]
    refuse_repeats(source)
    left, right = unit_of(source.left, units), unit_of(source.right, units)
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
    )
