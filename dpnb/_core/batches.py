"""Requests of one session that are not single releases: batches, and selections of the largest groups.

`dpnb._core.execution` charges them and answers them from rows; what is shown is then computed from the ledger alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from dpnb._compile.query_explanation import left_out
from dpnb._core.execution.executor import Executor
from dpnb._core.execution.selections import ALPHA, SelectionKind, SelectionTerms
from dpnb._core.history.words import charge_text
from dpnb._core.pricing.batch_design import (
    BatchDesign,
    PlannedBatch,
    Queries,
    design_batch,
    fresh_state,
    plan_batch,
    words_of,
)
from dpnb._core.pricing.forecasts import ExpectedErrors, known_ranks
from dpnb._core.pricing.public_knowledge import count_code
from dpnb._core.pricing.query_state import plan_of
from dpnb._core.releases import ReleasePipeline
from dpnb._plan.description import answer_unit
from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import Plan, describe_plan
from dpnb._request import Release
from dpnb._target import Target
from dpnb.accounting.exact import decimal_down, decimal_sqrt_down, decimal_sqrt_up, decimal_up, exact, few_digits_down
from dpnb.accounting.losses import GDP, Loss
from dpnb.accounting.losses.gaussian import as_amount
from dpnb.copying import NotCopyable
from dpnb.errors import BudgetExceeded
from dpnb.ledger import Charge, refuse_unreadable
from dpnb.progress import Stage, at, work
from dpnb.results.answer import Answer
from dpnb.results.batch import BatchAnswer, BatchPreview, PlannedQuery
from dpnb.results.estimates.expected import RANK, in_rank, output_units, rank_note
from dpnb.results.estimates.linear import named_outputs
from dpnb.results.selection import SelectedGroups, SelectionPreview


class SelectionPipeline(NotCopyable):
    """Selections of one session."""

    def __init__(self, releases: ReleasePipeline, executor: Executor, kind: SelectionKind) -> None:
        self._releases, self._executor, self._kind, self._account = releases, executor, kind, releases.account

    def release(self, terms: SelectionTerms, epsilon: Fraction) -> SelectedGroups:
        """Select the groups and charge epsilon; the identical request returns the recorded answer, free.

        After a `BudgetExceeded` nothing was charged; after an `ExecutionError` the same request uses the same charge.
        """
        with work(Stage.CHARGING):
            with self._executor.refusals_of(lambda: terms.description):
                (charge,) = self._executor.run(terms.request(epsilon))
            return self._result(terms, epsilon, charge)

    def preview(self, terms: SelectionTerms, epsilon: Fraction) -> SelectionPreview:
        """The cost and the reliability of a selection; free, and computed without the table."""
        account = self._account
        request = terms.request(epsilon)
        with account.ledger.transaction():
            known = self._executor.find(request)
            is_known = bool(known)
            choice = terms.charged(known[0].loss) if known else terms.choice(epsilon)
            cost_fraction: float | None = 0.0
            after, refusal, counts, cost = account.filter.headroom, None, None, None
            if not is_known:
                try:
                    account.tree.refuse_ended(account.root_node, self._releases.version)
                    loss, counted = self._kind.admitted(request)
                    cost_fraction, after = account.forecast(counted)
                    cost = charge_text(account, loss, counted, cost_fraction)
                    counts = _spent_on_counts(counted)
                except BudgetExceeded as error:
                    cost_fraction, refusal = None, str(error)
        return SelectionPreview(
            description=terms.description,
            epsilon=epsilon,
            loss=choice.loss,
            mechanism=terms.mechanism(choice),
            cost_fraction=cost_fraction,
            cost_text=cost,
            headroom_after=few_digits_down(after),
            refusal=refusal,
            is_known=is_known,
            shortfall=decimal_up(terms.shortfall(choice)),
            unit=terms.unit,
            reliability=terms.reliability(choice),
            confidence=float(1 - ALPHA),
            groups=terms.query.cells,
            counts_loss=counts,
            counts_shortfall=None if counts is None else terms.shortfall_of_counts(counts),
            notice=self._releases.notice,
            left_out=self._left_out(terms),
        )

    def _left_out(self, terms: SelectionTerms) -> tuple[tuple[str, str], ...]:
        tables = self._releases.pricer.tables
        source = terms.plan.source
        return tuple(left_out(terms.query, tables.unit(source), tables.units, tables.schema(source)))

    def _result(self, terms: SelectionTerms, epsilon: Fraction, charge: Charge) -> SelectedGroups:
        with refuse_unreadable(f"row {charge.id}"):
            keys = tuple(tuple(key) for key in (charge.result or {})["largest"])
            choice = terms.charged(charge.loss)
        cost_fraction = self._account.cost_fraction(charge.id)
        return SelectedGroups(
            description=terms.description,
            names=tuple(group.name for group in terms.plan.group_by),
            group_keys=keys,
            is_single=terms.is_single,
            epsilon=epsilon,
            cost=charge.loss,
            cost_fraction=cost_fraction,
            cost_text=charge_text(self._account, charge.loss, charge.charged, cost_fraction),
            shortfall=decimal_up(terms.shortfall(choice)),
            unit=terms.unit,
            reliability=terms.reliability(choice),
            mechanism=terms.mechanism(choice),
            confidence=float(1 - ALPHA),
            code=count_code(terms.plan, keys),
            notice=self._releases.notice,
            left_out=self._left_out(terms),
            time=charge.time,
        )


def _spent_on_counts(counted: Loss) -> GDP | None:
    """The loss for which counts could be released at the same cost; None if a reserve in pure DP pays."""
    squared = counted.noise_mu_squared
    return None if squared is None or as_amount(counted).epsilon else GDP(decimal_sqrt_down(squared))


class BatchPipeline(NotCopyable):
    """Plans, previews and releases batches of one session."""

    def __init__(self, releases: ReleasePipeline, executor: Executor) -> None:
        self.releases, self._executor = releases, executor
        self._pricer, self._account = releases.pricer, releases.account

    def plan(self, queries: Queries) -> PlannedBatch:
        """Check the queries of a batch; see `plan_batch`."""
        return plan_batch(self._pricer, queries)

    # --- preview ------------------------------------------------------------------------------------------------

    def preview(self, planned: PlannedBatch, targets: Sequence[Target]) -> BatchPreview:
        """The cost and the expected errors of a release with the same targets; free, and without the table."""
        with self._account.ledger.lock.checked():
            design = design_batch(self._pricer, planned, targets)
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
                headroom_after=few_digits_down(after) if fits else 0.0,
                max_mu=None if fits else self._account.max_mu(GDP(0)),
                notice=self.releases.notice,
                left_out=tuple(dict.fromkeys(text for plan, _ in planned.queries for text in self._left_out(plan))),
            )

    def _left_out(self, plan: Plan) -> list[tuple[str, str]]:
        tables = self._pricer.tables
        return left_out(tables.compile(plan), tables.unit(plan.source), tables.units, tables.schema(plan.source))

    def _planned_query(self, design: BatchDesign, plan: Plan, view: AnyView, target: Target) -> PlannedQuery:
        query = self._pricer.tables.compile(plan)
        state, scale = fresh_state(query, view), design.scale(plan)
        rows = self._pricer.row_counts(state)
        schema = self._pricer.tables.schema(plan.source)
        forecast = ExpectedErrors(state, target, rows if rows is None else rows.for_display, schema)
        errors = known_ranks(forecast.error_model().expected(scale), state, self._pricer.rows_in_rank(state))
        return PlannedQuery(
            description=describe_plan(plan, view),
            loss=GDP(decimal_sqrt_up(query.l2_sensitivity_squared / exact(scale) ** 2)),
            half_widths=errors,
            outputs=named_outputs(query, view, schema),
            error_unit=RANK if in_rank(view) else answer_unit(plan.aggregation, view),
            output_units=output_units(view),
            rank_note=rank_note(query),
            least_half_widths=forecast.least(scale),
            assumed_description=None if errors is None else forecast.assumption(scale),
        )

    # --- release ------------------------------------------------------------------------------------------------

    def release(self, planned: PlannedBatch, targets: Sequence[Target]) -> BatchAnswer:
        """Answer all queries and charge them in one transaction; the identical batch returns its answers, free.

        `targets` has the target of each query; for a loss, that of the whole batch.
        """
        with work(Stage.CHARGING):
            rows = self._executor.run(planned.request(targets))
            with at(Stage.WRITING):
                return self._batch_answer(planned, targets, rows)

    def _batch_answer(self, planned: PlannedBatch, targets: Sequence[Target], rows: Sequence[Charge]) -> BatchAnswer:
        by_plan = {plan_of(row): row for row in rows}
        answers = tuple(
            self._answer(plan, view, target, by_plan[plan])
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
            Release(plan, view, target),
            [row],
            cost=(row.gdp, self._account.cost_fraction(row.id)),
            total_loss=row.total_loss,
            time=row.time,
        )
