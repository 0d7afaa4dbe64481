"""What each group of an answer is computed from: its measurements, and what all of its rows have in common."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from dpnb._compile import LinearQuery
from dpnb._core.pricing.batch_observations import record_of
from dpnb._plan.expressions.nodes import Expression, fixed_values
from dpnb._plan.measurements import AnyView, Proportions
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.ledger import Charge
from dpnb.results.observations import CombinedObservations
from dpnb.results.tables.table import GroupValue
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


def measurement_ids(refinement: CombinedObservations, charges: list[Charge], view: AnyView) -> Sequence[Ids]:
    """For each group, the measurements that it is computed from; a share or a batch depends on those of all groups."""
    is_single = len(charges) == 1 and record_of(charges[0]) is None and refinement.observations[0].cells is None
    if is_single and not isinstance(view, Proportions):
        return MeasuredCells(charges[0].id, range(refinement.count))
    records = {charge.id: record for charge in charges if (record := record_of(charge))}
    by_cell: list[list[tuple[int, int]]] = [[] for _ in range(refinement.count)]
    for charge, observation in zip(charges, refinement.observations, strict=True):
        record = records.get(charge.id)
        for cell in range(refinement.count) if observation.cells is None else observation.cells:
            by_cell[cell].append((charge.id, cell) if record is None else (charge.id - record.index, WHOLE_BATCH))
    sources = tuple(map(frozenset, by_cell))
    return (frozenset().union(*sources),) * len(sources) if isinstance(view, Proportions) else sources


@dataclass(frozen=True)
class GroupValues(Sequence[frozenset[GroupValue]]):
    """The expressions that have one value in all rows of each group of a query, with this value, made when asked for.

    Groups in which an expression has different values have no unit in common: a unit has one row in the table.  Where
    it has several, and may be in one group of a query only, this is so for the groups of queries of the same rows.
    """

    rows: Hashable  # whose expressions they are
    fixed: frozenset[GroupValue]  # by the filter
    levels: tuple[Expression, ...]
    keys: tuple[tuple[Key, ...], ...]

    @classmethod
    def of(cls, query: LinearQuery, unit: PrivacyUnit) -> GroupValues:
        """Those of a query; none where a unit may be in several groups."""
        plan, limits, rows = query.plan, query.contribution_bounds, query.plan.source
        levels, keys = tuple(level.expression for level in plan.group_by), query.keys or ((),)
        if unit.max_rows == 1:
            fixed = frozenset(((rows, inner), value) for inner, value in fixed_values(plan.where))
            return cls(rows, fixed, levels, keys)
        in_one = 1 in (limits.max_rows, limits.max_groups)
        return cls((rows, plan.where, plan.group_by, limits), frozenset(), levels if in_one else (), keys)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return GroupValues(self.rows, self.fixed, self.levels, self.keys[index])
        return self.fixed.union(
            ((self.rows, level), key) for level, key in zip(self.levels, self.keys[index], strict=False)
        )
