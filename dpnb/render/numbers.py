"""Numbers as text: estimates in the digits that their noise leaves, costs and shares rounded in the safe direction."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

import numpy as np

from dpnb._plan.schema import Key
from dpnb.accounting.exact import decimal_up, display_up, percent_down, percent_up
from dpnb.accounting.losses import GDP, Loss
from dpnb.results.estimates.noisy import Cells

EXACT = Context(prec=400)
"""Enough digits for every double with twelve decimals."""


def format_number(value: float, error: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """A number with as many digits as its error leaves meaningful (two of the error's).

    Parameters
    ----------
    value, error : float
    rounding : str
        A mode of :mod:`decimal`.  To the nearest for an estimate; ends of intervals are rounded outward and half-widths
        up, so that no interval looks narrower than it is.
    """
    if math.isnan(value):
        return "unknown"
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞"
    if not math.isfinite(error) or error <= 0:
        return f"{value:,.6g}"
    digits = max(0, min(12, 1 - math.floor(math.log10(error))))
    return f"{Decimal(float.__repr__(float(value))).quantize(Decimal(1).scaleb(-digits), rounding, EXACT):,f}"


def number_with_interval(value: float, low: float, high: float) -> tuple[str, str]:
    """An estimate and its interval, with the digits that the interval leaves meaningful."""
    error = (float(high) - float(low)) / 2  # beyond the range of doubles infinite, without a word of numpy's
    return format_number(
        value, error
    ), f"{format_number(low, error, ROUND_FLOOR)} to {format_number(high, error, ROUND_CEILING)}"


def format_mu_up(loss: GDP) -> str:
    """A loss in four digits, rounded up: for what was spent or asked."""
    return display_up(loss.mu)


def format_cost_up(loss: Loss) -> str:
    """A cost in mu, and in delta if it has one; another kind of loss in its own terms."""
    if not isinstance(loss, GDP):
        return loss.format(up=True).replace("=", " ")
    return f"mu {format_mu_up(loss)}" + (f" and delta {display_up(decimal_up(loss.delta))}" if loss.delta else "")


def format_cost(cost: GDP, share: float) -> str:
    """A cost in words."""
    if not cost.mu_squared:
        return "free (known well enough already)"
    return f"{format_cost_up(cost)}, {format_percent_up(share)} of the budget"


def format_percent_up(share: float) -> str:
    """A share as a percentage, rounded up, so that no cost looks smaller than it is."""
    if math.isinf(share):
        return "more than all"
    return percent_up(share)


def format_percent_down(share: float) -> str:
    """A share as a percentage, rounded down, so that it never promises more than there is."""
    return percent_down(share)


def percent(share: float) -> str:
    """A confidence as a percentage without trailing zeros, rounded down: no interval claims more than it has."""
    sure = Decimal(float.__repr__(float(share)))
    places = max(4, -(1 - sure).adjusted())  # also those of 99.99999%
    return f"{(100 * sure).quantize(Decimal(1).scaleb(-places), ROUND_FLOOR).normalize():f}%"


def format_time(time: str) -> str:
    """A point in time of the ledger, to the minute."""
    return time[:16].replace("T", " ")


def label_text(label: object) -> str:
    """The label of one of several numbers."""
    return f"{label:g}" if isinstance(label, float) else str(label)


def describe_error(
    errors: Cells, outputs: tuple[str, tuple[Key, ...]] | None, confidence: float, unit: str | None = None
) -> str:
    """Half-widths of intervals in few words: of the worst group, or of each statistic.

    Parameters
    ----------
    errors : float64 array, shape (groups, outputs)
    outputs : (str, tuple) or None
        As in an answer.
    confidence : float
    unit : str, optional
        Of the errors, if it is not the answer's.
    """
    level = f" at {percent(confidence)}"
    if outputs and outputs[0] == "statistic":
        each = (_worst(column) for column in errors.T)
        return ", ".join(f"{label_text(label)} {words}" for label, words in zip(outputs[1], each, strict=True)) + level
    finite = errors[np.isfinite(errors)]
    if not finite.size:
        return "unknown"
    better = " or better" if finite.min() < finite.max() * (1 - 1e-9) else ""
    some = "" if finite.size == errors.size else ", unknown for some"
    return f"{_worst(finite)}{f' {unit}' if unit else ''}{level}{better}{some}"


def _worst(errors: Cells) -> str:
    """The largest of some half-widths that is known."""
    error = float(max(errors[np.isfinite(errors)], default=math.nan))
    return "unknown" if math.isnan(error) else f"± {format_number(error, error, ROUND_CEILING)}"
