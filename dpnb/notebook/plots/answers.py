"""Figures of answers: the arrangement of the numbers in panels and series.

``answers``  an answer or computed estimates as panels of series
``history``  the answers after each observation
``marks``    numbers with intervals as marks
``style``    ink, hues, title and margins
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import unescape
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpnb._plan.expressions.nodes import Cut, ExtractDatePart
from dpnb._plan.measurements import (
    ColumnsView,
    Count,
    CountUnits,
    Discovery,
    JointAggregation,
    MeanCountView,
    MomentsView,
    Sum,
)
from dpnb._plan.schema import Key
from dpnb.notebook.plots.history import fan
from dpnb.notebook.plots.marks import AxisRange, PlotSeries, PlotValues, add_series, is_odd
from dpnb.notebook.plots.style import (
    HUES,
    LABEL_WIDTH,
    SMALL,
    TEMPLATE,
    PlotLayout,
    describe_value,
    framed,
    notes_of,
    short,
    text,
)
from dpnb.results.answer import Answer
from dpnb.results.table import Estimates

MOST_GROUPS = 1000
"""Largest number of groups in one figure."""

MOST_PANELS = 48
"""Largest number of panels in one figure; a note says how many are omitted."""

MOST_BESIDE = 48
"""Largest number of marks of several hues on one axis."""

MOST_UPRIGHT = 30
"""Largest number of names on a horizontal axis; more names are put on a vertical axis, where each is readable."""


def draw(figures: Estimates, history: bool) -> go.Figure:
    """The figure of an answer, or of its history.

    Raises
    ------
    RequestError
        `figures` has no history.
    """
    if history:
        return fan(figures.history)
    return _drawn(figures) if len(figures.keys) <= MOST_GROUPS else _drawn(_first(figures), len(figures.keys))


def _first(figures: Estimates) -> Estimates:
    """The first groups only."""
    kept = slice(MOST_GROUPS)
    cells = figures.arrays.picked(kept, slice(None))
    return replace(figures, keys=figures.keys[kept], arrays=cells, measurement_ids=figures.measurement_ids[kept])


def _drawn(figures: Estimates, groups: int = 0) -> go.Figure:
    numbers = PlotValues.of(figures)
    if figures.is_scalar:
        return _strips(figures, numbers, [PlotPanel("", [PlotSeries("", [""], [0])])])
    if figures.outputs and figures.outputs[0] == "quantile":
        return _grid(figures, numbers, _quantiles(figures), groups)
    if not figures.names:
        return _strips(figures, numbers, _statistics(figures).panels)
    return _grid(figures, numbers, _statistics(figures) if figures.outputs else _groups(figures), groups)


@dataclass(frozen=True)
class PlotPanel:
    """Series on common axes."""

    title: str
    series: list[PlotSeries]


@dataclass(frozen=True)
class Arrangement:
    """The arrangement of the numbers in a figure.

    Parameters
    ----------
    panels : list of PlotPanel
    along : str
        Label of the axis that has the groups.
    by : str
        Label of the hues.
    kind : str
        ``groups``, ``statistics`` (whose values have no common scale) or ``quantiles``.
    """

    panels: list[PlotPanel]
    along: str
    by: str = ""
    kind: str = "groups"


# --- arrangement of the numbers ------------------------------------------------------------------------------------


def _groups(figures: Estimates) -> Arrangement:
    """Groups by one level, or by several: the last level as hues if it has few enough values, else as panels."""
    bars = _adds_up(figures)[0]
    *outer, inner = figures.names
    rows, places, last = range(len(figures.keys)), _places(figures, outer), _places(figures, [inner])
    if not outer:
        return Arrangement([PlotPanel("", [PlotSeries("", last, list(rows), bars=bars)])], inner)
    beside, below = len(set(places)), len(set(last))
    for at, along, by, hue in ((places, ", ".join(outer), last, inner), (last, inner, places, ", ".join(outer))):
        crowded = beside * below > MOST_BESIDE and not _lies_down(figures, list(dict.fromkeys(at)))
        if len(set(by)) <= len(HUES) and not crowded:
            return Arrangement([PlotPanel("", _in_hues(at, by, list(rows), bars))], along, hue)
    at, along, by = places, ", ".join(outer), last
    if beside < below and below > MOST_PANELS / 4:  # fewer panels, with more groups in each
        at, along, by = last, inner, places
    panels = [
        PlotPanel(name, [PlotSeries("", [at[row] for row in own], own, bars=bars)]) for name, own in _split(by, rows)
    ]
    return Arrangement(panels, along)


def _in_hues(at: Sequence[str], by: Sequence[str], rows: Sequence[int], bars: bool) -> list[PlotSeries]:
    split = _split(by, range(len(by)))
    return [
        PlotSeries(name, [at[place] for place in own], [rows[place] for place in own], hue, bars=bars)
        for hue, (name, own) in enumerate(split)
    ]


def _statistics(figures: Estimates) -> Arrangement:
    """A panel for each statistic, since their units differ."""
    labels: tuple[Key, ...] = figures.outputs[1] if figures.outputs else ()
    *outer, inner = figures.names or ("",)
    hues = bool(outer) and len(set(_places(figures, [inner]))) <= len(HUES)
    panels = []
    for at, (label, adds) in enumerate(zip(labels, _adds_up(figures), strict=True)):
        rows, bars = list(range(at, len(figures.keys) * len(labels), len(labels))), adds and bool(figures.names)
        if hues:
            series = _in_hues(_places(figures, outer), _places(figures, [inner]), rows, bars)
        else:
            series = [
                PlotSeries("", _places(figures, figures.names) if figures.names else [short(label)], rows, bars=bars)
            ]
        panels.append(PlotPanel(short(label), series))
    along = ", ".join(outer) if hues else ", ".join(figures.names)
    return Arrangement(panels, along, inner if hues else "", "statistics")


def _quantiles(figures: Estimates) -> Arrangement:
    """Levels against values: a line for each of a few groups, a panel for each of many."""
    levels = [float(level) for level in figures.outputs[1]] if figures.outputs else []
    names, many = _places(figures, figures.names), len(figures.keys) > len(HUES)
    lines = [
        PlotSeries("" if many else name, levels, list(range(at * len(levels), (at + 1) * len(levels))), hue, line=True)
        for at, name in enumerate(names)
        for hue in [0 if many else at]
    ]
    panels = (
        [PlotPanel(name, [line]) for name, line in zip(names, lines, strict=True)] if many else [PlotPanel("", lines)]
    )
    return Arrangement(panels, "quantile", ", ".join(figures.names), "quantiles")


def _places(figures: Estimates, names: Sequence[str]) -> list[str]:
    """The groups' keys at some levels, as distinct texts for distinct keys."""
    at = [figures.names.index(name) for name in names]
    numbers = [{str(key[level]) for key in figures.keys if not isinstance(key[level], str)} for level in at]

    def label(part: Key, others: set[str]) -> str:
        return repr(part) if isinstance(part, str) and part in others else str(part)

    parts = [[label(key[level], others) for level, others in zip(at, numbers, strict=True)] for key in figures.keys]
    return [text(", ".join(each)) for each in parts]


