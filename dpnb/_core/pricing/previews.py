"""Cost and expected error of a release, and their explanation: free, and computed without the table."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from dpnb._compile.query_explanation import contribution, explanation, left_out
from dpnb._core.pricing.forecasts import ExpectedErrors, known_ranks
from dpnb._core.pricing.pricer import QueryPricer, refuse_after_final
from dpnb._core.pricing.public_knowledge import RowCounts, count_code, count_needed, rows_needed
from dpnb._core.pricing.query_state import QueryState
from dpnb._core.pricing.typical import TYPICAL, typical_words
from dpnb._plan.description import answer_unit
from dpnb._plan.measurements import AnyView, ColumnsView, Count, Discovery, PlainView
from dpnb._plan.plan import Plan, describe_plan, title_of
from dpnb._target import Keys, Target, TargetKind, refuse_kinds, target_from, target_of
from dpnb.accounting.exact import decimal_down, few_digits_down, percent_down
from dpnb.accounting.filters import Filter
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP, Loss
from dpnb.copying import NotCopyable
from dpnb.errors import DpnbError, RefinementWarning, RequestError
from dpnb.mechanisms.gaussian import sigma_for
from dpnb.mechanisms.selection import threshold_for
from dpnb.render.numbers import describe_error, format_cost, format_number
from dpnb.results.estimates.expected import RANK, in_rank, output_units, rank_note
from dpnb.results.estimates.linear import named_outputs
from dpnb.results.estimates.noisy import Cells
from dpnb.results.estimates.outputs import outputs_of
from dpnb.results.preview import GAIN, Amounts, CountNeeded, Preview, Previews, gain
from dpnb.schema import Key

PICKER_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Shares of the remaining budget that are proposed."""

PICKER_MUS = (0.02, 0.05, 0.1, 0.2, 0.5)
"""What is proposed without a budget, of which there are no shares."""


def proposed_targets(*, has_budget: bool) -> dict[TargetKind, tuple[float, ...]]:
    """The amounts of the targets that a preview without arguments shows, by their kind."""
    return {"share": PICKER_STEPS} if has_budget else {"mu": PICKER_MUS}


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


def preview_each(
    pricer: QueryPricer,
    plan: Plan,
    amounts: Amounts,
    options: Mapping[str, Any],
    previewed: Callable[[Iterable[Target]], list[Preview]],
) -> Preview | Previews:
    """The previews of the arguments of `dpnb.Query.preview`: of one amount, of each in a list, or of proposed ones."""
    given: dict[TargetKind, Any] = {kind: value for kind, value in amounts.items() if value is not None}
    if not given:
        given |= proposed_targets(has_budget=pricer.account.guarantee.has_budget)
    lists = [kind for kind, value in given.items() if isinstance(value, list | tuple)]
    if len(lists) > 1:
        raise RequestError(f"preview: one target may be a list; got {' and '.join(lists)}")
    if lists and not given[lists[0]]:
        raise RequestError(f"preview: {lists[0]} must name at least one amount; got an empty list")
    options = {**options, "groups": pricer.tables.group_keys(plan, options.get("groups"))}
    if not lists:
        return previewed([target_from(**given, **options, verb="preview")])[0]
    if len(given) > 1:
        refuse_kinds({**given, lists[0]: given[lists[0]][0]}, "preview")
    return Previews(tuple(previewed(target_of(lists[0], amount, **options) for amount in given[lists[0]])))


def warn_without_gain(pricer: QueryPricer, plan: Plan, view: AnyView, target: Target) -> None:
    """Warn before a refinement that its forecast narrows no interval, and name the least that does by `GAIN`.

    The forecast uses released and public figures only.  A request that is refused is left to the release.
    """
    words, ledger = "", pricer.account.ledger
    with suppress(DpnbError), ledger.lock.checked(), ledger.one_moment():
        known = _PreviewedQuery(pricer, plan, view, target.groups)
        found = known.preview(target, None)
        if found.fits and not found.narrows_interval:
            cost = format_cost(found.cost, found.cost_fraction)
            words = (
                f"refine: {target.words} costs {cost} and is not expected to narrow an interval of the "
                f"{found.description}; {_least_gain(pricer, known, target, found)}; "
                "answer.preview(...) shows beforehand what a refinement buys"
            )
    if words:
        warnings.warn(words, RefinementWarning, stacklevel=5)


