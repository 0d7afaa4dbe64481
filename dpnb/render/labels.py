"""The numbers of an answer with their labels, rounded to significant digits: for tables and figures."""

from __future__ import annotations

from dpnb.render.numbers import format_decimals, label_text, number_with_interval, percent
from dpnb.results.comparison import Comparison
from dpnb.results.estimates.noisy import IntervalArrays
from dpnb.results.table import Estimates

MAX_DECIMALS = 12
"""Most decimals of a rounded number that are displayed; beyond, as many as the noise leaves significant."""


def interval_name(estimates: Estimates) -> str:
    """Heading of the column of intervals."""
    return f"{percent(estimates.confidence)} interval"


def labels_of(estimates: Estimates | Comparison) -> list[list[str]]:
    """The labels of each number, as text."""
    labels = estimates.outputs[1] if estimates.outputs else (None,)
    return [
        [*map(str, key), *([] if label is None else [label_text(label)])] for key in estimates.keys for label in labels
    ]


def interval_words(arrays: IntervalArrays) -> list[str]:
    """The interval of each number, rounded outward."""
    ends = zip(arrays.value.ravel(), arrays.low.ravel(), arrays.high.ravel(), strict=True)
    return [number_with_interval(value, low, high)[1] for value, low, high in ends]


def rows_of(estimates: Estimates) -> list[tuple[list[str], str, str]]:
    """Labels, estimate and interval of each number, as text."""
    cells = estimates.arrays
    rows = []
    decimals = estimates.decimals and estimates.decimals * len(estimates.keys)
    for index, (key, *ends) in enumerate(
        zip(labels_of(estimates), cells.value.ravel(), cells.low.ravel(), cells.high.ravel(), strict=True)
    ):
        if decimals and decimals[index] <= MAX_DECIMALS:
            value, low, high = (format_decimals(end, decimals[index]) for end in ends)
            rows.append((key, value, f"{low} to {high}"))
        else:
            rows.append((key, *number_with_interval(*ends)))
    return rows
