"""The design of a batch: which tables are measured with which noise, from public declaration and ledger alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

from dpnb._compile import LinearQuery
from dpnb._compile.marginals import Floats, Levels, Marginals
from dpnb._compile.workload import Measure, Workload, refuse_different_vectors, workload_of
from dpnb._core.pricing.pricer import QueryPricer
from dpnb._core.pricing.query_state import QueryState, as_precise, relative_precisions, scale_of
from dpnb._core.pricing.resolve import resolve_loss
from dpnb._plan.measurements import AnyView, Proportions
from dpnb._plan.plan import Plan, describe_plan
from dpnb._request import Release, ReleaseBatch
from dpnb._target import MAX_AMOUNT, MIN_AMOUNT, Target
from dpnb.accounting.exact import decimal_sqrt_down, decimal_sqrt_up, exact
from dpnb.accounting.grid import grid_down, grid_up
from dpnb.accounting.losses import GDP
from dpnb.errors import PlanError, RequestError
from dpnb.mechanisms.gaussian import sigma_for
from dpnb.results.observations import CombinedObservations

Queries = Sequence[tuple[Plan, AnyView]]


def refuse_view(plan: Plan, view: AnyView) -> None:
    """Refuse statistics of several groups at once."""
    if isinstance(view, Proportions):
        raise RequestError(
            f"plan: {describe_plan(plan, view)} cannot be part of a batch, which estimates all groups together, so "
            "that the errors of a group and of the total are not independent; plan the counts, or release the shares "
            "separately"
        )


def words_of(targets: Sequence[Target]) -> str:
    """The target as it was written."""
    words = [target.words for target in targets]
    if len(set(words)) == 1:
        return words[0]
    return f"within=[{', '.join(text.partition('=')[2] for text in words)}]"


# --- the design of a batch --------------------------------------------------------------------------------------------


MAX_ALL_TABLES = 1024
"""Largest number of tables, of all aggregations of a batch, from which those to be measured are chosen."""

SLACK = Fraction(1, 10**9)
"""Relative margin for the rounding of doubles: in losses for half-widths up, in shares of a total loss down."""


@dataclass(frozen=True)
class MeasuredTable:
    """A table that a batch measures."""

    plan: Plan
    levels: Levels  # the indices of its levels, in the order of its groups
    loss: GDP  # what it is charged
    sigma: float  # scale of its noise, in integer steps
    scale: float  # noise scale of the batch's estimates of its cells, which is smaller
    known: GDP  # loss of one separate measurement as precise as these estimates, rounded down


@dataclass(frozen=True)
class BatchDesign:
    """The measured tables of a batch."""

    workload: Workload
    blocks: tuple[tuple[MeasuredTable, ...], ...]  # by aggregation
    views: tuple[AnyView, ...]  # one of each block's aggregation

    @property
    def tables(self) -> list[MeasuredTable]:
        """All measured tables."""
        return list(chain.from_iterable(self.blocks))

    @property
    def loss(self) -> GDP:
        """The loss of the batch: mu squared adds, since the noise of the tables is independent."""
        return GDP.from_mu_squared(sum((table.loss.mu_squared for table in self.tables), Fraction(0)))

    def scale(self, plan: Plan) -> float:
        """The noise scale of the batch's estimates of a query."""
        return next(table.scale for table in self.tables if table.plan == plan)


def fresh_state(query: LinearQuery, view: AnyView) -> QueryState:
    """The state of a query without regard to earlier observations, which a batch does not use."""
    return QueryState(query, query, view, CombinedObservations((), None, query.cells))


def design_batch(pricer: QueryPricer, planned: PlannedBatch, targets: Sequence[Target]) -> BatchDesign:
    """The design with the smallest loss that meets the half-widths, or the best one at a given loss.

    At a given loss all queries get the same noise relative to the sensitivity of their tables, or less.  `targets` has
    the target of each query; for a loss, that of the whole batch.
    """
    workload, queries, description = planned.workload, planned.queries, planned.description
    total = None if targets[0].kind == "within" else _total_loss(pricer, targets[0], description)
    goals: dict[Plan, Fraction] = {}
    for (plan, view), target in zip(queries, targets, strict=True):
        state = fresh_state(pricer.tables.compile(plan), view)
        needed = GDP(1) if total else pricer.resolve(state, target, pricer.row_counts(state))
        goals[plan] = max(goals.get(plan, Fraction(0)), needed.mu_squared)
    _refuse_many([Marginals(workload.sizes, tuple(measure.tables)) for measure in workload.measures], description)
    designs = [_design_of(pricer, workload, measure, goals) for measure in workload.measures]
    size = sum(float(precisions.sum()) for _, precisions in designs)
    measured = [
        workload.table(measure, levels)
        for measure, (design, precisions) in zip(workload.measures, designs, strict=True)
        for levels, precision in zip(design.subsets, precisions.tolist(), strict=True)
        if precision > 0
    ]
    pricer.tables.refuse_work(measured, description)
    blocks = []
    for measure, (design, precisions) in zip(workload.measures, designs, strict=True):
        losses = {
            levels: _loss_up(precision) if total is None else _share_down(precision / size, total)
            for levels, precision in zip(design.subsets, precisions.tolist(), strict=True)
            if precision > 0
        }
        blocks.append(_block(pricer, workload, measure, losses, description))
    views = tuple(
        next(view for plan, view in queries if plan in measure.tables.values()) for measure in workload.measures
    )
    return BatchDesign(workload, tuple(blocks), views)


