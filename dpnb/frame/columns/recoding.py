"""New values for given ones: ``map``, ``replace``, ``astype`` and the choice between two values.

Everything is computed from the schema and from what the analyst wrote, and becomes a public table of the plan; no
function runs on rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from narwhals.dependencies import is_pandas_series

from dpnb._plan.constants import constant
from dpnb._plan.expressions.choices import undeclared
from dpnb._plan.expressions.dtypes import Boolean, Categorical, Dtype, Numeric, String, Timestamp, described
from dpnb._plan.expressions.nodes import (
    Arithmetic,
    AsNumber,
    Compare,
    Expression,
    IsIn,
    IsNull,
    Literal,
    Lookup,
    Not,
    OnlyWhere,
    Where,
    negative,
)
from dpnb._plan.expressions.periods import date_constant
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import MAX_LISTED, as_operand, operand, words
from dpnb.errors import PlanError, UnsupportedError
from dpnb.frame.coerce import as_condition
from dpnb.schema import Key, Schema, plain, text_of

MAX_PAIRS = 100_000
"""Largest number of values of a map."""

MAX_REPLACED = 20
"""Largest number of different new values by which numbers are replaced."""

NewValue = Callable[[Key], Key | None]
Pairs = Mapping[Key, Key | None]


def is_null(value: object) -> bool:
    """Whether a constant is one of the nulls of Python, numpy and pandas."""
    value = plain(value)
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in _NULLS


_NULLS = ("NAType", "NaTType")


def recoded(node: Expression, values: tuple[Key, ...], name: str, new: NewValue, *, number: bool = True) -> Expression:
    """The categories of an expression with new values; None for a missing one.

    A map of a map is one map, so that equal queries are recognised.  `name` is the result in words.  With `number`, new
    values that are all numbers make a number, otherwise numeric categories.
    """
    changed = tuple(map(new, values))
    if [(type(value), value) for value in changed] == [(type(value), value) for value in values]:
        return node
    if isinstance(node, Lookup) and len(node.inner) == 1 and node.low is None:
        changed = tuple(None if value is None else new(value) for value in node.values)
        return table(node.inner[0], tuple(key for (key,) in node.keys), changed, name, number=number)
    return table(node, values, changed, name, number=number)


def table(
    node: Expression, keys: tuple[Key, ...], values: tuple[Key | None, ...], name: str, *, number: bool = True
) -> Expression:
    """A public table of new values: numbers give a bounded number, truth values a condition, others categories."""
    pairs = [(key, value) for key, value in zip(keys, values, strict=True) if value is not None]
    present = [value for _, value in pairs]
    if not pairs:
        raise PlanError(f"{name}: every value would be missing; give a new value for at least one of {keys!r}")
    if all(isinstance(value, bool) for value in present):
        true = tuple(key for key, value in pairs if value)
        if len(pairs) == len(keys):
            return IsIn(node, true)
        return Compare("==", _lookup(node, [(key, int(value)) for key, value in pairs], name, number=True), Literal(1))
    return _lookup(node, pairs, name, number=number)


def _lookup(node: Expression, pairs: list[tuple[Key, Key]], name: str, *, number: bool) -> Lookup:
    keys, values = tuple((key,) for key, _ in pairs), tuple(value for _, value in pairs)
    numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if number and len(numbers) == len(values):
        return Lookup(name, (node,), keys, values, min(numbers), max(numbers))
    return Lookup(name, (node,), keys, values)


def _value(value: object, where: str) -> Key | None:
    return None if is_null(value) else constant(value, where)


def _literal(value: Key | None) -> Literal | None:
    return None if value is None else Literal(value)


def _shown(pairs: Pairs) -> str:
    listed = [f"{key!r}: {value!r}" for key, value in list(pairs.items())[:MAX_LISTED]]
    return f"{{{', '.join(listed)}{', ...' if len(pairs) > MAX_LISTED else ''}}}"


# --- map -------------------------------------------------------------------------------------------------------------


def mapped(node: Expression, given: Any, schema: Schema) -> Expression:
    """``column.map(dict)``: the value for each key, missing for all others, as in pandas; a null can be a key."""
    kind = dtype_of(node, schema)
    given = dict(given.items()) if is_pandas_series(given) else given
    if not isinstance(given, Mapping):
        text = f"map of {words(node)}: gives new values by a public dict, such as {example(node, kind)}"
        if callable(given):
            raise UnsupportedError(f"{text}; a function would run Python on private rows")
        raise PlanError(f"{text}; got {given!r}")
    if not 1 <= len(given) <= MAX_PAIRS:
        raise PlanError(f"map of {words(node)}: takes from 1 to {MAX_PAIRS:,} values; got {len(given):,}")
    pairs = {constant(key, "map"): _value(value, "map") for key, value in given.items() if not is_null(key)}
    filled = next((_value(value, "map") for key, value in given.items() if is_null(key)), None)
    if filled is not None:
        return otherwise(node, mapped(node, pairs, schema), filled)
    if len({isinstance(value, str) for value in pairs.values() if value is not None}) > 1:
        raise PlanError(f"map of {words(node)}: the new values must be only numbers or only texts; got {given!r}")
    name = f"{operand(node)}.map({_shown(pairs)})"
    if isinstance(kind, Categorical):
        for key in pairs:
            if key not in kind.values:
                raise PlanError(f"map: {undeclared(key, node, kind.values)}")
        missing = getattr(type(given), "__missing__", None)  # a default for every other key
        new: NewValue = pairs.get if missing is None else lambda value: _value(given[value], "map")
        return recoded(node, kind.values, name, new)
    if isinstance(kind, Boolean):
        if not all(isinstance(key, bool) for key in pairs):
            raise PlanError(f"map of {words(node)}: the keys of a condition are True and False; got {given!r}")
        return chosen(node, _literal(pairs.get(True)), _literal(pairs.get(False)), schema)
    if isinstance(kind, String):
        by_text = {text_of(key) or "": value for key, value in pairs.items()}
        texts = tuple(sorted(by_text))
        return table(node, texts, tuple(by_text[text] for text in texts), name)
    if isinstance(kind, Numeric) and kind.whole:
        if any(isinstance(key, str) for key in pairs):
            raise PlanError(f"map of {words(node)}: the keys must be whole numbers; got {given!r}")
        keys = sorted(key for key in pairs if not isinstance(key, str) and float(key).is_integer())
        if keys:
            return table(node, tuple(map(int, keys)), tuple(pairs[key] for key in keys), name)
    raise PlanError(
        f"map of {words(node)}: takes categories, texts, conditions or whole numbers; this is {described(kind)}; use "
        "arithmetic, or dpnb.cut() for ranges"
    )


def example(node: Expression, kind: Dtype) -> str:
    """A map of the analyst's own column."""
    if isinstance(kind, Categorical):
        keys: list[Key] = list(kind.values[:2])
    elif isinstance(kind, Boolean):
        keys = [True, False]
    elif isinstance(kind, Numeric) and kind.whole:
        keys = [int(kind.low), int(kind.low) + 1]
    elif isinstance(kind, Numeric):
        column = as_operand(node)
        return f"{column}.round().map({{0: 'low', 1: 'high'}}), or write arithmetic such as {column} * 2"
    else:
        keys = ["a", "b"]
    return f"{as_operand(node)}.map({{{', '.join(f'{key!r}: {place}' for place, key in enumerate(keys))}}})"


