"""The figure of a regression: its coefficients on one scale, with a zero line and both intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go

from dpnb.notebook.plots.marks import AxisRange, PlotSeries, PlotValues, add_series, is_incomplete
from dpnb.notebook.plots.style import INK, PlotLayout, framed, notes_of, short, text
from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.regression import RegressionAnswer, RegressionResult

EFFECT = {
    "linear": "change of {outcome}",
    "logistic": "change of the log-odds of {outcome}",
    "poisson": "change of the logarithm of the mean of {outcome}",
}

SCALE = "each coefficient times the width of its term's declared bounds; without the intercept"


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
