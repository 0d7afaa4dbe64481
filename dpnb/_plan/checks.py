"""The check of a plan against the schema, before anything is compiled, charged or read.

A plan may come from the methods of a frame, from a ledger, or from a client that wrote it by hand.  All are checked by
the same function, which does not rely on what frames can produce: evaluation of a plan that passes ends, whatever the
rows are, and raises nothing that depends on them.
"""

from __future__ import annotations

from dpnb._plan.expressions.dtypes import Boolean, Categorical, Duration, String, Timestamp
from dpnb._plan.expressions.rules import dtype_of, numeric_dtype_of, public_keys_of
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import (
    Count,
    Discovery,
    Gradient,
    Mean,
    ModelLoss,
    Moments,
    QuantileTree,
    Ratio,
    Single,
    Sum,
    weighted_parts,
)
from dpnb._plan.plan import GroupLevel, Plan, group_keys
from dpnb._plan.regression import check_gradient
from dpnb._plan.schema import Key, Schema
from dpnb._plan.structure import check_structure
from dpnb.errors import PlanError


def check_plan(plan: Plan, schema: Schema) -> None:
    """Refuse a plan that is undefined or unbounded under the schema, or that `check_structure` refuses."""
    check_structure(plan)
    for aggregation, _ in weighted_parts(plan.aggregation):
        _check_aggregation(aggregation, schema)
    if isinstance(plan.aggregation, Gradient) and (plan.group_by or plan.contribution_bounds.max_norm is not None):
        raise PlanError(
            f"{plan.words}: a gradient cannot be grouped, and clip_norm= already bounds each unit's norm; leave out "
            "groups and max_norm_per_unit=, or filter the rows by df[...]"
        )
    names = [group.name for group in plan.group_by]
    for name in names:
        if names.count(name) > 1:
            raise PlanError(
                f"{plan.words}: groups must have different names; got {name!r} twice; rename one with .assign()"
            )
    if isinstance(plan.aggregation, Discovery):
        for group in plan.group_by:
            public_keys_of(group.expression, schema)
    elif plan.group_by:
        group_keys(plan, schema)
        if plan.group_keys is not None:
            _check_keys(plan.group_by, plan.group_keys, schema)
    check_filter(plan, schema)


def check_filter(plan: Plan, schema: Schema) -> None:
    """Refuse a plan whose filter is undefined under the schema or is not a condition."""
    if plan.where is not None and not isinstance(dtype_of(plan.where, schema), Boolean):
        raise PlanError(f"{words(plan.where)}: rows must be filtered by a condition, such as df['x'] > 1")


def _check_keys(by: tuple[GroupLevel, ...], keys: tuple[tuple[Key, ...], ...], schema: Schema) -> None:
    """Refuse keys that are not values of their level; their number and form are checked before."""
    for index, group in enumerate(by):
        kind = dtype_of(group.expression, schema)
        given = {key[index] for key in keys}
        if isinstance(kind, Timestamp | Duration):
            raise PlanError(f"keys: {group.name!r} holds dates; group by a part of them, such as .dt.year")
        if isinstance(kind, String):
            possible = all(isinstance(part, str) for part in given)
        else:
            possible = given <= set(public_keys_of(group.expression, schema) or ())
            if not isinstance(kind, Boolean | Categorical):
                possible = possible and not any(isinstance(key[index], bool) for key in keys)
        if not possible:
            raise PlanError(f"keys: each must be a value that {group.name!r} can have; got another; see its schema")


def _check_aggregation(aggregation: Single | Discovery, schema: Schema) -> None:
    match aggregation:
        case Count(node) if node is not None:
            dtype_of(node, schema)
        case Ratio(node, denominator):
            for side in (node, denominator):
                numeric_dtype_of(side, schema, "ratio")
        case Moments(columns, categories):
            for node in columns:
                numeric_dtype_of(node, schema, "moments")
            for node in categories:
                if len(public_keys_of(node, schema) or ()) < 2:
                    raise PlanError(f"regress: {words(node)} must have at least two public values; leave it out")
        case Gradient() | ModelLoss():
            check_gradient(aggregation, schema)
        case Sum(node) | Mean(node) | QuantileTree(node):
            numeric_dtype_of(node, schema, {Sum: "sum", Mean: "mean", QuantileTree: "quantiles"}[type(aggregation)])