def otherwise(node: Expression, new: Expression, value: Key) -> Expression:
    """New values, and a constant where the old value is missing."""
    return Where(Not(IsNull(node)), new, Literal(value))


# --- replace ---------------------------------------------------------------------------------------------------------


def replaced(node: Expression, pairs: Pairs, schema: Schema) -> Expression:
    """``column.replace(...)``: new values for some, the others unchanged."""
    kind = dtype_of(node, schema)
    name = f"{operand(node)}.replace({_shown(pairs)})"
    if isinstance(kind, Categorical):
        for key in pairs:
            if key not in kind.values:
                raise PlanError(f"replace: {undeclared(key, node, kind.values)}")
        new: NewValue = lambda value: pairs.get(value, value)  # noqa: E731
        return recoded(node, kind.values, name, new, number=not kind.numeric)
    if isinstance(kind, Boolean) and all(isinstance(key, bool) for key in pairs):
        return chosen(node, _literal(pairs.get(True, True)), _literal(pairs.get(False, False)), schema)
    if isinstance(kind, Numeric) and not any(isinstance(key, str) for key in pairs):
        return _numbers_replaced(node, pairs)
    remedy = ".map({...}) gives values for texts that you know" if isinstance(kind, String) else "use .where()"
    raise PlanError(f"replace of {words(node)}: takes numbers and categories; this is {described(kind)}; {remedy}")


def _numbers_replaced(node: Expression, pairs: Pairs) -> Expression:
    olds: dict[Key | None, list[Key]] = {}
    for old, new in pairs.items():
        if isinstance(new, str | bool):
            raise PlanError(f"replace of {words(node)}: the new value of a number must be a number; got {new!r}")
        olds.setdefault(new, []).append(old)
    if len(olds) > MAX_REPLACED:
        raise PlanError(f"replace of {words(node)}: at most {MAX_REPLACED} different new values; got {len(olds)}")
    result = node
    for new, keys in olds.items():
        is_old = Compare("==", node, Literal(keys[0])) if len(keys) == 1 else IsIn(node, tuple(keys))
        result = OnlyWhere(Not(is_old), result) if new is None else Where(Not(is_old), result, Literal(new))
    return result


