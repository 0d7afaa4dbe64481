"""An expression as an analyst would write it."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

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
    WithinUnit,
    columns_of,
    nodes_of,
    renamed,
    with_arguments,
)
from dpnb.schema import Key
from dpnb.times import UTC_ZONE, iso_time, without_midnight

FREQUENCIES: dict[PeriodUnit, str] = {
    "hour": "h",
    "day": "D",
    "week": "W",
    "month": "M",
    "quarter": "Q",
    "year": "Y",
}
"""The frequency of each calendar period, as pandas writes it."""

_OPERATIONS = (Arithmetic, Compare, And, Or, WithinUnit)

MAX_LISTED = 6
"""Largest number of values of a list that are written out."""

MAX_NAME, MAX_KEY = 60, 40
"""Characters of a name that an analyst chose, and of a key of a lookup, in descriptions."""

_IN_UTC = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)Z")
"""A point in time as `dpnb.times.constant_text` writes it for dates in UTC."""

_EXPLAINED = (Lookup, Cut, ExtractDatePart, Period, Seconds)
"""Nodes of which `explained` says more than `words`."""

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")


def words(node: Expression) -> str:
    """The expression as an analyst would write it."""
    match node:
        case Column(name):
            return name
        case Literal(value):
            return constant_words(value)
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
            return f"{operand(inner)}.isin({listed_words(values)})"
        case IsNull(inner):
            return f"{operand(inner)}.isna()"
        case FillNull(inner, value):
            return f"{operand(inner)}.fillna({constant_words(value)})"
        case Clip(inner, low, high):
            return f"{operand(inner)}.clip({_value(low)}, {_value(high)})"
        case Round(inner, decimals):
            return f"{operand(inner)}.round({decimals or ''})"
        case Where(condition, Literal(value), otherwise):
            return f"where({words(condition)}, {constant_words(value)}, {words(otherwise)})"
        case Where(condition, inner, otherwise):
            return f"{operand(inner)}.where({words(condition)}, {words(otherwise)})"
        case OnlyWhere(condition, Literal(value)):
            return f"where({words(condition)}, {constant_words(value)})"
        case OnlyWhere(condition, inner):
            return f"{operand(inner)}.where({words(condition)})"
        case MatchText(relation, inner, text):
            return f"{operand(inner)}.str.{relation}({text!r})"
        case ChangeCase(case, inner):
            return f"{operand(inner)}.str.{case}()"
        case TextLength(inner):
            return f"{operand(inner)}.str.len()"
        case Cut(inner, edges, dates=True):
            return f"cut({words(inner)}, {listed_words(tuple(map(_date, edges[: MAX_LISTED + 1])))})"
        case Cut(inner, edges):
            return f"cut({words(inner)}, {listed_words(edges)})"
        case ExtractDatePart(part, inner):
            return f"{operand(inner)}.dt.{part}"
        case Period(unit, inner):
            return f"{operand(inner)}.dt.to_period({FREQUENCIES[unit]!r})"
        case Seconds(inner):
            return words(inner)
        case AsNumber(inner):
            return f"{operand(inner)}.astype(float)"
        case WithinUnit():
            return _within(node)


def _within(node: WithinUnit) -> str:
    """A value within a unit: the function, then the rows from which it is computed and their order."""
    arguments = [str(node.offset)] if node.function in ("shift", "nth") or node.function.startswith("rolling") else []
    if node.least and node.least != node.offset:
        arguments.append(f"min_periods={node.least}")
    of_rows = node.function in ("size", "number")
    text = f"{'rows' if of_rows else operand(node.inner)}.{node.function}({', '.join(arguments)}) within each unit"
    if node.keys:
        text += f" and {', '.join(map(operand, node.keys))}"
    if node.order:
        signs = zip(node.order, node.descending or (False,) * len(node.order), strict=False)
        text += f" ordered by {', '.join(operand(by) + (' descending' if down else '') for by, down in signs)}"
    return text if node.where == Literal(True) else f"{text} where {words(node.where)}"


def explained(node: Expression) -> str:
    """`words`, in which every name that the analyst chose says which columns it is made from, and the zone of dates.

    A lookup has a name, and bins have labels, that need not be about the column that they read.
    """
    if isinstance(node, Column):
        return node.name
    special = [one for one in nodes_of(node) if isinstance(one, _EXPLAINED)]
    if not special:
        return words(node)
    has_names = any(isinstance(one, Lookup | Cut) for one in special)
    return words(_explained(node) if has_names else node) + zones_in_words(node)


def stated_zone(node: object) -> str | None:
    """The zone that the words of a node state: that of a part or period of dates, or of its own constants."""
    match node:
        case Period(zone=zone) | Seconds(zone=zone):
            return zone
        case ExtractDatePart(part, zone=zone) if part not in ("days", "seconds"):  # of a duration
            return zone
        case Cut(dates=True):
            return UTC_ZONE
    return None


def zones_in_words(node: Expression) -> str:
    """The zones of the dates from whose local time an expression is computed, in words."""
    columns: dict[str, set[str]] = {}
    for one in nodes_of(node):
        zone = stated_zone(one)
        if zone is not None:
            columns.setdefault(zone, set()).update(inner.name for inner in nodes_of(one) if isinstance(inner, Column))
    if len(columns) > 1:
        return f" ({', '.join(f'{name} in {zone}' for zone in columns for name in sorted(columns[zone]))})"
    return "".join(f" ({zone})" for zone in columns)


def named(name: str, node: Expression) -> str:
    """An expression under a name that the analyst chose: the name of a column stands for that column alone."""
    made = explained(node)
    return made if name == words(node) or columns_of(node) == {name} else f"{name_text(name)} (made from {made})"


def name_text(name: str) -> str:
    """A name that the analyst chose: as it is if it cannot be taken for anything else, otherwise in quotes."""
    return name if _PLAIN_NAME.fullmatch(name) and len(name) <= MAX_NAME else repr(_shortened(name, MAX_NAME))


def _explained(node: Expression) -> Expression:
    """The expression with the text of each lookup and each labelled bin in its place."""
    match node:
        case Not(IsNull(Lookup(_, (inner,), keys, values))) if None not in values:
            return IsIn(_explained(inner), tuple(key for (key,) in keys))
        case Compare(operator, Lookup() as lookup, Literal(value) as literal):
            return Compare(operator, Column(_lookup_text(lookup, (value,))), literal)
        case IsIn(Lookup() as lookup, values):
            return IsIn(Column(_lookup_text(lookup, values)), values)
        case Lookup():
            return Column(_lookup_text(node))
        case Cut() if not are_intervals(node):
            text = words(with_arguments(node, _explained)).removesuffix(")")
            return Column(f"{text}, labels={listed_words(tuple(map(_short_key, node.labels)))})")
    return with_arguments(node, _explained)


def _lookup_text(node: Lookup, wanted: Collection[Key] = ()) -> str:
    """The columns and keys of a lookup, first those whose values are compared; its name only if it is like a column's.

    Other names are texts of dpnb, such as ``plan.map({...})``, which are written here again from the keys.
    """
    first = set(wanted)
    # A lookup may have very many keys: only those that are listed become texts.
    shown = list(islice((pair for pair in zip(node.keys, node.values, strict=False) if pair[1] in first), MAX_LISTED))
    others = (pair for pair in zip(node.keys, node.values, strict=False) if pair[1] not in first)
    shown += islice(others, MAX_LISTED - len(shown))
    texts = [f"{_short_key(key[0] if len(key) == 1 else key)!r}: {_short_key(value)!r}" for key, value in shown]
    more = [f"and {len(node.keys) - MAX_LISTED:,} more"] if len(node.keys) > MAX_LISTED else []
    table = f"{{{', '.join([*texts, *more])}}}"
    inner = tuple(map(_explained, node.inner))
    made = ", ".join(map(words, inner))
    if name_text(node.name) == node.name:
        return f"{node.name} (made from {made}: {table})"
    return f"{operand(inner[0]) if len(inner) == 1 else f'({made})'}.map({table})"


def are_intervals(node: Cut) -> bool:
    """Whether the labels of bins are their intervals, as dpnb writes them by default."""
    if len(node.labels) != len(node.edges) - 1:
        return False
    bins = zip(node.edges, node.edges[1:], node.labels, strict=False)
    return all(isinstance(label, str) and label[1:-1] in _interval_texts(node, *ends) for *ends, label in bins)


def _interval_texts(node: Cut, low: float, high: float) -> tuple[str, ...]:
    if node.dates:
        return (f"{_date(low)}, {_date(high)}",)
    low, high = (float(_value(end)) if abs(end) == sys.float_info.max else end for end in (low, high))
    return f"{low:g}, {high:g}", f"{low}, {high}"


def _short_key(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_short_key, value))
    return _shortened(value, MAX_KEY) if isinstance(value, str) else value


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


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


def constant_words(value: object) -> str:
    """A constant of an expression; of a point in time in UTC, which has a Z, it says so."""
    in_utc = isinstance(value, str) and _IN_UTC.fullmatch(value)
    return repr(f"{without_midnight(in_utc[1])} UTC") if in_utc else _value(value)


def _value(value: object) -> str:
    """A constant; a whole number without a decimal point, and the largest double as infinity."""
    if isinstance(value, float) and abs(value) == sys.float_info.max:
        return "inf" if value > 0 else "-inf"
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else repr(value)


def listed_words(values: tuple[object, ...]) -> str:
    """The first constants of a list, in brackets."""
    shown = [constant_words(value) for value in values[:MAX_LISTED]]
    return f"[{', '.join(shown)}{', ...' if len(values) > MAX_LISTED else ''}]"
