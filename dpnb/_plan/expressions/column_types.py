"""The types of expressions that are columns: from a declaration, and as one."""

from __future__ import annotations

import math

from dpnb._plan.expressions.dtypes import Boolean, Categorical, Dtype, Numeric, String, Timestamp, refuse
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.expressions.text import iso_text
from dpnb.schema import MIN_RELATIVE_RANGE, Bounded, Categories, ColumnType, Dates, Text


def declared_dtype(column: ColumnType) -> Dtype:
    """The type of a declared column."""
    match column:
        case Bounded(low, high, integer):
            return Numeric(low, high, integer)
        case Categories(values):
            return Categorical(values)
        case Dates():
            return Timestamp(column.low, column.high)
        case Text(max_length):
            return String(max_length)


def as_column(node: Expression, kind: Dtype) -> ColumnType:
    """The declaration of a column with the values of an expression; its bounds contain those of the expression."""
    match kind:
        case Numeric():
            return _bounded(kind)
        case Categorical(values):
            return Categories(values)
        case Boolean():
            return Categories((False, True))
        case Timestamp(low, high):
            return Dates(iso_text(low), iso_text(high))
        case String(max_length):
            return Text(max_length)
    refuse(node, "a duration cannot be a column of a unit's rows; use its days, as in .dt.days")


def _bounded(kind: Numeric) -> Bounded:
    low, high = (math.floor(kind.low), math.ceil(kind.high)) if kind.whole else (kind.low, kind.high)
    if low == high or high / 2 - low / 2 < MIN_RELATIVE_RANGE * kind.magnitude / 2:  # no declared column is constant
        high = low + max(1.0, math.ceil(2 * MIN_RELATIVE_RANGE * kind.magnitude))
    return Bounded(low, high, kind.whole)