def _least_gain(pricer: QueryPricer, known: _PreviewedQuery, target: Target, found: Preview) -> str:
    """The smallest share, or mu without a budget, that narrows the widest interval by `GAIN`, in two digits."""
    has_budget = pricer.account.guarantee.has_budget
    kind: TargetKind = "share" if has_budget else "mu"
    decades = range(5, 1, -1) if has_budget else range(1 - math.floor(math.log10(found.total_loss.mu)), -9, -1)[:3]
    amounts = [(digits, places) for places in decades for digits in range(10, 100)]
    amounts += [(1, 0)] if has_budget else []

    def of(amount: tuple[int, int]) -> Target:
        digits, places = amount
        return msgspec.structs.replace(target, kind=kind, amount=Fraction(digits) / Fraction(10) ** places)

    def narrowed(amount: tuple[int, int]) -> float:
        return known.gain(of(amount), found.current_half_widths)

    if (most := narrowed(amounts[-1])) < GAIN:
        what = "all that is left" if has_budget else of(amounts[-1]).words
        return f"{what} narrows the widest one by {percent_down(most)} only" if most else f"nor is {what}"
    least = of(amounts[bisect_left(amounts, GAIN, key=narrowed)])
    return f"{least.words} is the least that narrows the widest one by a quarter"


class _PreviewedQuery(NotCopyable):
    """What previews of one query have in common, with the ledger as it is now."""

    def __init__(self, pricer: QueryPricer, plan: Plan, view: AnyView, groups: Keys) -> None:
        self._pricer, self._plan, self._view = pricer, plan, view
        self._state = pricer.state(plan, view, groups)
        self._rows = pricer.row_counts(self._state)
        self._filter = pricer.account.filter
        self._with_rows: dict[bool, Cells | None] = {}

    def _count_needed(self, forecast: ExpectedErrors, errors: Cells | None) -> CountNeeded | None:
        """The count that would make some of the errors known, if one would."""
        if (errors is not None and np.isfinite(errors).all()) or self._count is None:
            return None
        if forecast.has_rows not in self._with_rows:
            self._with_rows[forecast.has_rows] = forecast.with_rows()
        return self._count_in_words if forecast.rows_would_help(errors, self._with_rows[forecast.has_rows]) else None

    @cached_property
    def _count(self) -> Plan | None:
        return count_needed(self._plan, self._view)

    @cached_property
    def _count_in_words(self) -> CountNeeded | None:
        count = self._count
        return None if count is None else CountNeeded(count, describe_plan(count, PlainView()), count_code(count))

    @cached_property
    def _contribution(self) -> str:
        return contribution(self._state.query, self._pricer.tables.unit(self._plan.source))

    @cached_property
    def _left_out(self) -> tuple[tuple[str, str], ...]:
        tables, source = self._pricer.tables, self._plan.source
        return tuple(left_out(self._state.query, tables.unit(source), tables.units, tables.schema(source)))

    @cached_property
    def _rows_of_table(self) -> RowCounts | None:
        """The known numbers of rows, for a query whose errors do not depend on these alone."""
        counted = self._pricer.row_counts(self._state, Count())
        return None if counted is None else counted.for_display

    @cached_property
    def _outputs(self) -> tuple[str, tuple[Key, ...]] | None:
        found = outputs_of(self._view)
        if found is None or found[0] != "term":
            return found
        return named_outputs(self._state.query, self._view, self._pricer.tables.schema(self._plan.source))

    @cached_property
    def _rows_in_rank(self) -> RowCounts | None:
        return self._pricer.rows_in_rank(self._state)

    def _known(self, errors: Cells | None) -> Cells | None:
        rows = self._rows_in_rank
        return errors if rows is None else known_ranks(errors, self._state, rows)

    def gain(self, target: Target, current: Cells | None) -> float:
        """The gain of the preview of a target, as far as `current` are the half-widths now; 0 without one."""
        state, total, cost = self._pricer.price(self._state, target, self._rows)
        if current is None or state.is_standalone or not cost.mu_squared:
            return 0.0
        rows = None if self._rows is None else self._rows.for_display
        errors = self._known(self._pricer.forecast(state, target, rows).expected(_scale(state, total)))
        return 0.0 if errors is None else gain(current, np.minimum(errors, current), outputs_of(self._view))

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
        current = errors = self._known(model.current)
        least, assumed, at_once, clearness, is_typical = None, None, None, None, False
        if cost.mu_squared:
            scale = _scale(state, total)
            errors, assumed = self._known(model.expected(scale)), forecast.assumption(scale)
            if errors is not None and current is not None:
                errors, at_once = np.minimum(errors, current), self._known(forecast.in_one_release(scale))
            if rows is not None and rows.most is not None:
                least = forecast.least(scale)
            if current is None and not state.is_standalone and (errors is None or not np.isfinite(errors).all()):
                at_typical = pricer.forecast(state, target, self._rows_of_table)
                if (typical := self._known(at_typical.typical(scale))) is not None:
                    forecast, rows, is_typical = at_typical, at_typical.rows, True
                    errors = typical if errors is None else np.where(np.isfinite(errors), errors, typical)
                    assumed = " and ".join(filter(None, [None if rows is None else rows.assumption, TYPICAL]))
                    least, clearness = self._known(at_typical.least_typical(scale)), at_typical.clearness(scale)
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
            outputs=self._outputs,
            headroom_after=few_digits_down(after) if fits else 0.0,
            fits=fits,
            max_mu=None if fits else account.max_mu(state.known_loss),
            max_repetitions=filter_.max_repetitions(counted),
            contribution=self._contribution,
            left_out=self._left_out,
            refinement_note=guarantee.refining,
            assumption=_assumption(state, rows, errors, total, target, is_typical=is_typical),
            assumed_description=None if errors is None else assumed,
            current_half_widths=current,
            half_widths_in_one_release=at_once,
            notice=notice,
            participation=_participation(filter_, counted, is_standalone=state.is_standalone),
            count_needed=self._count_needed(forecast, errors),
            output_units=output_units(view),
            rank_note=rank_note(query),
            clearness=clearness,
            layout=(view.rows, view.statistics) if isinstance(view, ColumnsView) and view.rows else None,
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
        rows = pricer.row_counts(state) or pricer.row_counts(state, Count())
        forecast = pricer.forecast(state, target_from(mu=1), None if rows is None else rows.for_display)
        return count if forecast.rows_would_help(forecast.error_model().expected(1.0), forecast.with_rows()) else None


