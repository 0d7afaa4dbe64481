"""A count of rows as an analyst would type it."""

from __future__ import annotations

from collections.abc import Sequence

from dpnb._plan.expressions.nodes import And, Column, Compare, Expression, IsIn, IsNull, Literal, Not, Or
from dpnb._plan.expressions.text import MAX_LISTED, as_code, words
from dpnb._plan.measurements import Count, CountUnits
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import NO_LIMITS
from dpnb.schema import Key

SESSION = "session"
"""The name of the session in code that is shown, as in the documentation."""


def count_code(plan: Plan, keys: Sequence[tuple[Key, ...]] | None = None) -> str | None:
    """Code that makes the query of a plan that counts, for example ``session.frame.groupby('g')['x'].count()``.

    None for rows that take more than a line: joins, parts, limits, given or many keys, and computed columns.  `keys`
    are the groups that are counted, instead of those of the plan.
    """
    counted = plan.aggregation
    if not isinstance(counted, Count | CountUnits) or not isinstance(plan.source, str):
        return None
    column = counted.column if isinstance(counted, Count) else None
    groups = [group.expression for group in plan.group_by]
    columns = [*groups, *([] if column is None else [column])]
    if (
        plan.group_keys is not None if keys is None else len(keys) > MAX_LISTED
    ) or plan.contribution_bounds != NO_LIMITS:
        return None
    if not all(isinstance(node, Column) for node in columns) or not (plan.where is None or _is_code(plan.where)):
        return None
    frame = f"{SESSION}.table({plan.source!r})" if plan.source else f"{SESSION}.frame"
    selected = frame if plan.where is None else f"{frame}[{as_code(plan.where, frame)}]"
    if groups:
        labels = [words(node) for node in groups]
        by = repr(labels[0] if len(labels) == 1 else labels)
        listed = None if keys is None else [key[0] if len(key) == 1 else key for key in keys]
        selected += f".groupby({by})" if listed is None else f".groupby({by}, keys={listed!r})"
    if isinstance(counted, CountUnits):
        return f"{selected}.count_units()"
    return f"{selected}.count()" if column is None else f"{selected}[{words(column)!r}].count()"


def _is_code(node: Expression) -> bool:
    """Whether the text of a condition is valid code."""
    match node:
        case Column() | Literal():
            return True
        case Compare(_, left, right) | And(left, right) | Or(left, right):
            return _is_code(left) and _is_code(right)
        case Not(inner) | IsNull(inner):
            return _is_code(inner)
        case IsIn(inner, values):
            return _is_code(inner) and len(values) <= MAX_LISTED
    return False
