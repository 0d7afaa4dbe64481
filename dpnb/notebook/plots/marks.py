"""Numbers with their intervals as marks of plotly, and the fan chart of repeated observations.

An interval is an error bar between the ends of the interval, even if the estimate is outside it.  An unbounded
interval extends to the edge of the panel, with a triangle there.  An unknown number is an open mark in the middle of
its interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import plotly.graph_objects as go

from dpnb._browser.glossary import POPULATION_INTERVAL
from dpnb.notebook.plots.style import (
    DASHES,
    HUES,
    PATTERNS,
    SMALL,
    SYMBOLS,
    UNBOUNDED,
    PlotLayout,
    describe_value,
    framed,
    short,
    text,
    translucent,
)
from dpnb.render.charts import Ticks
from dpnb.render.numbers import format_mu_up
from dpnb.render.tables import (
    interval_name,
    intervals_name,
    population_ends,
    population_name,
    population_texts,
    rows_of,
)
from dpnb.results.answer import History
from dpnb.results.tables.table import UNKNOWN, Estimates

MARK = 9


@dataclass(frozen=True)
class PlotValues:
    """Estimates, intervals and hover texts as lists."""

    value: list[float]
    low: list[float]
    high: list[float]
    hover: list[str]
    population: list[tuple[float, float]] = field(default_factory=list)  # NaN where there is no population interval

    @classmethod
    def of(cls, estimates: Estimates) -> Self:
        """All numbers of an answer, group by group."""
        cells = estimates.arrays
        names = [*estimates.names, *([estimates.outputs[0]] if estimates.outputs else [])]
        hover = [
            hover_text(
                estimates, ", ".join(f"{name} {part}" for name, part in zip(names, key, strict=True)), value, interval
            )
            for key, value, interval in rows_of(estimates)
        ]
        texts = population_texts(estimates)
        if texts:
            hover = [
                f"{label}<br>{population_name(estimates)} {more}" if more else label
                for label, more in zip(hover, texts, strict=True)
            ]
        low, high = cells.low.ravel().tolist(), cells.high.ravel().tolist()
        return cls(cells.displayed.ravel().tolist(), low, high, hover, population_ends(estimates))

    def select(self, rows: Sequence[int]) -> Self:
        """The selected rows."""
        value, low, high = ([column[row] for row in rows] for column in (self.value, self.low, self.high))
        population = [self.population[row] for row in rows] if self.population else []
        return type(self)(value, low, high, [self.hover[row] for row in rows], population)


def hover_text(estimates: Estimates, label: str, value: str, interval: str) -> str:
    """The hover text of a mark, with the digits of the answer's table."""
    lines = [f"estimate {value}", *([f"{interval_name(estimates)} {interval}"] if estimates.has_intervals else [])]
    return "<br>".join([*([f"<b>{text(label)}</b>"] if label else []), *map(text, lines)])


@dataclass(frozen=True)
class AxisRange:
    """The range of an axis of values."""

    low: float
    high: float
    known: bool = True  # whether any of the numbers is finite

    @classmethod
    def around(cls, numbers: Iterable[PlotValues], *, zero: bool) -> Self:
        """The range of all finite ends, including 0 for bars."""
        numbers = list(numbers)
        ends = [x for one in numbers for column in (one.value, one.low, one.high) for x in column if math.isfinite(x)]
        ends += [x for one in numbers for pair in one.population for x in pair if math.isfinite(x)]
        if not ends:
            return cls(-1.0, 1.0, known=False)
        low, high = min(ends), max(ends)
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        padding = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
        if not math.isfinite(padding):  # the distance of the ends exceeds the range of doubles
            padding = 0.0
        return cls(low if zero and low == 0 else low - padding, high if zero and high == 0 else high + padding)

    def ticks(self, most: int) -> dict[str, Any]:
        """The ticks of plotly's axis: with separators of thousands, and the same number of decimals."""
        ticks = Ticks.between(self.low, self.high, most)
        if ticks is None:
            return {}
        return {"tickmode": "linear", "tick0": 0, "dtick": ticks.step, "tickformat": f",.{ticks.decimals}f"}

    def within(self, end: float, otherwise: float) -> float:
        """An end of an interval, clipped to the range."""
        return min(max(otherwise if math.isnan(end) else end, self.low), self.high)


@dataclass(frozen=True)
class PlotSeries:
    """Numbers in one hue."""

    name: str
    positions: Sequence[str | float]  # on the other axis
    rows: list[int]  # indices of the answer's numbers
    hue: int = 0
    bars: bool = False  # drawn as bars from 0, for counts and sums
    line: bool = False  # joined by a line


