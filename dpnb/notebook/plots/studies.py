"""Figures of whole results: regressions, survival curves, quantiles by group, two-way tables.

Survival curves are steps of one hue for each group, with their bands.  A curve falls at the end of each period, which
is all that is known of it, and stops where it is unknown.  With many groups the bands overlap: each is faint, and of
more than `MAX_SHADED` groups only the limits are drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dpnb.frame.columns.bins import BOX
from dpnb.notebook.plots.marks import AxisRange, PlotSeries, PlotValues, add_series, hover_text, is_incomplete
from dpnb.notebook.plots.style import (
    DASHES,
    HUES,
    INK,
    SMALL,
    SYMBOLS,
    PlotLayout,
    describe_value,
    framed,
    legend_title,
    notes_of,
    short,
    text,
    translucent,
)
from dpnb.render.charts import bin_edges, is_ordered
from dpnb.render.numbers import format_number
from dpnb.render.tables import interval_name, numbers_of, population_name
from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.regression import RegressionAnswer, RegressionResult
from dpnb.results.survival import SurvivalAnswer
from dpnb.results.tables.table import Estimates

EFFECT = {
    "linear": "change of {outcome}",
    "logistic": "change of the log-odds of {outcome}",
    "poisson": "change of the logarithm of the mean of {outcome}",
}

SCALE = "each coefficient times the width of its term's declared bounds; without the intercept"

MAX_SHADED = 3
SHADE = 0.18
STEP = 7
"""Size of the marks at the ends of periods."""

MAX_BOXES = 20
"""Largest number of boxes in a figure; the quantiles of more groups are drawn in panels."""

BOX_NOTE = (
    "a box is from the 25% to the 75% quantile, with the median as a line, and its whiskers end at the 5% and 95% "
    "quantiles; beside it are the five numbers with their intervals"
)

MIN_CELLS = 48
"""Tables with at most as many cells are drawn as bars with their intervals."""

WIDTH, GAP = 0.4, 0.08
"""The width of a box, and the distance of the numbers beside it, in distances of the groups."""

MARK = 5


def draw_regression(result: RegressionAnswer | RegressionResult) -> go.Figure:
    """The figure of a regression."""
    numbers = result.numbers
    kept = [index for index, term in enumerate(numbers.terms) if term.factors]
    # As in the table of the answer; where its terms were chosen, their names in the formula.
    shown = result.outputs[1] if result.outputs else ()
    labels = shown if len(shown) == len(numbers.terms) else tuple(term.name for term in numbers.terms)
    ranges = np.array([high - low for low, high in (numbers.terms[index].bounds for index in kept)])
    scaled = replace(
        result,
        outputs=("term", tuple(labels[index] for index in kept)),
        **result._intervals(lambda arrays: _scaled(arrays, kept, ranges)),
    )
    values = PlotValues.of(scaled)
    names = [short(name) for name in scaled.outputs[1]] if scaled.outputs else []
    span, incomplete = AxisRange.around([values], zero=True), is_incomplete([values])
    layout = PlotLayout(panel=max(140, 40 + 30 * len(names)))
    figure = layout.subplots([], apart=False)
    series = PlotSeries("", names, list(range(len(names))))
    add_series(figure, (1, 1), series, values, span, upright=False, legend=False, incomplete=incomplete)
    figure.update_yaxes(
        type="category", categoryorder="array", categoryarray=names, autorange="reversed", showgrid=False
    )
    title = text(EFFECT[numbers.family].format(outcome=numbers.outcome))
    figure.update_xaxes(range=[span.low, span.high], showgrid=True, title=title, **span.ticks(6))
    figure.add_vline(x=0, line={"color": INK, "width": 2})
    remarks = [".summary() has remarks"] if numbers.notes else []
    return framed(figure, result, [SCALE, *notes_of(scaled), *remarks], layout)


def _scaled(arrays: IntervalArrays, kept: list[int], ranges: Cells) -> IntervalArrays:
    chosen = arrays.take(range(len(arrays.value)), kept)
    columns = [chosen.select(slice(None), slice(at, at + 1)).rescaled(float(size)) for at, size in enumerate(ranges)]
    return IntervalArrays.side_by_side(columns)


def draw_survival(answer: SurvivalAnswer) -> go.Figure:
    """The figure of survival curves."""
    shown = min(len(answer.keys), len(HUES))
    layout = PlotLayout(panel=380)
    figure = layout.subplots([], apart=False)
    for group in range(shown):
        for trace in _traces(answer, group, shaded=shown <= MAX_SHADED):
            figure.add_trace(trace, 1, 1)
    start, last = answer.layout.ends[0], answer.layout.ends[-1]
    figure.update_xaxes(range=[start, last], title=short(answer.layout.time), **AxisRange(start, last).ticks(6))
    figure.update_yaxes(range=[0, 1.02], title="survival", **AxisRange(0.0, 1.0).ticks(5))
    figure.update_layout(scattermode="overlay", legend={"title": {"text": legend_title(", ".join(answer.names))}})
    band = interval_name(answer) if answer.population_arrays is None else population_name(answer)
    kind = "shaded" if shown <= MAX_SHADED else "thin lines"
    notes = [f"{kind}: {band}s, all at once", "a curve falls at the ends of periods, and stops where it is unknown"]
    notes += [note for explanation, note in answer.warnings if explanation != "unknown"]
    notes += [f"the first {shown} of {len(answer.keys)} groups"] if shown < len(answer.keys) else []
    return framed(figure, answer, notes, layout)


def _traces(answer: SurvivalAnswer, group: int, *, shaded: bool) -> list[go.Scatter]:
    """The band between its limits, then the curve."""
    arrays = answer.arrays if answer.population_arrays is None else answer.population_arrays
    hue, name = HUES[group], text(", ".join(map(str, answer.keys[group])))
    ends, count = answer.layout.ends, int(answer.curves.known[group].sum())
    line = {"color": hue, "width": 0 if shaded else 1, "dash": "dot"}
    edge: dict[str, Any] = {"mode": "lines", "line": line, "hoverinfo": "skip", "showlegend": False}
    red, green, blue = (int(hue[at : at + 2], 16) for at in (1, 3, 5))
    filled = {"fill": "tonexty", "fillcolor": f"rgba({red},{green},{blue},{SHADE})"} if shaded else {}
    band = ends if shaded else ends[: count + 1]
    high, low = (_steps(band, column[group, : len(band) - 1].tolist()) for column in (arrays.high, arrays.low))
    x, y = _steps(ends[: count + 1], answer.curves.survival[group, :count].tolist())
    labels = [""] * len(x)
    hover = [
        hover_text(answer, f"{name}, {end}" if name else end, *numbers)
        for end, numbers in zip(
            answer.layout.texts[1:], numbers_of(arrays.select(slice(group, group + 1), slice(None))), strict=True
        )
    ]
    labels[2::2] = hover[:count]
    sizes = [STEP if label else 0 for label in labels]
    curve = go.Scatter(
        x=x,
        y=y,
        name=name,
        mode="lines+markers",
        line={"color": hue, "width": 2, "dash": DASHES[group]},
        marker={"color": hue, "size": sizes, "symbol": SYMBOLS[group], "opacity": 1, "line": {"width": 0}},
        hovertext=labels,
        hoverinfo="text",
        showlegend=bool(answer.names),
    )
    limits = [go.Scatter(x=high[0], y=high[1], name="high", **edge)]
    limits.append(go.Scatter(x=low[0], y=low[1], name="low", **edge, **filled))
    return [*limits, curve]


def _steps(ends: tuple[float, ...], heights: list[float]) -> tuple[list[float], list[float]]:
    """The corners of steps that start at 1 and fall at the end of each period."""
    x, y, before = [ends[0]], [1.0], 1.0
    for end, height in zip(ends[1:], heights, strict=True):
        x += [end, end]
        y += [before, height]
        before = height
    return x, y


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
