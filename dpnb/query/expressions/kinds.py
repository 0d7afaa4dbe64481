"""What an expression gives for a row, with bounds by interval arithmetic.

Bounds hold for every row and every step, to the last bit.  Doubles are added, subtracted, multiplied and divided with
correct rounding, which keeps the order of the exact results, so the results for the bounds are bounds for the results.
Where libraries round in ways of their own (`is_rounded`), the evaluation clips the result to its bounds.  Every bound
and constant is 0 or of a usual size (`dpnb.query.schema.of_usual_size`), or the expression is refused.  So no step
overflows, divides by zero, or is undefined, whatever a row holds.

Bounds need not be tight.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn, TypeVar

from dpnb.errors import PlanError, SchemaError
from dpnb.query.expressions import dates
from dpnb.query.expressions.nodes import (
    And,
    Apply,
    Arithmetic,
    AsNumber,
    Clip,
    Column,
    Compare,
    Cut,
    Expression,
    Fill,
    IsIn,
    Literal,
    Lookup,
    Missing,
    Not,
    Or,
    Part,
    Round,
    Where,
)
from dpnb.query.expressions.words import words
from dpnb.query.schema import (
    EXACT,
    SIZES,
    Bounded,
    Categories,
    Dates,
    Key,
    Schema,
    iso_time,
    of_usual_size,
    seconds_of,
)

MOST_KEYS = 10_000_000
"""Groups that one question may have."""

MOST_DECIMALS = 15
"""Decimals to which a number can be rounded, before and after the point."""

OPEN_END = sys.float_info.max
"""An edge of a cut that stands for infinity."""


@dataclass(frozen=True)
class Number:
    """A number in ``[low, high]``; `whole` if it has no fraction."""

    low: float
    high: float
    whole: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))

    @property
    def magnitude(self) -> float:
        """Largest absolute value."""
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True)
class Category:
    """One of a public list of values."""

    values: tuple[Key, ...]

    @property
    def numeric(self) -> bool:
        """Whether every category is a number, so that categories have an order."""
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)


@dataclass(frozen=True)
class Words:
    """A text, of which nothing is public."""


@dataclass(frozen=True)
class Truth:
    """True, false, or neither."""


@dataclass(frozen=True)
class Moment:
    """A point in time, in seconds since 1970."""

    low: float
    high: float


@dataclass(frozen=True)
class Span:
    """A length of time, in seconds."""

    low: float
    high: float


Kind = Number | Category | Words | Truth | Moment | Span
K = TypeVar("K", Number, Truth)


def kind_of(node: Expression, schema: Schema) -> Kind:
    """What the expression gives, or a refusal if it has no meaning for every row.

    Raises
    ------
    PlanError
        An unknown column, operands that do not go together, an undeclared category, or a constant or bound that is
        neither 0 nor of a usual size.
    """
    kind = _kind_of(node, schema)
    if isinstance(kind, Number) and not (of_usual_size(kind.low) and of_usual_size(kind.high)):
        _refuse(node, f"its bounds must be {SIZES}; they are {kind.low:g} and {kind.high:g}; .clip() the parts first")
    return kind


def _kind_of(node: Expression, schema: Schema) -> Kind:
    match node:
        case Column(name):
            return _column(name, schema)
        case Literal(value):
            return _literal(value)
        case Arithmetic():
            return _arithmetic(node, schema)
        case Compare():
            return _comparison(node, schema)
        case And(left, right) | Or(left, right):
            for side in (left, right):
                _needs(Truth, side, schema, "&, | and ~ join conditions")
            return Truth()
        case Not(inner):
            _needs(Truth, inner, schema, "~ turns a condition round")
            return Truth()
        case IsIn(inner, values):
            for value in values:
                _comparison(Compare("==", inner, Literal(value)), schema)
            return Truth()
        case Missing(inner):
            kind_of(inner, schema)
            return Truth()
        case Fill(inner, value):
            return _hull(node, kind_of(inner, schema), Literal(value), schema)
        case Where(condition, inner, otherwise):
            _needs(Truth, condition, schema, ".where() takes a condition")
            return _hull(node, kind_of(inner, schema), otherwise, schema)
        case Clip():
            return _clip(node, schema)
        case Apply():
            return _apply(node, schema)
        case Round(inner, decimals):
            number = _needs(Number, inner, schema, ".round() takes a number")
            if not -MOST_DECIMALS <= decimals <= MOST_DECIMALS:
                _refuse(node, f"decimals must be from -{MOST_DECIMALS} to {MOST_DECIMALS}; got {decimals}")
            low, high = float(round(number.low, decimals)), float(round(number.high, decimals))
            return Number(low, high, decimals <= 0 or number.whole)
        case Cut():
            return _cut(node, schema)
        case Part():
            return _part(node, schema)
        case AsNumber():
            return _as_number(node, schema)
        case Lookup():
            return _lookup(node, schema)


def number_of(node: Expression, schema: Schema, verb: str) -> Number:
    """The bounds of what is to be added up; a condition counts as 1 where it is true.

    Raises
    ------
    PlanError
        It is no number.
    """
    kind = kind_of(node, schema)
    if isinstance(kind, Truth):
        return Number(0, 1, whole=True)
    if isinstance(kind, Number):
        return kind
    remedy = {
        Category: "declare it as dpnb.Bounded(low, high), or write .astype(float) if its categories are numbers",
        Moment: "take a part of it, such as .dt.year, or subtract a date",
        Span: "take .dt.days or .dt.total_seconds() of it",
    }.get(type(kind), "only numbers can be added up")
    raise PlanError(f"{verb} of {words(node)}: needs a number, and this is {_said(kind)}; {remedy}")


def keys_of(node: Expression, schema: Schema) -> tuple[Key, ...] | None:
    """The public values that an expression can have, in order; None for texts.

    Raises
    ------
    PlanError
        Its values cannot be listed.
    """
    kind = kind_of(node, schema)
    if isinstance(kind, Words):
        return None
    if isinstance(kind, Category):
        return kind.values
    if isinstance(kind, Truth):
        return (False, True)
    few = isinstance(kind, Number) and kind.magnitude <= EXACT and (kind.high - kind.low) / step_of(node) < MOST_KEYS
    if isinstance(kind, Number) and kind.whole and few:
        return tuple(range(math.ceil(kind.low), math.floor(kind.high) + 1, step_of(node)))
    raise PlanError(
        f"groups of {words(node)}: must be public, and this is {_said(kind)}; group by dpnb.Categories, by "
        "dpnb.cut(column, edges), by .round() of a number (or declare it with whole=True) or by a part of a date"
    )


def is_rounded(node: Expression) -> bool:
    """Whether libraries round the step in ways of their own, so that its result can lie just outside its bounds."""
    match node:
        case Arithmetic("//" | "%", _, _) | Round():
            return True
        case Arithmetic("**", _, Literal(exponent)):
            return exponent not in (1, 2)
        case Apply(function, _):
            return function != "abs"
    return False


def step_of(node: Expression) -> int:
    """How far apart the whole numbers are that an expression can give: ``.round(-1)`` gives tens."""
    return int(10 ** max(-node.decimals, 0)) if isinstance(node, Round) else 1


def _column(name: object, schema: Schema) -> Kind:
    declared = schema.get(name) if isinstance(name, str) else None
    if declared is None:
        raise PlanError(f"column {name!r}: not in the schema; the columns are {', '.join(map(repr, schema))}")
    if isinstance(declared, Bounded):
        return Number(declared.low, declared.high, declared.whole)
    if isinstance(declared, Categories):
        return Category(declared.values)
    return Moment(declared.low, declared.high) if isinstance(declared, Dates) else Words()


def _literal(value: Key) -> Kind:
    if isinstance(value, bool):
        return Truth()
    if isinstance(value, str):
        return Category((value,))
    if not of_usual_size(value):
        raise PlanError(f"{value!r}: a number in a question must be {SIZES}; rows without a number never count")
    return Number(float(value), float(value), whole=float(value).is_integer())


# --- numbers ---------------------------------------------------------------------------------------------------------

_ENDS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def _arithmetic(node: Arithmetic, schema: Schema) -> Kind:
    sides = kind_of(node.left, schema), kind_of(node.right, schema)
    if isinstance(sides[0], Moment | Span) or isinstance(sides[1], Moment | Span):
        return _time_arithmetic(node, sides)
    left, right = sides
    for side, kind in ((node.left, left), (node.right, right)):
        if not isinstance(kind, Number):
            hint = "write .astype(float) to compute with it" if isinstance(kind, Category | Truth) else "it has no sum"
            _refuse(node, f"{words(side)} is {_said(kind)}, not a number; {hint}")
    if not isinstance(left, Number) or not isinstance(right, Number):
        raise TypeError  # never; the loop has refused it
    if node.operator in ("//", "%", "**"):
        return _with_constant(node, left)
    if node.operator == "/" and right.low <= 0 <= right.high:
        _refuse(node, f"{words(node.right)} can be 0, so nothing bounds the quotient; .clip() it away from 0 first")
    ends = [_ENDS[node.operator](a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    whole = left.whole and right.whole and node.operator != "/"
    return Number(min(ends), max(ends), whole)


def _with_constant(node: Arithmetic, left: Number) -> Number:
    if not isinstance(node.right, Literal) or isinstance(node.right.value, bool | str):
        _refuse(node, f"the right side of {node.operator} must be a number that you write; got {words(node.right)}")
    by = float(node.right.value)
    if node.operator == "**":
        return _power(node, left, by)
    if by <= 0:
        _refuse(node, f"the right side of {node.operator} must be above 0; got {by:g}")
    if node.operator == "//":
        return Number(left.low // by, left.high // by, True)
    if left.low // by == left.high // by:
        return Number(left.low % by, left.high % by, left.whole and by.is_integer())
    whole = left.whole and by.is_integer()
    return Number(0.0, by - 1 if whole else by, whole)


def _power(node: Arithmetic, left: Number, by: float) -> Number:
    if by <= 0 or by > 64:
        _refuse(node, f"the exponent must lie above 0 and be at most 64; got {by:g}")
    if not by.is_integer() and left.low < 0:
        _refuse(node, f"{words(node.left)} can be below 0, where a root is not defined; .clip(0, None) it first")
    try:
        # A square is a product wherever it is evaluated, and correctly rounded.
        ends = [end * end if by == 2 else end**by for end in (left.low, left.high)]
    except OverflowError:
        ends = [-math.inf, math.inf]
    low = 0.0 if by % 2 == 0 and left.low <= 0 <= left.high else min(ends)
    return Number(low, max(ends), left.whole and by.is_integer())


def _time_arithmetic(node: Arithmetic, sides: tuple[Kind, Kind]) -> Kind:
    left, right = sides
    if node.operator == "-" and isinstance(left, Moment):
        if isinstance(right, Category) and isinstance(node.right, Literal):
            right = _date_literal(node, node.right)
        if isinstance(right, Moment):
            return Span(left.low - right.high, left.high - right.low)
    return _refuse(node, "dates can be subtracted from each other, and nothing else; take .dt.year or another part")


def _clip(node: Clip, schema: Schema) -> Number:
    number = _needs(Number, node.inner, schema, ".clip() takes a number")
    for limit in (node.low, node.high):
        if limit is not None:
            _literal(limit)
    low = -math.inf if node.low is None else node.low
    high = math.inf if node.high is None else node.high
    if low > high:
        _refuse(node, f"the lower limit must not be above the upper one; got {low:g} and {high:g}")
    ends = min(max(number.low, low), high), min(max(number.high, low), high)
    whole = number.whole and all(end.is_integer() for end in ends)
    return Number(*ends, whole=whole)


def _apply(node: Apply, schema: Schema) -> Number:
    number = _needs(Number, node.inner, schema, f"{node.function}() takes a number")
    low, high = number.low, number.high
    if node.function == "abs":
        return Number(0.0 if low <= 0 <= high else min(abs(low), abs(high)), number.magnitude, number.whole)
    if node.function == "log1p":
        if low <= -1:
            _refuse(node, f"{words(node.inner)} can be -1 or less, where log1p is not defined; .clip() it first")
        return Number(math.log1p(low), math.log1p(high))
    low, high = (math.exp(end) if end < 709 else math.inf for end in (low, high))
    return Number(low, high)


def _cut(node: Cut, schema: Schema) -> Category:
    _needs(Number, node.inner, schema, "cut() takes a number")
    for edge in node.edges:
        if not of_usual_size(edge) and abs(edge) != OPEN_END:
            _refuse(node, f"an edge must be infinite, or {SIZES}; got {edge!r}")
    ascending = all(a < b for a, b in pairwise(node.edges))
    if len(node.edges) < 2 or not ascending or len(node.labels) != len(node.edges) - 1:
        _refuse(node, "cut() takes at least two ascending edges, and one label for each bin between them")
    return Category(tuple(dict.fromkeys(node.labels)))


def _as_number(node: AsNumber, schema: Schema) -> Number:
    kind = kind_of(node.inner, schema)
    if isinstance(kind, Truth):
        return Number(0.0, 1.0, whole=True)
    if isinstance(kind, Number):
        return kind
    if isinstance(kind, Category) and kind.numeric:
        values = [float(value) for value in kind.values]
        return Number(min(values), max(values), all(value.is_integer() for value in values))
    return _refuse(node, f"only numeric categories and conditions become numbers; this is {_said(kind)}")


def _part(node: Part, schema: Schema) -> Number:
    kind = kind_of(node.inner, schema)
    if node.part in dates.SPANS:
        if not isinstance(kind, Span):
            _refuse(node, f"only a difference of dates has {node.part}; this is {_said(kind)}")
        unit = dates.SPANS[node.part]
        return Number(math.floor(kind.low / unit), math.floor(kind.high / unit), whole=True)
    if not isinstance(kind, Moment):
        _refuse(node, f"only a date has a {node.part}; this is {_said(kind)}; declare it as dpnb.Dates(first, last)")
    if node.part == "year":
        return Number(dates.year_of(kind.low), dates.year_of(kind.high), whole=True)
    low, high = dates.RANGES[node.part]
    return Number(low, high, whole=True)


# --- conditions and categories ---------------------------------------------------------------------------------------


def _comparison(node: Compare, schema: Schema) -> Truth:
    left, right = kind_of(node.left, schema), kind_of(node.right, schema)
    literal = node.right if isinstance(node.right, Literal) else None
    equality = node.operator in ("==", "!=")
    match left, right:
        case (Number(), Number()) | (Moment(), Moment()) | (Span(), Span()):
            return Truth()
        case (Truth(), Truth()) if equality:
            return Truth()
        case (Moment(), Category()) if literal is not None:
            _date_literal(node, literal)
            return Truth()
        case (Words(), Category()) if literal is not None and equality:
            return Truth()
        case (Category(), _) if literal is not None:
            return _category_comparison(node, left, literal.value, equality)
    return _refuse(node, f"{_said(left)} cannot be compared with {_said(right)} by {node.operator}; {_HINT}")


_HINT = (
    "compare numbers with numbers, dates with dates such as '1974-11-01', and categories or texts with one value by "
    "== or !=; .astype(float) makes numbers of numeric categories"
)


def _category_comparison(node: Compare, left: Category, value: Key, equality: bool) -> Truth:
    if equality and value not in left.values:
        _refuse(
            node,
            f"{value!r} is not a declared category of {words(node.left)}; the categories are "
            f"{', '.join(map(repr, left.values))}",
        )
    if not equality and (not left.numeric or isinstance(value, bool | str)):
        _refuse(node, "only numbers have an order; use == or != with one of the categories")
    return Truth()


def _date_literal(node: Expression, literal: Literal) -> Moment:
    try:
        seconds = seconds_of(iso_time(literal.value, words(node)))
    except SchemaError as error:
        raise PlanError(str(error)) from None
    return Moment(seconds, seconds)


def _hull(node: Expression, kind: Kind, otherwise: Expression, schema: Schema) -> Kind:
    """A kind for both of two expressions."""
    other = kind_of(otherwise, schema)
    match kind, other:
        case Number(), Number():
            return Number(min(kind.low, other.low), max(kind.high, other.high), kind.whole and other.whole)
        case Category(), Category():
            return Category(tuple(dict.fromkeys((*kind.values, *other.values))))
        case (Category(), Number()) if isinstance(otherwise, Literal) and kind.numeric:
            return Category(tuple(dict.fromkeys((*kind.values, otherwise.value))))
        case Truth(), Truth():
            return kind
        case Moment(), Moment():
            return Moment(min(kind.low, other.low), max(kind.high, other.high))
        case (Moment(), Category()) if isinstance(otherwise, Literal):
            date = _date_literal(node, otherwise)
            return Moment(min(kind.low, date.low), max(kind.high, date.high))
    return _refuse(node, f"{_said(kind)} and {_said(other)} do not go together; give both of one kind")


def _lookup(node: Lookup, schema: Schema) -> Kind:
    for place, inner in enumerate(node.inner):
        kind = kind_of(inner, schema)
        if not isinstance(kind, Category | Words) and not (isinstance(kind, Number) and kind.whole):
            _refuse(node, f"only categories, texts and whole numbers can be looked up; this is {_said(kind)}")
        if isinstance(kind, Words) and not all(isinstance(key[place], str) for key in node.keys):
            _refuse(node, "texts are looked up by texts; write the keys as str")
    if node.low is not None and node.high is not None:
        for value in node.values:
            number = isinstance(value, int | float) and of_usual_size(value) and node.low <= value <= node.high
            if value is not None and not number:
                _refuse(node, f"a number that is looked up must be {SIZES}; got {value!r}")
        return Number(node.low, node.high, all(value is None or float(value).is_integer() for value in node.values))
    return Category(tuple(dict.fromkeys(value for value in node.values if value is not None)))


def _needs(wanted: type[K], node: Expression, schema: Schema, rule: str) -> K:
    kind = kind_of(node, schema)
    if not isinstance(kind, wanted):
        _refuse(node, f"{rule}; this is {_said(kind)}")
    return kind


def _said(kind: Kind) -> str:
    return {
        Number: "a number",
        Category: "a category",
        Words: "a text",
        Truth: "a condition",
        Moment: "a date",
        Span: "a length of time",
    }[type(kind)]


def _refuse(node: Expression, fault: str) -> NoReturn:
    raise PlanError(f"{words(node)}: {fault}")
