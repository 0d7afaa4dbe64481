"""The loss at which a query meets the target of a release."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

import numpy as np

from dpnb._core.pricing.public_knowledge import PRECISE_COUNT_RATIO, RowCounts, count_code, count_needed, rows_needed
from dpnb._plan.measurements import AnyView, Discovery
from dpnb._plan.plan import Plan, describe_plan
from dpnb._target import Label, Target
from dpnb.accounting.budget import Budget, NoBudget
from dpnb.accounting.conversions import mu_from_epsilon
from dpnb.accounting.exact import decimal_down, decimal_sqrt_up, display_down
from dpnb.accounting.losses import GDP
from dpnb.errors import BudgetExceeded, ErrorEstimateUnavailable, RequestError
from dpnb.results.estimates.noisy import Cells

# --- the refusal of Gaussian noise under a budget in pure DP ----------------------------------------------------------


def refuse_in_pure_dp(budget: Budget | NoBudget, description: str) -> None:
    """Refuse Gaussian noise under a budget in pure DP, whatever is left of it."""
    if budget.is_pure:
        raise BudgetExceeded(
            f"{description}: has Gaussian noise, and the budget is in pure DP; use session.above_threshold(...), or "
            ".top(k) or .idxmax() of a count, or a session with dpnb.Budget(epsilon, delta, pure_epsilon); nothing was "
            "charged"
        )


# --- the refusal of a target whose error is not known -----------------------------------------------------------------


def refuse_unknown_error(
    plan: Plan,
    view: AnyView,
    rows: RowCounts | None,
    *,
    enough: bool,
    n_observations: int,
    is_standalone: bool,
    has_budget: bool,
) -> NoReturn:
    """Raise an error that states what must be released before ``within=`` can be used.

    `enough` says whether knowing the number of rows would be enough, `n_observations` how often the query was observed,
    and `is_standalone` whether some units may be excluded from a further observation.
    """
    description = describe_plan(plan, view)
    if isinstance(plan.aggregation, Discovery):
        raise ErrorEstimateUnavailable(
            f"within: the width of simultaneous intervals for {description} depends on how many groups are named, "
            "which is not known beforehand; omit simultaneous=True, or choose the budget with mu=, rho=, epsilon= or "
            "share="
        )
    budget = "share=0.05" if has_budget else "mu=0.05"
    if is_standalone:
        raise ErrorEstimateUnavailable(
            f"within: some units may be excluded from a further observation of the {description}, and how many is "
            f"private; choose the budget instead, as in .release({budget})"
        )
    needed = rows_needed(plan, view)
    rows_known = rows is not None and rows.assumption is None and bool(np.isfinite(rows.by_cell).all())
    if needed is None or not enough or rows_known or (rows is not None and rows.from_query):
        rough = "" if not n_observations else ", and its observations are not yet precise enough"
        raise ErrorEstimateUnavailable(
            f"within: the error of the {description} depends on the answer itself{rough}; choose the budget instead, "
            f"as in {'answer.refine' if n_observations else '.release'}({budget}), after which within= may be known"
        )
    count = count_needed(plan, view) or plan
    is_whole_table = plan.where is None and not plan.group_by and isinstance(plan.source, str)
    public = ", or create the session with public_rows=" if is_whole_table else ""
    group, smallest = (" in each group", "the smallest group") if plan.group_by else ("", "it")
    code = f"{count_code(count) or 'query.count_needed'}.release({_count_target(rows, has_budget=has_budget)})"
    assumed = f" (assumed that {rows.assumption})" if rows is not None and not n_observations else ""
    raise ErrorEstimateUnavailable(
        f"within: the error of the {description} depends on how many rows there are{group}, which no released count "
        f"shows clearly enough{assumed}; release the {count.words} first, by {code}, until its noise scale is "
        f"at most 1/{PRECISE_COUNT_RATIO:.0f} of {smallest}{public}, or choose the budget instead, as in "
        f".release({budget})"
    )


def _count_target(rows: RowCounts | None, *, has_budget: bool) -> str:
    """The target of a count after which a half-width can be priced: from a released count, if all groups have one.

    A half-width of a twentieth of the count is that of a noise scale of about a fortieth.
    """
    known = None if rows is None or not rows.is_released else rows.for_display.by_cell
    if known is not None and np.isfinite(known).all() and known.min() > 0:
        return f"within={display_down(known.min() / 20, 2)}"
    return "share=0.01" if has_budget else "mu=0.02"


# --- the target of a release ------------------------------------------------------------------------------------------


WITHIN_MARGIN = 1 - 1e-9
"""Tolerance for rounding in doubles, so that the interval is not wider than requested in the last digits."""

MAX_WIDTH_RATIO = 1.2
"""A target is refused if a half-width might be more than this multiple of the requested one."""

MAX_COST_RATIO = 1.5
"""A target is refused if it might cost more than this multiple of what is needed, which is inverse to width squared."""


@dataclass(frozen=True)
class ErrorModel:
    """The errors of a query as a function of the noise scale."""

    description: str  # of the query, in words
    labels: list[list[tuple[Label, ...]]]  # those in ``within=`` of each group and output; shape (groups, outputs)
    mixed_units: bool  # whether the outputs have different units
    sensitivity_squared: int  # of the measured cells
    current: Cells | None  # half-widths, shape (groups, outputs)
    # half-widths at a noise scale of the sums; None if they cannot be predicted
    expected: Callable[[float], Cells | None]
    possible: Callable[[float], Iterable[Cells | None]]  # half-widths that may result at a noise scale


def resolve(
    target: Target,
    *,
    description: str,
    known: GDP,
    budget: Budget | NoBudget,
    remaining: Callable[[Fraction], GDP],
    errors: Callable[[], ErrorModel],
    refuse_unknown: Callable[[], None],
) -> GDP:
    """The total loss at which a query meets the target, including earlier observations.

    `known` is the loss already paid for the query; `remaining` returns the largest loss that is at most a given share
    of the remaining budget; `errors` is called for ``within=`` only; `refuse_unknown` raises an error about ``within=``
    for an error that cannot be predicted.
    """
    if target.kind == "within":
        refuse_in_pure_dp(budget, description)
        return _within(target, known, errors(), refuse_unknown)
    return resolve_loss(target, description=description, known=known, budget=budget, remaining=remaining)


def resolve_loss(
    target: Target, *, description: str, known: GDP, budget: Budget | NoBudget, remaining: Callable[[Fraction], GDP]
) -> GDP:
    """The total loss of a target that is a loss or a share; see `resolve`."""
    refuse_in_pure_dp(budget, description)
    amount = target.amount or Fraction(0)
    if target.kind == "mu":
        return GDP(amount)
    if target.kind == "rho":
        return GDP.from_mu_squared(2 * amount)
    if target.kind == "share":
        additional = remaining(amount)
        if not additional.mu_squared:
            raise BudgetExceeded(
                f"{description}: share= requires remaining budget, but nothing is left; nothing was charged"
            )
        return GDP.from_mu_squared(known.mu_squared + additional.mu_squared)
    return _from_epsilon(amount, budget)


def _from_epsilon(epsilon: Fraction, budget: Budget | NoBudget) -> GDP:
    if budget.delta is None:
        raise RequestError(
            "epsilon: requires a budget with a delta; this one is in GDP and has none; give mu= or rho= instead"
        )
    mu = mu_from_epsilon(epsilon, delta=budget.delta - budget.discovery_delta)
    if mu == 0:
        raise RequestError(
            f"epsilon: is too small to measure anything; got {decimal_down(epsilon)!r}; give a larger value"
        )
    return GDP(mu)


def _within(target: Target, known: GDP, errors: ErrorModel, refuse_unknown: Callable[[], None]) -> GDP:
    """Solve for the noise scale by bisection: every half-width increases with it."""
    requested = _requested(target, errors)

    def enough(widths: Cells | None) -> bool:
        return widths is not None and bool((np.isinf(requested) | (widths <= requested * WITHIN_MARGIN)).all())

    if enough(errors.current):
        return known
    # The scale at which the loss is mu = 1.
    low = high = math.sqrt(errors.sensitivity_squared)
    best = errors.expected(low * 1e-9)  # with almost no noise, only what cannot be predicted remains unknown
    if best is None or not np.isfinite(best[np.isfinite(requested)]).all():
        refuse_unknown()
    if enough(errors.expected(high)):
        while enough(errors.expected(high)) and math.isfinite(high):
            low, high = high, high * 4
    else:
        while not enough(errors.expected(low)):
            high, low = low, low / 4
            if low < 1e-280:
                break
    if low < 1e-280 or not math.isfinite(high):
        raise RequestError(
            f"within: no noise can be calibrated to an error of {target.words.partition('=')[2]} in the "
            f"{errors.description}; give another error"
        )
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if enough(errors.expected(middle)) else (low, middle)
    if not is_reliable_forecast(errors.possible(low), requested):
        refuse_unknown()
    return GDP(decimal_sqrt_up(errors.sensitivity_squared / Fraction(low) ** 2))


def is_reliable_forecast(possible: Iterable[Cells | None], requested: Cells | None, *, per_cell: bool = False) -> bool:
    """Whether all possible half-widths are within `MAX_WIDTH_RATIO` and `MAX_COST_RATIO` of the requested ones.

    The widest one relative to the requested one is compared; with `per_cell`, each of them.
    """
    if requested is None:
        return False
    for widths in possible:
        if widths is None:
            return False
        with np.errstate(all="ignore"):
            ratios = np.where(np.isinf(requested), 1.0 if per_cell else 0.0, widths / requested)
        ratios = ratios if per_cell else np.max(ratios)
        if not np.all((ratios <= MAX_WIDTH_RATIO) & (ratios >= MAX_COST_RATIO**-0.5)):  # False for NaN too
            return False
    return True


def _requested(target: Target, errors: ErrorModel) -> Cells:
    """The requested half-width of each group and output; infinite if there is none."""
    if target.amount is not None:
        if errors.mixed_units:
            raise RequestError(
                f"within: the statistics of {errors.description} have different units; name one, as in "
                "within={'mean': 0.3}"
            )
        return np.full((len(errors.labels), len(errors.labels[0])), decimal_down(target.amount))
    amounts = dict(target.amounts)
    requested = np.full((len(errors.labels), len(errors.labels[0])), np.inf)
    used: set[Label] = set()
    for row, outputs in enumerate(errors.labels):
        for column, labels in enumerate(outputs):
            for label in labels:
                if label in amounts:
                    used.add(label)
                    requested[row, column] = min(requested[row, column], decimal_down(amounts[label]))
    for label in amounts:
        if label not in used:
            raise RequestError(
                f"within: {label!r} is not a group or statistic of {errors.description}; got {target.words}"
            )
    return requested
