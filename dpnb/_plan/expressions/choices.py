"""Types of nodes that result in a condition, a category, or one of two values, from the types of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from dpnb._plan.expressions.dtypes import (
    OPEN_END,
    Boolean,
    Categorical,
    Dtype,
    Duration,
    Numeric,
    String,
    Timestamp,
    date_literal,
    described,
    literal_kind,
    needs,
    of_zone,
    refuse,
)
from dpnb._plan.expressions.nodes import (
    CONDITIONS,
    And,
    AsNumber,
    ChangeCase,
    Compare,
    Cut,
    Expression,
    FillNull,
    IsIn,
    Literal,
    Lookup,
    MatchText,
    Not,
    OnlyWhere,
    Or,
    Period,
    TextRelation,
    Where,
)
from dpnb._plan.expressions.text import MAX_LISTED, words
from dpnb._plan.unreleased import did_you_mean
from dpnb.errors import PlanError
from dpnb.schema import ALLOWED_MAGNITUDES, Key, has_allowed_magnitude

RELATIONS: dict[TextRelation, Callable[[str, str], bool]] = {
    "startswith": str.startswith,
    "endswith": str.endswith,
    "contains": str.__contains__,
}
"""What each relation of two texts means."""

FIRST, LAST = -62_135_596_800, 253_402_300_799
"""The first and the last whole second of the years 1 to 9999, from 1970."""

MAX_CATEGORIES_LISTED = 20
"""A refusal lists all categories, unless there are more than this."""

_HINT = (
    "compare numbers with numbers, dates with dates such as '1974-11-01', and categories or texts with one value by "
    "== or !=; .astype(float) converts numeric categories to numbers"
)


def both(node: And | Or, left: Dtype, right: Dtype) -> Boolean:
    """``&`` or ``|`` of two conditions."""
    for side, kind in ((node.left, left), (node.right, right)):
        needs(Boolean, side, kind, "&, | and ~ require conditions")
    return Boolean()


def negation(node: Not, inner: Dtype) -> Boolean:
    """A negated condition."""
    return needs(Boolean, node.inner, inner, "~ negates a condition")


def comparison(node: Compare, left: Dtype, right: Dtype) -> Boolean:
    """A comparison of two values of one type, or with a constant."""
    literal = node.right if isinstance(node.right, Literal) else None
    equality = node.operator in ("==", "!=")
    match left, right:
        case (Numeric(), Numeric()) | (Timestamp(), Timestamp()) | (Duration(), Duration()):
            return Boolean()
        case (Boolean(), Boolean()) if equality:
            return Boolean()
        case (Timestamp(), Categorical()) if literal is not None:
            date_literal(node, literal, left)
            return Boolean()
        case (String(), Categorical()) if literal is not None and equality:
            return Boolean()
        case (Categorical(), _) if literal is not None:
            return _category_comparison(node, left, literal.value, equality)
    return refuse(node, f"{described(left)} cannot be compared with {described(right)} by {node.operator}; {_HINT}")


def _category_comparison(node: Compare, left: Categorical, value: Key, equality: bool) -> Boolean:
    if equality and value not in left.values:
        refuse(node, undeclared(value, node.left, left.values))
    if not equality and (not left.numeric or isinstance(value, bool | str)):
        refuse(node, "only numbers have an order; use == or != with one of the categories")
    return Boolean()


def undeclared(value: Key, node: Expression, values: tuple[Key, ...]) -> str:
    """That a value is not a declared category, with the nearest one, or the first of them."""
    if isinstance(node, Period):
        return f"{value!r} is not a period of {words(node)}; the declared dates are in {values[0]!r} to {values[-1]!r}"
    meant = did_you_mean(value, values)
    shown = values if len(values) <= MAX_CATEGORIES_LISTED else values[:MAX_LISTED]
    rest = "" if len(shown) == len(values) else f", ... ({len(values):,} in all)"
    listed = f"the categories are {', '.join(map(repr, shown))}{rest}"
    return f"{value!r} is not a declared category of {words(node)}{meant or f'; {listed}'}"


def is_in(node: IsIn, inner: Dtype) -> Boolean:
    """A comparison with each value of the list."""
    known = set(inner.values) if isinstance(inner, Categorical) else set()
    for value in node.values:
        if value in known and (isinstance(value, bool | str) or has_allowed_magnitude(value)):
            continue  # what `comparison` would find, in time that does not grow with the number of categories
        comparison(Compare("==", node.inner, Literal(value)), inner, literal_kind(value))
    return Boolean()


def fill(node: FillNull, inner: Dtype) -> Dtype:
    """The value or the constant."""
    return _hull(node, inner, Literal(node.value), literal_kind(node.value))


def where(node: Where, condition: Dtype, inner: Dtype, otherwise: Dtype) -> Dtype:
    """One of two values."""
    needs(Boolean, node.condition, condition, ".where() takes a condition")
    return _hull(node, inner, node.otherwise, otherwise)


def only_where(node: OnlyWhere, condition: Dtype, inner: Dtype) -> Dtype:
    """The value, or nothing."""
    needs(Boolean, node.condition, condition, ".where() takes a condition")
    if isinstance(inner, String):
        refuse(node, "texts cannot be removed from single rows; select rows by a condition, as in df[condition]")
    return inner


def match_text(node: MatchText, inner: Dtype) -> Boolean:
    """Whether a text matches another."""
    needs(String, node.inner, inner, f".str.{node.relation}() takes texts")
    return Boolean()


def change_case(node: ChangeCase, inner: Dtype) -> String:
    """A text of the same length."""
    return needs(String, node.inner, inner, f".str.{node.case}() takes texts")


def _hull(node: Expression, kind: Dtype, otherwise: Expression, other: Dtype) -> Dtype:
    """A type that contains the values of both expressions."""
    match kind, other:
        case Numeric(), Numeric():
            low, high, whole = min(kind.low, other.low), max(kind.high, other.high), kind.whole and other.whole
            return Numeric.among(low, high, whole, kind.distance, other.distance, kind.low - other.low)
        case Categorical(), Categorical():
            return Categorical(tuple(dict.fromkeys((*kind.values, *other.values))))
        case (Categorical(), Numeric()) if isinstance(otherwise, Literal) and kind.numeric:
            return Categorical(tuple(dict.fromkeys((*kind.values, otherwise.value))))
        case Boolean(), Boolean():
            return kind
        case Timestamp(), Timestamp():
            return _hull_of_dates(node, kind, other)
        case (Timestamp(), Categorical()) if isinstance(otherwise, Literal):
            return _hull_of_dates(node, kind, date_literal(node, otherwise, kind))
    return refuse(node, f"{described(kind)} and {described(other)} cannot be combined; give two of one kind")


def _hull_of_dates(node: Expression, kind: Timestamp, other: Timestamp) -> Timestamp:
    zone = kind.zone
    if zone is not None and other.zone is not None:
        zone = zone.joined(other.zone)
    if (zone is None) != (kind.zone is None) or kind.zone_name != other.zone_name:
        refuse(node, f"dates in {kind.zone_name} and in {other.zone_name} cannot be combined; give two of one zone")
    return Timestamp(min(kind.low, other.low), max(kind.high, other.high), zone)


def cut(node: Cut, inner: Dtype) -> Categorical:
    """The labels of bins."""
    if not (node.dates and isinstance(inner, Timestamp)):
        needs(Numeric, node.inner, inner, "cut() takes a number or a date")
    for edge in node.edges:
        if not has_allowed_magnitude(edge) and abs(edge) != OPEN_END:
            refuse(node, f"an edge must be infinite, or {ALLOWED_MAGNITUDES}; got {edge!r}")
    if node.dates and (not isinstance(inner, Timestamp) or not all(FIRST <= edge <= LAST for edge in node.edges)):
        raise PlanError(
            f"cut() of {words(node.inner)}: edges that are dates need a date, and lie in the years 1 to 9999"
        )
    if node.zone is not None and isinstance(inner, Timestamp):
        of_zone(node, inner, node.zone)
    ascending = all(a < b for a, b in pairwise(node.edges))
    if len(node.edges) < 2 or not ascending or len(node.labels) != len(node.edges) - 1:
        refuse(node, "cut() takes at least two ascending edges, and one label for each bin between them")
    return Categorical(tuple(dict.fromkeys(node.labels)))


def lookup(node: Lookup, *inner: Dtype) -> Dtype:
    """A value from a public table."""
    for level, kind in enumerate(inner):
        if not isinstance(kind, Categorical | String | Boolean) and not (isinstance(kind, Numeric) and kind.whole):
            refuse(
                node,
                f"only categories, texts, conditions and whole numbers can be looked up; this is {described(kind)}",
            )
        if isinstance(kind, String) and not all(isinstance(key[level], str) for key in node.keys):
            refuse(node, "texts are looked up by texts; write the keys as str")
        if isinstance(kind, Numeric | Boolean) and any(isinstance(key[level], str) for key in node.keys):
            refuse(node, "numbers and conditions are looked up by numbers; convert the keys")
    if node.low is not None and node.high is not None:
        number = _number_among(node.values, node.low, node.high)
        if not isinstance(number, Numeric):
            refuse(node, f"a number that is looked up must be {ALLOWED_MAGNITUDES}; got {number[0]!r}")
        return number
    categories = tuple(dict.fromkeys(value for value in node.values if value is not None))
    if not categories:
        refuse(node, "every value that is looked up would be missing; give at least one")
    return Categorical(categories)


@lru_cache(maxsize=16)  # a query asks for the type of the same lookup again and again, and it may be long
def _number_among(values: tuple[Key | None, ...], low: float, high: float) -> Numeric | tuple[Key]:
    """The type of public numbers, of which equal ones have the same; or the first value that is not allowed."""
    numbers = []
    for value in values:
        if value is None:
            continue
        if not (isinstance(value, int | float) and has_allowed_magnitude(value) and low <= value <= high):
            return (value,)
        numbers.append(float(value))
    whole = all(number.is_integer() for number in (low, *numbers))
    return Numeric.among(low, high, whole, *(number - low for number in (high, *numbers)))


COMPARE: dict[str, Callable[[Any, Any], Any]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def without_constant(compare: Compare) -> Expression:
    """The condition that is compared with a constant, or its negation: ``(df.x > 3) == False`` is ``~(df.x > 3)``."""
    inner = compare.left.inner if isinstance(compare.left, AsNumber) else compare.left
    if not isinstance(inner, CONDITIONS) or not isinstance(compare.right, Literal):
        return compare
    value = compare.right.value
    if (not isinstance(value, bool) and inner is compare.left) or not isinstance(value, int | float):
        return compare
    of_false, of_true = (COMPARE[compare.operator](number, value) for number in (0, 1))
    return compare if of_false == of_true else Not(inner) if of_false else inner
