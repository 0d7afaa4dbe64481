"""Releases of batches on rows of this process: all tables are charged in one transaction, then measured in turn.

The rows of a batch are ordinary rows of the ledger, each with its table's plan, loss and noise scale; what they share
is in their arguments (`dpnb._core.pricing.batch_observations`). Either all of them are written or none, before any row
of a table is read. If the process ends in between, the same batch, in any kernel, measures the tables that are missing;
its design is in the ledger and is not computed again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dpnb._compile.work import stored_bytes
from dpnb._core import registry
from dpnb._core.accountant.admission import admit, refuse_above
from dpnb._core.execution.releases import LocalReleases
from dpnb._core.pricing.batch_design import BatchDesign, PlannedBatch, design_batch
from dpnb._core.pricing.batch_observations import BatchRecord, record_of
from dpnb._core.pricing.pricer import refuse_after_final
from dpnb._core.pricing.query_state import plan_of
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import Plan
from dpnb._target import Target
from dpnb.accounting.losses import GDP
from dpnb.copying import NotCopyable
from dpnb.ledger import Charge
from dpnb.ledger.charge import digest
from dpnb.ledger.origin import refuse_beyond_room
from dpnb.results.observations import first_tau


class LocalBatches(NotCopyable):
    """Charges batches and answers them from rows of this process."""

    def __init__(self, releases: LocalReleases) -> None:
        self._releases, self._pricer, self._account = releases, releases.pricer, releases.pricer.account

    def release_batch(
        self, planned: PlannedBatch, targets: Sequence[Target], *, at_most: Fraction | None = None
    ) -> list[Charge]:
        """Charge all tables of a batch and answer them, or find the rows of the identical batch."""
        with self._account.ledger.lock.checked():
            known = self._account.ledger.by_request_key(self._key(planned, targets, 0))
            rows = [] if known is None else self._rows_of(known)
        if not rows or any(row.measurement is None for row in rows):
            self._pricer.tables.ready()
        return [self._answered(row, targets[0]) for row in self._charge(planned, targets, at_most)]

    def _charge(self, planned: PlannedBatch, targets: Sequence[Target], at_most: Fraction | None) -> list[Charge]:
        """Find the batch in the ledger, or admit it and write all of its charges; durable when this returns."""
        account = self._account
        ledger, version, description = account.ledger, self._pricer.version, planned.description
        with ledger.transaction():
            known = ledger.by_request_key(self._key(planned, targets, 0))
            if known is not None:
                return self._rows_of(known)
            account.tree.refuse_ended(account.root_node, version)
            for (plan, view), target in zip(planned.queries, targets, strict=True):
                refuse_after_final(self._pricer.state(plan, view, ()), target)
            design = design_batch(self._pricer, planned.workload, planned.queries, targets, description)
            refuse_above(at_most, design.loss, description)
            admit(account, description, design.loss, GDP(0))
            stored = self._stored_bytes(design)
            self._pricer.tables.work_limits.refuse_stored(description, stored)
            refuse_beyond_room(stored)
            return [
                ledger.reserve(
                    request_key=self._key(planned, targets, record.index),
                    node=account.root_node,
                    table_version=version,
                    query_key=query_key(table.plan),
                    plan=table.plan.to_json(),
                    arguments=_arguments(targets[0], view, record),
                    total_loss=table.known,
                    loss=table.loss,
                    sigma=table.sigma,
                    tau=self._tau(table.plan, table.scale, targets[0]),
                    cell_id=registry.current_cell(),
                )
                for table, view, record in _records(design)
            ]

    def _stored_bytes(self, design: BatchDesign) -> int:
        """The largest number of bytes of all stored answers."""
        queries = [(self._pricer.tables.compile(table.plan), table.loss) for table in design.tables]
        return sum(stored_bytes(query.numbers, loss) for query, loss in queries)

    def _tau(self, plan: Plan, scale: float, target: Target) -> float | None:
        """The parameter of the confidence sequence of a query: that of its first observation."""
        earlier = self._pricer.all_observations(plan)
        return earlier[0].tau if earlier else None if target.final else first_tau(scale, target.alpha)

    def _answered(self, row: Charge, target: Target) -> Charge:
        if row.sigma is None or row.measurement is not None:
            return row
        return self._releases.answer_charge(plan_of(row), target, row, row.sigma)

    def _rows_of(self, row: Charge) -> list[Charge]:
        record = record_of(row)
        return [] if record is None else self._account.ledger.by_id(record.all_ids(row))

    def _key(self, planned: PlannedBatch, targets: Sequence[Target], index: int) -> str:
        """Identity of one row of a batch; that of the batch does not depend on the order of its queries."""
        queries = zip(planned.queries, targets, strict=True)
        parts = sorted({(plan.to_json(), target.to_json(view)) for (plan, view), target in queries})
        return digest([self._pricer.version, self._account.root_node, "batch", parts, index])


def _records(design: BatchDesign) -> list[tuple[Any, AnyView, BatchRecord]]:
    """The measured tables of a batch with a view and their place in it."""
    count, start, records = len(design.tables), 0, []
    for block, view in zip(design.blocks, design.views, strict=True):
        tables = tuple(table.levels for table in block)
        for offset, table in enumerate(block):
            record = BatchRecord(start + offset, count, start, design.workload.sizes, tables)
            records.append((table, view, record))
        start += len(block)
    return records


def _arguments(target: Target, view: AnyView, record: BatchRecord) -> str:
    """The arguments of a row: those of its intervals, and its place in the batch."""
    content = json.loads(target.to_json(view))
    del content[target.kind]
    return json.dumps({**content, "batch": record.to_json()})
