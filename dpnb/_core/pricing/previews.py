"""Cost and expected error of a release, and their explanation: free, and computed without the table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property

import numpy as np

from dpnb._compile.explanation import contribution, explanation, left_out
from dpnb._core.pricing.pricer import QueryPricer, refuse_after_final
from dpnb._core.pricing.public_knowledge import RowCounts, count_code, count_needed, rows_needed
from dpnb._core.pricing.query_state import QueryState
from dpnb._plan.description import answer_unit
from dpnb._plan.measurements import AnyView, ColumnsView, Discovery, PlainView
from dpnb._plan.plan import Plan, describe_plan, title_of
from dpnb._target import Keys, Target, target_from
from dpnb.accounting.exact import decimal_down, few_digits_down
from dpnb.accounting.filters import Filter
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP, Loss
from dpnb.copying import NotCopyable
from dpnb.mechanisms.calibration import sigma_for
from dpnb.mechanisms.partition_selection import threshold_for
from dpnb.render.numbers import format_number
from dpnb.results.estimates.expected import RANK, in_rank, rank_note
from dpnb.results.estimates.noisy import Cells
from dpnb.results.estimates.outputs import outputs_of
from dpnb.results.preview import CountNeeded, Preview


def preview(pricer: QueryPricer, plan: Plan, view: AnyView, target: Target, notice: str | None) -> Preview:
    """The preview of a release."""
    (found,) = previews(pricer, plan, view, [target], notice)
    return found


def previews(
    pricer: QueryPricer, plan: Plan, view: AnyView, targets: Iterable[Target], notice: str | None
) -> list[Preview]:
    """The previews of releases of one query, each alone after the ledger as it is now.

    All targets are about the same groups.
    """
    ledger, found, known = pricer.account.ledger, [], None
    with ledger.lock.checked(), ledger.one_moment():
        for target in targets:
            known = known or _PreviewedQuery(pricer, plan, view, target.groups)
            found.append(known.preview(target, notice))
    return found


class _PreviewedQuery(NotCopyable):
    """What previews of one query have in common, with the ledger as it is now."""

    def __init__(self, pricer: QueryPricer, plan: Plan, view: AnyView, groups: Keys) -> None:
        self._pricer, self._plan, self._view = pricer, plan, view
        self._state = pricer.state(plan, view, groups)
        self._rows = pricer.row_counts(self._state)
        self._filter = pricer.account.filter

    @cached_property
    def _count_needed(self) -> CountNeeded | None:
        count = count_needed(self._plan, self._view)
        return None if count is None else CountNeeded(count, describe_plan(count, PlainView()), count_code(count))

    @cached_property
    def _contribution(self) -> str:
        return contribution(self._state.query, self._pricer.tables.unit(self._plan.source))

    @cached_property
    def _left_out(self) -> tuple[tuple[str, str], ...]:
        tables, source = self._pricer.tables, self._plan.source
        return tuple(left_out(self._state.query, tables.unit(source), tables.units, tables.schema(source)))

    def preview(self, target: Target, notice: str | None) -> Preview:
        pricer, plan, view, filter_ = self._pricer, self._plan, self._view, self._filter
        account = pricer.account
        state, total, cost = pricer.price(self._state, target, self._rows)
        if cost.mu_squared:
            refuse_after_final(state, target)
        guarantee = account.guarantee
        rows = None if self._rows is None else self._rows.for_display
        forecast = pricer.forecast(state, target, rows)
        model = forecast.error_model()
        counted = guarantee.to_filter_loss(cost)
        cost_fraction, after = account.forecast(counted)
        errors, least, assumed, at_once = model.current, None, None, None
        if cost.mu_squared:
            scale = _scale(state, total)
            errors, assumed = model.expected(scale), forecast.assumption(scale)
            if errors is not None and model.current is not None:
                errors, at_once = np.minimum(errors, model.current), forecast.in_one_release(scale)
            if rows is not None and rows.most is not None:
                least = forecast.least(scale)
        fits = filter_.admits(counted)
        query = state.query
        discovery = isinstance(plan.aggregation, Discovery)
        return Preview(
            description=state.description,
            request=target.words,
            total_loss=total,
            cost=cost,
            cost_fraction=cost_fraction,
            confidence=decimal_down(target.confidence),
            half_widths=errors,
            least_half_widths=least,
            error_unit=RANK if in_rank(view) else answer_unit(plan.aggregation, view),
            names=() if discovery else tuple([group.name for group in plan.group_by]),
            keys=tuple([query.keys[cell] for cell in state.cells]) if query.keys else ((),),
            outputs=outputs_of(view),
            headroom_after=few_digits_down(after) if fits else 0.0,
            fits=fits,
            max_mu=None if fits else account.max_mu(state.known_loss),
            max_repetitions=filter_.max_repetitions(counted),
            contribution=self._contribution,
            left_out=self._left_out,
            refinement_note=guarantee.refining,
            assumption=_assumption(state, rows, errors, total, target),
            assumed_description=None if errors is None else assumed,
            current_half_widths=model.current,
            half_widths_in_one_release=at_once,
            notice=notice,
            participation=_participation(filter_, counted, is_standalone=state.is_standalone),
            count_needed=self._count_needed if forecast.rows_would_help(errors) else None,
            rank_note=rank_note(query, view),
        )


def count_to_release(pricer: QueryPricer, plan: Plan, view: AnyView) -> Plan | None:
    """The count that makes unknown expected errors of a query known, also after its release; None if none does."""
    count = count_needed(plan, view)
    if count is None:
        return None
    with pricer.account.ledger.lock.checked():
        if pricer.state(count, PlainView(), ()).known_loss.mu_squared:
            return count
        state = pricer.state(plan, view, ())
        rows = pricer.row_counts(state)
        forecast = pricer.forecast(state, target_from(mu=1), None if rows is None else rows.for_display)
        return count if forecast.rows_would_help(forecast.error_model().expected(1.0)) else None


def _participation(filter_: Filter, cost: Loss, *, is_standalone: bool) -> str | None:
    """Which units would take part, under individual accounting: a function of the ledger alone."""
    if not filter_.is_individual:
        return None
    if is_standalone:
        return (
            "the units that can still pay for it: some units may be excluded, so it is not combined with earlier "
            "observations"
        )
    times = filter_.max_repetitions(cost)
    if times is None:
        return "every unit, certainly: this is known already"
    return f"every unit, certainly; also in {times - 1:,} more like it"


def explain(pricer: QueryPricer, plan: Plan, view: AnyView) -> tuple[str, list[tuple[str, str]]]:
    """The query in words, and what one unit can change in it."""
    query = pricer.tables.compile(plan)
    title = title_of(plan, view, query.contribution_bounds)
    tables = pricer.tables
    return title, explanation(query, tables.unit(plan.source), tables.units, tables.schema(plan.source))


def _scale(state: QueryState, total: GDP) -> float:
    """Noise scale of the measured cells at the total loss `total`."""
    return sigma_for(state.measured.l2_sensitivity_squared, GDP.from_mu_squared(total.mu_squared))


def _discovery(state: QueryState, total: GDP, target: Target) -> str:
    """The assumption of a discovery's error, and the threshold at which a group is named."""
    scale, groups = _scale(state, total), state.measured.l2_sensitivity_squared
    threshold = threshold_for(scale, groups, state.discovery_delta)
    named = f"a group is named if its number of units, with noise, is at least {math.ceil(threshold):,}"
    if target.simultaneous:
        return f"the number of groups that are named, which is not known beforehand; {named}"
    radius = fixed_radius([scale], alpha=target.alpha)
    return f"a group near the threshold (about ± {format_number(radius, radius)} far above it); {named}"


def _assumption(
    state: QueryState, rows: RowCounts | None, errors: Cells | None, total: GDP, target: Target
) -> str | None:
    """What the expected errors assume."""
    if state.discovery_delta:
        return _discovery(state, total, target)
    plan, view = state.query.plan, state.view
    if rows is not None:
        where = " in the smallest group" if plan.group_by else ""
        most = "" if rows.most is None else f" to {np.nanmin(rows.most):,.0f}"
        return f"about {np.nanmin(rows.by_cell):,.0f}{most} rows{where} ({rows.source})"
    if errors is None and rows_needed(plan, view) is not None and not isinstance(view, ColumnsView):
        return "the number of rows, of which there is no released count; the interval comes with the answer"
    if errors is None:
        return "the answer itself, which has no observation yet; the interval comes with the answer"
    if not np.isfinite(errors).all():
        return "the noise; an unknown error depends on the answer itself, and its interval comes with the answer"
    return None
