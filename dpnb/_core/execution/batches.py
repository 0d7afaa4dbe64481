"""Batches: all tables are charged in one transaction, then measured one after the other.

The rows of a batch are ordinary rows of the ledger, each with its table's plan, loss and noise scale, and its place in
the batch (`dpnb._request.BatchTable`).  Either all of them are written or none.  If the process ends before all are
answered, the same batch, in any kernel, measures the tables that are missing; its design is in the ledger and is not
computed again.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpnb._compile.work import stored_bytes
from dpnb._core.accountant.admission import admit, refuse_above
from dpnb._core.execution.executor import Kind, PricedRow
from dpnb._core.execution.releases import ReleaseKind
from dpnb._core.pricing.batch_design import MeasuredTable, design_batch, plan_batch
from dpnb._core.pricing.pricer import QueryPricer, refuse_after_final
from dpnb._core.pricing.query_state import batch_table_of
from dpnb._plan.identity import query_key
from dpnb._request import BatchTable, Conditions, ReleaseBatch
from dpnb._target import Target
from dpnb.accounting.losses import GDP
from dpnb.ledger import Charge
from dpnb.results.observations import first_tau


class BatchKind(Kind[ReleaseBatch]):
    """Releases of batches, whose tables are measured as `releases` does."""

    def __init__(self, pricer: QueryPricer, releases: ReleaseKind) -> None:
        super().__init__(pricer)
        self._releases = releases

    def price(self, request: ReleaseBatch, conditions: Conditions) -> list[PricedRow]:
        """The tables of the cheapest design that meets the targets."""
        pricer, targets = self.pricer, [one.target for one in request.releases]
        planned = plan_batch(pricer, [(one.plan, one.view) for one in request.releases])
        for (plan, view), target in zip(planned.queries, targets, strict=True):
            refuse_after_final(pricer.state(plan, view, ()), target)
        design = design_batch(pricer, planned, targets)
        refuse_above(conditions.at_most, design.loss, planned.description)
        admit(pricer.account, planned.description, design.loss, GDP(0))
        prices, count, start = list[PricedRow](), len(design.tables), 0
        for block, view in zip(design.blocks, design.views, strict=True):
            levels = tuple(table.levels for table in block)
            for index, table in enumerate(block, start):
                sizes = design.workload.sizes
                row = BatchTable(table.plan, view, targets[0], index, count, start, sizes, levels)
                columns, size = self._columns(table, targets[0]), self._bytes(table)
                prices.append(PricedRow(row, request.key_of(index), columns, planned.description, size))
            start += len(block)
        return prices

    def _columns(self, table: MeasuredTable, target: Target) -> dict[str, object]:
        earlier = self.pricer.all_observations(table.plan)
        return {
            "query_key": query_key(table.plan),
            "total_loss": table.known,
            "loss": table.loss,
            "sigma": table.sigma,
            # The parameter of the confidence sequence of a query is that of its first observation.
            "tau": earlier[0].tau if earlier else None if target.final else first_tau(table.scale, target.alpha),
        }

    def _bytes(self, table: MeasuredTable) -> int:
        return stored_bytes(self.pricer.tables.compile(table.plan).numbers, table.loss)

    def recorded(self, request: ReleaseBatch) -> list[Charge]:
        """The rows of all tables, if any kernel has made the identical batch before."""
        first = super().recorded(request)
        table = batch_table_of(first[0]) if first else None
        return first if table is None else self.account.ledger.by_id(table.all_ids(first[0].id))

    def answer(self, request: ReleaseBatch, row: Charge) -> Charge:
        """The noisy sums of one table."""
        table = batch_table_of(row)
        if table is None:  # never: its price has one
            raise TypeError(row.request)
        return self._releases.measured(table.plan, (), row)

    def is_answer(self, request: ReleaseBatch, rows: Sequence[Charge]) -> bool:
        """Whether rows are all measured tables of the batch."""
        place = self.code, self.node(request), self.pricer.version
        return bool(rows) and all(
            (row.kind, row.node, row.table_version, row.request_key, row.status)
            == (*place, request.key_of(index), "released")
            and (table := batch_table_of(row)) is not None
            and (table.index, table.count) == (index, len(rows))
            for index, row in enumerate(rows)
        )
