"""The fan chart: how the intervals of a query narrowed with each observation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpnb.notebook.plots.marks import MARK, AxisRange, PlotValues
from dpnb.notebook.plots.style import HUES, SMALL, TEMPLATE, UNBOUNDED, PlotLayout, describe_value, framed, short
from dpnb.render.labels import interval_name, intervals_name, rows_of
from dpnb.render.numbers import format_mu_up
from dpnb.results.answer import History
from dpnb.results.table import UNKNOWN

MAX_BANDS = 8
UNOBSERVED = "not in this observation"


def fan(history: History) -> go.Figure:
    """Estimate and interval after each observation, with one panel for each of the first numbers."""
    last = history[-1]
    n_outputs = last.arrays.value.shape[1]
    labels = [", ".join(key) for key, _, _ in rows_of(last)]
    shown = range(min(len(labels), MAX_BANDS))
    cols = min(4, math.ceil(math.sqrt(len(shown))))
    layout = PlotLayout(math.ceil(len(shown) / cols), cols, panel=320 if len(shown) == 1 else 190, gap=46)
    figure = make_subplots(
        layout.rows,
        cols,
        subplot_titles=[short(labels[number]) for number in shown] if len(shown) > 1 else None,
        shared_xaxes="all",
        vertical_spacing=layout.vertical_spacing,
        horizontal_spacing=layout.horizontal_spacing(apart=True),
        figure=go.Figure(layout={"template": TEMPLATE}),
    )
    values, observed = [PlotValues.of(answer) for answer in history], history.observed_groups
    along = "observation, and total loss of the query with it" if len(shown) == 1 else "observation"
    for number in shown:
        band, (row, col) = _band(values, number), layout.cell(number)
        # Each panel has its own scale, since it shows how far the interval narrowed, not which number is larger.
        span = AxisRange.around([band], zero=False)
        for trace in _traces(history, band, [inside[number // n_outputs] for inside in observed], span):
            figure.add_trace(trace, row, col)
        lowest = number + cols >= len(shown)
        figure.update_yaxes(range=[span.low, span.high], showticklabels=span.known, **span.ticks(5), row=row, col=col)
        figure.update_xaxes(showticklabels=lowest, title=along if lowest else None, row=row, col=col)
    if not last.outputs or last.outputs[0] == "quantile":
        figure.update_yaxes(title=describe_value(last), col=1)
    named = range(0, len(history), math.ceil(len(history) * cols / 12))
    ticks = [f"{at + 1}<br>mu {format_mu_up(history[at].total_loss)}" for at in named]
    figure.update_xaxes(tickvals=[at + 1 for at in named], ticktext=ticks, range=[0.6, len(history) + 0.4])
    figure.update_layout(scattermode="overlay")  # marks are not offset from each other
    figure.update_annotations(font={"size": SMALL + 1})
    return framed(figure, last, _notes(history, len(labels)), layout)


def _band(all_numbers: list[PlotValues], number: int) -> PlotValues:
    """One number after each observation."""
    one = [numbers.select([number]) for numbers in all_numbers]
    value, low, high = ([getattr(step, column)[0] for step in one] for column in ("value", "low", "high"))
    return PlotValues(value, low, high, [step.hover[0] for step in one])


def _traces(history: History, band: PlotValues, inside: list[bool], span: AxisRange) -> list[go.Scatter]:
    """The band between the ends of the intervals, then the estimates on a line."""
    positions = list(range(1, len(history) + 1))
    hue = HUES[0]
    low = [span.within(end, -math.inf) for end in band.low]
    high = [span.within(end, math.inf) for end in band.high]
    hover = [
        "<br>".join([f"<b>observation {at}</b>, cost {answer.cost.words}", label, *([] if there else [UNOBSERVED])])
        for at, (answer, label, there) in enumerate(zip(history, band.hover, inside, strict=True), start=1)
    ]
    edge: dict[str, Any] = {"mode": "lines", "line": {"color": hue, "width": 1.5, "dash": "dot"}, "hoverinfo": "skip"}
    edge |= {"showlegend": False, "x": positions}
    filled = {"fill": "tonexty", "fillcolor": "rgba(0,114,178,.25)"}
    labels = {"hovertext": hover, "hoverinfo": "text", "showlegend": False}
    seen = [value if math.isfinite(value) else None for value in band.value]
    sizes = [MARK if there else MARK - 4 for there in inside]
    whole = {"color": hue, "line": {"width": 0}, "opacity": 1, "size": sizes}
    traces = [
        go.Scatter(y=high, name="high", **edge),
        go.Scatter(y=low, name="low", **edge, **filled),
        go.Scatter(
            x=positions,
            y=seen,
            name="estimate",
            mode="lines+markers",
            line={"color": hue, "width": 2},
            marker=whole,
            **labels,
        ),
    ]
    middle = [(b + h) / 2 if v is None else None for v, b, h in zip(seen, low, high, strict=True)]
    marks = [("unknown", middle, "circle-open")]
    marks.append(("no upper end", [None if math.isfinite(x) else span.high for x in band.high], "triangle-up"))
    marks.append(("no lower end", [None if math.isfinite(x) else span.low for x in band.low], "triangle-down"))
    for name, values, symbol in marks:
        if any(value is not None for value in values):
            mark = {"color": hue, "symbol": symbol, "size": MARK + 2, "line": {"width": 2}}
            traces.append(
                go.Scatter(x=positions, y=values, name=name, mode="markers", marker=mark, cliponaxis=False, **labels)
            )
    return traces


def _notes(history: History, numbers: int) -> list[str]:
    last = history[-1]
    notes = [f"{interval_name(last)} after each observation" if last.is_scalar else intervals_name(last)]
    if not all(map(all, history.observed_groups)):
        notes.append("small marks: not in that observation, whose mu is that of the groups in it")
    cells = [answer.arrays for answer in history]
    if any(one.is_unknown.any() for one in cells):
        notes.append(f"open marks are {UNKNOWN}")
    if any(np.isinf([one.low, one.high]).any() for one in cells):
        notes.append(UNBOUNDED)
    if numbers > MAX_BANDS:
        notes.append(f"the first {MAX_BANDS} of {numbers}")
    return notes
