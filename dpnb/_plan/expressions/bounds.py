"""Types of nodes that result in a number: their bounds by interval arithmetic, from the types of their arguments.

Bounds hold for every row and every node, to the last bit.  Doubles are added, subtracted, multiplied and divided with
correct rounding, which preserves the order of the exact results, so the results for the bounds bound the results.
Where libraries round differently, the evaluation clips the result to its bounds.  An expression is refused unless every
bound and constant is 0, or between 1e-100 and 1e100 in absolute value.  So no node overflows, divides by zero, or is
undefined, whatever the values of a row.

Bounds need not be tight.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from dpnb._plan.expressions.dtypes import (
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
    Apply,
    Arithmetic,
    AsNumber,
    Clip,
    ExtractDatePart,
    Literal,
    Round,
    Seconds,
    TextLength,
)
from dpnb._plan.expressions.periods import RANGES, SPANS, year_of
from dpnb._plan.expressions.text import as_code, as_operand, words

LOGARITHMS: dict[str, Callable[[float], float]] = {"log": math.log, "log2": math.log2, "log10": math.log10}
"""The logarithms, whose arguments must be above 0."""

MAX_DECIMALS = 15
"""Largest number of decimals to which a number can be rounded, before or after the point."""

_ENDS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def arithmetic(node: Arithmetic, left: Dtype, right: Dtype) -> Dtype:
    """Arithmetic of numbers; and the difference of dates."""
    if isinstance(left, Timestamp | Duration) or isinstance(right, Timestamp | Duration):
        return _time_arithmetic(node, left, right)
    for side, kind in ((node.left, left), (node.right, right)):
        if not isinstance(kind, Numeric):
            hint = "convert it with .astype(float)" if isinstance(kind, Categorical | Boolean) else "it has no sum"
            refuse(node, f"{words(side)} is {described(kind)}, not a number; {hint}")
    if not isinstance(left, Numeric) or not isinstance(right, Numeric):
        raise TypeError  # unreachable: the loop has refused it
    if node.operator in ("//", "%", "**"):
        return _with_constant(node, left)
    if node.operator == "/" and right.low <= 0 <= right.high:
        refuse(node, f"{words(node.right)} can be 0, so nothing bounds the quotient; {_divisor(node, right)}")
    ends = [_ENDS[node.operator](a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    whole = left.whole and right.whole and node.operator != "/"
    one, other = left.distance, right.distance
    # (low + m one)(low' + n other) is the product of the lows and multiples of these.
    products = (left.low * other, right.low * one, one * other)
    return Numeric.among(min(ends), max(ends), whole, *(products if node.operator == "*" else (one, other)))


def _divisor(node: Arithmetic, right: Numeric) -> str:
    """How to keep a divisor away from 0, with the analyst's own columns."""
    top, bottom = as_operand(node.left), as_operand(node.right)
    if right.low < 0 < right.high:
        return f".clip() it away from 0 first, as in {top} / {bottom}.abs().clip(lower={limit_above_zero(right):g})"
    if right.high == 0:
        return f".clip() it away from 0 first, as in {top} / {bottom}.clip(upper=-1)"
    return f".clip() it away from 0 first, as in {top} / {bottom}.clip(lower={limit_above_zero(right):g})"


