"""An expression as an analyst would write it."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta

from dpnb._plan.expressions.nodes import (
    And,
    Apply,
    Arithmetic,
    AsNumber,
    ChangeCase,
    Clip,
    Column,
    Compare,
    Cut,
    Expression,
    ExtractDatePart,
    FillNull,
    IsIn,
    IsNull,
    Literal,
    Lookup,
    MatchText,
    Not,
    OnlyWhere,
    Or,
    Period,
    PeriodUnit,
    Round,
    Seconds,
    TextLength,
    Where,
    columns_of,
    renamed,
)
from dpnb._plan.schema import iso_time

FREQUENCIES: dict[PeriodUnit, str] = {
    "hour": "h",
    "day": "D",
    "week": "W",
    "month": "M",
    "quarter": "Q",
    "year": "Y",
}
"""The frequency of each calendar period, as pandas writes it."""

_OPERATIONS = (Arithmetic, Compare, And, Or)

MAX_LISTED = 6
"""Largest number of values of a list that are written out."""


def words(node: Expression) -> str:
    """The expression as an analyst would write it."""
    match node:
        case Column(name):
            return name
        case Literal(value):
            return _value(value)
        case Arithmetic("-", Literal(0), inner):
            return f"-{operand(inner)}"
        case Arithmetic(operator, left, right) | Compare(operator, left, right):
            return f"{operand(left)} {operator} {operand(right)}"
        case And(left, right):
            return f"{operand(left)} & {operand(right)}"
        case Or(left, right):
            return f"{operand(left)} | {operand(right)}"
        case Not(IsNull(inner)):
            return f"{operand(inner)}.notna()"
        case Not(inner):
            return f"~({words(inner)})"
        case Apply("abs", inner):
            return f"{operand(inner)}.abs()"
        case Apply(function, inner):
            return f"{function}({words(inner)})"
        case Lookup(name):
            return name
        case IsIn(inner, values):
            return f"{operand(inner)}.isin({_listed(values)})"
        case IsNull(inner):
            return f"{operand(inner)}.isna()"
        case FillNull(inner, value):
            return f"{operand(inner)}.fillna({_value(value)})"
        case Clip(inner, low, high):
            return f"{operand(inner)}.clip({_value(low)}, {_value(high)})"
        case Round(inner, decimals):
            return f"{operand(inner)}.round({decimals or ''})"
        case Where(condition, Literal(value), otherwise):
            return f"where({words(condition)}, {_value(value)}, {words(otherwise)})"
        case Where(condition, inner, otherwise):
            return f"{operand(inner)}.where({words(condition)}, {words(otherwise)})"
        case OnlyWhere(condition, Literal(value)):
            return f"where({words(condition)}, {_value(value)})"
        case OnlyWhere(condition, inner):
            return f"{operand(inner)}.where({words(condition)})"
        case MatchText(relation, inner, text):
            return f"{operand(inner)}.str.{relation}({text!r})"
        case ChangeCase(case, inner):
            return f"{operand(inner)}.str.{case}()"
        case TextLength(inner):
            return f"{operand(inner)}.str.len()"
        case Cut(inner, edges, dates=True):
            return f"cut({words(inner)}, {_listed(tuple(map(_date, edges[: MAX_LISTED + 1])))})"
        case Cut(inner, edges):
            return f"cut({words(inner)}, {_listed(edges)})"
        case ExtractDatePart(part, inner):
            return f"{operand(inner)}.dt.{part}"
        case Period(unit, inner):
            return f"{operand(inner)}.dt.to_period({FREQUENCIES[unit]!r})"
        case Seconds(inner):
            return words(inner)
        case AsNumber(inner):
            return f"{operand(inner)}.astype(float)"


def as_code(node: Expression, frame: str = "df") -> str:
    """The expression with its columns as an analyst selects them, for an example that can be copied."""
    return words(_with_code(node, frame))


def as_operand(node: Expression) -> str:
    """`as_code`, in parentheses if it is an operation."""
    return operand(_with_code(node, "df"))


def _with_code(node: Expression, frame: str) -> Expression:
    return renamed(node, {name: f"{frame}[{name!r}]" for name in columns_of(node)})


def iso_text(seconds: float) -> str:
    """A point in time in seconds since 1970 as ISO text."""
    return iso_time(datetime(1970, 1, 1) + timedelta(seconds=seconds), "date")


def _date(seconds: float) -> str:
    """`iso_text`, or the number of a plan that will be refused."""
    try:
        return iso_text(seconds)
    except OverflowError:
        return f"{seconds:g} s"


def operand(node: Expression) -> str:
    """The text of an operand, in parentheses if it is an operation."""
    text = words(node)
    return f"({text})" if isinstance(node, _OPERATIONS) else text


def _value(value: object) -> str:
    """A constant; a whole number without a decimal point, and the largest double as infinity."""
    if isinstance(value, float) and abs(value) == sys.float_info.max:
        return "inf" if value > 0 else "-inf"
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else repr(value)


def _listed(values: tuple[object, ...]) -> str:
    shown = [_value(value) for value in values[:MAX_LISTED]]
    return f"[{', '.join(shown)}{', ...' if len(values) > MAX_LISTED else ''}]"
