"""Random plans of values within a privacy unit and of tables with rows per unit, also nested and with odd limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np

from dpnb._plan.expressions.dtypes import Boolean, Categorical, Numeric, String, Timestamp
from dpnb._plan.expressions.nodes import (
    Arithmetic,
    AsNumber,
    Clip,
    Column,
    Compare,
    Expression,
    IsNull,
    Literal,
    Not,
    Seconds,
    WithinFunction,
    WithinUnit,
)
from dpnb._plan.expressions.rules import dtype_of, public_key_count
from dpnb._plan.expressions.within import WITHIN_RULES
from dpnb._plan.join import schema_of
from dpnb._plan.measurements import (
    Count,
    CountUnits,
    DeviationProducts,
    JointAggregation,
    Mean,
    Moments,
    Sum,
    UnitProducts,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel, PerUnit, Plan, TableSource
from dpnb._plan.structure import check_structure
from dpnb.errors import PlanError
from dpnb.schema import Schema

FUNCTIONS: tuple[WithinFunction, ...] = get_args(WithinFunction)
MOST_CELLS = 50


@dataclass
class UnitPlans:
    """Draws plans for the tables of some schemas, whose units have at most `max_rows` rows."""

    schemas: dict[str, Schema]
    max_rows: int
    seed: int
    tables: tuple[str, ...] = ("",)
    chance: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.chance = np.random.default_rng(self.seed)

    def one(self, values: Any) -> Any:
        """One of some values."""
        return values[int(self.chance.integers(len(values)))]

    def some(self, values: Any, most: int) -> tuple[Any, ...]:
        """A few of some values, without repetitions."""
        number = int(self.chance.integers(0, most + 1))
        return tuple(dict.fromkeys(self.one(values) for _ in range(number if values else 0)))

    def plans(self, number: int) -> list[Plan]:
        """Plans with every function, each of them in turn."""
        return [self.plan(FUNCTIONS[place % len(FUNCTIONS)]) for place in range(number)]

    def plan(self, function: WithinFunction) -> Plan:
        """A plan that contains a function."""
        while True:
            try:
                plan = self._plan(function)
                check_structure(plan)
                return plan
            except PlanError:  # most of what is drawn has types that do not fit
                continue

    def _plan(self, function: WithinFunction) -> Plan:
        source = self.source(self.one([0, 0, 1, 2]))
        schema = schema_of(source, self.schemas)
        node = self.window(schema, function, self.one([0, 0, 1]))
        where = self.condition(schema) if self.chance.random() < 0.4 else None
        kind = dtype_of(node, schema)
        if isinstance(kind, Timestamp):
            node = Seconds(node)
        if isinstance(kind, Categorical) or (_cells(node, schema) <= MOST_CELLS and self.chance.random() < 0.5):
            number: Any = self.one([Count(), CountUnits(), *(Sum(one) for one in self.numbers(schema)[:1])])
            return Plan(number, where, (GroupLevel("level", node),), source=source)
        numbers = self.numbers(schema)
        aggregation: Any = self.one(
            [
                Sum(node),
                Mean(node),
                Count(node),
                Moments((node,)),
                JointAggregation((WeightedAggregation(Sum(node)), WeightedAggregation(Count(IsNull(node)), 0.5))),
                *(DeviationProducts((node, one), self.max_rows) for one in numbers[:1]),
                UnitProducts((node, *numbers[:1]), self.one([1, self.max_rows, 100])),
                JointAggregation(
                    (
                        WeightedAggregation(Mean(node), 9.0),
                        WeightedAggregation(UnitProducts((node,), self.one([2, self.max_rows]), squares=True)),
                    )
                ),
            ]
        )
        by = self.levels(schema) if not isinstance(aggregation, DeviationProducts) else ()
        return Plan(aggregation, where, by, source=source)

    def source(self, depth: int) -> TableSource:
        """A table, or rows per unit of one."""
        if not depth:
            return str(self.one(self.tables))
        inner = self.source(depth - 1)
        schema = schema_of(inner, self.schemas)
        while True:
            try:
                columns = [GroupLevel(name, Column(name)) for name in self.some(list(schema), 3)]
                for place in range(int(self.chance.integers(1, 4))):
                    node = self.window(schema, self.one(FUNCTIONS), 0)
                    dtype_of(node, schema)
                    columns.append(GroupLevel(f"v{depth}{place}", node))
                order = self.order(schema)
                source = PerUnit(
                    inner,
                    tuple(columns),
                    self.condition(schema) if self.chance.random() < 0.4 else None,
                    self.keys(schema),
                    order,
                    self.descending(order),
                    int(self.one([1, 1, 2, 5])),
                )
                schema_of(source, self.schemas)
                return source
            except PlanError:
                continue

    def window(self, schema: Schema, function: WithinFunction, depth: int) -> Expression:
        """A value within a unit, as one that a frame makes or one that only a client can write."""
        inner: Expression = Column(self.one(list(schema)))
        if depth:
            inner = self.window(schema, self.one(FUNCTIONS), depth - 1)
        if isinstance(dtype_of(inner, schema), Boolean):
            inner = AsNumber(inner)
        if isinstance(dtype_of(inner, schema), Numeric) and self.chance.random() < 0.3:
            inner = Arithmetic("-", inner, self.one([Literal(1), *self.numbers(schema)]))
        order = self.order(schema)
        if WITHIN_RULES[function].needs_order and not order:
            raise PlanError("no order")
        rolls = function.startswith("rolling")
        node = WithinUnit(
            function,
            inner,
            int(self.one([self.max_rows, self.max_rows, 1, 2, 100])),
            self.condition(schema) if self.chance.random() < 0.3 else Literal(True),
            self.keys(schema),
            order,
            self.descending(order),
            int(
                self.one([1, 2, 3, 50]) if rolls else self.one([0, 1, -1, 2, -9]) if function in ("shift", "nth") else 0
            ),
            int(self.one([1, 2])) if rolls else 0,
        )
        kind = dtype_of(node, schema)
        return Clip(node, kind.low, kind.high / 2) if isinstance(kind, Numeric) and self.chance.random() < 0.1 else node

    def numbers(self, schema: Schema) -> list[Expression]:
        """The columns with numbers."""
        return [Column(name) for name in schema if isinstance(dtype_of(Column(name), schema), Numeric)]

    def condition(self, schema: Schema) -> Expression:
        """A condition of a row, which may be missing."""
        conditions: list[Expression] = [Literal(True)]
        for name in schema:
            kind = dtype_of(Column(name), schema)
            if isinstance(kind, Numeric):
                conditions.append(Compare(">", Column(name), Literal((kind.low + kind.high) / 2)))
            if isinstance(kind, Categorical):
                conditions.append(Not(Compare("==", Column(name), Literal(kind.values[0]))))
        return self.one(conditions)  # type: ignore[no-any-return]

    def keys(self, schema: Schema) -> tuple[Expression, ...]:
        """Columns with few public values, and conditions."""
        few = [Column(name) for name in schema if _cells(Column(name), schema) <= MOST_CELLS]
        return self.some([*few, self.condition(schema)], 2) if self.chance.random() < 0.4 else ()

    def levels(self, schema: Schema) -> tuple[GroupLevel, ...]:
        """Levels of groups."""
        return tuple(GroupLevel(f"key {place}", key) for place, key in enumerate(self.keys(schema)[:1]))

    def order(self, schema: Schema) -> tuple[Expression, ...]:
        """Columns by which rows can be sorted."""
        can = [Column(name) for name in schema if not isinstance(dtype_of(Column(name), schema), String)]
        return self.some([*can, self.condition(schema)], 2)

    def descending(self, order: tuple[Expression, ...]) -> tuple[bool, ...]:
        """Their directions, or none."""
        return () if self.chance.random() < 0.5 else tuple(bool(self.one([True, False])) for _ in order)


def _cells(node: Expression, schema: Schema) -> float:
    try:
        return public_key_count(node, schema) or np.inf
    except PlanError:
        return np.inf