def _with_constant(node: Arithmetic, left: Numeric) -> Numeric:
    if not isinstance(node.right, Literal) or isinstance(node.right.value, bool | str):
        refuse(node, f"the right side of {node.operator} must be a constant number; got {words(node.right)}")
    by = float(node.right.value)
    if node.operator == "**":
        return _power(node, left, by)
    if by <= 0:
        refuse(node, f"the right side of {node.operator} must be above 0; got {by:g}")
    if node.operator == "//":
        return Numeric(left.low // by, left.high // by, True)
    if left.low // by == left.high // by:
        return Numeric(left.low % by, left.high % by, left.whole and by.is_integer())
    whole = left.whole and by.is_integer()
    return Numeric(0.0, by - 1 if whole else by, whole)


def _power(node: Arithmetic, left: Numeric, by: float) -> Numeric:
    if by <= 0 or by > 64:
        refuse(node, f"the exponent must lie above 0 and be at most 64; got {by:g}")
    if not by.is_integer() and left.low < 0:
        refuse(
            node,
            f"{words(node.left)} can be below 0, where a root is not defined; write "
            f"{as_operand(node.left)}.clip(lower=0)",
        )
    try:
        # Every backend evaluates a square as a product, which is correctly rounded.
        ends = [end * end if by == 2 else end**by for end in (left.low, left.high)]
    except OverflowError:
        ends = [-math.inf, math.inf]
    low = 0.0 if by % 2 == 0 and left.low <= 0 <= left.high else min(ends)
    return Numeric(low, max(ends), left.whole and by.is_integer())


def _time_arithmetic(node: Arithmetic, left: Dtype, right: Dtype) -> Dtype:
    if (
        node.operator == "-"
        and isinstance(right, Timestamp)
        and node.left != Literal(0)
        and isinstance(node.left, Literal)
    ):
        left = date_literal(node, node.left, right)
    if node.operator == "-" and isinstance(left, Timestamp):
        if isinstance(right, Categorical) and isinstance(node.right, Literal):
            right = date_literal(node, node.right, left)
        if isinstance(right, Timestamp):
            return Duration(left.low - right.high, left.high - right.low)
    return refuse(node, "dates can only be subtracted from each other; use .dt.year or another part")


def clip(node: Clip, inner: Dtype) -> Numeric:
    """A number between limits."""
    number = needs(Numeric, node.inner, inner, ".clip() takes a number")
    for limit in (node.low, node.high):
        if limit is not None:
            literal_kind(limit)
    low = -math.inf if node.low is None else node.low
    high = math.inf if node.high is None else node.high
    if low > high:
        refuse(node, f"the lower limit must not be above the upper one; got {low:g} and {high:g}")
    ends = min(max(number.low, low), high), min(max(number.high, low), high)
    whole = number.whole and all(end.is_integer() for end in ends)
    return Numeric.among(*ends, whole, number.distance, ends[0] - number.low, ends[1] - number.high)


def apply(node: Apply, inner: Dtype) -> Numeric:
    """An increasing function, or the absolute value."""
    number = needs(Numeric, node.inner, inner, f"{node.function}() takes a number")
    low, high = number.low, number.high
    if node.function == "abs":
        if low <= 0 <= high:
            return Numeric.among(0.0, number.magnitude, number.whole, number.distance, low)
        return Numeric(min(abs(low), abs(high)), number.magnitude, number.whole, number.step)
    if node.function == "log1p":
        if low <= -1:
            refuse(node, f"{words(node.inner)} can be -1 or less, where log1p is not defined; .clip() it first")
        return Numeric(math.log1p(low), math.log1p(high))
    if node.function in LOGARITHMS:
        logarithm = LOGARITHMS[node.function]
        if low <= 0:
            refuse(
                node,
                f"{words(node.inner)} can be 0 or less, where {node.function} is not defined; {_remedy(node, number)}",
            )
        return Numeric(logarithm(low), logarithm(high))
    low, high = (math.exp(end) if end < 709 else math.inf for end in (low, high))
    return Numeric(low, high)


def _remedy(node: Apply, number: Numeric) -> str:
    if number.high <= 0:
        return "it is never above 0"
    written = as_operand(node.inner)
    shifted = f", or np.log1p({as_code(node.inner)})" if number.low > -1 and node.function == "log" else ""
    return f"write np.{node.function}({written}.clip(lower={limit_above_zero(number):g})){shifted}"


def limit_above_zero(number: Numeric) -> float:
    """A limit between 0 and the upper bound of a number, for the example in a refusal."""
    if number.whole or number.high > 100:
        return min(1.0, number.high)
    return 10.0 ** (math.floor(math.log10(number.high)) - 2)


def text_length(node: TextLength, kind: Dtype) -> Numeric:
    """The number of characters of a text."""
    if not isinstance(kind, String):
        refuse(node, f"only a text has a length; this is {described(kind)}")
    if kind.max_length is None:
        refuse(
            node,
            "nothing bounds the length of this text; the curator can declare a limit with dpnb.Text(max_length=...); "
            "a longer text then counts with the length max_length",
        )
    return Numeric(0.0, kind.max_length, whole=True)


def rounded(node: Round, inner: Dtype) -> Numeric:
    """Rounding, which preserves the order."""
    number = needs(Numeric, node.inner, inner, ".round() takes a number")
    decimals = node.decimals
    if not -MAX_DECIMALS <= decimals <= MAX_DECIMALS:
        refuse(node, f"decimals must be from -{MAX_DECIMALS} to {MAX_DECIMALS}; got {decimals}")
    low, high = float(round(number.low, decimals)), float(round(number.high, decimals))
    step = number.step if number.whole and decimals >= 0 else 10 ** max(-decimals, 0)
    return Numeric(low, high, decimals <= 0 or number.whole, step)


def part(node: ExtractDatePart, kind: Dtype) -> Numeric:
    """A part of a date, or of a duration."""
    if node.part in SPANS:
        if not isinstance(kind, Duration):
            refuse(node, f"only a difference of dates has {node.part}; this is {described(kind)}")
        unit = SPANS[node.part]
        return Numeric(math.floor(kind.low / unit), math.floor(kind.high / unit), whole=True)
    if not isinstance(kind, Timestamp):
        refuse(node, f"only a date has a {node.part}; this is {described(kind)}; declare it as dpnb.Dates(first, last)")
    of_zone(node, kind, node.zone)
    if node.part == "year":
        first, last = kind.local
        return Numeric(year_of(first), year_of(last), whole=True)
    low, high = RANGES[node.part]
    return Numeric(low, high, whole=True)


def seconds(node: Seconds, kind: Dtype) -> Numeric:
    """A point in time as a number of seconds."""
    if not isinstance(kind, Timestamp):
        refuse(node, f"only a date is a point in time; this is {described(kind)}")
    of_zone(node, kind, node.zone)
    return Numeric(kind.low, kind.high)


def as_number(node: AsNumber, kind: Dtype) -> Numeric:
    """Numeric categories, or a condition, as a number."""
    if isinstance(kind, Boolean):
        return Numeric(0.0, 1.0, whole=True)
    if isinstance(kind, Numeric):
        return kind
    if isinstance(kind, Categorical) and kind.numeric:
        values = [float(value) for value in kind.values]
        return _one_of(values)
    return refuse(node, f"only numeric categories and conditions convert to numbers; this is {described(kind)}")


def _one_of(values: list[float]) -> Numeric:
    """A number that is one of these."""
    low, whole = min(values), all(value.is_integer() for value in values)
    return Numeric.among(low, max(values), whole, *(value - low for value in values))