def error_at(pricer: QueryPricer, state: QueryState, target: Target, total: GDP) -> str | None:
    """The expected error at a total loss in few words, for a refusal; None if it is not known."""
    rows = pricer.row_counts(state)
    errors = pricer.forecast(state, target, None if rows is None else rows.for_display).error_model()
    widths = known_ranks(errors.expected(_scale(state, total)), state, pricer.rows_in_rank(state))
    if widths is None or not np.isfinite(widths).any():
        return None
    unit = RANK if in_rank(state.view) else answer_unit(state.query.plan.aggregation, state.view)
    outputs = outputs_of(state.view)
    return describe_error(widths, outputs, decimal_down(target.confidence), unit, units=output_units(state.view))


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
    state: QueryState, rows: RowCounts | None, errors: Cells | None, total: GDP, target: Target, *, is_typical: bool
) -> str | None:
    """What the expected errors assume."""
    if state.discovery_delta:
        return _discovery(state, total, target)
    plan, view = state.query.plan, state.view
    if rows is not None:
        where = " in the smallest group" if plan.group_by else ""
        most = "" if rows.most is None else f" to {np.nanmin(rows.most):,.0f}"
        known = f"about {np.nanmin(rows.by_cell):,.0f}{most} rows{where} ({rows.source})"
        return f"{known} and {typical_words(plan.aggregation)}" if is_typical else known
    if errors is None and rows_needed(plan, view) is not None and not isinstance(view, ColumnsView):
        return "the number of rows, of which there is no released count; the interval comes with the answer"
    if errors is None:
        return "the answer itself, which has no observation yet; the interval comes with the answer"
    if not np.isfinite(errors).all():
        return "the noise; an unknown error depends on the answer itself, and its interval comes with the answer"
    return None
