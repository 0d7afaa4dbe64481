"""Two tables of one session, side by side: every pair of rows that one unit has in both.

A unit has at most k rows in one table and m in the other, hence at most k m pairs, and a pair holds rows of that unit
alone; so a unit's contribution is bounded as in a table with k m rows a unit.

Pairs multiply the time and memory that one unit can cost, and both are outside the guarantee.  So that neither depends
much on one unit, a table can be in a join only once, a unit has few pairs, and pairs are formed one block at a time
(`dpnb.query.pairs`).
"""

from __future__ import annotations

import numpy as np

from dpnb.errors import PlanError
from dpnb.query.contribution import Integers
from dpnb.query.numbering import ShortIntegers
from dpnb.query.plan import Joined, PartOf, Source
from dpnb.query.prepare import Prepared
from dpnb.query.schema import Schema
from dpnb.query.unit import Limits, PrivacyUnit

MOST_PAIRS = 10**4
"""Of one unit."""


def joined_name(name: str, side: int, source: Joined, other: Schema) -> str:
    """What a column is called in the join: with a suffix if both tables have one of that name, as in pandas."""
    return name + source.suffixes[side] if name in other else name


def schema_of(source: Source, schemas: dict[str, Schema]) -> Schema:
    """The columns of a table, join or part.

    Raises
    ------
    PlanError
        There is no such table, or two columns of the join have one name.
    """
    if isinstance(source, PartOf):
        return schema_of(source.source, schemas)
    if isinstance(source, Joined):
        sides = schema_of(source.left, schemas), schema_of(source.right, schemas)
        schema: Schema = {}
        for side, own in enumerate(sides):
            for name, column in own.items():
                new = joined_name(name, side, source, sides[1 - side])
                if new in schema:
                    raise PlanError(f"merge: both tables give a column {new!r}; choose other suffixes=")
                schema[new] = column
        return schema
    if source not in schemas:
        raise PlanError(f"table {source!r}: is not one of the session's; these are {', '.join(map(repr, schemas))}")
    return schemas[source]


def tables_of(source: Source) -> tuple[str, ...]:
    """Names of the session's tables from which the rows of a table, join or part come."""
    while isinstance(source, PartOf):
        source = source.source
    if isinstance(source, Joined):
        return (*tables_of(source.left), *tables_of(source.right))
    return (source,)


def refuse_repeats(source: Source) -> None:
    """Refuse a join that has a table in it more than once, whole or in part.

    Raises
    ------
    PlanError
    """
    names = tables_of(source)
    for name in names:
        if names.count(name) > 1:
            what = f"table {name!r}" if name else "the table"
            raise PlanError(
                f"merge: {what} would be in the join more than once, but a table of the session, or a part of it, can "
                "be in a join only once; filter it, or add columns with .assign(), instead of joining it with itself"
            )


def unit_of(source: Source, units: dict[str, PrivacyUnit]) -> PrivacyUnit:
    """What bounds a unit in a table, join or part.

    Raises
    ------
    PlanError
        Rows are the unit, nothing bounds the number of pairs, or a table is joined with itself.
    """
    if isinstance(source, PartOf):
        return unit_of(source.source, units)
    if not isinstance(source, Joined):
        return units[source]
    refuse_repeats(source)
    left, right = unit_of(source.left, units), unit_of(source.right, units)
    if left.column is None:
        raise PlanError("merge: tables are joined on the privacy unit, and here each row is a unit of its own")
    if left.max_rows is None or right.max_rows is None:
        raise PlanError("merge: needs max_rows_per_unit for both tables, so that the number of pairs is bounded")
    if left.max_rows * right.max_rows > MOST_PAIRS:
        raise PlanError(
            f"merge: a unit could have {left.max_rows * right.max_rows:,} pairs of rows; {MOST_PAIRS:,} are the most; "
            "lower max_rows_per_unit of one of the tables"
        )
    limits = left.limits.tightened(right.limits)
    return PrivacyUnit(left.column, left.max_rows * right.max_rows, Limits(norm=limits.norm, groups=limits.groups))


def join(left: Prepared, right: Prepared, schemas: tuple[Schema, Schema], source: Joined) -> Prepared:
    """Every pair of rows that one unit has in both tables, or in both blocks of the same units."""
    at_left, at_right = _pairs(left.units, right.units)
    sides = left.taken(at_left), right.taken(at_right)
    most = None if left.most is None or right.most is None else left.most * right.most
    table = Prepared(sides[0].units, sides[0].names, most)
    for side, (part, own) in enumerate(zip(sides, schemas, strict=True)):
        for name in own:
            new = joined_name(name, side, source, schemas[1 - side])
            for kind in ("numbers", "codes", "texts", "grids"):
                if name in getattr(part, kind):
                    getattr(table, kind)[new] = getattr(part, kind)[name]
    return table


def _pairs(left: ShortIntegers, right: ShortIntegers) -> tuple[Integers, Integers]:
    """Positions of all pairs with equal units; both ascending."""
    first, last = np.searchsorted(right, left, "left"), np.searchsorted(right, left, "right")
    counts = last - first
    at_left = np.repeat(np.arange(len(left)), counts)
    within = np.arange(len(at_left)) - np.repeat(np.cumsum(counts) - counts, counts)
    return at_left, np.repeat(first, counts) + within
