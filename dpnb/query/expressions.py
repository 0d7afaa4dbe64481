"""Which rows count: a small, frozen, serialisable tree.  No Python callable ever runs on rows.

A condition has three values, as in SQL and in Kleene's logic: where a column holds nothing that counts, a comparison
is neither true nor false, and only rows for which the whole condition is true are kept.  So ``x > 1`` and ``~(x > 1)``
both leave out a row without ``x``, on every engine (plain pandas keeps it in the second).
"""

from __future__ import annotations

import math
from typing import Literal as OneOf

import msgspec

from dpnb.errors import PlanError
from dpnb.query.schema import Bounded, Categories, Key, Schema

Operator = OneOf["==", "!=", "<", "<=", ">", ">="]


class Node(msgspec.Struct, frozen=True, tag_field="is"):
    """Base of every node."""


class Column(Node, frozen=True, tag="column"):
    """A column of the schema."""

    name: str


class Literal(Node, frozen=True, tag="literal"):
    """A constant that the analyst wrote."""

    value: Key


class Compare(Node, frozen=True, tag="compare"):
    """``left operator right``; left is a column."""

    operator: Operator
    left: Column
    right: Column | Literal


class And(Node, frozen=True, tag="and"):
    """Both hold."""

    left: Condition
    right: Condition


class Or(Node, frozen=True, tag="or"):
    """At least one holds."""

    left: Condition
    right: Condition


class Not(Node, frozen=True, tag="not"):
    """It does not hold."""

    inner: Condition


Condition = Compare | And | Or | Not


def column_type(name: object, schema: Schema) -> Bounded | Categories:
    """Look a column up.

    Raises
    ------
    PlanError
        The schema has no such column.
    """
    if isinstance(name, str) and name in schema:
        return schema[name]
    raise PlanError(f"column {name!r}: not in the schema; the columns are {', '.join(map(repr, schema))}")


def check_condition(condition: Condition, schema: Schema) -> None:
    """Refuse a condition that has no meaning for every row.

    Raises
    ------
    PlanError
        An unknown column, a comparison of unlike things, an undeclared category.
    """
    match condition:
        case And(left, right) | Or(left, right):
            check_condition(left, schema)
            check_condition(right, schema)
        case Not(inner):
            check_condition(inner, schema)
        case Compare():
            _check_comparison(condition, schema)


def _check_comparison(comparison: Compare, schema: Schema) -> None:
    left, right = comparison.left, comparison.right
    declared = column_type(left.name, schema)
    if isinstance(right, Column):
        other = column_type(right.name, schema)
        if not (isinstance(declared, Bounded) and isinstance(other, Bounded)):
            raise PlanError(
                f"{words(comparison)}: two columns can be compared only when both are Bounded; "
                "compare a Categories column with one of its categories"
            )
        return
    value = right.value
    if isinstance(value, float) and not math.isfinite(value):
        raise PlanError(f"{words(comparison)}: a column is compared with finite values; rows without one never count")
    if isinstance(declared, Bounded):
        if isinstance(value, bool | str):
            raise PlanError(f"{words(comparison)}: {left.name!r} is Bounded; compare it with a number, not {value!r}")
        return
    if comparison.operator in ("==", "!="):
        if value not in declared.values:
            raise PlanError(
                f"{words(comparison)}: {value!r} is not a declared category of {left.name!r}; "
                f"the categories are {', '.join(map(repr, declared.values))}"
            )
    elif not declared.numeric or isinstance(value, bool | str):
        raise PlanError(f"{words(comparison)}: only numbers have an order; use == or != with one of the categories")


def words(node: Column | Literal | Condition) -> str:
    """The expression as an analyst would write it."""
    match node:
        case Column(name):
            return name
        case Literal(value):
            return repr(value)
        case Compare(operator, left, right):
            return f"{words(left)} {operator} {words(right)}"
        case And(left, right):
            return f"{_inner(left)} & {_inner(right)}"
        case Or(left, right):
            return f"{_inner(left)} | {_inner(right)}"
        case Not(inner):
            return f"~({words(inner)})"


def _inner(node: Condition) -> str:
    return words(node) if isinstance(node, Not) else f"({words(node)})"
