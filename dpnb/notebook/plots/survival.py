"""The figure of survival curves: steps of one hue for each group, with their bands.

A curve falls at the end of each period, which is all that is known of it, and stops where it is unknown.  With many
groups the bands overlap: each is faint, and of more than `MAX_SHADED` groups only the limits are drawn.
"""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from dpnb.notebook.plots.marks import AxisRange, hover_text
from dpnb.notebook.plots.style import DASHES, HUES, SYMBOLS, PlotLayout, framed, legend_title, short, text
from dpnb.render.tables import interval_name, numbers_of, population_name
from dpnb.results.survival.answer import SurvivalAnswer

MAX_SHADED = 3

SHADE = 0.18

STEP = 7
"""Size of the marks at the ends of periods."""


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
