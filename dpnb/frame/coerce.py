"""Validation of an analyst's arguments, and their conversion to parts of a plan; also the names of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from typing import Literal as TypingLiteral

import msgspec

from dpnb._plan.constants import constant, number
from dpnb._plan.description import title_of_description
from dpnb._plan.expressions.dtypes import Boolean, Categorical
from dpnb._plan.expressions.nodes import AsNumber, Compare, Expression, Literal
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import as_operand, words
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
from dpnb._plan.unreleased import did_you_mean
from dpnb.errors import PlanError, UnsupportedError
from dpnb.schema import Schema, whole_number

# --- the names of columns ---------------------------------------------------------------------------------------------


class ColumnNames(list[str]):
    """The names of a frame's columns."""

    def tolist(self) -> list[str]:
        """The names as a list, as in pandas; also ``to_list``."""
        return list(self)

    to_list = tolist

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            raise UnsupportedError(
                f".{name} of the names of columns: is not offered, since they are a list; use "
                "pandas.Index(df.columns), which has all methods of pandas"
            )


# --- validation of an analyst's arguments -----------------------------------------------------------------------------


SPECIAL = frozenset(".^$*+?{}[]\\|()")
"""Characters with a meaning in a regular expression."""

Ddof = TypingLiteral[0, 1]


def checked_ddof(ddof: object) -> int:
    """What is subtracted from the count in the divisor of a variance: 0 or 1."""
    number = whole_number(ddof)
    if number not in (0, 1):
        raise PlanError(f"ddof: must be 0 (divide by the count) or 1 (by the count less 1); got {ddof!r}; 1 is usual")
    return number


def literal(value: object, where: str) -> Literal:
    """A constant as a node."""
    return Literal(constant(value, where))


def as_number(node: Expression, schema: Schema) -> Expression:
    """An expression as a number: a condition counts as 1 or 0, and categories that are numbers as themselves."""
    node = as_condition(node, schema)
    kind = dtype_of(node, schema)
    counts = isinstance(kind, Boolean) or (isinstance(kind, Categorical) and kind.numeric)
    return AsNumber(node) if counts and not isinstance(node, Literal) else node


def as_condition(node: Expression, schema: Schema) -> Expression:
    """An expression where pandas takes truth values: a column with the categories True and False is a condition."""
    kind = dtype_of(node, schema)
    if isinstance(kind, Categorical) and True in kind.values and all(isinstance(value, bool) for value in kind.values):
        return Compare("==", node, Literal(True))
    return node


def quantile_levels(q: object) -> tuple[float, ...]:
    """Levels of quantiles, from 0 to 1, each once."""
    listed_levels = q if isinstance(q, Iterable) and not isinstance(q, str) else [q]
    levels = tuple(number(level, "quantile") for level in listed_levels)
    if not levels or not all(0 <= level <= 1 for level in levels) or len(set(levels)) != len(levels):
        raise PlanError(f"quantile: levels must differ and lie from 0 to 1; got {q!r}; 0.5 is the median")
    return levels


def text_argument(value: object, method: str) -> str:
    """An argument of a method of ``.str`` that is a text."""
    text = constant(value, method) if isinstance(value, str) else None
    if not isinstance(text, str):
        raise PlanError(f".str.{method}: takes a text; got {value!r}")
    return text


def text_arguments(value: object, method: str) -> list[str]:
    """An argument that is a text, or a tuple of several."""
    several = value if isinstance(value, tuple) and value else [value]
    return [text_argument(one, method) for one in several]


def literal_text(value: object, method: str, node: Expression, *, regex: object, flags: object = 0) -> str:
    """A text that a method of ``.str`` of a column is to find literally."""
    text = text_argument(value, method)
    special = sorted(SPECIAL & set(text))
    if regex is False or not (special or flags):
        return text
    parts = [part for part in text.split("|") if part]
    written = f"{as_operand(node)}.str.{method}"
    remedy = f"write {written}({text!r}, regex=False) for this text literally"
    if method == "contains" and len(parts) > 1 and not any(SPECIAL & set(part) for part in parts):
        remedy = f"write {' | '.join(f'{written}({part!r})' for part in parts)}"
    raise UnsupportedError(
        f"{words(node)}.str.{method}({text!r}): is a regular expression, and only literal texts are found; {remedy}"
    )


def position(value: object) -> int | None:
    """A position in a text; None for none."""
    index = whole_number(value)
    if index is None and value is not None:
        raise PlanError(f".str[...]: takes whole numbers; got {value!r}")
    return index


# --- aggregations and their views -------------------------------------------------------------------------------------


EXTREMES = {"min": 0.0, "median": 0.5, "max": 1.0}
"""The quantiles that are aggregations by name, with their levels."""

OF_MOMENTS = ("var", "std")

Spec = tuple[str, Expression | None, str | float]
"""A name, the expression (None for rows), and the verb; a number is the level of a quantile."""


def joint_aggregation(
    specs: Sequence[Spec], weights: Mapping[str, float], *, ddof: object = 1
) -> tuple[JointAggregation, ColumnsView]:
    """Several aggregations as one query: what two of them have in common is measured once, with both weights.

    A count or mean of an expression whose moments are measured is read from those, and a count from its mean.
    """
    single: dict[str, tuple[Joinable, SingleView]] = {
        name: aggregation_for(verb, node, ddof=ddof) for name, node, verb in specs
    }
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


def aggregation_for(verb: str | float, node: Expression | None, *, ddof: object = 1) -> tuple[Joinable, SingleView]:
    """The aggregation that a verb measures, and the view that reads its output."""
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
    elif isinstance(verb, float):
        return QuantileTree(node, graded=True), QuantilesView((verb,), single=True)
    elif verb in EXTREMES:
        return QuantileTree(node, graded=True), QuantilesView((EXTREMES[verb],), single=True)
    known = ["count", "sum", "mean", *OF_MOMENTS, *EXTREMES]
    of = "rows" if node is None else words(node)
    raise PlanError(
        f"agg: {verb!r} of {of} is not offered{did_you_mean(verb, known)}; write n='count' or n='units' for rows, or "
        f"x=('column', verb) with one of {', '.join(map(repr, known))}"
    )


def description_of(node: Expression) -> tuple[JointAggregation, ColumnsView]:
    """Count, mean, `std`, extremes and quartiles of a number: half of the charge for moments, half for quantiles."""
    columns = [NamedColumn(name, 0, MomentsView(name)) for name in ("count", "mean")]
    columns.append(NamedColumn("std", 0, MomentsView("std", ddof=1)))
    columns.append(NamedColumn("min", 1, QuantilesView((EXTREMES["min"],), single=True)))
    columns += [NamedColumn(f"{round(100 * q)}%", 1, QuantilesView((q,), single=True)) for q in (0.25, 0.5, 0.75)]
    columns.append(NamedColumn("max", 1, QuantilesView((EXTREMES["max"],), single=True)))
    return (
        JointAggregation((WeightedAggregation(Moments((node,))), WeightedAggregation(QuantileTree(node, graded=True)))),
        ColumnsView(tuple(columns), title_of_description((node,))),
    )
