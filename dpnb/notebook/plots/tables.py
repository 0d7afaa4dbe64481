"""Figures of many numbers at once: box plots of quantiles by group, and heat maps of two-way tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dpnb.notebook.plots.marks import AxisRange, PlotSeries, PlotValues, add_series, is_incomplete
from dpnb.notebook.plots.style import (
    HUES,
    SMALL,
    PlotLayout,
    describe_value,
    framed,
    notes_of,
    short,
    text,
    translucent,
)
from dpnb.render.histograms import bin_edges, is_ordered
from dpnb.render.numbers import format_number
from dpnb.results.tables.table import Estimates

BOX = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles of a box: those of `dpnb.frame.columns.bins.BOX`."""

MAX_BOXES = 20
"""Largest number of boxes in a figure; the quantiles of more groups are drawn in panels."""

BOX_NOTE = (
    "a box is from the 25% to the 75% quantile, with the median as a line, and its whiskers end at the 5% and 95% "
    "quantiles; beside it are the five numbers with their intervals"
)

MIN_CELLS = 48
"""Tables with at most as many cells are drawn as bars with their intervals."""

MARK = 5
WIDTH, GAP = 0.4, 0.08
"""The width of a box, and the distance of the numbers beside it, in distances of the groups."""


# --- box plots --------------------------------------------------------------------------------------------------------


def has_boxes(estimates: Estimates) -> bool:
    """Whether the estimates are the quantiles of boxes."""
    levels = estimates.outputs[1] if estimates.outputs and estimates.outputs[0] == "quantile" else ()
    return levels == BOX and len(estimates.keys) <= MAX_BOXES


def draw_boxes(estimates: Estimates, names: list[str]) -> go.Figure:
    """A box for each group, with the five numbers and their intervals beside it."""
    values, many = PlotValues.of(estimates), len(BOX)
    rows = [list(range(at * many, (at + 1) * many)) for at in range(len(names))]
    span = AxisRange.around([values], zero=False)
    layout = PlotLayout(panel=320)
    figure = layout.subplots([], apart=False)
    whole = [at for at, own in enumerate(rows) if all(math.isfinite(values.value[row]) for row in own)]
    five = [sorted(values.value[row] for row in rows[at]) for at in whole]
    named = dict(zip(("lowerfence", "q1", "median", "q3", "upperfence"), zip(*five, strict=True), strict=False))
    look: dict[str, Any] = {"line": {"color": HUES[0], "width": 2}, "fillcolor": translucent(HUES[0])}
    if whole:
        places = [at - WIDTH / 2 for at in whole]
        figure.add_trace(
            go.Box(x=places, **named, **look, width=WIDTH, whiskerwidth=0.5, showlegend=False, hoverinfo="skip"), 1, 1
        )
    beside = [at + GAP * (index + 1) for at in range(len(names)) for index in range(many)]
    series = PlotSeries("", beside, list(range(len(beside))))
    is_open = is_incomplete([values])
    add_series(figure, (1, 1), series, values, span, upright=True, legend=False, incomplete=is_open)
    figure.update_traces(marker_size=MARK, selector={"type": "scatter", "mode": "markers"})
    figure.update_layout(scattermode="overlay")
    labels = [short(name) for name in names] if estimates.names else [""]
    along = ", ".join(estimates._axis_names)
    figure.update_xaxes(tickvals=list(range(len(names))), ticktext=labels, range=[-0.6, len(names) - 0.4], title=along)
    figure.update_yaxes(range=[span.low, span.high], title=describe_value(estimates), **span.ticks(6))
    return framed(figure, estimates, [BOX_NOTE, *notes_of(estimates)], layout)


# --- heat maps --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _TwoWay:
    """A two-way table: the labels of its columns and rows, and the index of the number in each cell."""

    columns: list[str]
    rows: list[str]
    numbers: list[list[int | None]]


def has_heat(estimates: Estimates) -> bool:
    """Whether the estimates are a table of two ordered levels with too many cells for bars."""
    if len(estimates.names) != 2 or estimates.outputs or len(estimates.keys) <= MIN_CELLS:
        return False
    return is_ordered(estimates)


def draw_heat(estimates: Estimates) -> go.Figure:
    """The numbers as colours, with the intervals on hover."""
    values, cells = PlotValues.of(estimates), _cells(estimates)
    finite = [value for value in values.value if math.isfinite(value)] or [0.0]
    low, high = min(0.0, max(finite)) if min(finite) < 0 else min(finite), max(finite)
    low = 0.0 if 0 <= low < high / 2 else low
    z = [[None if at is None else values.value[at] for at in row] for row in cells.numbers]
    hover = [["" if at is None else values.hover[at] for at in row] for row in cells.numbers]
    layout = PlotLayout(panel=max(280, 26 * len(cells.rows)))
    figure = layout.subplots([], apart=False)
    title = {"text": text(describe_value(estimates)), "side": "right", "font": {"size": SMALL}}
    bar = {"title": title, "tickfont": {"size": SMALL}, "outlinewidth": 0, "thickness": 14}
    scale = [[0.0, translucent(HUES[0], 0.04)], [1.0, HUES[0]]]
    shades: dict[str, Any] = {
        "zmin": low,
        "zmax": high if high > low else low + 1,
        "colorscale": scale,
        "colorbar": bar,
    }
    labels: dict[str, Any] = {"hovertext": hover, "hoverinfo": "text", "xgap": 1, "ygap": 1}
    figure.add_trace(go.Heatmap(x=cells.columns, y=cells.rows, z=z, **shades, **labels), 1, 1)
    across, down = estimates._axis_names
    for update, own, name in ((figure.update_xaxes, cells.columns, across), (figure.update_yaxes, cells.rows, down)):
        update(type="category", categoryorder="array", categoryarray=own, showgrid=False, title=short(name))
        edges = bin_edges(own)
        if edges is not None:  # between the cells, as on the axes of a histogram
            every = math.ceil(len(edges) / 12)
            ticks = [(at - 0.5, text(edge)) for at, edge in enumerate(edges) if at % every == 0]
            places, texts = zip(*ticks, strict=True)
            update(tickvals=places, ticktext=texts, ticks="outside")
    return framed(figure, estimates, [*_widths(estimates), *notes_of(estimates, drawn=False)], layout)


def _cells(estimates: Estimates) -> _TwoWay:
    columns, rows = (list(dict.fromkeys(str(key[level]) for key in estimates.keys)) for level in (0, 1))
    numbers: list[list[int | None]] = [[None] * len(columns) for _ in rows]
    for at, key in enumerate(estimates.keys):
        numbers[rows.index(str(key[1]))][columns.index(str(key[0]))] = at
    return _TwoWay(columns, rows, numbers)


def _widths(estimates: Estimates) -> list[str]:
    """The widest interval, since colours show none."""
    with np.errstate(all="ignore"):
        _, low, high = estimates.arrays.unclipped
        halves = (high - low) / 2
    finite = halves[np.isfinite(halves)]
    if not estimates.has_intervals or not finite.size:
        return []
    widest = float(finite.max())
    return [f"colours are estimates, each within ± {format_number(widest, widest)}; hover for intervals"]
