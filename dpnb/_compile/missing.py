"""Conditions that leave out rows with missing values where pandas keeps them.

A comparison with a missing value is neither true nor false here, so its row does not count, negated or not.  In pandas
it is false, and ``!=`` is true, so ``!=``, ``~`` and ``not in`` keep rows there that do not count here.  Where the
values of a condition are counted, as in a share or by groups, those that are false count too, so every comparison
leaves out rows; not in a filter or a sum.
Which columns have missing values is private: what is found follows from the plan alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dpnb._plan.expressions.nodes import (
    CONDITIONS,
    And,
    AsNumber,
    Column,
    Compare,
    Expression,
    FillNull,
    IsIn,
    IsNull,
    MatchText,
    Node,
    Not,
    OnlyWhere,
    Or,
    arguments,
    nodes_of,
)
from dpnb._plan.expressions.rules import RULES
from dpnb._plan.expressions.text import as_code, as_operand, words
from dpnb._plan.measurements import Sum, statistic_of, weighted_parts
from dpnb._plan.plan import Plan

MAX_SAID = 4
"""Number of conditions of a query that are listed."""

Terms = frozenset[Expression]
"""Expressions any of which may be missing."""

ConditionTerms = dict[Expression, list[Expression]]
"""Conditions that leave out rows, with the expressions of which one is missing there."""

NONE: Terms = frozenset()


class LeftOut(NamedTuple):
    """What is said of the rows that a plan leaves out and pandas keeps; None for nothing."""

    words: str | None = None  # the conditions, and what keeps the rows here too
    caption: str | None = None


def describe_left_out(plan: Plan, required: Iterable[Expression]) -> LeftOut:
    """The conditions of a plan that leave out rows which pandas keeps, in words.

    A row in which one of `required` is missing does not count in pandas either.
    """
    required = tuple(required)
    negated, counted = left_out(plan, required), left_out_of_values(plan, required)
    if not negated and not counted:
        return LeftOut()
    texts = []
    if negated:
        condition, terms = next(iter(negated.items()))
        kept = " | ".join([as_operand(condition), *(f"{as_operand(term)}.isna()" for term in terms)])
        texts.append(_described(negated, f"write {kept} to count them"))
    if counted:
        kept = f"{as_operand(next(iter(counted)))}.fillna(False)"
        texts.append(_described(counted, f"write {kept} to count them as false"))
    names = [*dict.fromkeys(words(term) for found in (negated, counted) for terms in found.values() for term in terms)]
    more = f" or {len(names) - MAX_SAID} more" if len(names) > MAX_SAID else ""
    which = f"{' or '.join(names[:MAX_SAID])}{more}"
    return LeftOut("; ".join(texts), f"rows where {which} is missing are not counted, unlike in pandas")


def _described(found: ConditionTerms, remedy: str) -> str:
    (condition, terms), *others = found.items()
    text = (
        f"rows where {' or '.join(map(words, terms))} is missing do not count in {as_code(condition)}, unlike in "
        f"pandas; {remedy}"
    )
    listed = [as_code(other) for other, _ in others[: MAX_SAID - 1]]
    more = [f"{len(others) - len(listed)} more"] if len(others) > len(listed) else []
    return f"{text}; likewise in {' and '.join([*listed, *more])}" if others else text


def left_out_of_values(plan: Plan, required: Iterable[Expression]) -> ConditionTerms:
    """The comparisons, false in pandas where a value is missing, that leave out rows because their values count."""
    found: ConditionTerms = {}
    conditions = [*_counted_conditions(plan)]
    if conditions:
        counted = missing_in([*required, *(level.expression for level in plan.group_by)])
        known = counted | (NONE if plan.where is None else _known(plan.where, negated=False, conjunction=True))
        for condition in conditions:
            _search_value(condition, False, known, found)
    return found


def _counted_conditions(plan: Plan) -> Iterator[Node]:
    """The conditions of a plan that count where they are false, too: all but those of a filter or a sum."""
    parts = [part for part, _ in weighted_parts(statistic_of(plan.aggregation))]
    nodes = nodes_of((parts, plan.group_by))
    if not [node for node in nodes if isinstance(node, CONDITIONS)]:
        return
    only_true = [part.column for part in parts if isinstance(part, Sum)]
    only_true = [node.inner if isinstance(node, AsNumber) else node for node in only_true]
    only_true += [node.condition for node in nodes if isinstance(node, OnlyWhere)]
    passed = {id(node) for node in only_true} | {id(node.inner) for node in nodes if isinstance(node, FillNull)}
    for node in nodes:
        if isinstance(node, CONDITIONS):
            if id(node) not in passed:
                yield node
            passed |= {id(argument) for argument in arguments(node)}


def _search_value(node: Node, negated: bool, known: Terms, found: ConditionTerms) -> None:
    if isinstance(node, Not):
        _search_value(node.inner, not negated, known, found)
    elif isinstance(node, And | Or):
        conjunction = isinstance(node, And) != negated
        for side, other in ((node.left, node.right), (node.right, node.left)):
            _search_value(side, negated, known | _known(other, negated, conjunction, only_null=True), found)
    elif isinstance(node, Compare | IsIn | MatchText) and not _is_kept(node, negated):
        terms = missing_in(arguments(node)) - known
        if terms:
            condition: Expression = Not(node) if negated else node
            found.setdefault(condition, sorted(terms, key=words))


def left_out(plan: Plan, required: Iterable[Expression]) -> ConditionTerms:
    """The conditions that leave out rows which pandas keeps, with the expressions of which one is missing there."""
    found: ConditionTerms = {}
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


def _search(part: object, known: Terms, found: ConditionTerms) -> None:
    """Find the conditions in a part of a plan, in rows in which none of `known` is missing."""
    seen: set[int] = set()
    for node in nodes_of(part):
        if isinstance(node, CONDITIONS) and id(node) not in seen:
            _search_condition(node, False, known, found, seen)


def _search_condition(node: Node, negated: bool, known: Terms, found: ConditionTerms, seen: set[int]) -> None:
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


def _known(node: Expression, negated: bool, conjunction: bool, *, only_null: bool = False) -> Terms:
    """What is not missing in the rows that another condition decides, beside this one.

    In a conjunction the rows for which this one is true in pandas; in a disjunction, where `isna` counts the others.
    With `only_null` by `isna` and `notna` alone, which are true or false in every row.
    """
    while isinstance(node, Not):
        node, negated = node.inner, not negated
    if isinstance(node, And | Or):
        same = (isinstance(node, And) != negated) == conjunction
        sides = (_known(side, negated, conjunction, only_null=only_null) for side in (node.left, node.right))
        return NONE.union(*sides) if same else NONE
    if isinstance(node, IsNull):
        return missing_in([node.inner]) if negated == conjunction else NONE
    return missing_in(arguments(node)) if conjunction and not only_null and not _is_kept(node, negated) else NONE


def _is_kept(node: Node, negated: bool) -> bool:
    """Whether pandas has a comparison, or its negation, as true where a value is missing."""
    return (isinstance(node, Compare) and node.operator == "!=") != negated