def _split(by: Sequence[str], rows: Sequence[int]) -> list[tuple[str, list[int]]]:
    rows_by_name: dict[str, list[int]] = {}
    for name, row in zip(by, rows, strict=True):
        rows_by_name.setdefault(name, []).append(row)
    return list(rows_by_name.items())


def _adds_up(figures: Estimates) -> list[bool]:
    """For each output whether it is a count or a sum, which is drawn as a bar from 0."""
    if not isinstance(figures, Answer):
        return [False] * figures.arrays.value.shape[1]
    plan, view = figures.plan.aggregation, figures.view
    shown = [(column.part, column.view) for column in view.columns] if isinstance(view, ColumnsView) else [(0, view)]
    parts = [part.aggregation for part in plan.parts] if isinstance(plan, JointAggregation) else [plan]
    adds = [
        isinstance(parts[part], Count | CountUnits | Sum | Discovery)
        or isinstance(one, MeanCountView)
        or (isinstance(one, MomentsView) and one.statistic == "count")
        for part, one in shown
    ]
    return adds if len(adds) == figures.arrays.value.shape[1] else adds * figures.arrays.value.shape[1]


# --- layout of the panels -----------------------------------------------------------------------------------------


def _strips(figures: Estimates, numbers: PlotValues, panels: list[PlotPanel]) -> go.Figure:
    """Single numbers below each other, each with its own scale."""
    room = PlotLayout(rows=len(panels), panel=90 if len(panels) == 1 else 38, gap=42)
    figure = make_subplots(room.rows, 1, vertical_spacing=room.vertical_spacing, figure=_blank())
    for row, panel in enumerate(panels, start=1):
        (series,) = panel.series
        own = numbers.picked(series.rows)
        span, odd = AxisRange.around([own], zero=False), is_odd([own])
        add_series(figure, (row, 1), series, own, span, upright=False, legend=False, odd=odd)
        figure.update_xaxes(range=[span.low, span.high], showgrid=True, showticklabels=span.known, row=row)
    figure.update_yaxes(type="category", showgrid=False, tickfont={"size": 13}, ticklabelstandoff=8)
    figure.update_xaxes(title=describe_value(figures) if figures.is_scalar else None, row=room.rows)
    return framed(figure, figures, notes_of(figures), room)


