"""The numbers of an answer with their labels, rounded to significant digits: for tables and figures."""

from __future__ import annotations

from dpnb.render.numbers import label_text, number_with_interval, percent
from dpnb.results.table import Estimates


def interval_name(estimates: Estimates) -> str:
    """Heading of the column of intervals."""
    return f"{percent(estimates.confidence)} interval"


def rows_of(estimates: Estimates) -> list[tuple[list[str], str, str]]:
    """Labels, estimate and interval of each number, as text."""
    labels = estimates.outputs[1] if estimates.outputs else (None,)
    names = [
        [*map(str, key), *([] if label is None else [label_text(label)])] for key in estimates.keys for label in labels
    ]
    cells = estimates.arrays
    rows = []
    for key, value, low, high in zip(names, cells.value.ravel(), cells.low.ravel(), cells.high.ravel(), strict=True):
        rows.append((key, *number_with_interval(value, low, high)))
    return rows
