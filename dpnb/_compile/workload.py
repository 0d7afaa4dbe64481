"""Several queries about the same rows as tables over subsets of the same group levels: see `dpnb._compile.marginals`.

Tables add up only if every row counts in each of them.  A row without a declared value of some level is in no group of
that level, but in the total.  So the queries of a workload count the *complete rows*: those that have a group at every
level that any of the queries uses.  For a level whose expression is never missing this is no condition; otherwise it
is added to the filter of the tables without that level, which are then the queries of exactly these rows.

For the same reason, which rows of a unit count must not depend on the groups: a workload of several tables is refused
where a unit's groups, its rows in a group or its norm are limited.  A limit on the rows of a unit selects them before
any filter, so it is the same for every table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import msgspec
from msgspec.structs import replace

from dpnb._compile.marginals import Levels
from dpnb._compile.sensitivity import LinearQuery
from dpnb._plan.expressions.nodes import And, Column, Expression, IsIn, IsNull, Not, arguments, conjuncts
from dpnb._plan.expressions.rules import RULES, public_keys_of
from dpnb._plan.expressions.text import words
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import (
    Count,
    CountUnits,
    CumulativeCount,
    Discovery,
    Gradient,
    Measured,
    ModelLoss,
    ScoreSums,
    UnitProducts,
    weighted_parts,
)
from dpnb._plan.plan import GroupLevel, Plan
from dpnb.errors import PlanError
from dpnb.schema import Key, Schema

NOT_ADDITIVE = (CumulativeCount, CountUnits, Discovery, Gradient, ModelLoss)
"""Aggregations whose groups do not add up, or that are not tables of sums of rows."""


@dataclass(frozen=True)
class KeyedLevel:
    """A group level with its public keys."""

    level: GroupLevel  # with the name in the first query that uses it
    keys: tuple[Key, ...]
    is_listed: bool  # by the analyst, so that a row may have another value

    @property
    def condition(self) -> Expression | None:
        """The condition that a row has a group at this level; None if every row has one."""
        node = self.level.expression
        if self.is_listed:
            return IsIn(node, self.keys)
        return Not(IsNull(node)) if _can_be_missing(node) else None


@dataclass(frozen=True)
class Measure:
    """The tables of a workload that have the same aggregation."""

    aggregation: Measured
    # the requested tables: the indices of their levels, ascending, and their queries of complete rows
    tables: dict[Levels, Plan]


@dataclass(frozen=True)
class Workload:
    """Queries about the same rows."""

    levels: tuple[KeyedLevel, ...]
    queries: tuple[Plan, ...]  # of complete rows, in the order of the request
    measures: tuple[Measure, ...]  # the distinct tables, by aggregation
    rows: Plan  # the first query as requested, with the filter that all queries have

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of keys of each level."""
        return tuple(len(level.keys) for level in self.levels)

    def positions(self, plan: Plan) -> Levels:
        """The indices of the levels of a query, in its own order."""
        expressions = [level.level.expression for level in self.levels]
        return tuple(expressions.index(group.expression) for group in plan.group_by)

    def table(self, measure: Measure, levels: Levels) -> Plan:
        """The query of a table: as requested, or with the levels in ascending order."""
        requested = measure.tables.get(levels)
        if requested is not None:
            return requested
        groups = tuple(self.levels[index].level for index in levels)
        return self.complete(replace(self.rows, aggregation=measure.aggregation, group_by=groups, group_keys=None))

    def complete(self, plan: Plan) -> Plan:
        """A query, of the complete rows only."""
        own = self.positions(plan)
        where = plan.where
        conditions = [level.condition for index, level in enumerate(self.levels) if index not in own]
        # In an order that does not depend on that of the queries: the same batch in another order has the same tables.
        for condition in sorted([one for one in conditions if one is not None], key=msgspec.json.encode):
            where = condition if where is None else And(where, condition)
        keys = plan.group_keys
        if keys is None and any(self.levels[index].is_listed for index in own):
            keys = tuple(product(*(self.levels[index].keys for index in own)))
        return replace(plan, where=where, group_keys=keys)


