"""What each group of an answer is computed from: its measurements, and what all of its rows have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpnb._compile import LinearQuery
from dpnb._core.pricing.query_state import batch_table_of
from dpnb._plan.expressions.nodes import Expression, fixed_values
from dpnb._plan.measurements import AnyView, Proportions
from dpnb._plan.plan import Plan, TableSource
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.ledger import Charge
from dpnb.results.observations import CombinedObservations
from dpnb.schema import Key

Ids = frozenset[tuple[int, int]]
"""Row of the ledger and cell of each measurement; numbers that share one are not independent."""

WHOLE_BATCH = -1
"""The cell of a measurement that every estimate of a batch uses, with the id of the batch's first row."""


@dataclass(frozen=True)
class MeasuredCells(Sequence[Ids]):
    """The measurements of the cells of one row of the ledger, each of a group of its own.

    Made one by one when they are asked for: an answer may have a hundred thousand groups.
    """

    row: int
    cells: range

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return MeasuredCells(self.row, self.cells[index])
        return frozenset({(self.row, self.cells[index])})


def measurement_ids(
    query: LinearQuery, refinement: CombinedObservations, charges: list[Charge], view: AnyView
) -> Sequence[Ids]:
    """For each group, the measurements that it is computed from.

    A share, a cumulative count or a batch depends on those of several groups, and counts as of all.
    """
    is_single = len(charges) == 1 and batch_table_of(charges[0]) is None and refinement.observations[0].cells is None
    of_all = isinstance(view, Proportions) or query.is_cumulative
    if is_single and not of_all:
        return MeasuredCells(charges[0].id, range(refinement.count))
    tables = {charge.id: table for charge in charges if (table := batch_table_of(charge))}
    by_cell: list[list[tuple[int, int]]] = [[] for _ in range(refinement.count)]
    for charge, observation in zip(charges, refinement.observations, strict=True):
        table = tables.get(charge.id)
        for cell in range(refinement.count) if observation.cells is None else observation.cells:
            by_cell[cell].append((charge.id, cell) if table is None else (charge.id - table.index, WHOLE_BATCH))
    sources = tuple(map(frozenset, by_cell))
    return (frozenset().union(*sources),) * len(sources) if of_all else sources


RowsOfSession = tuple[int, TableSource | Plan]
"""The number of a session, and a table of it, or one query of which rows count."""

Fixed = tuple[tuple[RowsOfSession, Expression], Key]
"""An expression of some rows, with its value in all rows of a group."""


@dataclass(frozen=True)
class GroupValues(Sequence[frozenset[Fixed]]):
    """The expressions that have one value in all rows of each group of a query, with this value, made when asked for.

    Groups in which an expression has different values have no unit in common: a unit has one row in the table.  Where a
    limit of the query leaves it one row or one group, this depends on the query, and holds for its groups alone.
    """

    fixed: frozenset[Fixed]  # by the filter
    levels: tuple[tuple[RowsOfSession, Expression], ...]
    keys: tuple[tuple[Key, ...], ...]

    @classmethod
    def of(cls, query: LinearQuery, view: AnyView, unit: PrivacyUnit, session: int) -> GroupValues:
        """Those of a query of a table with some privacy unit; none where a unit may be in several groups.

        Shares depend on the rows of all groups.  Another session may have other rows of the same units.
        """
        plan, limits = query.plan, query.contribution_bounds
        in_one_row = unit.max_rows == 1
        rows = session, plan.source if in_one_row else plan
        one_group = in_one_row or limits.max_rows == 1 or limits.max_groups == 1
        own = one_group and not isinstance(view, Proportions) and not query.is_cumulative
        levels = tuple([(rows, level.expression) for level in plan.group_by]) if own else ()
        fixed = fixed_values(plan.where) if in_one_row else []
        return cls(frozenset([((rows, node), value) for node, value in fixed]), levels, query.keys or ((),))

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return GroupValues(self.fixed, self.levels, self.keys[index])
        return self.fixed.union(zip(self.levels, self.keys[index], strict=False))
