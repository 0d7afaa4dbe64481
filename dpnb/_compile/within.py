"""Values that are computed from the rows of one privacy unit, as columns of a table with the same rows.

Let T(u) be the rows of unit u that count in a table T, and let F(T) be the union of f(u, T(u)) over the units of T,
where f is one function for every table, fixed by the plan, and its rows are rows of u.  If T' is T with a unit u added
or removed, F(T') is F(T) with f(u, T(u)) added or removed: neighbouring tables stay neighbouring.  For another unit v
has the same rows in both tables, the same of them count (see `dpnb._backends.contribution`), and f(v, T(v)) is in both.
If f gives at most m rows, F(T) is a table with at most m rows per unit, and a query of it has the sensitivity of
`dpnb._compile.sensitivity`, which holds for any rows with values within the bounds of their types.  Such maps compose.

A table with columns that are computed within units, and a table of the first rows of each unit and keys, are such
maps.  They read the rows of u, the public plan, and the hash of the unit's name; m is what `dpnb._plan.join.unit_of`
gives.  A row belongs to one combination of keys at most, so with n rows of each of c combinations m is the smaller of
n c and the limit of the table.  Equal orders are decided by the contents of rows, not by their places in the table.

Every value is clamped to the bounds of its type, which follow from the plan and the schema alone, by interval
arithmetic.  The clamp is part of f, so the sensitivity does not rely on how exactly the value was computed.  Nor does
it need an allowance for the rounding of a mean, the sum of a unit divided by its number of values: that is done within
f, before anything is added up over units.  All that matters is that f is the same for both tables.  A window that
crosses units is no such map: with one unit more, the rows of another change.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import msgspec

from dpnb._compile.features import UnitValueFeature
from dpnb._compile.products import ANY, of_groups
from dpnb._compile.sensitivity import LinearQuery
from dpnb._plan.expressions.nodes import (
    Column,
    Compare,
    Expression,
    Literal,
    WithinUnit,
    arguments,
    columns_of,
    with_arguments,
)
from dpnb._plan.expressions.rules import TypedSchema, column_type
from dpnb._plan.expressions.substitution import Substitution
from dpnb._plan.expressions.within import OF_UNIT
from dpnb._plan.join import schema_of, unit_of
from dpnb._plan.plan import Join, PerUnit, TableSource
from dpnb._plan.privacy_unit import MAX_LIMIT, PrivacyUnit
from dpnb.schema import Schema

T = TypeVar("T")


class Windowed(msgspec.Struct, frozen=True):
    """A table with further columns, each computed from the rows of one unit."""

    source: BackendSource
    columns: tuple[tuple[str, WithinUnit], ...]


BackendSource = TableSource | Windowed
"""What a backend computes a query from."""


def schema_with_windows(source: BackendSource, schemas: dict[str, Schema]) -> Schema:
    """The columns of a table, join, part, or table with further columns."""
    if not isinstance(source, Windowed):
        return schema_of(source, schemas)
    own = TypedSchema(schema_with_windows(source.source, schemas))
    return own | {name: column_type(node, own) for name, node in source.columns}


def with_windows(query: LinearQuery, schema: Schema) -> LinearQuery:
    """The same query of a table that has a column for each value that is computed within a unit."""
    query = _in_groups(query)
    plan = query.plan
    parts = plan.where, plan.group_by, query.features, query.required
    source, (where, group_by, features, required) = lifted(plan.source, schema, parts)
    if source is plan.source:
        return query
    plan = msgspec.structs.replace(plan, source=source, where=where, group_by=group_by)
    result = dataclasses.replace(query, plan=plan, features=features)
    result.__dict__["required"] = required
    return result


def _in_groups(query: LinearQuery) -> LinearQuery:
    """The same query, whose numbers of a unit are of its rows that count, in each group."""
    plan, keys = query.plan, tuple(level.expression for level in query.plan.group_by)
    features = tuple(
        dataclasses.replace(feature, expression=of_groups(feature.expression, feature.required, plan.where, keys))
        if isinstance(feature, UnitValueFeature)
        else feature
        for feature in query.features
    )
    return query if features == query.features else dataclasses.replace(query, features=features)


def check_windows(query: LinearQuery, schemas: dict[str, Schema], units: dict[str, PrivacyUnit]) -> None:
    """Make the types of all tables and columns from which a query is computed: nothing may fail after its charge."""
    source = query.plan.source
    schema_with_windows(with_windows(query, schema_of(source, schemas)).plan.source, schemas)
    for rows in rows_per_unit(source):
        first = first_rows(rows, unit_of(rows.source, units, schemas).max_rows)
        base, _ = lifted(rows.source, schema_of(rows.source, schemas), (first, rows.columns))
        schema_with_windows(base, schemas)


def rows_per_unit(source: BackendSource) -> list[PerUnit]:
    """The tables of rows per unit of which a table is made."""
    if isinstance(source, Join):
        return [*rows_per_unit(source.left), *rows_per_unit(source.right)]
    if isinstance(source, str):
        return []
    return [*([source] if isinstance(source, PerUnit) else []), *rows_per_unit(source.source)]


def lifted(source: BackendSource, schema: Schema, parts: T) -> tuple[BackendSource, T]:
    """A table with a column for each value within a unit in some expressions, and the expressions of that table."""
    lifting = _Lifting(schema)
    replaced = lifting.of(parts)
    for level in lifting.levels:
        source = Windowed(source, tuple(level.items()))
    return source, replaced


def first_rows(source: PerUnit, max_rows: int | None) -> Expression:
    """Whether a row is among the first of its unit and keys.

    In any order if that makes no difference, since the columns are equal in all rows of the unit and keys.
    """
    where = Literal(True) if source.where is None else source.where
    alike = source.rows == 1 and all(_is_of_unit(level.expression, where, source.keys) for level in source.columns)
    order, descending = ((), ()) if alike else (source.order, source.descending)
    most = MAX_LIMIT if max_rows is None else max_rows
    number = WithinUnit("number", Literal(True), most, where, source.keys, order, descending, ANY if alike else 0)
    return Compare("<", number, Literal(source.rows))


def is_any_number(node: WithinUnit) -> bool:
    """Whether rows are numbered in any order."""
    return node.function == "number" and node.offset == ANY


def _is_of_unit(node: Expression, where: Expression, keys: tuple[Expression, ...]) -> bool:
    """Whether an expression has one value in all rows of a unit and keys for which a condition is true."""
    if node in keys or isinstance(node, Literal):
        return True
    if isinstance(node, WithinUnit):
        return node.function in OF_UNIT and node.where == where and node.keys == keys
    parts = arguments(node)
    return bool(parts) and all(_is_of_unit(part, where, keys) for part in parts)


class _Lifting(Substitution):
    """Values within a unit that become columns: first those of the table's columns, then those of the former, ..."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(self._column)
        self.levels: list[dict[str, WithinUnit]] = []
        self._names: dict[bytes, str] = {}  # by JSON: 1 and True, equal in Python, are different
        self._level: dict[str, int] = {}
        self._prefix = "~"
        while any(name.startswith(self._prefix) for name in schema):
            self._prefix += "~"

    def _column(self, node: Expression) -> Column | None:
        if not isinstance(node, WithinUnit):
            return None
        within: Any = with_arguments(node, self.of)
        key = msgspec.json.encode(within)
        if key not in self._names:
            level = max((self._level[name] + 1 for name in columns_of(within) if name in self._level), default=0)
            name = self._names[key] = f"{self._prefix}{len(self._names)}"
            self._level[name] = level
            self.levels += [{}] * (level == len(self.levels))
            self.levels[level][name] = within
        return Column(self._names[key])
