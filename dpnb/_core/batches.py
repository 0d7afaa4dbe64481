"""Batches of one session: several queries about the same rows, which share measurements.

`dpnb._core.execution` charges a batch and answers it from rows; the answers are then computed from the ledger alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from dpnb._compile.workload import workload_of
from dpnb._core import registry
from dpnb._core.execution.protocol import BatchExecution
from dpnb._core.pricing.batch_design import (
    BatchDesign,
    PlannedBatch,
    Queries,
    describe_batch,
    design_batch,
    fresh_state,
    refuse_view,
    words_of,
)
from dpnb._core.pricing.forecasts import ExpectedErrors
from dpnb._core.releases import ReleasePipeline
from dpnb._plan.description import answer_unit
from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import Plan, describe_plan
from dpnb._target import StoredRequest, Target
from dpnb.accounting.exact import decimal_down, decimal_sqrt_up, decimal_up, exact
from dpnb.accounting.losses import GDP
from dpnb.copying import NotCopyable
from dpnb.errors import RequestError
from dpnb.ledger import Charge
from dpnb.progress import Stage, at, work
from dpnb.results.answer import Answer
from dpnb.results.batch import BatchAnswer, BatchPreview, PlannedQuery
from dpnb.results.estimates.expected import RANK, in_rank, rank_note
from dpnb.results.estimates.outputs import outputs_of


class BatchPipeline(NotCopyable):
    """Plans, previews and releases batches of one session."""

    def __init__(self, releases: ReleasePipeline, execution: BatchExecution) -> None:
        self.releases, self._execution = releases, execution
        self._pricer, self._account = releases.pricer, releases.account

    def plan(self, queries: Queries) -> PlannedBatch:
        """Check the queries of a batch; free.  Refuses shares, and queries about different rows."""
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
        self._pricer.tables.refuse_work(plans, describe_batch(queries))
        planned = PlannedBatch(
            workload_of(plans, self._pricer.tables.schema(plans[0].source)),
            tuple(view for _, view in queries),
            tuple(queries),
        )
        for plan in planned.workload.queries:
            self._pricer.tables.compile(plan)
        return planned

    # --- preview ------------------------------------------------------------------------------------------------

    def preview(self, planned: PlannedBatch, targets: Sequence[Target]) -> BatchPreview:
        """The cost and the expected errors of a release with the same targets; free, and without the table."""
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
                notice=self.releases.notice,
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
            rank_note=rank_note(query, view),
        )

    # --- release ------------------------------------------------------------------------------------------------

    def release(
        self, planned: PlannedBatch, targets: Sequence[Target], *, at_most: Fraction | None = None
    ) -> BatchAnswer:
        """Answer all queries and charge them in one transaction; the identical batch returns its answers, free.

        `targets` has the target of each query; for a loss, that of the whole batch.  A new batch is refused if it costs
        more than `at_most`, as mu squared.
        """
        with work(Stage.CHARGING):
            rows = self.charge(planned, targets, at_most=at_most)
            with at(Stage.WRITING):
                return self._batch_answer(planned, targets, rows)

    def charge(
        self, planned: PlannedBatch, targets: Sequence[Target], *, at_most: Fraction | None = None
    ) -> list[Charge]:
        """The answered rows of a batch; see `release`."""
        rows = self._execution.release_batch(planned, targets, at_most=at_most)
        for row in rows:
            self.releases.log.note_request(row, registry.current_cell())
        self.releases.changed()
        return rows

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
            notice=self.releases.notice,
        )

    def _cost_fraction(self, rows: Sequence[Charge]) -> float:
        """What the batch cost as a fraction of the budget, rounded up; NaN without a budget."""
        shares = [self._account.cost_fraction(row.id) for row in rows]
        return math.nan if any(map(math.isnan, shares)) else decimal_up(sum(map(exact, shares), Fraction(0)))

    def _answer(self, plan: Plan, view: AnyView, target: Target, row: Charge) -> Answer:
        query = self._pricer.tables.compile(plan)
        return self.releases.answer_from(
            query,
            StoredRequest(target.confidence, view, target.simultaneous, (), target.final),
            [row],
            cost=(row.gdp, self._account.cost_fraction(row.id)),
            total_loss=row.total_loss,
            time=row.time,
        )
