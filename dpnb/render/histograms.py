"""Counts and sums of ordered groups as an upright histogram: static SVG, which needs no kernel."""

from __future__ import annotations

import math
from html import escape

from dpnb.render.labels import labels_of
from dpnb.render.page import ACCENT
from dpnb.render.quantities import adds_up, bin_edges, is_ordered
from dpnb.render.scale import Ticks
from dpnb.results.table import Estimates

WIDTH, HEIGHT = 560, 190
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 8, 24
CHARACTER = 6.5
"""Width of a character of a label, in pixels."""

MAX_BARS = 200


def is_histogram(estimates: Estimates) -> bool:
    """Whether the estimates are counts or sums of ordered groups."""
    return (
        len(estimates.names) == 1
        and estimates.outputs is None
        and 2 <= len(estimates.keys) <= MAX_BARS
        and is_ordered(estimates)
        and adds_up(estimates) == [True]
    )


def histogram_html(estimates: Estimates) -> str:
    """Bars from 0 to each estimate, also below 0, with the interval, and the edges of the groups below.

    The numbers are in the table below it, so it is hidden from screen readers.
    """
    value, low, high = (
        array.ravel().tolist() for array in (estimates.arrays.displayed, estimates.arrays.low, estimates.arrays.high)
    )
    ends = [0.0, *(end for end in (*value, *low, *high) if math.isfinite(end))]
    ticks = Ticks.between(min(ends), max(ends), 5)
    if ticks is None:
        return ""
    bottom, top = min(ends), max(ends) + 0.03 * (max(ends) - min(ends))
    width, height = (WIDTH - LEFT - RIGHT) / len(value), HEIGHT - TOP - BOTTOM

    def y(number: float) -> float:
        position = (min(max(number, bottom), top) - bottom) / (top - bottom)
        return TOP + (1 - position) * height

    parts = []
    for tick in ticks.within(bottom, top):
        strong = ";stroke-opacity:.7" if tick == 0 else ""
        parts.append(_line(LEFT, y(tick), WIDTH - RIGHT, y(tick), f"stroke:currentColor;stroke-opacity:.18{strong}"))
        parts.append(_text(LEFT - 6, y(tick) + 4, ticks.label(tick), "end"))
    for index, (number, *interval) in enumerate(zip(value, low, high, strict=True)):
        middle = LEFT + (index + 0.5) * width
        if not math.isnan(number):
            upper, lower = y(max(number, 0.0)), y(min(number, 0.0))
            parts.append(
                f'<rect x="{middle - 0.46 * width:.1f}" y="{upper:.1f}" width="{0.92 * width:.1f}" '
                f'height="{max(lower - upper, 0.5):.1f}" style="fill:{ACCENT};fill-opacity:.35;stroke:{ACCENT}"/>'
            )
        if not any(map(math.isnan, interval)):
            parts.append(_whisker(middle, y(interval[0]), y(interval[1]), min(4.0, width / 3)))
    parts += _axis_labels([label for (label,) in labels_of(estimates)], width)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" style="display:block;max-width:100%;height:auto" '
        f'font-size="11" aria-hidden="true">{"".join(parts)}</svg>'
    )


def _axis_labels(labels: list[str], width: float) -> list[str]:
    """The edges of ranges between the bars, or the groups below the bars; as many as there is room for."""
    edges = bin_edges(labels)
    texts, shift = (labels, 0.5) if edges is None else (edges, 0.0)
    every = math.ceil((max(map(len, texts)) + 2) * CHARACTER / width)
    return [
        _text(LEFT + (index + shift) * width, HEIGHT - 8, text, "middle")
        for index, text in enumerate(texts)
        if index % every == 0
    ]


def _whisker(x: float, low: float, high: float, cap: float) -> str:
    style = f"stroke:{ACCENT};stroke-width:1.5"
    ends = "".join(_line(x - cap, end, x + cap, end, style) for end in (low, high))
    return _line(x, low, x, high, style) + ends


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" style="{style}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    style = "font-variant-numeric:tabular-nums"
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="currentColor" style="{style}">{escape(text)}</text>'
