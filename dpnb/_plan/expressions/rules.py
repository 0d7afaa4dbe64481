"""The rules of the nodes of an expression, in one table that every backend follows.

A rule states the argument types and the result type with its bounds (`Rule.kind`); where the result is missing
(`Rule.nulls`); and whether libraries round it differently, so that the result is clipped to its bounds
(`Rule.rounded`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from typing import Literal as OneOf

from dpnb._plan.expressions import bounds, choices, nodes, periods
from dpnb._plan.expressions.dtypes import (
    Boolean,
    Categorical,
    Dtype,
    Duration,
    Numeric,
    String,
    Timestamp,
    as_column,
    declared_dtype,
    described,
    literal_kind,
    refuse,
)
from dpnb._plan.expressions.nodes import Arithmetic, Column, Expression, Literal, Node, Round, arguments
from dpnb._plan.expressions.text import as_code, as_operand, words
from dpnb._plan.expressions.within import within
from dpnb._plan.unreleased import did_you_mean
from dpnb.errors import PlanError
from dpnb.schema import (
    ALLOWED_MAGNITUDES,
    MAX_EXACT_INTEGER,
    ColumnType,
    Key,
    Schema,
    has_allowed_magnitude,
)

MAX_KEYS = 10_000_000
"""Largest number of groups of a query."""

Nulls = OneOf["any", "never", "special"]


@dataclass(frozen=True)
class Rule:
    """The rule of a node.

    `kind` maps the node and the types of its arguments to the type of the result, or raises `PlanError`.
    """

    kind: Callable[..., Dtype]
    # Where the result is missing: ``"any"``: where any argument is missing; ``"never"``: nowhere; ``"special"``: by a
    # rule of the node.
    nulls: Nulls = "any"
    # whether libraries round the node differently, so that its result can lie just outside its bounds
    rounded: Callable[[Any], bool] = lambda node: False  # comparisons, selections and correctly rounded arithmetic


RULES: dict[type[Node], Rule] = {
    Literal: Rule(lambda node: literal_kind(node.value), "never"),
    Arithmetic: Rule(bounds.arithmetic, rounded=lambda node: node.operator in ("//", "%") or _is_power(node)),
    nodes.Clip: Rule(bounds.clip),
    nodes.Apply: Rule(bounds.apply, rounded=lambda node: node.function != "abs"),
    nodes.TextLength: Rule(bounds.text_length),
    nodes.MatchText: Rule(choices.match_text),
    nodes.ChangeCase: Rule(choices.change_case),
    Round: Rule(bounds.rounded, rounded=lambda node: True),
    nodes.ExtractDatePart: Rule(bounds.part),
    nodes.Period: Rule(periods.period),
    nodes.AsNumber: Rule(bounds.as_number),
    nodes.Seconds: Rule(bounds.seconds),
    nodes.Compare: Rule(choices.comparison),
    nodes.IsIn: Rule(choices.is_in),
    nodes.And: Rule(choices.both, "special"),  # false where one side is false
    nodes.Or: Rule(choices.both, "special"),  # true where one side is true
    nodes.Not: Rule(choices.negation),
    nodes.IsNull: Rule(lambda node, inner: Boolean(), "never"),
    nodes.FillNull: Rule(choices.fill, "never"),
    nodes.Where: Rule(choices.where, "special"),  # where the condition or the chosen value is missing
    nodes.OnlyWhere: Rule(choices.only_where, "special"),  # where the condition is not true
    nodes.Cut: Rule(choices.cut, "special"),  # also outside the bins
    nodes.Lookup: Rule(choices.lookup, "special"),  # also for a key that is not in the table
    nodes.WithinUnit: Rule(within, "special"),  # also where the unit's rows have no such value
}
"""The rules of all nodes except columns, whose types are in the schema."""


class TypedSchema(dict[str, ColumnType]):
    """A schema that keeps the types of expressions, for work on many expressions that have parts in common."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)
        self.kinds: dict[int, tuple[Expression, Dtype]] = {}  # by id; with the expression, so that its id is not reused

    def __reduce__(self) -> tuple[type[dict[str, ColumnType]], tuple[Schema]]:
        return dict, (dict(self),)  # a copy has other ids