def add_series(
    figure: go.Figure,
    cell: tuple[int, int],
    series: PlotSeries,
    numbers: PlotValues,
    span: AxisRange,
    *,
    upright: bool,
    legend: bool,
    incomplete: bool,
) -> None:
    """Draw a series with its numbers into a panel, whose row and column in `cell` count from 1.

    The axis of values is vertical if `upright`; `incomplete` says that a number of the figure is unknown or has an
    unbounded interval.
    """
    hue = HUES[series.hue]
    low = [span.within(end, -math.inf) for end in numbers.low]
    high = [span.within(end, math.inf) for end in numbers.high]
    seen = [value if math.isfinite(value) else None for value in numbers.value]
    group: dict[str, Any] = {"name": series.name, "legendgroup": series.name, "offsetgroup": series.name or "0"}
    group |= {"hovertext": numbers.hover, "hoverinfo": "text", "orientation": "v" if upright else "h"}
    at, of = ("x", "y") if upright else ("y", "x")

    def whiskers(
        values: Sequence[float | None], low: list[float] = low, high: list[float] = high, size: tuple[int, int] = (2, 5)
    ) -> dict[str, Any]:
        ends = [(None, None) if v is None else (h - v, v - b) for v, b, h in zip(values, low, high, strict=True)]
        up, down = [up for up, _ in ends], [down for _, down in ends]
        reach = {"type": "data", "symmetric": False, "array": up, "arrayminus": down}
        return {f"error_{of}": {**reach, "color": hue, "thickness": size[0], "width": size[1]}}

    def draw(kind: Any, values: Sequence[float | None], **more: Any) -> None:
        figure.add_trace(kind(**{at: list(series.positions), of: list(values), **group, **more}), *cell)

    if series.bars:
        pattern = {"shape": PATTERNS[series.hue], "fgcolor": hue, "fillmode": "overlay", "solidity": 0.2}
        bar = {"color": translucent(hue), "line": {"color": hue, "width": 1.5}, "pattern": pattern}
        draw(go.Bar, seen, marker=bar, showlegend=legend, **whiskers(seen))
    else:
        mark = {"color": hue, "symbol": SYMBOLS[series.hue], "size": MARK}
        line = {"mode": "lines+markers", "line": {"color": hue, "dash": DASHES[series.hue], "width": 2}}
        mode = line if series.line else {"mode": "markers"}
        draw(go.Scatter, seen, marker=mark, showlegend=legend, **mode, **whiskers(seen))
    if numbers.population:
        known = [None if math.isnan(low) else value for value, (low, _) in zip(seen, numbers.population, strict=True)]
        lower = [span.within(end, -math.inf) for end, _ in numbers.population]
        upper = [span.within(end, math.inf) for _, end in numbers.population]
        hidden = {"mode": "markers", "marker": {"size": 1, "opacity": 0, "color": hue}, "showlegend": False}
        thin = whiskers(known, lower, upper, (1, 9))  # with wide ends, around the estimates
        draw(go.Scatter, known, meta=POPULATION_INTERVAL, hovertext=None, hoverinfo="skip", **hidden, **thin)
    if incomplete:  # for every hue, so that plotly offsets all marks of a group equally
        middle = [(b + h) / 2 if v is None else None for v, b, h in zip(seen, low, high, strict=True)]
        mark = {"color": hue, "symbol": f"{SYMBOLS[series.hue]}-open", "size": MARK + 1, "line": {"width": 2}}
        draw(go.Scatter, middle, mode="markers", marker=mark, showlegend=False, **whiskers(middle))
        for ends, edge, symbol in (
            (numbers.high, span.high, "triangle-up" if upright else "triangle-right"),
            (numbers.low, span.low, "triangle-down" if upright else "triangle-left"),
        ):
            unbounded = [None if math.isfinite(end) else edge for end in ends]
            mark = {"color": hue, "symbol": symbol, "size": MARK + 3}
            draw(go.Scatter, unbounded, mode="markers", marker=mark, showlegend=False, cliponaxis=False)


def is_incomplete(numbers: Iterable[PlotValues]) -> bool:
    """Whether any number is unknown, or any interval unbounded."""
    return any(not math.isfinite(x) for one in numbers for column in (one.value, one.low, one.high) for x in column)


# --- the fan chart ----------------------------------------------------------------------------------------------------


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
    figure = layout.subplots([short(labels[number]) for number in shown], apart=True, shared_xaxes="all")
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
