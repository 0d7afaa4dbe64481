"""Figures of answers: the arrangement of the numbers in panels and series.

``answers``  an answer or computed estimates as panels of series
``history``  the answers after each observation
``marks``    numbers with intervals as marks
``style``    colours, title and margins
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import unescape
from typing import Any

import plotly.graph_objects as go

from dpnb.notebook.plots.marks import AxisRange, PlotSeries, PlotValues, add_series, is_incomplete
from dpnb.notebook.plots.studies import draw_boxes, draw_heat, has_boxes, has_heat
from dpnb.notebook.plots.style import (
    AXIS_WIDTH,
    HUES,
    LABEL_WIDTH,
    SMALL,
    PlotLayout,
    describe_value,
    framed,
    legend_title,
    notes_of,
    short,
    text,
)
from dpnb.render.charts import adds_up, bin_edges, is_ordered
from dpnb.results.tables.table import Estimates
from dpnb.schema import Key

MAX_GROUPS = 1000
"""Largest number of groups in one figure."""

MAX_PANELS = 48
"""Largest number of panels in one figure; a note says how many are omitted."""

MAX_MARKS = 48
"""Largest number of marks of several hues on one axis."""

AXIS_CHARACTERS = 60
"""Characters that fit below the panels of a figure in a narrow cell."""

MAX_HORIZONTAL_NAMES = 30
"""Largest number of names on a horizontal axis; more names are put on a vertical axis, where each is readable."""


def draw(estimates: Estimates) -> go.Figure:
    """The figure of an answer."""
    return _drawn(estimates) if len(estimates.keys) <= MAX_GROUPS else _drawn(_first(estimates), len(estimates.keys))


def _first(estimates: Estimates) -> Estimates:
    kept = slice(MAX_GROUPS)
    return replace(
        estimates,
        keys=estimates.keys[kept],
        measurement_ids=estimates.measurement_ids[kept],
        group_values=estimates.group_values[kept],
        **estimates._intervals(lambda arrays: arrays.select(kept, slice(None))),
    )


def _drawn(estimates: Estimates, groups: int = 0) -> go.Figure:
    numbers = PlotValues.of(estimates)
    if estimates.is_scalar:
        return _strips(estimates, numbers, [PlotPanel("", [PlotSeries("", [""], [0])])])
    if has_boxes(estimates):
        return draw_boxes(estimates, _labels(estimates, estimates._axis_names))
    if has_heat(estimates):
        return draw_heat(estimates)
    if estimates.outputs and estimates.outputs[0] == "quantile":
        return _grid(estimates, numbers, _quantiles(estimates), groups)
    if not estimates.names:
        return _strips(estimates, numbers, _statistics(estimates).panels)
    return _grid(estimates, numbers, _statistics(estimates) if estimates.outputs else _groups(estimates), groups)


@dataclass(frozen=True)
class PlotPanel:
    """Series on common axes."""

    title: str
    series: list[PlotSeries]


@dataclass(frozen=True)
class Arrangement:
    """The arrangement of the numbers in a figure."""

    panels: list[PlotPanel]
    along: str  # label of the axis that has the groups
    by: str = ""  # label of the hues
    kind: str = "groups"  # ``groups``, ``statistics`` (whose values have no common scale) or ``quantiles``


# --- arrangement of the numbers ------------------------------------------------------------------------------------


def _groups(estimates: Estimates) -> Arrangement:
    """Groups by one level, or by several: the last level as hues if it has few enough values, else as panels."""
    bars = adds_up(estimates)[0]
    *outer, inner = estimates._axis_names
    rows, positions, last = range(len(estimates.keys)), _labels(estimates, outer), _labels(estimates, [inner])
    if not outer:
        return Arrangement([PlotPanel("", [PlotSeries("", last, list(rows), bars=bars)])], inner)
    n_outer, n_inner = len(set(positions)), len(set(last))
    for at, along, by, hue in ((positions, ", ".join(outer), last, inner), (last, inner, positions, ", ".join(outer))):
        crowded = n_outer * n_inner > MAX_MARKS and not _needs_vertical_axis(estimates, list(dict.fromkeys(at)))
        if len(set(by)) <= len(HUES) and not crowded:
            return Arrangement([PlotPanel("", _in_hues(at, by, list(rows), bars))], along, hue)
    at, along, by = positions, ", ".join(outer), last
    if n_outer < n_inner and n_inner > MAX_PANELS / 4:  # fewer panels, with more groups in each
        at, along, by = last, inner, positions
    panels = [
        PlotPanel(name, [PlotSeries("", [at[row] for row in own], own, bars=bars)]) for name, own in _split(by, rows)
    ]
    return Arrangement(panels, along)


def _in_hues(at: Sequence[str], by: Sequence[str], rows: Sequence[int], bars: bool) -> list[PlotSeries]:
    split = _split(by, range(len(by)))
    return [
        PlotSeries(name, [at[position] for position in own], [rows[position] for position in own], hue, bars=bars)
        for hue, (name, own) in enumerate(split)
    ]


def _statistics(estimates: Estimates) -> Arrangement:
    """A panel for each statistic, since their units differ."""
    labels: tuple[Key, ...] = estimates.outputs[1] if estimates.outputs else ()
    *outer, inner = estimates._axis_names or ("",)
    hues = bool(outer) and len(set(_labels(estimates, [inner]))) <= len(HUES)
    panels = []
    for at, (label, adds) in enumerate(zip(labels, adds_up(estimates), strict=True)):
        rows, bars = list(range(at, len(estimates.keys) * len(labels), len(labels))), adds and bool(estimates.names)
        if hues:
            series = _in_hues(_labels(estimates, outer), _labels(estimates, [inner]), rows, bars)
        else:
            at_names = _labels(estimates, estimates._axis_names) if estimates.names else [short(label)]
            series = [PlotSeries("", at_names, rows, bars=bars)]
        panels.append(PlotPanel(short(label), series))
    along = ", ".join(outer) if hues else ", ".join(estimates._axis_names)
    return Arrangement(panels, along, inner if hues else "", "statistics")


def _quantiles(estimates: Estimates) -> Arrangement:
    """Levels against values: a line for each of a few groups, a panel for each of many."""
    levels = [float(level) for level in estimates.outputs[1]] if estimates.outputs else []
    names, many = _labels(estimates, estimates._axis_names), len(estimates.keys) > len(HUES)
    lines = [
        PlotSeries("" if many else name, levels, list(range(at * len(levels), (at + 1) * len(levels))), hue, line=True)
        for at, name in enumerate(names)
        for hue in [0 if many else at]
    ]
    panels = (
        [PlotPanel(name, [line]) for name, line in zip(names, lines, strict=True)] if many else [PlotPanel("", lines)]
    )
    return Arrangement(panels, "quantile", ", ".join(estimates._axis_names), "quantiles")


def _labels(estimates: Estimates, names: Sequence[str]) -> list[str]:
    """The groups' keys at some levels, as distinct texts for distinct keys."""
    at = [estimates._axis_names.index(name) for name in names]
    numbers = [{str(key[level]) for key in estimates.keys if not isinstance(key[level], str)} for level in at]

    def label(part: Key, others: set[str]) -> str:
        return repr(part) if isinstance(part, str) and part in others else str(part)

    parts = [[label(key[level], others) for level, others in zip(at, numbers, strict=True)] for key in estimates.keys]
    return [text(", ".join(each)) for each in parts]