def _grid(figures: Estimates, numbers: PlotValues, arranged: Arrangement, groups: int) -> go.Figure:
    """Panels in a grid with common scales, except for statistics.  `groups`: total number, if some are omitted."""
    panels, apart = arranged.panels[:MOST_PANELS], arranged.kind == "statistics"
    places = list(dict.fromkeys(place for panel in panels for series in panel.series for place in series.places))
    upright = len(panels) > 1 or arranged.kind == "quantiles" or not _lies_down(figures, places)
    room = _room(panels, places, upright)
    figure = make_subplots(
        room.rows,
        room.cols,
        subplot_titles=[panel.title for panel in panels] if len(panels) > 1 else None,
        shared_xaxes="all" if upright else False,
        shared_yaxes="all" if upright and not apart else False,
        vertical_spacing=room.vertical_spacing,
        horizontal_spacing=room.horizontal_spacing(apart),
        figure=_blank(),
    )
    every = [[numbers.picked(series.rows) for series in panel.series] for panel in panels]
    common, odd = AxisRange.around([own for each in every for own in each], zero=_from_zero(panels)), is_odd([numbers])
    for at, (panel, each) in enumerate(zip(panels, every, strict=True)):
        span = AxisRange.around(each, zero=_from_zero([panel])) if apart else common
        for series, own in zip(panel.series, each, strict=True):
            legend = at == 0 and len(panel.series) > 1
            add_series(figure, room.cell(at), series, own, span, upright=upright, legend=legend, odd=odd)
        row, col = room.cell(at)
        values = figure.update_yaxes if upright else figure.update_xaxes
        ticks = span.known and (apart or not upright or col == 1)
        values(range=[span.low, span.high], showticklabels=ticks, row=row, col=col)
    _name_axes(figure, figures, arranged, places, room, upright)
    left_out = len(arranged.panels) - len(panels)
    more = [f"the first {MOST_PANELS} of {len(arranged.panels)} panels"] if left_out else []
    more += [f"the first {MOST_GROUPS:,} of {groups:,} groups"] if groups else []
    return framed(figure, figures, [*notes_of(figures), *more], room)


def _from_zero(panels: list[PlotPanel]) -> bool:
    return any(series.bars for panel in panels for series in panel.series)


def _name_axes(
    figure: go.Figure,
    figures: Estimates,
    arranged: Arrangement,
    places: list[str | float],
    room: PlotLayout,
    upright: bool,
) -> None:
    """Axis titles and the order of the groups; in each column only the lowest panel labels the groups."""
    scale: dict[str, Any] = {"type": "category", "categoryorder": "array", "categoryarray": places}
    if arranged.kind == "quantiles":  # a numeric axis: the hues are drawn close to their level
        figure.update_layout(scattergap=1 - min(0.6, 0.08 * len(arranged.panels[0].series)))
        scale = {"range": [-0.04, 1.04], "showgrid": True, **({"tickvals": places} if len(places) <= 11 else {})}
    elif any(len(str(place)) > LABEL_WIDTH for place in places):
        scale |= {"tickvals": places, "ticktext": [short(unescape(str(place))) for place in places]}
    along, panels = short(arranged.along), min(len(arranged.panels), MOST_PANELS)
    if upright:
        figure.update_xaxes(**scale)
        for at in range(panels):
            lowest, (row, col) = at + room.cols >= panels, room.cell(at)
            figure.update_xaxes(showticklabels=lowest, title=along if lowest else None, row=row, col=col)
        if arranged.kind != "statistics":
            figure.update_yaxes(title=describe_value(figures), col=1)
    else:
        figure.update_yaxes(**scale, autorange="reversed", showgrid=False, title=along)
        figure.update_xaxes(showgrid=True, title=describe_value(figures))
    figure.update_annotations(font={"size": SMALL + 1})
    figure.update_layout(legend={"title": {"text": short(arranged.by)}})
    if (
        isinstance(figures, Answer)
        and figures.names
        and all(isinstance(group.expression, Cut) for group in figures.plan.group_by)
    ):
        figure.update_layout(bargap=0.04)


def _lies_down(figures: Estimates, places: list[str | float]) -> bool:
    """Whether the names need separate lines; ordered groups keep a horizontal axis, with some names omitted."""
    longest = max(map(len, map(str, places)), default=0)
    ordered = all(isinstance(part, int | float) for key in figures.keys for part in key)
    if isinstance(figures, Answer):
        ordered = ordered or all(isinstance(group.expression, Cut | ExtractDatePart) for group in figures.plan.group_by)
    return longest > 24 or (longest * len(places) > 90 and longest > 10) or (len(places) > MOST_UPRIGHT and not ordered)


def _room(panels: list[PlotPanel], places: list[str | float], upright: bool) -> PlotLayout:
    if len(panels) == 1:
        hues = len(panels[0].series)
        return PlotLayout(panel=320 if upright else max(200, len(places) * (10 + 10 * hues)))
    cols = min(4, math.ceil(math.sqrt(len(panels))))
    return PlotLayout(math.ceil(len(panels) / cols), cols, panel=170, gap=46)


def _blank() -> go.Figure:
    return go.Figure(layout={"template": TEMPLATE})