def replacements(to_replace: Any, value: Any, given: bool) -> tuple[dict[Key, Key | None], Key | None]:
    """What ``replace`` takes as pairs of old and new values, and the new value of nulls if there is one."""
    if isinstance(to_replace, Mapping):
        pairs = list(to_replace.items())
        if given or any(isinstance(new, Mapping) for _, new in pairs):
            raise PlanError("replace: takes a dict of old and new values alone, such as .replace({'yes': 1, 'no': 0})")
    elif not given:
        raise PlanError("replace: needs the new value, such as .replace('old', 'new') or .replace({'old': 'new'})")
    else:
        olds = list(to_replace) if isinstance(to_replace, list | tuple) else [to_replace]
        news = list(value) if isinstance(value, list | tuple) else [value] * len(olds)
        if len(olds) != len(news):
            raise PlanError(f"replace: both lists must have the same length; got {len(olds)} and {len(news)}")
        pairs = list(zip(olds, news, strict=True))
    filled = next((_value(new, "replace") for old, new in pairs if is_null(old)), None)
    found = {constant(old, "replace"): _value(new, "replace") for old, new in pairs if not is_null(old)}
    if not 1 <= len(pairs) <= MAX_PAIRS:
        raise PlanError(f"replace: takes from 1 to {MAX_PAIRS:,} values; got {len(pairs):,}")
    return found, filled


# --- one of two values -----------------------------------------------------------------------------------------------


def chosen(condition: Expression, one: Expression | None, other: Expression | None, schema: Schema) -> Expression:
    """`one` where the condition is true, `other` where it is false; None for missing.

    Choices that can be written without `Where` are written so, so that equal queries are recognised.
    """
    condition = as_condition(condition, schema)
    if not isinstance(kind := dtype_of(condition, schema), Boolean):
        raise PlanError(
            f"where {words(condition)}: takes a condition, and this is {described(kind)}; compare it, as in "
            f"{as_operand(condition)} {'> 0' if isinstance(kind, Numeric) else '== ...'}"
        )
    if one is None and other is None:
        raise PlanError(f"where {words(condition)}: at least one of the two values must not be missing")
    if one is None:
        return chosen(Not(condition), other, None, schema)
    if other is None:
        return OnlyWhere(condition, one)
    if isinstance(one, Literal) and isinstance(other, Literal):
        values = one.value, other.value
        if {type(value) for value in values} == {bool} and values[0] != values[1]:
            return condition if values[0] else Not(condition)
        if not {type(value) for value in values} & {bool, str} and set(values) == {0, 1}:
            return AsNumber(condition if values[0] else Not(condition))
    kinds = [dtype_of(side, schema) for side in (one, other)]
    dates = next((kind for kind in kinds if isinstance(kind, Timestamp)), None)
    if dates is not None:
        one, other = (
            Literal(date_constant(side, dates, side.value))
            if isinstance(side, Literal) and isinstance(side.value, str)
            else side
            for side in (one, other)
        )
    if {type(kind) for kind in kinds} == {Boolean, Numeric}:
        one, other = (
            AsNumber(side) if isinstance(kind, Boolean) else side
            for side, kind in zip((one, other), kinds, strict=True)
        )
    if isinstance(one, Literal) and not isinstance(other, Literal):
        return Where(Not(condition), other, one)
    return Where(condition, one, other)


# --- astype ----------------------------------------------------------------------------------------------------------


_TYPES: dict[object, str] = {
    **dict.fromkeys([float, "float", "float64", "float32"], "float"),
    **dict.fromkeys([int, "int", "int64", "int32", "Int64"], "int"),
    **dict.fromkeys([bool, "bool", "boolean"], "bool"),
    **dict.fromkeys([str, "str", "string", "object"], "str"),
    "category": "category",
}


def _truncated(node: Expression, kind: Numeric) -> Expression:
    """A number without its fraction, as Python's `int` gives it."""
    down: Expression = Arithmetic("//", node, Literal(1))
    up = negative(Arithmetic("//", negative(node), Literal(1)))
    if kind.low >= 0 or kind.high <= 0:
        return down if kind.low >= 0 else up
    return Where(Compare(">=", node, Literal(0)), down, up)


def converted(node: Expression, dtype: object, schema: Schema) -> Expression:
    """``astype(dtype)``: numeric categories and conditions as numbers, numbers as conditions, values as texts."""
    kind = dtype_of(node, schema)
    wanted = _TYPES.get(dtype) if isinstance(dtype, type | str) else None
    match wanted:
        case "float":
            return node if isinstance(kind, Numeric) else AsNumber(node)
        case "int":
            if isinstance(kind, Numeric) and not kind.whole:
                return _truncated(node, kind)
            return node if isinstance(kind, Numeric) else AsNumber(node)
        case "bool" if isinstance(kind, Boolean):
            return node
        case "bool" if isinstance(kind, Numeric):
            return Compare("!=", node, Literal(0))
        case "bool" if isinstance(kind, Categorical) and not any(isinstance(value, str) for value in kind.values):
            return IsIn(node, tuple(value for value in kind.values if value))
        case "str" if isinstance(kind, Categorical):
            return recoded(node, kind.values, f"{operand(node)}.astype(str)", lambda value: str(value))
        case "str" if isinstance(kind, String):
            return node
        case "category" if isinstance(kind, Categorical | Boolean):
            return node
        case "bool" | "str" | "category":
            raise PlanError(f"astype({wanted}): {words(node)} is {described(kind)}; its values cannot be listed")
    raise PlanError(f"astype: only float, int, bool and str are offered; got {dtype!r}; types come from the schema")
