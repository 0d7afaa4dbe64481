"""Conditions that leave out rows with missing values where pandas keeps them.

A comparison with a missing value is neither true nor false here, so its row does not count, negated or not.  In pandas
it is false, and ``!=`` is true, so ``!=``, ``~`` and ``not in`` keep rows there that do not count here.
Which columns have missing values is private: what is found follows from the plan alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpnb._plan.expressions.nodes import (
    And,
    Column,
    Compare,
    Expression,
    IsIn,
    IsNull,
    MatchText,
    Node,
    Not,
    Or,
    arguments,
    nodes_of,
)
from dpnb._plan.expressions.rules import RULES
from dpnb._plan.expressions.text import as_code, as_operand, words
from dpnb._plan.plan import Plan

CONDITIONS = (And, Or, Not, Compare, IsIn, MatchText, IsNull)

MAX_SAID = 4
"""Number of conditions of a query that are listed."""

Terms = frozenset[Expression]
"""Expressions any of which may be missing."""

NONE: Terms = frozenset()


def describe_left_out(plan: Plan, required: Iterable[Expression]) -> str | None:
    """The conditions of a plan that leave out rows which pandas keeps, and what keeps them here too; None for none.

    A row in which one of `required` is missing does not count in pandas either.
    """
    found = left_out(plan, required)
    if not found:
        return None
    (condition, terms), *others = found.items()
    kept = " | ".join([as_operand(condition), *(f"{as_operand(term)}.isna()" for term in terms)])
    text = (
        f"rows where {' or '.join(map(words, terms))} is missing do not count in {as_code(condition)}, unlike in "
        f"pandas; write {kept} to count them"
    )
    listed = [as_code(other) for other, _ in others[: MAX_SAID - 1]]
    more = [f"{len(others) - len(listed)} more"] if len(others) > len(listed) else []
    return f"{text}; likewise in {' and '.join([*listed, *more])}" if others else text


def left_out(plan: Plan, required: Iterable[Expression]) -> dict[Expression, list[Expression]]:
    """The conditions that leave out rows which pandas keeps, with the expressions of which one is missing there."""
    found: dict[Expression, list[Expression]] = {}
    if not [node for node in nodes_of(plan) if isinstance(node, Not) or getattr(node, "operator", None) == "!="]:
        return found
    counted = missing_in([*required, *(level.expression for level in plan.group_by)])
    _search(plan.where, counted, found)
    known = NONE if plan.where is None else _known(plan.where, negated=False, conjunction=True)
    _search((plan.aggregation, plan.group_by), known, found)
    _search(plan.source, NONE, found)
    return found


def missing_in(nodes: Iterable[Expression]) -> Terms:
    """Expressions any of which, if it is missing, makes one of these missing in pandas too."""
    found = NONE
    for node in nodes:
        if isinstance(node, Column):
            found |= {node}
        elif not isinstance(node, CONDITIONS):  # which pandas has as true or false in every row
            nulls = RULES[type(node)].nulls
            found |= {node} if nulls == "special" else missing_in(arguments(node)) if nulls == "any" else NONE
    return found


def _search(part: object, known: Terms, found: dict[Expression, list[Expression]]) -> None:
    """Find the conditions in a part of a plan, in rows in which none of `known` is missing."""
    seen: set[int] = set()
    for node in nodes_of(part):
        if isinstance(node, CONDITIONS) and id(node) not in seen:
            _search_condition(node, False, known, found, seen)


def _search_condition(
    node: Node, negated: bool, known: Terms, found: dict[Expression, list[Expression]], seen: set[int]
) -> None:
    seen.add(id(node))
    if isinstance(node, Not):
        _search_condition(node.inner, not negated, known, found, seen)
    elif isinstance(node, And | Or):
        conjunction = isinstance(node, And) != negated
        for side, other in ((node.left, node.right), (node.right, node.left)):
            _search_condition(side, negated, known | _known(other, negated, conjunction), found, seen)
    elif not isinstance(node, IsNull) and _is_kept(node, negated):
        terms = missing_in(arguments(node)) - known
        if terms:
            condition: Expression = Not(node) if negated else node  # type: ignore[arg-type,assignment]
            found.setdefault(condition, sorted(terms, key=words))


def _known(node: Expression, negated: bool, conjunction: bool) -> Terms:
    """What is not missing in the rows that another condition decides, beside this one.

    In a conjunction the rows for which this one is true in pandas; in a disjunction, where `isna` counts the others.
    """
    while isinstance(node, Not):
        node, negated = node.inner, not negated
    if isinstance(node, And | Or):
        same = (isinstance(node, And) != negated) == conjunction
        return _known(node.left, negated, conjunction) | _known(node.right, negated, conjunction) if same else NONE
    if isinstance(node, IsNull):
        return missing_in([node.inner]) if negated == conjunction else NONE
    return missing_in(arguments(node)) if conjunction and not _is_kept(node, negated) else NONE


def _is_kept(node: Node, negated: bool) -> bool:
    """Whether pandas has a comparison, or its negation, as true where a value is missing."""
    return (isinstance(node, Compare) and node.operator == "!=") != negated