def workload_of(plans: Sequence[Plan], schema: Schema) -> Workload:
    """The workload of several queries.

    They must be about the same rows of one table, whose columns are `schema`.
    """
    first = plans[0]
    for plan in plans:
        refuse_not_additive(plan)
        if len({group.expression for group in plan.group_by}) < len(plan.group_by):
            raise PlanError(
                f"plan: the {plan.words} groups twice by the same values, under two names; group by each of them once"
            )
        if _rows_of(plan) != _rows_of(first):
            raise PlanError(
                f"plan: the queries of a batch must be about the same rows; the {plan.words} has another table, filter "
                f"or bound_contributions() than the {first.words}; plan the queries of each selection separately"
            )
    levels = levels_of(plans, schema)
    draft = Workload(levels, (), (), first)
    queries = tuple(draft.complete(plan) for plan in plans)
    measures: dict[str, Measure] = {}
    for plan in queries:
        key = query_key(Plan(plan.aggregation))
        measure = measures.setdefault(key, Measure(plan.aggregation, {}))
        known = measure.tables.setdefault(tuple(sorted(draft.positions(plan))), plan)
        if known != plan:
            raise PlanError(
                f"plan: the {plan.words} has the groups of the {known.words}; request it once, and rearrange its answer"
            )
    return Workload(levels, queries, tuple(measures.values()), first)


def refuse_different_vectors(queries: Sequence[LinearQuery]) -> None:
    """Refuse tables in which a row or a unit does not add the same numbers to each."""
    for query in queries if len(queries) > 1 else ():
        limits = query.contribution_bounds
        if limits.max_groups is not None or limits.max_rows_per_group is not None or query.clip_squared is not None:
            raise PlanError(
                f"plan: the {query.plan.words} limits the groups, the rows in a group or the norm of a unit, so that "
                "different rows would count in different tables; bound units by max_rows_per_unit= alone, or release "
                "the queries separately"
            )
        same = query.features, query.l2_sensitivity_squared
        if same != (queries[0].features, queries[0].l2_sensitivity_squared):  # never true under a limit on rows alone
            raise PlanError(f"plan: the {query.plan.words} cannot share a batch; release it separately")


def complete_rows_of(plan: Plan, schema: Schema) -> str:
    """The rows that count in some group of a query, as a text: tables with the same text add up to each other.

    Refuses groups that are not all combinations of the keys of each level.
    """
    conditions = [*conjuncts(plan.where), *(level.condition for level in levels_of([plan], schema))]
    rows = {_rows_of(replace(plan, where=condition)) for condition in conditions if condition is not None}
    return " ".join(sorted(rows) or [_rows_of(plan)])


def refuse_not_additive(plan: Plan) -> None:
    """Refuse an aggregation whose groups do not add up."""
    for aggregation, _ in weighted_parts(plan.aggregation):
        of_units = isinstance(aggregation, UnitProducts | ScoreSums) and aggregation.max_rows > 1
        if of_units or isinstance(aggregation, NOT_ADDITIVE):
            raise PlanError(
                f"plan: the groups of the {plan.words} do not add up, so one table cannot be used for another; release "
                "it separately"
            )


def levels_of(plans: Sequence[Plan], schema: Schema) -> tuple[KeyedLevel, ...]:
    """The levels of several queries with their keys, which must be the same in all, and all combinations of them."""
    levels: dict[Expression, KeyedLevel] = {}
    for plan in plans:
        for index, group in enumerate(plan.group_by):
            if plan.group_keys is None:
                keys = public_keys_of(group.expression, schema) or ()
            else:
                keys = tuple(dict.fromkeys(key[index] for key in plan.group_keys))
            level = KeyedLevel(group, keys, plan.group_keys is not None)
            known = levels.setdefault(group.expression, level)
            if (known.keys, known.is_listed) != (level.keys, level.is_listed):
                raise PlanError(
                    f"plan: the groups of {words(group.expression)} must be the same in all queries of a batch; the "
                    f"{plan.words} has others; give the same keys= to each groupby"
                )
        if plan.group_keys is not None:
            own = [levels[group.expression].keys for group in plan.group_by]
            if len(plan.group_keys) != math.prod(map(len, own)) or plan.group_keys != tuple(product(*own)):
                raise PlanError(
                    f"plan: the groups of the {plan.words} must be all combinations of the keys of each level, in "
                    "order; release it separately"
                )
    return tuple(levels.values())


def _rows_of(plan: Plan) -> str:
    """The rows that a query counts, however they were written."""
    return query_key(Plan(Count(), where=plan.where, contribution_bounds=plan.contribution_bounds, source=plan.source))


def _can_be_missing(node: Expression) -> bool:
    """Whether an expression may be missing in some row."""
    if isinstance(node, Column):
        return True
    match RULES[type(node)].nulls:
        case "never":
            return False
        case "any":
            return any(map(_can_be_missing, arguments(node)))
    return True
