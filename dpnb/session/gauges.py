"""The gauges of a session, and in words what of its budget is spent, rounded conservatively."""

from __future__ import annotations

import math
from functools import lru_cache

from dpnb._browser.snapshot import Gauge
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.session_explanation import WORST_CASE, participation_description, remaining_description
from dpnb.accounting.budget import Budget, NoBudget
from dpnb.accounting.exact import (
    decimal_down,
    decimal_sqrt_up,
    decimal_up,
    display_down,
    display_up,
    exact,
    few_digits_down,
    of_budget,
)
from dpnb.accounting.filters import Filter
from dpnb.accounting.guarantee import PrivacyGuarantee
from dpnb.accounting.odometers import Odometer
from dpnb.accounting.odometers.base import confidence_text
from dpnb.render.numbers import format_percent_down, format_percent_up


def describe_spent(filter_: Filter, total: Budget | NoBudget) -> str:
    """The loss spent and the budget, in the filter's own measure, rounded conservatively but never past the budget."""
    words = filter_.spent_words
    if not total.is_limited or not total.discovery_delta:
        return words
    return f"{words}, and " + of_budget("delta", decimal_up(filter_.spent.delta), decimal_down(filter_.budget.delta))


def percent_spent(filter_: Filter) -> str:
    """The share of the budget that is spent, rounded up: what remains, rounded down, and this are 100% together.

    Below 1% it has hundredths, like the costs of which it is the sum.  Without a budget it is the loss in words.
    """
    if filter_.budget is None:
        return f"{filter_.spent.words} spent"
    spent = decimal_up(1 - exact(filter_.headroom))
    scope = " in the worst case" if filter_.is_individual else ""
    return f"{format_percent_up(spent) if spent else '0%'} spent{scope}"


def finite(value: float | None) -> float | None:
    """The value if JSON has it, otherwise None: an unknown number, or the end of an unbounded interval."""
    return value if value is not None and math.isfinite(value) else None


# --- the gauges of a session ------------------------------------------------------------------------------------------


def headroom_gauge(account: Accountant, filter_: Filter) -> Gauge:
    """The budget that is left; under individual accounting, of a unit that every query affects in full.

    Without a budget, a warning in its place.  The filter is that of the account now.
    """
    if not account.guarantee.has_budget:
        return _no_budget_gauge()
    headroom, (label, theorem, _) = few_digits_down(filter_.headroom), words_of(account.guarantee)
    left = format_percent_down(headroom)
    limit = account.binding_limit
    of, beside = "the budget", ""
    if limit is not None:
        whole = format_percent_down(account.root.sync().filter.headroom)
        of, beside = limit.words, f"Of the whole budget {whole} is left. "
    return Gauge(
        id="headroom",
        label=WORST_CASE if account.individual else "Budget left",
        kind="remaining",
        value=headroom,
        text=remaining_description(account) or f"{left} left{'' if limit is None else f' of {of}'}",
        end=None,
        note=None,
        description=participation_description(account)
        or f"The {label} filter has {left} of {of} left and refuses any query that exceeds it. {beside}{theorem}.",
    )


@lru_cache(maxsize=64)
def words_of(guarantee: PrivacyGuarantee) -> tuple[str, str, str]:
    """The label and the theorem of the filter that enforces a guarantee, and the guarantee in words."""
    return guarantee.initial_filter.label, guarantee.initial_filter.theorem, guarantee.words


def _no_budget_gauge() -> Gauge:
    return Gauge(
        id="headroom",
        label="No budget",
        kind="no-budget",
        value=None,
        text="nothing limits the privacy loss",
        end=None,
        note=None,
        description="The curator declared no budget: no query is refused for its cost. Odometers report the loss.",
    )


def reserve_gauge(filter_: Filter) -> Gauge | None:
    """What is left of the reserve for pure losses; None if the budget has none, or nothing else."""
    if not filter_.reserve:
        return None
    left, whole = format_percent_down(filter_.reserve_headroom), display_down(decimal_down(filter_.reserve))
    return Gauge(
        id="reserve",
        label="Reserve (pure DP)",
        kind="remaining",
        value=filter_.reserve_headroom,
        text=f"{left} left",
        end=None,
        note=None,
        description=f"Scans and selections in pure DP are charged to a reserve of epsilon {whole}, of which {left} is "
        "left. A larger one takes what is left, and a part of the other budget.",
    )


def odometer_gauge(odometer: Odometer, account: Accountant, scope: str) -> Gauge:
    """The odometer that can be read now, on a scale that ends at its reading when the whole budget is spent.

    Without a budget it has no scale.
    """
    is_uniform = odometer.kind == "time-uniform"
    value, end, scale = None, None, ""
    if account.guarantee.has_budget:
        if is_uniform:
            full = full_reading(odometer, account)
            value, reading = _share(odometer.bound, full), display_up(full)
        else:
            value, reading = _accumulator_scale(odometer, account)
        end = f"{reading} when the budget is spent"
        scale = f" The scale ends at {reading}, its reading when the budget is spent."
    return Gauge(
        id="mixture" if is_uniform else "accumulator",
        label="Odometer" if is_uniform else "Accumulator",
        kind="loss",
        value=value,
        text=odometer.words,
        end=end,
        note=_note(odometer, account),
        description=f"{scope}{odometer.statement()}{scale}",
    )


def full_reading(odometer: Odometer, account: Accountant) -> float:
    """The reading of the odometer when the whole budget is spent, rounded up; never below the current one."""
    return max(account.initial_odometer.bound_at(account.guarantee.horizon), odometer.bound)


def _accumulator_scale(odometer: Odometer, account: Accountant) -> tuple[float, str]:
    """The position of the accumulator, and its reading when the rest of the budget is spent on Gaussian releases.

    The GDP filter may have charged less for a pure-DP mechanism than the accumulator counts.
    """
    filter_ = account.filter
    if filter_.records_charge:
        counted, left = account.sync().counted.converted.mu_squared, filter_.mu_squared_left or 0
        full = counted + left
        return float(counted / full) if full else 0.0, f"{display_up(decimal_sqrt_up(full))}-GDP"
    return 1 - filter_.headroom, account.guarantee.filter_guarantee


def _share(bound: float, full: float) -> float:
    """The position on a scale from 0 to `full`; where no number bounds the loss, its end."""
    return bound / full if math.isfinite(bound) and full else float(bound > 0)


def _note(odometer: Odometer, account: Accountant) -> str:
    """What the reading of the session's odometer means, and what it does not, in one plain sentence."""
    if odometer.kind == "accumulator":
        return "All answers so far are within every budget of at least this size that was fixed in advance."
    if not math.isfinite(odometer.bound):
        return odometer.statement()
    confidence = confidence_text(account.initial_odometer.failure)
    if not account.guarantee.has_budget:
        return f"A bound at every moment with confidence {confidence}. Nothing limits how far it grows."
    exceed = "" if account.budget.epsilon is None else ", so it may exceed epsilon"
    return f"A bound at every moment with confidence {confidence}: a different statement from the guarantee{exceed}."
