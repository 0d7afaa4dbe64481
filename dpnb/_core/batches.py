"""Releases of batches: all tables of a batch are charged in one transaction, then measured one after the other.

The rows of a batch are ordinary rows of the ledger, each with its table's plan, loss and noise scale; what they share
is in their arguments (`dpnb._core.pricing.batch_record`).  Either all of them are written or none, before any row of a
table is read.  If the kernel ends in between, the same batch, in any kernel, measures the tables that are missing; its
design is in the ledger and is not computed again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpnb._compile.workload import Workload, workload_of
from dpnb._core import registry
from dpnb._core.accountant.admission import admit
from dpnb._core.batch_design import BatchDesign, describe_batch, design_batch, fresh_state
from dpnb._core.batch_target import Queries, batch_targets, refuse_view, words_of
from dpnb._core.pricing.batch_observations import record_of
from dpnb._core.pricing.batch_record import BatchRecord
from dpnb._core.pricing.forecasts import ExpectedErrors
from dpnb._core.pricing.pricer import refuse_after_final
from dpnb._core.pricing.stored_request import plan_of
from dpnb._core.pricing.target import StoredRequest, Target
from dpnb._core.refusals import REFUSALS
from dpnb._core.releases import ReleasePipeline
from dpnb._plan.description import answer_unit
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import Plan, describe_plan
from dpnb.accounting.exact import decimal_down, decimal_sqrt_up, decimal_up, exact
from dpnb.accounting.losses import GDP
from dpnb.copying import NotCopyable
from dpnb.errors import RequestError
from dpnb.ledger import Charge
from dpnb.ledger.charge import digest
from dpnb.progress import Stage, at, work
from dpnb.results.answer import Answer
from dpnb.results.batch import BatchAnswer, BatchPreview, PlannedQuery
from dpnb.results.estimates.expected import RANK, in_rank
from dpnb.results.estimates.outputs import outputs_of
from dpnb.results.observations import first_tau


@dataclass(frozen=True)
class PlannedBatch:
    """The queries of a batch, checked.

    Parameters
    ----------
    workload : Workload
        The queries of complete rows.
    views : tuple of View
        Their views.
    """

    workload: Workload
    views: tuple[AnyView, ...]

    @property
    def queries(self) -> Queries:
        """The queries of complete rows with their views."""
        return list(zip(self.workload.queries, self.views, strict=True))

    @property
    def description(self) -> str:
        """The batch in words."""
        return describe_batch(self.queries)


class BatchPipeline(NotCopyable):
    """Plans, previews and releases batches of one session.

    Parameters
    ----------
    releases : ReleasePipeline
        Releases the queries of the session.
    """

    def __init__(self, releases: ReleasePipeline) -> None:
        self._releases, self._pricer, self._account = releases, releases.pricer, releases.account

    def plan(self, queries: Queries) -> PlannedBatch:
        """Check the queries of a batch; free.

        Raises
        ------
        RequestError
            The session cannot release batches, or a query is one of shares.
        PlanError
            The queries are about different rows, or one of them cannot be part of a batch.
        """
        if self._account.individual:
            raise RequestError(
                "plan: is not offered under accounting='individual', where units may be excluded from some tables of a "
                "batch, so that the tables would not add up; release the queries separately"
            )
        if self._account.guarantee.shared_delta is not None:
            raise RequestError(
                f"plan: needs a filter that adds mu squared; filter={self._account.guarantee.filter_name!r} charges an "
                "epsilon for each table; release the queries separately"
            )
        for plan, view in queries:
            refuse_view(plan, view)
        plans = [plan for plan, _ in queries]
        planned = PlannedBatch(
            workload_of(plans, self._pricer.tables.schema(plans[0].source)), tuple(view for _, view in queries)
        )
        for plan in planned.workload.queries:
            self._pricer.tables.compile(plan)
        return planned

    # --- preview ------------------------------------------------------------------------------------------------

    def preview(self, planned: PlannedBatch, **arguments: Any) -> BatchPreview:
        """The cost and the expected errors of a release with the same arguments; free, and without the table."""
        targets = batch_targets(planned.queries, arguments)
        with self._account.ledger.lock.checked():
            design = design_batch(self._pricer, planned.workload, planned.queries, targets, planned.description)
            filter_, guarantee = self._account.filter, self._account.guarantee
            cost = design.loss
            counted = guarantee.to_filter_loss(cost)
            fraction, after = self._account.forecast(counted)
            fits = filter_.admits(counted)
            queries = tuple(
                self._planned_query(design, plan, view, target)
                for (plan, view), target in zip(planned.queries, targets, strict=True)
            )
            separate = GDP.from_mu_squared(
                sum(
                    {plan: query.loss for plan, query in zip(planned.workload.queries, queries, strict=True)}.values(),
                    start=GDP(0),
                ).mu_squared
            )
            return BatchPreview(
                description=planned.description,
                request=words_of(targets),
                queries=queries,
                cost=cost,
                cost_fraction=fraction,
                separate_cost=separate,
                separate_fraction=self._account.forecast(guarantee.to_filter_loss(separate))[0],
                n_tables=len(design.tables),
                confidence=decimal_down(targets[0].confidence),
                fits=fits,
                headroom_after=after if fits else 0.0,
                max_mu=None if fits else self._account.max_mu(GDP(0)),
                notice=self._releases.notice,
            )

    def _planned_query(self, design: BatchDesign, plan: Plan, view: AnyView, target: Target) -> PlannedQuery:
        query = self._pricer.tables.compile(plan)
        state, scale = fresh_state(query, view), design.scale(plan)
        rows = self._pricer.row_counts(state)
        schema = self._pricer.tables.schema(plan.source)
        model = ExpectedErrors(state, target, rows if rows is None else rows.for_display, schema).error_model()
        return PlannedQuery(
            description=describe_plan(plan, view),
            loss=GDP(decimal_sqrt_up(query.l2_sensitivity_squared / exact(scale) ** 2)),
            half_widths=model.expected(scale),
            outputs=outputs_of(view),
            error_unit=RANK if in_rank(view) else answer_unit(plan.aggregation, view),
        )

    # --- release ------------------------------------------------------------------------------------------------

    def release(self, planned: PlannedBatch, **arguments: Any) -> BatchAnswer:
        """Answer all queries and charge them in one transaction; the identical batch returns its answers, free."""
        try:
            return self._release(planned, batch_targets(planned.queries, arguments))
        except REFUSALS as error:
            self._releases.refused(planned.description, error)
            raise

    def _release(self, planned: PlannedBatch, targets: Sequence[Target]) -> BatchAnswer:
        with work(Stage.CHARGING):
            with self._account.ledger.lock.checked():
                known = self._account.ledger.by_request_key(self._key(planned, targets, 0))
                rows = [] if known is None else self._rows_of(known)
            if not rows or any(row.measurement is None for row in rows):
                self._pricer.tables.ready()
            rows = self._charge(planned, targets)
            answered = [self._answered(row, targets[0]) for row in rows]
            for row in answered:
                self._releases.log.note_request(row, registry.current_cell())
            self._releases.changed()
            with at(Stage.WRITING):
                return self._batch_answer(planned, targets, answered)

    def _charge(self, planned: PlannedBatch, targets: Sequence[Target]) -> list[Charge]:
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
            admit(account, description, design.loss, GDP(0))
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

    def _batch_answer(self, planned: PlannedBatch, targets: Sequence[Target], rows: Sequence[Charge]) -> BatchAnswer:
        by_plan = {row.plan: row for row in rows}
        answers = tuple(
            self._answer(plan, view, target, by_plan[plan.to_json()])
            for (plan, view), target in zip(planned.queries, targets, strict=True)
        )
        return BatchAnswer(
            description=planned.description,
            answers=answers,
            cost=GDP.from_mu_squared(sum((row.gdp.mu_squared for row in rows), Fraction(0))),
            cost_fraction=self._cost_fraction(rows),
            n_tables=len(rows),
            time=rows[0].time,
            notice=self._releases.notice,
        )

    def _cost_fraction(self, rows: Sequence[Charge]) -> float:
        """What the batch cost as a fraction of the budget, rounded up; NaN without a budget."""
        shares = [self._account.cost_fraction(row.id) for row in rows]
        return math.nan if any(map(math.isnan, shares)) else decimal_up(sum(map(exact, shares), Fraction(0)))

    def _answer(self, plan: Plan, view: AnyView, target: Target, row: Charge) -> Answer:
        query = self._pricer.tables.compile(plan)
        return self._releases.answer_from(
            query,
            StoredRequest(target.confidence, view, target.simultaneous, (), target.final),
            [row],
            cost=(row.gdp, self._account.cost_fraction(row.id)),
            total_loss=row.total_loss,
            time=row.time,
        )


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