def _split(by: Sequence[str], rows: Sequence[int]) -> list[tuple[str, list[int]]]:
    rows_by_name: dict[str, list[int]] = {}
    for name, row in zip(by, rows, strict=True):
        rows_by_name.setdefault(name, []).append(row)
    return list(rows_by_name.items())


# --- layout of the panels -----------------------------------------------------------------------------------------


def _strips(estimates: Estimates, numbers: PlotValues, panels: list[PlotPanel]) -> go.Figure:
    """Single numbers below each other, each with its own scale."""
    layout = PlotLayout(rows=len(panels), panel=90 if len(panels) == 1 else 38, gap=42)
    figure = layout.subplots([], apart=True)
    for row, panel in enumerate(panels, start=1):
        (series,) = panel.series
        own = numbers.select(series.rows)
        span, incomplete = AxisRange.around([own], zero=False), is_incomplete([own])
        add_series(figure, (row, 1), series, own, span, upright=False, legend=False, incomplete=incomplete)
        ticks = span.ticks(5)
        figure.update_xaxes(range=[span.low, span.high], showgrid=True, showticklabels=span.known, **ticks, row=row)
    figure.update_yaxes(type="category", showgrid=False, tickfont={"size": 13}, ticklabelstandoff=8)
    figure.update_xaxes(title=describe_value(estimates) if estimates.is_scalar else None, row=layout.rows)
    return framed(figure, estimates, notes_of(estimates), layout)