def _refuse_many(designs: Sequence[Marginals], description: str) -> None:
    """Refuse a batch of many aggregations, each of which has many tables to choose from: each choice takes a second."""
    number = sum(len(design.subsets) for design in designs)
    if number > MAX_ALL_TABLES:
        raise PlanError(
            f"{description}: must have at most {MAX_ALL_TABLES:,} tables to choose from, of all aggregations together; "
            f"it has {number:,}; nothing was charged; release it in several batches"
        )


def _total_loss(pricer: QueryPricer, target: Target, description: str) -> GDP:
    account = pricer.account
    return resolve_loss(
        target,
        description=description,
        known=GDP(0),
        budget=account.budget,
        remaining=lambda share: account.guarantee.remaining(account.filter, share),
    )


def _design_of(
    pricer: QueryPricer, workload: Workload, measure: Measure, goals: dict[Plan, Fraction]
) -> tuple[Marginals, Floats]:
    requested = tuple(measure.tables)
    design = Marginals(workload.sizes, requested)
    final = tuple(
        levels
        for levels in design.subsets
        if levels not in requested and pricer.is_final(workload.table(measure, levels))
    )
    design = Marginals(workload.sizes, requested, final)
    return design, design.optimal([float(goals[plan]) for plan in measure.tables.values()])


def _block(
    pricer: QueryPricer, workload: Workload, measure: Measure, losses: dict[Levels, GDP], description: str
) -> tuple[MeasuredTable, ...]:
    plans = {levels: workload.table(measure, levels) for levels in losses}
    compiled = {levels: pricer.tables.compile(plan) for levels, plan in plans.items()}
    refuse_different_vectors(list(compiled.values()))
    for loss in losses.values():
        if not MIN_AMOUNT**2 <= loss.mu_squared <= MAX_AMOUNT**2:
            raise RequestError(
                f"{description}: each of its tables must lose between mu=1e-100 and mu=1e100, so that noise can be "
                f"calibrated to it; got mu={loss.mu!r}; give another amount"
            )
    sigmas = {levels: sigma_for(query.l2_sensitivity_squared, losses[levels]) for levels, query in compiled.items()}
    design = Marginals(workload.sizes, tuple(losses))
    precisions, smallest = relative_precisions(design, list(sigmas), list(sigmas.values()))
    tables = []
    for levels, query in compiled.items():
        scale = scale_of(design, levels, precisions, smallest)
        known = as_precise(query, scale)
        own = workload.positions(query.plan)
        tables.append(MeasuredTable(query.plan, own, losses[levels], sigmas[levels], scale, known))
    return tuple(tables)


def _loss_up(mu_squared: float) -> GDP:
    return GDP.from_mu_squared(grid_up(exact(decimal_sqrt_up(Fraction(mu_squared) * (1 + SLACK))) ** 2))


def _share_down(share: float, total: GDP) -> GDP:
    mu = exact(decimal_sqrt_down(Fraction(share) * (1 - SLACK) * total.mu_squared))
    return GDP.from_mu_squared(grid_down(mu**2))


def describe_batch(queries: Queries) -> str:
    """A batch in words."""
    first = describe_plan(*queries[0])
    return f"batch of {first}" + (f" and {len(queries) - 1} more" if len(queries) > 1 else "")


# --- a batch of queries -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlannedBatch:
    """The queries of a batch, checked."""

    workload: Workload  # of complete rows
    views: tuple[AnyView, ...]
    requested: tuple[tuple[Plan, AnyView], ...]  # as the analyst wrote them, also about incomplete rows

    def request(self, targets: Sequence[Target]) -> ReleaseBatch:
        """The release of the batch."""
        pairs = zip(self.requested, targets, strict=True)
        return ReleaseBatch(tuple(Release(plan, view, target) for (plan, view), target in pairs))

    @property
    def queries(self) -> Queries:
        """The queries of complete rows with their views."""
        return list(zip(self.workload.queries, self.views, strict=True))

    @property
    def description(self) -> str:
        """The batch in words."""
        return describe_batch(self.queries)


def plan_batch(pricer: QueryPricer, queries: Queries) -> PlannedBatch:
    """Check the queries of a batch; free.  Refuses shares, and queries about different rows."""
    if pricer.account.individual:
        raise RequestError(
            "plan: is not offered under accounting='individual', where units may be excluded from some tables of a "
            "batch, so that the tables would not add up; release the queries separately"
        )
    if pricer.account.guarantee.shared_delta is not None:
        raise RequestError(
            f"plan: needs a filter that adds mu squared; filter={pricer.account.guarantee.filter_name!r} charges an "
            "epsilon for each table; release the queries separately"
        )
    for plan, view in queries:
        refuse_view(plan, view)
    plans = [plan for plan, _ in queries]
    pricer.tables.refuse_work(plans, describe_batch(queries))
    workload = workload_of(plans, pricer.tables.schema(plans[0].source))
    for plan in workload.queries:
        pricer.tables.compile(plan)
    return PlannedBatch(workload, tuple(view for _, view in queries), tuple(queries))
