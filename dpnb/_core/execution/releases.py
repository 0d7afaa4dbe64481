"""Releases, one at a time or in batches: the loss for the target, noise for the loss, and the noisy sums.

All tables of a batch are charged in one transaction, then measured one after the other.  Their rows are ordinary rows
of the ledger, each with its table's plan, loss and noise scale, and its place in the batch
(`dpnb._request.BatchTable`).  Either all of them are written or none.  If the process ends before all are answered, the
same batch, in any kernel, measures the tables that are missing; its design is in the ledger and is not computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial

from dpnb._compile.work import stored_bytes, stored_words_bytes
from dpnb._core.accountant.admission import admit, refuse_above
from dpnb._core.execution.executor import Kind, PricedRow
from dpnb._core.pricing.batch_design import MeasuredTable, design_batch, plan_batch
from dpnb._core.pricing.previews import error_at
from dpnb._core.pricing.pricer import QueryPricer, cell_subset, refuse_after_final
from dpnb._core.pricing.query_state import batch_table_of
from dpnb._core.unit_budgets import IndividualAccounting
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import Discovery
from dpnb._plan.plan import Plan
from dpnb._request import BatchTable, Conditions, Release, ReleaseBatch
from dpnb._target import Keys, Target
from dpnb.accounting.losses import GDP
from dpnb.accounting.prefix_sums import square_root_of_prefix_sums
from dpnb.errors import BudgetExceeded, LedgerError, RequestError
from dpnb.ledger import Charge
from dpnb.mechanisms.gaussian import measure, sigma_for
from dpnb.mechanisms.randomness import NoiseSource
from dpnb.mechanisms.selection import named
from dpnb.progress import Stage, at
from dpnb.results.estimates.expected import in_rank_words
from dpnb.results.observations import first_tau


class ReleaseKind(Kind[Release]):
    """Releases of queries."""

    def __init__(self, pricer: QueryPricer, source: NoiseSource, individuals: IndividualAccounting | None) -> None:
        super().__init__(pricer)
        self._source, self._individuals = source, individuals

    def lock(self, request: Release) -> AbstractContextManager[object]:
        """Under individual accounting, rows are answered in the order in which they were charged."""
        return nullcontext() if self._individuals is None else self._individuals.lock.checked()

    def price(self, request: Release, conditions: Conditions) -> list[PricedRow]:
        """The additional loss at which the query meets its target; zero if its observations meet it already."""
        plan, target, pricer = request.plan, request.target, self.pricer
        state = pricer.state(plan, request.view, target.groups)
        rows = pricer.row_counts(state) if target.kind == "within" else None  # no other target uses them
        state, total, loss = pricer.price(state, target, rows)
        if state.is_standalone and conditions.combined:
            raise BudgetExceeded(
                f"{state.description}: can be refined only while every unit certainly takes part; a further "
                "observation might exclude units and could not be combined with earlier ones; nothing was charged"
            )
        earlier = state.combined.observations
        squared, known = loss.mu_squared, state.known_loss
        if not squared and not earlier:
            raise RequestError(f"{state.description}: {target.words} measures nothing; give a larger target")
        sigma = tau = None
        stored = 0
        if squared:
            refuse_after_final(state, target)
            pricer.account.refuse_if_no_unit_left(state.description, pricer.version)
            refuse_above(conditions.at_most, loss, state.description)
            note = in_rank_words(state.view) if target.kind == "within" else None
            buys = partial(error_at, pricer, state, target)
            admit(pricer.account, state.description, loss, known, buys=buys, note=note)
            stored = stored_bytes(state.measured.numbers, loss) + stored_words_bytes(state.description)
            sigma = sigma_for(state.measured.l2_sensitivity_squared, loss)
            if earlier:
                tau = state.combined.tau
            elif not target.final:
                tau = first_tau(sigma, target.alpha)
        charges = pricer.observations(plan, request.view) if earlier else []
        columns = {
            "query_key": query_key(plan),
            "total_loss": total if total.mu_squared >= known.mu_squared else known,
            "loss": loss,
            "sigma": sigma,
            "tau": tau,
            "observations": tuple([charge.id for charge in charges]),
        }
        return [PricedRow(request, request.key, columns, state.description, stored)]

    def answer(self, request: Release, row: Charge) -> Charge:
        """The noisy sums of the groups that the target applies to."""
        return self.measured(request.plan, request.target.groups, row)

    def measured(self, plan: Plan, groups: Keys, row: Charge) -> Charge:
        """A row with the noisy sums of some groups of a query, or of all."""
        tables, units, source = self.pricer.tables, self._individuals, self._source
        query = tables.compile(plan)
        subset = cell_subset(query, groups)
        query = query if subset is None else tables.compile(plan, subset)
        if row.sigma is None:  # never: it was released with its charge
            raise LedgerError(f"ledger: row {row.id} must have a noise scale; it has none")
        if not isinstance(plan.aggregation, Discovery):
            with at(Stage.ADDING if query.clip_squared is None else Stage.UNITS):
                sums = tables.opened.sums(query) if units is None else units.sums(row, query)
            with at(Stage.NOISE):
                measured = square_root_of_prefix_sums(sums) if query.is_cumulative else sums
                return replace(row, status="released", measurement=measure(measured, sigma=row.sigma, source=source))
        with at(Stage.GROUPS):
            keys, counts = tables.opened.groups(query) if units is None else units.groups(row, query)
        changed = query.l2_sensitivity_squared  # groups, each of which a unit changes by one
        with at(Stage.NOISE):
            indices, released = named(counts, sigma=row.sigma, groups=changed, delta=row.gdp.delta, source=source)
            group_keys = tuple(keys[index] for index in indices)
            return replace(row, status="released", measurement=released, group_keys=group_keys)

    def is_answer(self, request: Release, rows: Sequence[Charge]) -> bool:
        """Whether a row is that of the request, and combines it with observations of the same query only."""
        if not super().is_answer(request, rows) or rows[0].query_key != query_key(request.plan):
            return False
        (row,) = rows
        observed = self.pricer.account.ledger.by_id(row.observations)
        return [one.id for one in observed] == sorted(row.observations) and all(
            (one.query_key, one.node, one.table_version) == (row.query_key, row.node, row.table_version)
            for one in observed
        )


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