def _grid(estimates: Estimates, numbers: PlotValues, arrangement: Arrangement, groups: int) -> go.Figure:
    """Panels in a grid with common scales, except for statistics.  `groups`: total number, if some are omitted."""
    panels, apart = arrangement.panels[:MAX_PANELS], arrangement.kind == "statistics"
    positions = list(
        dict.fromkeys(position for panel in panels for series in panel.series for position in series.positions)
    )
    upright = len(panels) > 1 or arrangement.kind == "quantiles" or not _needs_vertical_axis(estimates, positions)
    layout = _layout_of(panels, positions, upright)
    figure = layout.subplots(
        [panel.title for panel in panels],
        apart=apart,
        shared_xaxes="all" if upright else False,
        shared_yaxes="all" if upright and not apart else False,
    )
    every = [[numbers.select(series.rows) for series in panel.series] for panel in panels]
    common = AxisRange.around([own for each in every for own in each], zero=_from_zero(panels))
    most, incomplete = 6 if len(panels) == 1 else 4, is_incomplete([numbers])
    for at, (panel, each) in enumerate(zip(panels, every, strict=True)):
        span = AxisRange.around(each, zero=_from_zero([panel])) if apart else common
        row, col = layout.cell(at)
        for series, own in zip(panel.series, each, strict=True):
            legend = at == 0 and len(panel.series) > 1
            add_series(figure, (row, col), series, own, span, upright=upright, legend=legend, incomplete=incomplete)
        values = figure.update_yaxes if upright else figure.update_xaxes
        ticks = span.known and (apart or not upright or col == 1)
        values(range=[span.low, span.high], showticklabels=ticks, **span.ticks(most), row=row, col=col)
    _name_axes(figure, estimates, arrangement, positions, layout, upright)
    omitted = len(arrangement.panels) - len(panels)
    more = [f"the first {MAX_PANELS} of {len(arrangement.panels)} panels"] if omitted else []
    more += [f"the first {MAX_GROUPS:,} of {groups:,} groups"] if groups else []
    return framed(figure, estimates, [*notes_of(estimates), *more], layout)


def _from_zero(panels: list[PlotPanel]) -> bool:
    return any(series.bars for panel in panels for series in panel.series)


def _name_axes(
    figure: go.Figure,
    estimates: Estimates,
    arrangement: Arrangement,
    positions: list[str | float],
    layout: PlotLayout,
    upright: bool,
) -> None:
    """Axis titles and the order of the groups; in each column only the lowest panel labels the groups."""
    scale: dict[str, Any] = {"type": "category", "categoryorder": "array", "categoryarray": positions}
    if arrangement.kind == "quantiles":  # a numeric axis: the hues are drawn close to their level
        figure.update_layout(scattergap=1 - min(0.6, 0.08 * len(arrangement.panels[0].series)))
        scale = {"range": [-0.04, 1.04], "showgrid": True, **({"tickvals": positions} if len(positions) <= 11 else {})}
    elif any(len(str(position)) > LABEL_WIDTH for position in positions):
        scale |= {"tickvals": positions, "ticktext": [short(unescape(str(position))) for position in positions]}
    along, panels = short(arrangement.along), min(len(arrangement.panels), MAX_PANELS)
    if upright:
        figure.update_xaxes(**scale)
        for at in range(panels):
            lowest, (row, col) = at + layout.cols >= panels, layout.cell(at)
            figure.update_xaxes(showticklabels=lowest, title=along if lowest else None, row=row, col=col)
        if arrangement.kind != "statistics":
            width = AXIS_WIDTH if panels == 1 else LABEL_WIDTH
            figure.update_yaxes(title=describe_value(estimates, width), col=1)
    else:
        figure.update_yaxes(**scale, autorange="reversed", showgrid=False, title=along)
        figure.update_xaxes(showgrid=True, title=describe_value(estimates))
    figure.update_annotations(font={"size": SMALL + 1})
    figure.update_layout(legend={"title": {"text": legend_title(arrangement.by)}})
    if upright and arrangement.kind == "groups" and is_ordered(estimates):
        _label_ranges(figure, [str(position) for position in positions], layout.cols)


def _label_ranges(figure: go.Figure, positions: list[str], cols: int) -> None:
    """The edges of adjacent ranges between the marks, as on the axis of a histogram; as many as there is room for."""
    edges = bin_edges([unescape(position) for position in positions])
    if edges is None:
        return
    every = math.ceil(len(edges) * (max(map(len, edges)) + 2) * cols / AXIS_CHARACTERS)
    # plotly takes numbers that are not categories as positions on the axis of categories: -0.5 is the left end.
    ticks = [(index - 0.5, text(edge)) for index, edge in enumerate(edges) if index % every == 0]
    places, labels = zip(*ticks, strict=True)
    figure.update_xaxes(tickvals=places, ticktext=labels, tickangle=0, ticks="outside")
    figure.update_layout(bargap=0.04)


def _needs_vertical_axis(estimates: Estimates, positions: list[str | float]) -> bool:
    """Whether the names are put on a vertical axis; ordered groups keep a horizontal one, with some names omitted."""
    longest = max(map(len, map(str, positions)), default=0)
    ordered = is_ordered(estimates)
    if ordered and bin_edges([unescape(str(position)) for position in positions]) is not None:
        return False  # its edges are labelled, as many as there is room for
    return (
        longest > 24
        or (longest * len(positions) > 90 and longest > 10)
        or (len(positions) > MAX_HORIZONTAL_NAMES and not ordered)
    )


def _layout_of(panels: list[PlotPanel], positions: list[str | float], upright: bool) -> PlotLayout:
    if len(panels) == 1:
        hues = len(panels[0].series)
        return PlotLayout(panel=320 if upright else max(200, len(positions) * (10 + 10 * hues)))
    cols = min(4, math.ceil(math.sqrt(len(panels))))
    return PlotLayout(math.ceil(len(panels) / cols), cols, panel=170, gap=46)
