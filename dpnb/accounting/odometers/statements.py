"""The statements of odometers as sentences; all numbers are rounded in the safe direction."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from dpnb.accounting.exact import binary_up, decimal_up, display_up, from_text, to_text

_NOTHING = "Nothing has been released that costs anything, so "


def time_uniform_statement(bound: float, failure: Fraction, *, what: str, costs_nothing: bool, overspent: bool) -> str:
    """The sentence of a time-uniform odometer, whose bound is in nats.

    `failure` is the chance that the sentence is wrong at any moment.  `costs_nothing` says that no loss above 0 was
    counted, and `overspent` that the losses' deltas exceed the slack.  `what` is the loss that is bounded: that of the
    answers, or of a view that determines them.
    """
    if costs_nothing:
        return f"{_NOTHING}the privacy loss so far is 0."
    if overspent:
        return "The deltas so far are more than was set aside for them, so no number bounds the privacy loss."
    if bound == math.inf:
        return "No number is known to bound the privacy loss so far."
    return (
        f"With confidence {confidence_text(failure)}, {what} so far is at most {display_up(bound)},"
        " at whatever moment you look."
    )


def accumulator_statement(bound: float, budget: str, measure: str) -> str:
    """The sentence of an accumulator.

    `budget` is the kind of budget, for example ``rho-zCDP``, and `measure` the parameter of such a budget that must be
    at least `bound`.
    """
    if bound == 0:
        return f"{_NOTHING}everything so far is inside every budget."
    if bound == math.inf:
        return f"No budget of {budget} is known to contain everything so far."
    return (
        f"Everything so far is inside every budget of {budget} that was fixed beforehand and whose {measure} is"
        f" at least {display_up(bound)}."
    )


def spent_statement(spent: str, kind: str) -> str:
    """The sentence for the spending of a filter: `spent` is the loss in words, or empty if nothing is spent."""
    if not spent:
        return f"{_NOTHING}everything so far is inside every budget."
    return f"Everything so far is inside every budget of {kind} that was fixed beforehand and is at least {spent}."


def order_text(order: Fraction) -> str:
    """An order as a person would write it: ``8``, ``2.5``, ``7/3``."""
    double = decimal_up(order)
    return f"{double:g}" if from_text(to_text(order)) == Fraction(f"{double:g}") else to_text(order)


@lru_cache(maxsize=1024)  # each odometer has one
def confidence_text(failure: Fraction) -> str:
    """1 - failure as a percentage, rounded down by at most a hundredth of failure."""
    if not failure:
        return "100%"
    # Digits after the point at which one unit, in percent, is between a hundredth and a thousandth of failure.
    places = max(0, math.ceil(-math.log10(binary_up(failure))))
    if places > 12:
        with localcontext(prec=3, rounding=ROUND_CEILING):
            return f"1 - {(Decimal(failure.numerator) / Decimal(failure.denominator)).normalize():g}"
    units = math.floor(100 * (1 - failure) * 10**places)
    return f"{Decimal(units).scaleb(-places).normalize():f}%"
