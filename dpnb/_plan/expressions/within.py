"""Types of values that are computed from the rows of one privacy unit, with their bounds.

Such a value depends on no other unit, so it is as much a part of the unit's own vector as a column of its rows.  Its
bounds follow from those of its argument and from the largest number k of a unit's rows; every backend clamps it to
them.  See `dpnb._compile.within` for the proof.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal as OneOf

from dpnb._plan.expressions.dtypes import (
    Boolean,
    Categorical,
    Dtype,
    Duration,
    Numeric,
    String,
    Timestamp,
    as_column,
    declared_dtype,
    described,
    refuse,
)
from dpnb._plan.expressions.nodes import Expression, WithinFunction, WithinUnit
from dpnb._plan.expressions.text import words
from dpnb.schema import MAX_EXACT_INTEGER, Key

NUMBERS = (Numeric,)
ORDERED = (Numeric, Timestamp)
SELECTED = (Numeric, Timestamp, Categorical)
ANY = (Numeric, Timestamp, Duration, Categorical, Boolean, String)

BoundsFrom = OneOf["argument", "sum", "rolling sum", "count", "number", "rank"]


@dataclass(frozen=True)
class WithinRule:
    """What a function of a unit's rows takes and gives."""

    takes: tuple[type, ...]
    bounds: BoundsFrom
    needs_order: bool = False


WITHIN_RULES: Mapping[WithinFunction, WithinRule] = {
    "size": WithinRule(ANY, "count"),
    "count": WithinRule(ANY, "count"),
    "nunique": WithinRule(SELECTED, "count"),
    "sum": WithinRule(NUMBERS, "sum"),
    "mean": WithinRule(NUMBERS, "argument"),
    "min": WithinRule(ORDERED, "argument"),
    "max": WithinRule(ORDERED, "argument"),
    "rank": WithinRule(ORDERED, "rank"),
    "first": WithinRule(SELECTED, "argument", True),
    "last": WithinRule(SELECTED, "argument", True),
    "nth": WithinRule(SELECTED, "argument", True),
    "shift": WithinRule(SELECTED, "argument", True),
    "ffill": WithinRule(SELECTED, "argument", True),
    "number": WithinRule(ANY, "number"),
    "cumsum": WithinRule(NUMBERS, "sum", True),
    "cummax": WithinRule(ORDERED, "argument", True),
    "cummin": WithinRule(ORDERED, "argument", True),
    "rolling_sum": WithinRule(NUMBERS, "rolling sum", True),
    "rolling_mean": WithinRule(NUMBERS, "argument", True),
}
"""The functions of a unit's rows.  Only those that need an order depend on it."""

OF_UNIT = ("size", "count", "nunique", "sum", "mean", "min", "max", "first", "last", "nth")
"""The functions with one value for all rows of a unit."""


def within(node: WithinUnit, inner: Dtype, where: Dtype, *others: Dtype) -> Dtype:
    """The type of a value that is computed from the rows of one unit."""
    rule = WITHIN_RULES[node.function]
    if not isinstance(where, Boolean):
        refuse(node, "its rows are selected by a condition")
    if not isinstance(inner, rule.takes):
        refuse(node, f"{words(node.inner)} is {described(inner)}; {_remedy(inner)}")
    keys, order = others[: len(node.keys)], others[len(node.keys) :]
    for key, kind in zip(node.keys, keys, strict=True):
        if not isinstance(kind, Categorical | Boolean) and not (
            isinstance(kind, Numeric) and kind.whole and kind.magnitude <= MAX_EXACT_INTEGER
        ):
            refuse(node, f"groups must be public, and {words(key)} is {described(kind)}; use dpnb.cut() or .round()")
    for by, kind in zip(node.order, order, strict=True):
        if not isinstance(kind, Categorical | Boolean | Numeric | Timestamp | Duration):
            refuse(node, f"{words(by)} is {described(kind)}; rows are sorted by numbers, dates or categories")
    if rule.needs_order and not node.order:
        refuse(node, "depends on the order of the rows; sort them first, as in df.sort_values('year')")
    return declared_dtype(as_column(node, _bounded(node, rule.bounds, inner)))


def _bounded(node: WithinUnit, bounds: BoundsFrom, inner: Dtype) -> Dtype:
    if bounds == "argument":
        return (
            Numeric(inner.low, inner.high) if isinstance(inner, Numeric) and node.function.endswith("mean") else inner
        )
    rows = node.max_rows
    if rows is None:
        refuse(node, "is bounded by the rows of a unit; open the session with max_rows_per_unit=")
    if bounds == "number":
        return Numeric(0, rows - 1, whole=True)
    if bounds == "rank":
        return Numeric(1, rows)
    if bounds == "count":
        return Numeric(0, rows, whole=True)
    if not isinstance(inner, Numeric):
        raise TypeError(type(inner).__name__)  # unreachable: `takes` has refused it
    if bounds == "rolling sum":
        rows = min(rows, node.offset)
    return Numeric(min(0.0, rows * inner.low), max(0.0, rows * inner.high), inner.whole)


def _remedy(kind: Dtype) -> str:
    if isinstance(kind, Boolean):
        return "convert it with .astype(float)"
    if isinstance(kind, String):
        return "let the curator declare it as dpnb.Categories"
    if isinstance(kind, Timestamp | Duration):
        return "use a part of it, such as .dt.days"
    return "convert numeric categories with .astype(float)"


def order_of(node: WithinUnit) -> tuple[tuple[Expression, bool], ...]:
    """The expressions by which the rows of a unit are sorted, and whether each descends; none if it needs none."""
    if not (WITHIN_RULES[node.function].needs_order or node.function == "number"):
        return ()
    return tuple(zip(node.order, node.descending or (False,) * len(node.order), strict=True))


def by_value(value: Key) -> tuple[bool, Key]:
    """A key for sorting categories: numbers, then texts."""
    return isinstance(value, str), value
