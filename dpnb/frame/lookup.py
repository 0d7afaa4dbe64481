"""Joins: with another table of the session, and with a public table whose keys are unique.

Each column of a public table becomes an expression of the key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, Self

from narwhals.dependencies import is_into_dataframe

from dpnb._plan.constants import constant, public_columns
from dpnb._plan.expressions.dtypes import String
from dpnb._plan.expressions.nodes import Expression, IsNull, Lookup, Not
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.unreleased import did_you_mean
from dpnb.errors import PlanError
from dpnb.frame.compatibility.options import check_options, describe_options
from dpnb.frame.layout import ColumnLayout
from dpnb.schema import Key, Schema, plain, text_of

MAX_ROWS = 100_000


@describe_options
class Joins(ColumnLayout):
    """The method of a frame that joins it with another table."""

    __slots__ = ()

    def merge(
        self,
        right: Any,
        on: str | list[str] | None = None,
        how: Literal["inner", "left"] = "inner",
        suffixes: tuple[str, str] = ("_x", "_y"),
        **options: object,
    ) -> Self:
        """Join with another table of the session on the privacy unit, or with a public table.

        Parameters
        ----------
        right : view or data frame
            A view of another table of the session: the result has every pair of rows that one unit has in both.  A
            table, or a part of it, can occur in a join only once, and the ``max_rows_per_unit`` of the tables may allow
            a unit at most 10,000 pairs.  Or a public table with one row for each key: its other columns are added, with
            bounds and categories taken from it.
        on : str or list of str
            The privacy unit, or the key columns; required.
        how : {"inner", "left"}, default "inner"
            ``"left"`` is for public tables only.
        suffixes : pair of str, default ("_x", "_y")
            Appended to the names of columns that both tables have.

        Raises
        ------
        PlanError
            The join is not of one of these kinds, would join a table with itself, or the keys of the public table
            are not unique.

        Examples
        --------
        >>> import pandas as pd
        >>> prices = pd.DataFrame({"plan": ["free", "paid"], "price": [0, 90]})
        >>> df.merge(prices, on="plan").columns
        ['age', 'cost', 'plan', 'admitted', 'note', 'price']
        """
        known = ("left_on", "right_on", "left_index", "right_index", "sort", "copy", "indicator", "validate")
        check_options("merge", options, self._examples(), *known)
        pair: Any = suffixes
        if not isinstance(pair, tuple | list) or [type(suffix) for suffix in pair] != [str, str]:
            raise PlanError(f"merge: suffixes must be two strings, such as ('_x', '_y'); got {pair!r}")
        suffixes = (pair[0], pair[1])
        view = self._view
        if isinstance(right, Joins):
            return type(self)(view.joined(right._view, on, how, suffixes))
        columns, key_matches = looked_up(right, on, how, view.columns, suffixes, view.schema)
        return self._of(view if key_matches is None else view.filtered(key_matches), columns)


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
        if name not in columns:
            listed = f"; its columns are {', '.join(map(repr, columns))}"
            raise PlanError(
                f"merge: the key {name!r} is not in this view{did_you_mean(name, columns) or listed}; by a key that is "
                "not declared, such as the column of the privacy unit, tables are merged before the session is opened"
            )
        if name not in public:
            raise PlanError(f"merge: the public table has no column {name!r}; it has {', '.join(map(repr, public))}")
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
    """A public value; None for a null, and for a number that is not finite."""
    value = plain(value)
    if value is None or (isinstance(value, float) and not math.isfinite(value)) or value != value:
        return None
    return constant(value, f"merge: column {name!r}")
