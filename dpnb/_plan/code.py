"""A count of rows as an analyst would type it, for messages that propose one."""

from __future__ import annotations

from dpnb._plan.expressions.nodes import And, Column, Compare, Expression, IsIn, IsNull, Literal, Not, Or
from dpnb._plan.expressions.text import MAX_LISTED, as_code, words
from dpnb._plan.measurements import Count
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import ContributionBounds

SESSION = "session"
"""The name of the session in code that is shown, as in the documentation."""


def count_code(plan: Plan) -> str | None:
    """Code that makes the query of a plan that counts rows, for example ``session.frame.groupby('g')['x'].count()``.

    None for rows that take more than a line: joins, parts, limits, given keys, and computed columns.

    Parameters
    ----------
    plan : Plan
        A plan whose aggregation is a `Count`.
    """
    counted = plan.aggregation
    if not isinstance(counted, Count) or not isinstance(plan.source, str):
        return None
    groups = [group.expression for group in plan.group_by]
    columns = [*groups, *([] if counted.column is None else [counted.column])]
    if plan.group_keys is not None or plan.contribution_bounds != ContributionBounds():
        return None
    if not all(isinstance(node, Column) for node in columns) or not (plan.where is None or _is_code(plan.where)):
        return None
    frame = f"{SESSION}.table({plan.source!r})" if plan.source else f"{SESSION}.frame"
    selected = frame if plan.where is None else f"{frame}[{as_code(plan.where, frame)}]"
    if groups:
        labels = [words(node) for node in groups]
        selected += f".groupby({labels[0]!r})" if len(labels) == 1 else f".groupby({labels!r})"
    if counted.column is None:
        return f"{selected}.count()"
    return f"{selected}[{words(counted.column)!r}].count()"


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
