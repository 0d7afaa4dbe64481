"""Numbers and dates as text: estimates to the digits that the noise leaves significant, costs rounded safely."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache
from html import escape

import numpy as np

from dpnb.accounting.exact import (
    decimal_down,
    decimal_sqrt_down,
    decimal_up,
    display_down,
    display_up,
    percent_down,
    percent_up,
)
from dpnb.accounting.losses import GDP, Loss, PureGDP
from dpnb.render.page import term_html
from dpnb.results.estimates.noisy import Cells
from dpnb.schema import Key
from dpnb.times import UTC_TIME, Zone

# --- points in time as text -------------------------------------------------------------------------------------------


DAY = 86_400.0

LENGTHS = ((DAY, len("2000-01-01")), (60.0, len("2000-01-01 00:00")), (1.0, len("2000-01-01 00:00:00")))
"""Lengths of texts, each for intervals of at least this many seconds; a text is a whole day, minute or second."""


def date_with_interval(value: float, low: float, high: float, zone: Zone = UTC_TIME) -> tuple[str, str]:
    """An estimate and its interval, in seconds since 1970, as text in the local time of a zone.

    The texts are rounded down, and the last one includes its day, minute or second: so no interval looks narrower than
    it is.

    >>> date_with_interval(1.5e9, 1.4e9, 1.6e9)
    ('2017-07-14', '2014-05-13 to 2020-09-13')
    """
    width = high - low
    length = next((length for seconds, length in LENGTHS if width >= seconds), LENGTHS[-1][1])
    first, second, third = (_text(seconds, length, zone) for seconds in (value, low, high))
    return first, f"{second} to {third}"


def _text(seconds: float, length: int, zone: Zone) -> str:
    if math.isnan(seconds):
        return "unknown"
    local = math.floor(seconds) + zone.ahead(seconds)
    return (datetime(1970, 1, 1) + timedelta(seconds=local)).isoformat(" ")[:length]


# --- amounts of budget in a few digits --------------------------------------------------------------------------------


def spent_words(amount: PureGDP) -> str:
    """What is spent, or would be: rounded up."""
    return _words(display_up(amount.mu), *(display_up(decimal_up(one)) for one in (amount.delta, amount.epsilon)))


def limit_words(amount: PureGDP | None) -> str | None:
    """What may be spent: rounded down; None if there is no such limit."""
    if amount is None:
        return None
    mu = display_down(decimal_sqrt_down(amount.mu_squared))
    return _words(mu, *(display_down(decimal_down(one)) for one in (amount.delta, amount.epsilon)))


def _words(mu: str, delta: str, epsilon: str) -> str:
    named = [("mu", mu), ("delta", delta), ("epsilon", epsilon)]
    return " and ".join(f"{name} {value}" for name, value in named if float(value)) or "nothing"


# --- numbers as text --------------------------------------------------------------------------------------------------


MAX_ZEROS, SMALL = 8, 1e-4
"""Numbers below the second are written with an exponent where their noise leaves more decimals than the first."""

MAX_DECIMALS_OF_ZERO = 3
"""Zero is written without decimals where there would be more."""

EXACT = Context(prec=400)
"""Enough digits for every double with twelve decimals."""


def format_number(value: float, error: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """A number rounded to two significant digits of its error, by a rounding mode of :mod:`decimal`.

    To nearest for an estimate; ends of intervals are rounded outward and half-widths up, so that no interval looks
    narrower than it is.
    """
    if math.isnan(value):
        return "unknown"
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞"
    if not math.isfinite(error) or error <= 0:
        return f"{value:,.6g}"
    digits = max(0, 1 - math.floor(math.log10(error)))
    if not value and digits > MAX_DECIMALS_OF_ZERO:
        return "0"
    number = Decimal(float.__repr__(float(value)))
    if digits > MAX_ZEROS and abs(value) < SMALL:
        number = number.quantize(Decimal(1).scaleb(-digits), rounding, EXACT)
        return f"{number:e}" if number else "0"
    return f"{number.quantize(Decimal(1).scaleb(-min(12, digits)), rounding, EXACT):z,f}"


def format_decimals(value: float, decimals: int) -> str:
    """A number with a fixed number of decimals."""
    if not math.isfinite(value):
        return format_number(value, math.nan)
    unit = Decimal(1).scaleb(-max(decimals, 0))
    return f"{Decimal(float.__repr__(float(value))).quantize(unit, ROUND_HALF_EVEN, EXACT):z,f}"


def number_with_interval(value: float, low: float, high: float, unclipped: float | None = None) -> tuple[str, str]:
    """An estimate and its interval, rounded to two significant digits of the half-width.

    `unclipped` is the half-width before the interval was clipped to the range of the quantity, which the noise
    determines: numbers of the same noise then have the same digits.
    """
    error = (float(high) - float(low)) / 2  # Python floats: infinite beyond their range, without a numpy warning
    if error == math.inf:
        error = _error_of_one_side(float(value), float(low), float(high))
    if unclipped is not None and error < unclipped < math.inf:
        error = unclipped
    return format_number(
        value, error
    ), f"{format_number(low, error, ROUND_FLOOR)} to {format_number(high, error, ROUND_CEILING)}"


def _error_of_one_side(value: float, low: float, high: float) -> float:
    """The distance to the only finite end of an interval; without an estimate a tenth of the end, for three digits."""
    ends = [end for end in (low, high) if math.isfinite(end)]
    if len(ends) != 1:
        return math.inf
    return abs(ends[0]) / 10 if math.isnan(value) else abs(value - ends[0])


def format_mu_up(loss: GDP) -> str:
    """A loss to four digits, rounded up: for losses that were charged or requested."""
    return display_up(loss.mu)


MAX_SHARE = 10.0
"""The largest fraction of the budget that is shown as a number."""

NO_LIMIT = "no budget: nothing limits the privacy loss"

FREE = "free (already known at this target)"


def format_cost(cost: Loss, share: float, of: str = "the budget") -> str:
    """A cost as text: first the percentage of the budget, then the loss.

    `share` is the cost as a fraction of the budget; NaN without a budget, for which only the loss is written.

    >>> format_cost(GDP("0.044"), 0.00968)
    '0.97% of the budget (mu 0.044)'
    """
    if not cost:
        return FREE
    if math.isnan(share):
        return cost.words
    return f"{format_percent_up(share)} of {of} ({cost.words})"


def format_percent_first(cost: Loss, share: float) -> str:
    """A cost for a column of a table: ``1.0% (mu 0.044)``; without a budget only the loss."""
    if math.isnan(share):
        return cost.words
    return f"{format_percent_up(share)} ({cost.words})"


def cost_html(cost: Loss, share: float) -> str:
    """`format_cost` as HTML: the loss is explained on hover and focus."""
    if not cost:
        return escape(FREE)
    if math.isnan(share):
        return term_html(cost.words)
    return f"{escape(format_percent_up(share))} of the budget ({term_html(cost.words)})"


def format_percent_up(share: float) -> str:
    """A fraction as a percentage, rounded up, so that no cost looks smaller than it is."""
    if share > MAX_SHARE:
        return f"more than {MAX_SHARE:.0%}"
    return percent_up(share)


format_percent_down = percent_down
"""A fraction as a percentage, rounded down, so that it never shows more than remains."""


@lru_cache(maxsize=256)  # few confidences are requested
def percent(share: float) -> str:
    """A confidence as a percentage without trailing zeros, rounded down, so that it is not overstated."""
    confidence = Decimal(float.__repr__(float(share)))
    places = max(4, -(1 - confidence).adjusted())  # so that 99.99999% is exact
    return f"{(100 * confidence).quantize(Decimal(1).scaleb(-places), ROUND_FLOOR).normalize():f}%"


def format_time(time: str) -> str:
    """A timestamp of the ledger, to the minute."""
    return time[:16].replace("T", " ")


def label_text(label: object) -> str:
    """The label of one output as text."""
    return f"{label:g}" if isinstance(label, float) else str(label)


MAX_STATISTICS = 8
"""Largest number of statistics whose errors are described one by one: as many as ``describe()`` of a column has."""


def error_level(confidence: float, better: str = "") -> str:
    """The confidence of a half-width and what it covers, which follow it in a text."""
    return f" at {percent(confidence)}{better} (noise)"


def describe_error(
    errors: Cells,
    outputs: tuple[str, tuple[Key, ...]] | None,
    confidence: float,
    unit: str | None = None,
    *,
    least: Cells | None = None,
    units: tuple[str | None, ...] = (),
    most: int = MAX_STATISTICS,
) -> str:
    """A short description of half-widths, shape (groups, outputs): of the worst group, or of each statistic.

    `outputs` is the name and labels of the outputs, as in an answer; `unit` the unit of the errors, if it differs from
    the answer's, and `units` those of each statistic, of which `most` are described.  `least` are the smallest
    half-widths where `errors` are the largest of a range.
    """
    if outputs and outputs[0] == "statistic":
        more = len(outputs[1]) - most
        each = error_amount(errors, outputs, least, units, most)
        return each + error_level(confidence) + (f", and {more} more" if more > 0 else "")
    finite = errors[np.isfinite(errors)]
    if not finite.size:
        return "unknown"
    better = " or better" if finite.min() < finite.max() * (1 - 1e-9) else ""
    some = "" if finite.size == errors.size else ", unknown for some"
    return f"{_worst(finite, least)}{f' {unit}' if unit else ''}{error_level(confidence, better)}{some}"


def error_amount(
    errors: Cells,
    outputs: tuple[str, tuple[Key, ...]] | None,
    least: Cells | None = None,
    units: tuple[str | None, ...] = (),
    most: int = MAX_STATISTICS,
) -> str:
    """Half-widths in the fewest words: of the worst group, or of each statistic."""
    if not (outputs and outputs[0] == "statistic"):
        return _worst(errors, least)
    lows = [None] * len(outputs[1]) if least is None else least.T
    described = zip(outputs[1][:most], errors.T, lows, units or [None] * len(lows), strict=False)
    return ", ".join(
        f"{label_text(label)} {_worst(column, low)}{f' {unit}' if unit and np.isfinite(column).any() else ''}"
        for label, column, low, unit in described
    )


def _worst(errors: Cells, least: Cells | None = None) -> str:
    """The largest finite half-width; of a range, also the largest of those that are possible at least."""
    error = float(max(errors[np.isfinite(errors)], default=math.nan))
    text = "unknown" if math.isnan(error) else f"± {format_number(error, error, ROUND_CEILING)}"
    low = text if least is None else _worst(least)
    return text if low == text else f"{low} to {text}"
