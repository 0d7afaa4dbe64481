"""The numbers of an answer with their labels, rounded to significant digits: for tables and figures."""

from __future__ import annotations

import numpy as np

from dpnb._protocol.glossary import NOISE_INTERVAL
from dpnb.render.dates import date_with_interval
from dpnb.render.numbers import format_decimals, label_text, number_with_interval, percent
from dpnb.results.comparison import Comparison
from dpnb.results.estimates.noisy import IntervalArrays
from dpnb.results.table import Estimates

MAX_DECIMALS = 12
"""Most decimals of a rounded number that are displayed; beyond, as many as the noise leaves significant."""


def interval_name(estimates: Estimates | Comparison) -> str:
    """Heading of the column of intervals, which names what they cover."""
    return f"{percent(estimates.confidence)} {NOISE_INTERVAL}"


def intervals_name(estimates: Estimates | Comparison) -> str:
    """The name of several intervals, and whether they hold at once."""
    return f"{interval_name(estimates)}s, {'all at once' if estimates.simultaneous else 'each separately'}"


def labels_of(estimates: Estimates | Comparison) -> list[list[str]]:
    """The labels of each number, as text."""
    labels = estimates.outputs[1] if estimates.outputs else (None,)
    return [
        [*map(str, key), *([] if label is None else [label_text(label)])] for key in estimates.keys for label in labels
    ]


def numbers_of(arrays: IntervalArrays) -> list[tuple[str, str]]:
    """Estimate and interval of each number, to the digits that its noise leaves significant."""
    _, raw_low, raw_high = arrays.unclipped
    with np.errstate(all="ignore"):  # a length beyond the range of doubles is infinite
        errors = (raw_high - raw_low) / 2
    ends = (arrays.displayed, arrays.low, arrays.high, errors)
    return [number_with_interval(*row) for row in zip(*(end.ravel().tolist() for end in ends), strict=True)]


def rows_of(estimates: Estimates) -> list[tuple[list[str], str, str]]:
    """Labels, estimate and interval of each number, as text."""
    labels, numbers = labels_of(estimates), numbers_of(estimates.arrays)
    if estimates.dates:
        cells = (estimates.arrays.value, estimates.arrays.low, estimates.arrays.high)
        dates = estimates.dates * len(estimates.keys)
        for index, (dated, *ends) in enumerate(zip(dates, *(cell.ravel() for cell in cells), strict=True)):
            if dated:
                numbers[index] = date_with_interval(*ends)
    if estimates.decimals is not None:
        cells = (estimates.arrays.displayed, estimates.arrays.low, estimates.arrays.high)
        decimals = estimates.decimals * len(estimates.keys)
        for index, (digits, *ends) in enumerate(zip(decimals, *(cell.ravel() for cell in cells), strict=True)):
            if digits <= MAX_DECIMALS:
                value, low, high = (format_decimals(end, digits) for end in ends)
                numbers[index] = (value, f"{low} to {high}")
    return [(label, *number) for label, number in zip(labels, numbers, strict=True)]
