"""An expression in words, for titles: ``docvis above 30`` instead of ``docvis > 30``.

A title is read, not typed again: it says what is computed, and leaves out the edges of bins, which the groups have.
`dpnb._plan.expressions.text` has the exact text.
"""

from __future__ import annotations

import re

from dpnb._plan.expressions.nodes import (
    CONDITIONS,
    And,
    Arithmetic,
    AsNumber,
    ChangeCase,
    Clip,
    Compare,
    ComparisonOperator,
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
    TextLength,
    Where,
    WithinUnit,
    nodes_of,
)
from dpnb._plan.expressions.text import are_intervals, constant_words, explained, listed_words, words, zones_in_words
from dpnb.times import UTC_ZONE

_RELATIONS = {">": "above", ">=": "at least", "<": "below", "<=": "at most", "==": "=", "!=": "≠"}
_OPPOSITES: dict[ComparisonOperator, ComparisonOperator] = {
    ">": "<=",
    ">=": "<",
    "<": ">=",
    "<=": ">",
    "==": "!=",
    "!=": "==",
}
_MATCHES = {"contains": "containing", "startswith": "starting with", "endswith": "ending with"}
_PARTS = {
    "dayofweek": "day of the week",
    "weekday": "day of the week",
    "dayofyear": "day of the year",
    "days": "days",
}
_DAYS = re.compile(r"[\[(]\d{4}-\d\d-\d\d[T\d:]*, \d{4}-\d\d-\d\d[T\d:]*[\])]")
"""The label of a bin of dates without a distance from UTC."""

_OPERATIONS = (Arithmetic, *CONDITIONS)


def spoken(node: Expression) -> str:
    """An expression in words.

    What a name or a window of rows stands for is only in the exact text, which is used for these.
    """
    nodes = list(nodes_of(node))
    if any(isinstance(one, Lookup | WithinUnit) for one in nodes):
        return explained(node)
    return _spoken(node) + ("" if any(isinstance(one, Cut) for one in nodes) else zones_in_words(node))


def zone_of_bins(node: Cut) -> str:
    """The zone of the labels of bins of dates, unless each states its distance from UTC or an analyst wrote it."""
    in_utc = node.dates and are_intervals(node) and all(_DAYS.fullmatch(str(label)) for label in node.labels)
    zone = node.zone or (UTC_ZONE if in_utc else None)
    return f" ({zone})" if zone else ""


def _spoken(node: Expression) -> str:
    match node:
        case And(Compare(">=", one, Literal(low)), Compare("<=", other, Literal(high))) if one == other:
            return f"{_operand(one)} from {constant_words(low)} to {constant_words(high)}"
        case And(left, right):
            return f"{_joined(left, Or)} and {_joined(right, Or)}"
        case Or(left, right):
            return f"{_joined(left, And)} or {_joined(right, And)}"
        case Compare(operator, left, Literal(value)):
            return f"{_operand(left)} {_RELATIONS[operator]} {constant_words(value)}"
        case Compare(operator, left, right):
            return f"{_operand(left)} {_RELATIONS[operator]} {_operand(right)}"
        case Not(Compare(operator, left, right)):
            return _spoken(Compare(_OPPOSITES[operator], left, right))
        case Not(Not(inner)):
            return _spoken(inner)
        case Not(IsNull(inner)):
            return f"{_operand(inner)} not missing"
        case Not(inner):
            return f"not ({_spoken(inner)})"
        case IsNull(inner):
            return f"{_operand(inner)} missing"
        case IsIn(inner, values):
            return f"{_operand(inner)} in {listed_words(values)}"
        case AsNumber(inner):
            return _spoken(inner)
        case Arithmetic(operator, left, right) if not (operator == "-" and left == Literal(0)):
            return f"{_operand(left)} {operator} {_operand(right)}"
        case Where(condition, Literal(value), Literal(otherwise)):
            return f"{constant_words(value)} where {_spoken(condition)}, else {constant_words(otherwise)}"
        case Where(condition, inner, otherwise):
            return f"{_operand(inner)} ({_operand(otherwise)} where {_spoken(Not(condition))})"
        case OnlyWhere(condition, inner):
            return f"{_operand(inner)} where {_spoken(condition)}"
        case FillNull(inner, value):
            return f"{_operand(inner)} ({constant_words(value)} where missing)"
        case Clip(inner, None, high):
            return f"{_operand(inner)} limited to at most {constant_words(high)}"
        case Clip(inner, low, None):
            return f"{_operand(inner)} limited to at least {constant_words(low)}"
        case Clip(inner, low, high):
            return f"{_operand(inner)} limited to {constant_words(low)} to {constant_words(high)}"
        case MatchText(relation, inner, text):
            return f"{_operand(inner)} {_MATCHES[relation]} {text!r}"
        case ChangeCase(case, inner):
            return f"{_operand(inner)} in {case} case"
        case TextLength(inner):
            return f"length of {_operand(inner)}"
        case Cut(inner, _, labels):
            return f"{_operand(inner)} in {len(labels)} ranges{zone_of_bins(node)}"
        case ExtractDatePart(part, inner):
            return f"{_PARTS.get(part, part)} of {_operand(inner)}"
        case Period(unit, inner):
            return f"{unit} of {_operand(inner)}"
    return words(node)


def _operand(node: Expression) -> str:
    inner = node.inner if isinstance(node, AsNumber) else node
    return f"({_spoken(inner)})" if isinstance(inner, _OPERATIONS) else _spoken(inner)


def _joined(node: Expression, other: type[And | Or]) -> str:
    return f"({_spoken(node)})" if isinstance(node, other) else _spoken(node)
