"""The gauges of a session: the budget that is left, and the reading of the odometer on a scale of its own."""

from __future__ import annotations

import math

from dpnb._core.accountant import participation
from dpnb._core.accountant.accountant import Accountant
from dpnb._protocol.snapshot import Gauge
from dpnb.accounting.exact import display_up
from dpnb.accounting.guarantee import FILTERS
from dpnb.accounting.odometers import MixtureOdometer, Odometer, SpentAccumulator
from dpnb.accounting.odometers.statements import confidence_text
from dpnb.render.numbers import format_percent_down


def headroom_gauge(account: Accountant) -> Gauge:
    """The budget that is left; under individual accounting, of a unit that every query affects in full.

    Without a budget, a warning in its place.
    """
    if not account.guarantee.has_budget:
        return _no_budget_gauge()
    headroom = account.filter.headroom
    left, (label, theorem) = format_percent_down(headroom), FILTERS[account.guarantee.filter_name]
    return Gauge(
        id="headroom",
        label=participation.WORST_CASE if account.individual else "Headroom",
        kind="remaining",
        value=headroom,
        text=participation.remaining_description(account) or f"{left} left",
        end=None,
        note=None,
        description=participation.participation_description(account)
        or f"The {label} filter has {left} of the budget left and refuses any query that exceeds it. {theorem}.",
    )


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


def odometer_gauge(odometer: Odometer, account: Accountant, scope: str) -> Gauge:
    """The odometer that can be read now, on a scale that ends at its reading when the whole budget is spent.

    Without a budget it has no scale.
    """
    if not account.guarantee.has_budget:
        is_mixture = isinstance(odometer, MixtureOdometer)
        return Gauge(
            id="mixture" if is_mixture else "accumulator",
            label="Odometer" if is_mixture else "Accumulator",
            kind="loss",
            value=None,
            text=odometer_reading(odometer),
            end=None,
            note=_note(odometer, account),
            description=f"{scope}{odometer.statement()}",
        )
    if isinstance(odometer, MixtureOdometer):
        full = full_reading(odometer, account)
        name, label, value, end = "mixture", "Odometer", _share(odometer.bound, full), display_up(full)
    else:
        name, label, value = "accumulator", "Accumulator", 1 - account.filter.headroom
        end = account.guarantee.filter_guarantee
    return Gauge(
        id=name,
        label=label,
        kind="loss",
        value=value,
        text=odometer_reading(odometer),
        end=f"{end} when the budget is spent",
        note=_note(odometer, account),
        description=f"{scope}{odometer.statement()} The scale ends at {end}, its reading when the budget is spent.",
    )


def full_reading(odometer: MixtureOdometer, account: Accountant) -> float:
    """The reading of the odometer when the whole budget is spent, rounded up; never below the current one.

    Under a filter that adds mu squared, V is then its budget.  The others admit at most mu0 squared of the GDP budget
    for the same guarantee, since Gaussian releases with a larger sum would exceed the guarantee.
    """
    guarantee = account.guarantee
    whole = guarantee.remaining(guarantee.initial_filter).mu_squared
    full = odometer.bound_at(whole if guarantee.shared_delta is None else guarantee.mu0_squared)
    return max(full, odometer.bound)


def _share(bound: float, full: float) -> float:
    """The position on a scale from 0 to `full`; where no number bounds the loss, its end."""
    return bound / full if math.isfinite(bound) and full else float(bound > 0)


def _note(odometer: Odometer, account: Accountant) -> str:
    """What the reading of the session's odometer means, and what it does not, in one plain sentence."""
    if not isinstance(odometer, MixtureOdometer):
        return "All answers so far are within every budget of at least this size that was fixed in advance."
    if not math.isfinite(odometer.bound):
        return odometer.statement()
    if not account.guarantee.has_budget:
        confidence = confidence_text(odometer.failure)
        return f"A bound at every moment with confidence {confidence}. Nothing limits how far it grows."
    exceed = "" if account.budget.epsilon is None else ", so it may exceed epsilon"
    confidence = confidence_text(odometer.failure)
    return f"A bound at every moment with confidence {confidence}: a different statement from the guarantee{exceed}."


def odometer_reading(odometer: Odometer) -> str:
    """The reading in a few words; `statement` has the full text."""
    if not math.isfinite(odometer.bound):
        return "unbounded"
    if isinstance(odometer, SpentAccumulator):
        return odometer.words
    bound = display_up(odometer.bound)
    return f"loss so far at most {bound}" if odometer.kind == "time-uniform" else f"{odometer.measure} {bound}"
