"""The measurements that each number of an answer is computed from: numbers that share one are not independent."""

from __future__ import annotations

from collections.abc import Sequence

from dpnb._core.pricing.batch_observations import record_of
from dpnb._plan.measurements import AnyView, Proportions
from dpnb.ledger import Charge
from dpnb.results.measured_cells import Ids, MeasuredCells
from dpnb.results.observations import CombinedObservations

WHOLE_BATCH = -1
"""The cell of a measurement that every estimate of a batch uses, with the id of the batch's first row."""


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
