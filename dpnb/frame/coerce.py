"""Validation of an analyst's arguments, and their conversion to parts of a plan."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date
from itertools import pairwise
from typing import Any
from typing import Literal as TypingLiteral

import msgspec
import narwhals as nw
import numpy as np
from narwhals.dependencies import is_into_dataframe

from dpnb._plan.expressions.dtypes import OPEN_END, Boolean, Categorical, Duration, String, Timestamp
from dpnb._plan.expressions.nodes import AsNumber, Cut, Expression, Literal
from dpnb._plan.expressions.rules import dtype_of, public_keys_of
from dpnb._plan.expressions.text import MAX_LISTED, words
from dpnb._plan.measurements import (
    ColumnsView,
    Count,
    CountUnits,
    Joinable,
    JointAggregation,
    Mean,
    MeanCountView,
    Moments,
    MomentsView,
    NamedColumn,
    PlainView,
    QuantilesView,
    QuantileTree,
    SingleView,
    Sum,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel
from dpnb._plan.schema import Key, Schema, encodable, iso_time, plain, text_of, whole_number
from dpnb.errors import PlanError, SchemaError

EXTREMES = {"min": 0.0, "median": 0.5, "max": 1.0}
OF_MOMENTS = ("var", "std")

Ddof = TypingLiteral[0, 1]


def checked_ddof(ddof: object) -> int:
    """What is subtracted from the count in the divisor of a variance.

    Raises
    ------
    PlanError
        It is neither 0 nor 1.
    """
    number = whole_number(ddof)
    if number not in (0, 1):
        raise PlanError(f"ddof: must be 0 (divide by the count) or 1 (by the count less 1); got {ddof!r}; 1 is usual")
    return number


def constant(value: object, where: str) -> Key:
    """A constant that a plan can hold: a finite number, a truth value, a string, or a date as an ISO string.

    Raises
    ------
    PlanError
        The value is none of these.
    """
    value = value if isinstance(value, np.datetime64) else plain(value)
    if isinstance(value, date | np.datetime64):
        try:
            return iso_time(value, where)
        except SchemaError as error:
            raise PlanError(str(error)) from None
    if isinstance(value, bool) or (isinstance(value, str) and encodable(value)):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise PlanError(
        f"{where}: a constant is a finite number of at most 64 bits, a truth value, a str or a date; got {value!r}; "
        "rows without a value never count; .isna() finds them"
    )


def number(value: object, where: str) -> float:
    """A finite number.

    Raises
    ------
    PlanError
        The value is not a finite number.
    """
    checked = constant(value, where)
    if isinstance(checked, bool | str):
        raise PlanError(f"{where}: must be a finite number; got {value!r}")
    return float(checked)


def listed(values: object, where: str) -> tuple[Key, ...]:
    """The constants of a list, in order.

    Raises
    ------
    PlanError
        Not a list, or an element is not a constant.
    """
    if isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable):
        raise PlanError(f"{where}: must be a list of values, in a fixed order; got {values!r}")
    constants = tuple(constant(value, where) for value in values)
    if not constants:
        raise PlanError(f"{where}: must hold at least one value; got an empty list")
    return constants


def as_number(node: Expression, schema: Schema) -> Expression:
    """An expression as a number: a condition counts as 1 or 0."""
    return AsNumber(node) if isinstance(dtype_of(node, schema), Boolean) else node


def bins(node: Expression, edges: object, labels: object, right: bool, low: float, high: float) -> Cut:
    """Bins of a numeric expression between public edges.

    Parameters
    ----------
    node : expression
    edges : list of float, or int
        Ascending; infinite ends are allowed.  An integer is the number of bins of equal width between the bounds.
    labels : list, optional
        One for each bin; by default the intervals as strings.
    right : bool
        Whether a bin includes its upper edge.
    low, high : float
        Bounds of the expression.

    Raises
    ------
    PlanError
        The edges do not ascend, or there is not one label for each bin.
    """
    count = whole_number(edges)
    if count is not None:
        if not 1 <= count <= 100_000:
            raise PlanError(f"bins: must be from 1 to 100,000; got {count}")
        ends = [low + (high - low) * index / count for index in range(count)] + [high]
    elif isinstance(edges, str | bytes | Mapping | Set) or not isinstance(edges, Iterable):
        raise PlanError(f"bins: must be a number of bins, or a list of ascending edges; got {edges!r}")
    else:
        ends = [_edge(edge) for edge in edges]
    if len(ends) < 2 or any(not a < b for a, b in pairwise(ends)):
        raise PlanError(f"bins: must be at least two ascending edges; got {edges!r}")
    if labels is None:
        names: tuple[Key, ...] = tuple(_interval(a, b, ends, right, "g") for a, b in pairwise(ends))
        if len(set(names)) != len(names):
            names = tuple(_interval(a, b, ends, right, "") for a, b in pairwise(ends))
    else:
        names = listed(labels, "labels")
        if len(names) != len(ends) - 1 or len(set(names)) != len(names):
            raise PlanError(f"labels: must be {len(ends) - 1} different values, one for each bin; got {labels!r}")
    return Cut(node, tuple(min(max(end, -OPEN_END), OPEN_END) for end in ends), names, right)


def _edge(edge: object) -> float:
    value = plain(edge)
    return float(value) if isinstance(value, float) and math.isinf(value) else number(value, "bins")


def _interval(low: float, high: float, ends: list[float], right: bool, digits: str) -> str:
    """The bin as a string; the outermost edges belong to their bins whichever side is closed."""
    start = "(" if right and low != ends[0] else "["
    end = ")" if not right and high != ends[-1] else "]"
    return f"{start}{low:{digits}}, {high:{digits}}{end}"


def quantile_levels(q: object) -> tuple[float, ...]:
    """Levels of quantiles, from 0 to 1.

    Raises
    ------
    PlanError
        A level is outside [0, 1], or occurs twice.
    """
    listed_levels = q if isinstance(q, Iterable) and not isinstance(q, str) else [q]
    levels = tuple(number(level, "quantile") for level in listed_levels)
    if not levels or not all(0 <= level <= 1 for level in levels) or len(set(levels)) != len(levels):
        raise PlanError(f"quantile: levels must differ and lie from 0 to 1; got {q!r}; 0.5 is the median")
    return levels


def group_key_table(keys: object, by: tuple[GroupLevel, ...], schema: Schema) -> tuple[tuple[Key, ...], ...]:
    """The public keys of groups, given as a list of keys, a table, or the answer of a discovery.

    Raises
    ------
    PlanError
        A key does not have one value for each level, occurs twice, or is not a value of its column.
    """
    names = [group.name for group in by]
    answer_keys = getattr(keys, "keys", None)
    rows: Iterable[Any]
    source: Any = keys
    if is_into_dataframe(source):
        columns = public_columns(source, "keys")
        missing = [name for name in names if name not in columns]
        if missing:
            raise PlanError(f"keys: the table of keys must have the columns {names!r}; it lacks {missing!r}")
        rows = list(zip(*(columns[name] for name in names), strict=True))
    elif isinstance(answer_keys, tuple):  # an answer
        if list(source.names) != names:
            raise PlanError(f"keys: the answer must have the groups {names!r}; it has {list(source.names)!r}")
        rows = answer_keys
    elif isinstance(keys, str | bytes | Mapping | Set) or not isinstance(keys, Iterable):
        raise PlanError(f"keys: must be a list of keys, a table of keys, or the answer of .discover(); got {keys!r}")
    else:
        rows = [key if isinstance(key, tuple | list) else (key,) for key in keys]
    checked = []
    for row in rows:
        if len(row) != len(by):
            raise PlanError(f"keys: each must have {len(by)} values, one for each of {names!r}; got {row!r}")
        checked.append(tuple(_key(part, group, schema) for part, group in zip(row, by, strict=True)))
    if not checked:
        raise PlanError("keys: must hold at least one key; got none")
    if len(set(checked)) != len(checked):
        twice = next(key for key in checked if checked.count(key) > 1)
        raise PlanError(f"keys: must differ; got {twice!r} twice")
    return tuple(checked)


def _key(value: object, group: GroupLevel, schema: Schema) -> Key:
    """One part of a key, as a value of its column."""
    part, kind = constant(value, "keys"), dtype_of(group.expression, schema)
    if isinstance(kind, String):
        return text_of(part) or ""
    if isinstance(kind, Timestamp | Duration):
        raise PlanError(f"keys: {group.name!r} holds dates; group by a part of them, such as .dt.year; got {part!r}")
    possible = public_keys_of(group.expression, schema) or ()
    if part not in possible or (isinstance(part, bool) and not isinstance(kind, Boolean | Categorical)):
        shown = ", ".join(map(repr, possible[:MAX_LISTED])) + (", ..." if len(possible) > MAX_LISTED else "")
        raise PlanError(f"keys: {part!r} is not a value that {group.name!r} can have; its values are {shown}")
    return possible[possible.index(part)]


def flag(value: object, name: str) -> bool:
    """A truth value, of Python or numpy.

    Raises
    ------
    PlanError
        The value is not a truth value.
    """
    value = plain(value)
    if isinstance(value, bool):
        return value
    raise PlanError(f"{name}: must be True or False; got {value!r}")


def public_columns(table: Any, where: str) -> dict[str, list[Any]]:
    """The columns of a public table, by name.

    Raises
    ------
    PlanError
        The column names are not unique strings.
    """
    names = list(table.columns)
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise PlanError(f"{where}: the public table's column names must be unique strings; got {names!r}")
    frame = nw.from_native(table, eager_only=True)
    return {name: frame.get_column(name).to_list() for name in names}


# --- the columns of agg ----------------------------------------------------------------------------------------------

Spec = tuple[str, Expression | None, str]
"""A name, the expression (None for rows), and the verb."""


def joint_aggregation(specs: Sequence[Spec], weights: Mapping[str, float]) -> tuple[JointAggregation, ColumnsView]:
    """Several aggregations as one query: what two of them have in common is measured once, with both weights.

    A count or mean of an expression whose moments are measured is read from those, and a count from its mean.
    """
    single: dict[str, tuple[Joinable, SingleView]] = {name: aggregation_for(verb, node) for name, node, verb in specs}
    known = {aggregation for aggregation, _ in single.values()}
    totals: dict[Joinable, float] = {}
    outputs: list[tuple[str, Joinable, SingleView]] = []
    for name, (aggregation, view) in single.items():
        node = getattr(aggregation, "column", None)
        if node is not None and isinstance(aggregation, Mean | Count) and Moments((node,)) in known:
            view = MomentsView("mean" if isinstance(aggregation, Mean) else "count")
            aggregation = Moments((node,))
        elif node is not None and isinstance(aggregation, Count) and Mean(node) in known:
            aggregation, view = Mean(node), MeanCountView()
        totals[aggregation] = totals.get(aggregation, 0.0) + weights.get(name, 1.0)
        outputs.append((name, aggregation, view))
    order = sorted(totals, key=lambda aggregation: msgspec.json.encode(aggregation, order="deterministic"))
    min_weight = min(totals.values())
    parts = tuple(WeightedAggregation(aggregation, totals[aggregation] / min_weight) for aggregation in order)
    return JointAggregation(parts), ColumnsView(
        tuple(NamedColumn(name, order.index(aggregation), view) for name, aggregation, view in outputs)
    )


def aggregation_for(verb: str, node: Expression | None, *, ddof: object = 1) -> tuple[Joinable, SingleView]:
    """The aggregation that a verb measures, and the view that reads its output.

    Raises
    ------
    PlanError
        There is no such verb, or it needs a column and has none.
    """
    if node is None:
        if verb == "count":
            return Count(), PlainView()
        if verb == "units":
            return CountUnits(), PlainView()
    elif verb == "count":
        return Count(node), PlainView()
    elif verb == "sum":
        return Sum(node), PlainView()
    elif verb == "mean":
        return Mean(node), PlainView()
    elif verb in OF_MOMENTS:
        return Moments((node,)), MomentsView(verb, ddof=checked_ddof(ddof))
    elif verb in EXTREMES:
        return QuantileTree(node), QuantilesView((EXTREMES[verb],), single=True)
    known = ["count", "sum", "mean", *OF_MOMENTS, *EXTREMES]
    of = "rows" if node is None else words(node)
    raise PlanError(
        f"agg: {verb!r} of {of} is not offered; write n='count' or n='units' for rows, or x=('column', verb) with one "
        f"of {', '.join(map(repr, known))}"
    )


def literal(value: object, where: str) -> Literal:
    """A constant as a node."""
    return Literal(constant(value, where))
