"""The measurements that each number of an answer is computed from: numbers that share one are not independent."""

from __future__ import annotations

from dpnb._core.pricing.batch_observations import record_of
from dpnb._plan.measurements import AnyView, Proportions
from dpnb.ledger import Charge
from dpnb.results.observations import CombinedObservations

WHOLE_BATCH = -1
"""The cell of a measurement that every estimate of a batch uses, with the id of the batch's first row."""


def measurement_ids(
    refinement: CombinedObservations, charges: list[Charge], view: AnyView
) -> tuple[frozenset[tuple[int, int]], ...]:
    """For each group, the measurements that it is computed from; a share or a batch depends on those of all groups."""
    records = {charge.id: record for charge in charges if (record := record_of(charge))}
    sources = tuple(
        frozenset(
            (charge.id - records[charge.id].index, WHOLE_BATCH) if charge.id in records else (charge.id, cell)
            for charge, observation in zip(charges, refinement.observations, strict=True)
            if observation.cells is None or cell in observation.cells
        )
        for cell in range(refinement.count)
    )
    return (frozenset().union(*sources),) * len(sources) if isinstance(view, Proportions) else sources