def dtype_of(node: Expression, schema: Schema) -> Dtype:
    """The type of an expression; raises if it is not defined for every row.

    A constant or bound must be 0, or between `MIN_MAGNITUDE` and `MAX_MAGNITUDE` in absolute value.
    """
    kinds = schema.kinds if isinstance(schema, TypedSchema) else None
    if kinds is not None and (known := kinds.get(id(node))):
        return known[1]
    if isinstance(node, Column):
        kind = _column(node.name, schema)
    else:
        kind = RULES[type(node)].kind(node, *[dtype_of(argument, schema) for argument in arguments(node)])
    if isinstance(kind, Numeric) and not (has_allowed_magnitude(kind.low) and has_allowed_magnitude(kind.high)):
        refuse(
            node,
            f"its bounds must be {ALLOWED_MAGNITUDES}; got {kind.low:g} and {kind.high:g}; .clip() the parts first",
        )
    if kinds is not None:
        kinds[id(node)] = node, kind
    return kind


def numeric_dtype_of(node: Expression, schema: Schema, verb: str) -> Numeric:
    """The bounds of an expression that is to be summed; a condition counts as 1 where it is true."""
    kind = dtype_of(node, schema)
    if isinstance(kind, Boolean):
        return Numeric(0, 1, whole=True)
    if isinstance(kind, Numeric):
        return kind
    remedy = {
        Categorical: "declare it as dpnb.Bounded(low, high), or count its values with .value_counts()",
        Timestamp: "use a part of it, such as .dt.year, or subtract a date",
        Duration: "use .dt.days or .dt.total_seconds()",
    }.get(type(kind), "count its rows with .count(), or the texts that you know with .value_counts(keys=[...])")
    raise PlanError(f"{verb} of {words(node)}: needs a number, and this is {described(kind)}; {remedy}")


def is_zero_or_one(node: Expression, schema: Schema) -> bool:
    """Whether an expression is a number that is 0 or 1 in every row."""
    kind = numeric_dtype_of(node, schema, "population")
    return kind.whole and (kind.low, kind.high) == (0.0, 1.0)


def public_keys_of(node: Expression, schema: Schema) -> tuple[Key, ...] | None:
    """The public values that an expression can have, in order; None for texts.

    Raises `PlanError` if they cannot be listed.
    """
    values = _public_values(node, schema)
    return None if values is None else tuple(values)


def public_key_count(node: Expression, schema: Schema) -> int | None:
    """The number of the values of `public_keys_of`, without listing them; raises `PlanError` as it does."""
    values = _public_values(node, schema)
    return None if values is None else len(values)


def _public_values(node: Expression, schema: Schema) -> Sequence[Key] | None:
    kind = dtype_of(node, schema)
    if isinstance(kind, String):
        return None
    if isinstance(kind, Categorical):
        return kind.values
    if isinstance(kind, Boolean):
        return (False, True)
    if isinstance(kind, Numeric) and kind.whole and kind.magnitude <= MAX_EXACT_INTEGER:
        keys = range(math.ceil(kind.low), math.floor(kind.high) + 1, kind.step)
        if len(keys) <= MAX_KEYS:
            return keys
    raise PlanError(
        f"groups of {words(node)}: must be public, and this is {described(kind)}; group by {_public_parts(node, kind)}"
    )


def _public_parts(node: Expression, kind: Dtype) -> str:
    """What can be groups instead of an expression whose values are not public."""
    column = as_operand(node)
    if isinstance(kind, Timestamp):
        return f"a part of it, such as {column}.dt.month, or by a period, such as {column}.dt.to_period('M')"
    if isinstance(kind, Numeric):
        whole = isinstance(node, Column) and not kind.whole and kind.high - kind.low < MAX_KEYS
        more = ", or integer=True if its values are whole" if whole else ""
        return f"dpnb.cut({as_code(node)}, 5) or {column}.round(), or let the curator declare dpnb.Categories{more}"
    return f"a part of it, such as {column}.dt.days"


def is_never_null(node: Expression) -> bool:
    """Whether the result of the node is never missing."""
    return not isinstance(node, Column) and RULES[type(node)].nulls == "never"


def is_rounded(node: Expression) -> bool:
    """Whether libraries round the node differently, so that its result can lie just outside its bounds."""
    return not isinstance(node, Column) and RULES[type(node)].rounded(node)


def _is_power(node: Arithmetic) -> bool:
    """Whether the node is a power that is not computed as a product."""
    return node.operator == "**" and isinstance(node.right, Literal) and node.right.value not in (1, 2)


def _column(name: object, schema: Schema) -> Dtype:
    declared = schema.get(name) if isinstance(name, str) else None
    if declared is None:
        raise PlanError(
            f"column {name!r}: not in the schema{did_you_mean(name, schema)}; the columns are "
            f"{', '.join(map(repr, schema))}"
        )
    return declared_dtype(declared)


def column_type(node: Expression, schema: Schema) -> ColumnType:
    """An expression as the declaration of a column of another table; its bounds contain those of the expression."""
    return as_column(node, dtype_of(node, schema))
