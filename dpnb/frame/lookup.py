"""A join with a public table whose keys are unique: each of its columns becomes an expression of the key."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from narwhals.dependencies import is_into_dataframe

from dpnb._plan.constants import constant, public_columns
from dpnb._plan.expressions.dtypes import String
from dpnb._plan.expressions.nodes import Expression, IsNull, Lookup, Not
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.schema import Key, Schema, plain, text_of
from dpnb.errors import PlanError

MAX_ROWS = 100_000


def looked_up(
    table: Any,
    on: object,
    how: str,
    columns: Mapping[str, Expression],
    suffixes: tuple[str, str],
    schema: Schema,
) -> tuple[dict[str, Expression], Expression | None]:
    """The view's columns with those of a public table, and the condition that the key matches.

    The condition is None for a left join.  The numbers of the public table determine the bounds, its strings the
    categories of the new columns.  `how` is ``"inner"`` or ``"left"``; the keys must be unique.
    """
    if not is_into_dataframe(table):
        raise PlanError(f"merge: right must be a view of this session's tables or a public data frame; got {table!r}")
    names = [on] if isinstance(on, str) else on
    valid = isinstance(names, list) and names and all(isinstance(name, str) for name in names)
    if how not in ("inner", "left") or not isinstance(names, list) or not valid or len(set(names)) != len(names):
        raise PlanError(
            "merge: a public table is joined with how='inner' or 'left' on one or more different key columns; got "
            f"how={how!r}, on={on!r}"
        )
    public = public_columns(table, "merge")
    for name in names:
        if name not in public or name not in columns:
            raise PlanError(f"merge: the key {name!r} must be a column of both tables")
    data = {name: [_value(value, name) for value in values] for name, values in public.items()}
    for name in names:
        if isinstance(dtype_of(columns[name], schema), String):
            data[name] = [None if value is None else text_of(value) for value in data[name]]
    keys = list(zip(*(data[name] for name in names), strict=True))
    if len(keys) > MAX_ROWS:
        raise PlanError(
            f"merge: a public table can have at most {MAX_ROWS:,} rows; got {len(keys):,}; keep only those needed"
        )
    kept = [index for index, key in enumerate(keys) if None not in key]
    unique = tuple(tuple(constant(part, "merge") for part in keys[index]) for index in kept)
    if len(set(unique)) != len(unique) or not unique:
        raise PlanError(
            f"merge: the public table must have each key of {names!r} once; drop or aggregate its duplicates"
        )
    inner = tuple(columns[name] for name in names)
    result = dict(columns)
    for name in public:
        if name in names:
            continue
        if name in columns:
            own = result.pop(name)
            _add(result, name + suffixes[0], own)
        new = name + suffixes[1] if name in columns else name
        _add(result, new, _lookup(inner, unique, [data[name][index] for index in kept], name))
        dtype_of(result[new], schema)
    if how == "left":
        return result, None
    return result, Not(IsNull(Lookup("match", inner, unique, (True,) * len(unique))))


def _add(columns: dict[str, Expression], name: str, node: Expression) -> None:
    if name in columns:
        raise PlanError(f"merge: the result would have two columns {name!r}; choose other suffixes=")
    columns[name] = node


def _lookup(inner: tuple[Expression, ...], keys: tuple[tuple[Key, ...], ...], values: list[Any], name: str) -> Lookup:
    present = [value for value in values if value is not None]
    if not present:
        raise PlanError(f"merge: column {name!r} of the public table is empty; drop it")
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in present):
        return Lookup(name, inner, keys, tuple(values), float(min(present)), float(max(present)))
    if len({type(value) for value in present}) > 1:
        raise PlanError(
            f"merge: column {name!r} of the public table must contain only numbers or only strings; convert it"
        )
    return Lookup(name, inner, keys, tuple(values))


def _value(value: Any, name: str) -> Key | None:
    """A public value; None for a null."""
    value = plain(value)
    if value is None or (isinstance(value, float) and not math.isfinite(value)) or value != value:
        return None
    return constant(value, f"merge: column {name!r}")
