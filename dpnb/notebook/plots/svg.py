"""A figure of this package as SVG, for what shows a notebook without plotly's script: an export, a code host.

It draws what this package puts into a figure, bars and points with their error bars, lines and the area between two of
them, boxes and the cells of a heat map, as plotly does.  It is not for a figure to which a user has added something:
see ``figure``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go

from dpnb.notebook.plots.axes import (
    LINE,
    Axis,
    FigureContent,
    axes_of,
    grid_svg,
    is_turned,
    line_svg,
    longest,
    plain,
    spaced,
    text_svg,
    title_svg,
)
from dpnb.notebook.plots.style import HUES, INK, PATTERNS, SMALL

WIDTH = 700

DASHES = {"solid": "", "dash": "9 5", "dot": "2 3", "dashdot": "9 4 2 4", "longdash": "14 5", "longdashdot": "14 4 2 4"}
"""plotly's names of dashes in pixels; others are in pixels already."""


def svg_of(figure: go.Figure) -> str:
    """The figure as SVG, always `WIDTH` wide."""
    content: FigureContent = figure.to_plotly_json()
    layout, traces = content["layout"], content["data"]
    margin = layout["margin"]
    # The user may have set any height, or none, for which plotly takes 450.
    height = max(layout.get("height") or 450, margin["t"] + margin["b"] + 100)
    named = [trace for trace in traces if trace.get("showlegend") and trace.get("name")]
    legend = 50 + longest([trace["name"] for trace in named] + [_text(layout.get("legend"))]) if named else 0
    shaded = [trace for trace in traces if trace["type"] == "heatmap"]
    legend = 30 + longest(["100,000", *(_text(trace["colorbar"]) for trace in shaded)]) if shaded else legend
    vertical = axes_of(content, "y", 0, 1)
    labels = longest(text for axis in vertical.values() for _, text in axis.labels)
    left, right = 22 + labels + (24 if any(_text(axis.layout) for axis in vertical.values()) else 0), 24 + legend
    top, bottom = margin["t"], height - margin["b"]
    horizontal, vertical = axes_of(content, "x", left, WIDTH - right), axes_of(content, "y", bottom, top)
    below = max((_below(axis) for axis in horizontal.values()), default=0)
    height = max(height, bottom + below + 24)
    parts = [f"<defs>{''.join(map(_pattern, range(1, len(PATTERNS))))}</defs>"] if _has_patterns(content) else []
    parts.append(title_svg(_text(layout), 12, 10))
    panels = dict.fromkeys((trace.get("xaxis", "x"), trace.get("yaxis", "y")) for trace in traces)
    for x, y in panels:
        own = [trace for trace in traces if (trace.get("xaxis", "x"), trace.get("yaxis", "y")) == (x, y)]
        parts += [grid_svg(horizontal[x], vertical[y]), *_axis_titles(horizontal[x], vertical[y])]
        parts += _traces(own, horizontal[x], vertical[y], layout)
    for shape in layout.get("shapes", ()):  # the vertical line at 0 of a regression
        at = horizontal["x"].place(shape["x0"])
        parts.append(line_svg(at, top, at, bottom, width=2))
    for one in layout.get("annotations", ()):  # the titles of panels
        x, y = left + one["x"] * (WIDTH - right - left), bottom - one["y"] * (bottom - top)
        parts.append(text_svg(x, y - 4, plain(one["text"]), anchor="middle"))
    parts += [part for trace in shaded for part in _shades(trace, WIDTH - right + 16, top)]
    parts += _legend(named, _text(layout.get("legend")), WIDTH - right + 16, top)
    label = escape(plain(_text(layout).replace("<br>", " ")), quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" '
        f'height="{height:g}" role="img" aria-label="{label}" font-family="Open Sans,Verdana,Arial,sans-serif" '
        f'font-size="{SMALL}" fill="{INK}">{"".join(parts)}</svg>'
    )


def _text(owner: Any) -> str:
    """The title of an axis, a legend or a layout; empty if it has none."""
    return str((((owner or {}).get("title")) or {}).get("text") or "")


def _below(axis: Axis) -> float:
    """Pixels that labels need below a horizontal axis."""
    texts = [text for _, text in spaced(axis)]
    if is_turned(axis):
        return 22 + 0.71 * longest(texts)
    return LINE * max((str(text).count("<br>") + 1 for text in texts), default=0) + 8


def _axis_titles(horizontal: Axis, vertical: Axis) -> list[str]:
    parts = []
    if _text(horizontal.layout):
        middle, bottom = (horizontal.start + horizontal.end) / 2, max(vertical.start, vertical.end)
        words = plain(_text(horizontal.layout))
        parts.append(text_svg(middle, bottom + _below(horizontal) + 12, words, anchor="middle", more=' font-size="13"'))
    if _text(vertical.layout):
        middle = (vertical.start + vertical.end) / 2
        more = f' font-size="13" transform="rotate(-90 16 {middle:.1f})"'
        parts.append(text_svg(16, middle, plain(_text(vertical.layout)), anchor="middle", more=more))
    return parts


# --- marks ------------------------------------------------------------------------------------------------------------


def _traces(traces: Sequence[dict[str, Any]], horizontal: Axis, vertical: Axis, layout: dict[str, Any]) -> list[str]:
    """The marks of one panel."""
    parts = [
        _box(trace, at, horizontal, vertical)
        for trace in traces
        if trace["type"] == "box"
        for at in range(len(trace["x"]))
    ]
    parts += [_heat(trace, horizontal, vertical) for trace in traces if trace["type"] == "heatmap"]
    traces = [trace for trace in traces if trace["type"] in ("bar", "scatter")]
    groups = list(dict.fromkeys(trace.get("offsetgroup") for trace in traces))
    edge: list[tuple[float, float]] = []  # of the trace before, for the area between both
    for trace in traces:
        upright = trace.get("orientation") != "h"
        across, along = (horizontal, vertical) if upright else (vertical, horizontal)
        size = _room(traces, trace, across) * (1 - _gap(trace, layout)) / len(groups)
        is_overlay = layout.get("scattermode") == "overlay"
        shift = 0.0 if is_overlay else size * (groups.index(trace.get("offsetgroup")) - (len(groups) - 1) / 2)
        at, of = ("x", "y") if upright else ("y", "x")
        points = [
            (across.place(position) + shift, along.place(value), index)
            for index, (position, value) in enumerate(zip(trace[at], trace[of], strict=True))
            if value is not None and math.isfinite(value)
        ]
        places = [(x, y) if upright else (y, x) for x, y, _ in points]
        colour = _colour(trace)
        if trace.get("fill") == "tonexty":
            area = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*edge, *reversed(places)])
            parts.append(f'<polygon points="{area}" fill="{trace["fillcolor"]}"/>')
        edge = places
        if trace["type"] == "bar":
            parts += [_bar(place, along.place(0), size, trace, upright=upright) for place in places]
        if "lines" in trace.get("mode", ""):
            parts.append(_path(places, trace["line"]))
        parts += _error_bars(trace, points, along, colour, upright=upright)
        if "markers" in trace.get("mode", "") and trace["marker"].get("opacity") != 0:
            marker = trace["marker"]
            sizes = marker["size"] if isinstance(marker["size"], list | tuple) else [marker["size"]] * len(trace[of])
            parts += [
                _mark(place, marker.get("symbol", "circle"), sizes[index] / 2, colour)
                for place, (_, _, index) in zip(places, points, strict=True)
            ]
    return parts


def _room(traces: Iterable[dict[str, Any]], trace: dict[str, Any], across: Axis) -> float:
    """Pixels for the marks at one position."""
    if across.categories is not None:
        return across.unit
    at = "x" if trace.get("orientation") != "h" else "y"
    positions = sorted({float(position) for one in traces for position in one[at]})
    return across.unit * min((high - low for low, high in pairwise(positions)), default=1.0)


def _gap(trace: dict[str, Any], layout: dict[str, Any]) -> float:
    key = "bargap" if trace["type"] == "bar" else "scattergap"
    gap = layout.get(key)
    return 0.25 if gap is None else float(gap)


def _colour(trace: dict[str, Any]) -> str:
    """The hue of a trace: of a bar, that of its outline."""
    marker = trace.get("marker") or {}
    line = (marker if trace["type"] == "bar" else trace).get("line") or {}
    colour = line.get("color") if trace["type"] == "bar" else marker.get("color") or line.get("color")
    return str(colour or INK)


def _bar(place: tuple[float, float], zero: float, size: float, trace: dict[str, Any], *, upright: bool) -> str:
    colour = _colour(trace)
    (x, y), half = place, size / 2
    left, right = (x - half, x + half) if upright else sorted((x, zero))
    top, bottom = sorted((y, zero)) if upright else (y - half, y + half)
    box = f'x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{max(bottom - top, 0.5):.1f}"'
    bar = f'<rect {box} fill="{colour}" fill-opacity="0.35" stroke="{colour}" stroke-width="1.5"/>'
    shape = ((trace.get("marker") or {}).get("pattern") or {}).get("shape")
    return bar + (f'<rect {box} fill="url(#dpnb-pattern-{PATTERNS.index(shape)})"/>' if shape in PATTERNS[1:] else "")


def _error_bars(
    trace: dict[str, Any], points: Sequence[tuple[float, float, int]], along: Axis, colour: str, *, upright: bool
) -> list[str]:
    error = trace.get("error_y" if upright else "error_x")
    if not error or error.get("array") is None:
        return []
    values, parts = trace["y" if upright else "x"], []
    for at, _, index in points:
        up, down, cap = error["array"][index], error["arrayminus"][index], float(error["width"])
        if up is None or down is None or math.isnan(up) or math.isnan(down):
            continue
        low, high = along.place(values[index] - down), along.place(values[index] + up)
        lines = [(at, low, at, high), *((at - cap, end, at + cap, end) for end in (low, high))]
        parts += [
            line_svg(
                *(line if upright else (line[1], line[0], line[3], line[2])), colour=colour, width=error["thickness"]
            )
            for line in lines
        ]
    return parts


def _box(trace: dict[str, Any], at: int, horizontal: Axis, vertical: Axis) -> str:
    """One box of quantiles with its whiskers."""
    bottom, low, middle, high, top = (
        vertical.place(trace[name][at]) for name in ("lowerfence", "q1", "median", "q3", "upperfence")
    )
    x, half, hue = horizontal.place(trace["x"][at]), trace["width"] * horizontal.unit / 2, _colour(trace)
    box = f'x="{x - half:.1f}" y="{high:.1f}" width="{2 * half:.1f}" height="{max(low - high, 0.5):.1f}"'
    cap = half * trace["whiskerwidth"]
    lines = [(x - half, middle, x + half, middle), (x, high, x, top), (x, low, x, bottom)]
    lines += [(x - cap, end, x + cap, end) for end in (bottom, top)]
    drawn = "".join(line_svg(*line, colour=hue, width=2) for line in lines)
    return f'<rect {box} fill="{hue}" fill-opacity="0.35" stroke="{hue}" stroke-width="2"/>{drawn}'


def _heat(trace: dict[str, Any], horizontal: Axis, vertical: Axis) -> str:
    """The cells of a two-way table; colours are shades of one hue."""
    width, height = horizontal.unit - 1, vertical.unit - 1
    parts = []
    for name, row in zip(trace["y"], trace["z"], strict=True):
        for column, value in zip(trace["x"], row, strict=True):
            if value is None or not math.isfinite(value):
                continue
            x, y = horizontal.place(column) - width / 2, vertical.place(name) - height / 2
            box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
            parts.append(f"<rect {box} {_shade((value - trace['zmin']) / (trace['zmax'] - trace['zmin']))}/>")
    return "".join(parts)


def _shade(share: float) -> str:
    return f'fill="{HUES[0]}" fill-opacity="{0.04 + 0.96 * min(max(share, 0.0), 1.0):.3f}"'


SHADES = 6
"""Colours in the legend of a heat map."""


def _shades(trace: dict[str, Any], x: float, y: float) -> list[str]:
    """The legend of a heat map, the highest number first."""
    low, high, parts = trace["zmin"], trace["zmax"], [text_svg(x, y + 4, plain(_text(trace["colorbar"])))]
    decimals = max(0, math.ceil(-math.log10((high - low) / SHADES)))
    for at in range(SHADES):
        share = 1 - at / (SHADES - 1)
        top = y + 14 + LINE * at
        parts.append(f'<rect x="{x:.1f}" y="{top:.1f}" width="14" height="{LINE}" {_shade(share)}/>')
        parts.append(text_svg(x + 20, top + 12, f"{low + share * (high - low):,.{decimals}f}"))
    return parts


def _path(places: Sequence[tuple[float, float]], line: dict[str, Any]) -> str:
    dash = DASHES.get(line.get("dash") or "solid", str(line.get("dash")).replace("px", ""))
    more = f' stroke-dasharray="{dash}"' if dash else ""
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polyline points="{joined}" fill="none" stroke="{line["color"]}" stroke-width="{line["width"]:g}"{more}/>'


SIDES = {"square": (4, 45), "diamond": (4, 0), "pentagon": (5, -90), "hexagram": (6, -90), "star": (5, -90)} | {
    f"triangle-{side}": (3, angle) for side, angle in {"up": -90, "down": 90, "left": 180, "right": 0}.items()
}
"""Corners of a symbol and the angle of the first."""


def _mark(place: tuple[float, float], symbol: str, radius: float, colour: str) -> str:
    (x, y), shape = place, symbol.removesuffix("-open")
    style = f'fill="none" stroke="{colour}" stroke-width="2"' if shape != symbol else f'fill="{colour}"'
    if shape in ("cross", "x"):
        reach = radius if shape == "cross" else radius * 0.8
        turned = "" if shape == "cross" else f' transform="rotate(45 {x:.1f} {y:.1f})"'
        crossing = f"M{x - reach:.1f} {y:.1f}H{x + reach:.1f}M{x:.1f} {y - reach:.1f}V{y + reach:.1f}"
        return f'<path d="{crossing}" stroke="{colour}" stroke-width="{3 if shape == symbol else 1.5}"{turned}/>'
    if shape not in SIDES:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {style}/>'
    corners, start = SIDES[shape]
    pointed = shape in ("star", "hexagram")
    count = corners * (2 if pointed else 1)
    points = []
    for index in range(count):
        angle = math.radians(start + 360 * index / count)
        reach = radius * 1.25 * (0.5 if pointed and index % 2 else 1.0)
        points.append(f"{x + reach * math.cos(angle):.1f},{y + reach * math.sin(angle):.1f}")
    return f'<polygon points="{" ".join(points)}" {style}/>'


# --- legend and patterns ----------------------------------------------------------------------------------------------


def _legend(traces: Sequence[dict[str, Any]], title: str, x: float, y: float) -> list[str]:
    parts = [text_svg(x, y + LINE * (at + 1), plain(line)) for at, line in enumerate(title.split("<br>")) if traces]
    y += LINE * (len(parts) + 1)
    for at, trace in enumerate(traces):
        middle, colour = y + LINE * at, _colour(trace)
        if trace["type"] == "bar":
            parts.append(_bar((x + 15, middle - 9), middle + 1, 30, trace, upright=True))
        else:
            if "lines" in trace.get("mode", ""):
                parts.append(_path([(x, middle - 4), (x + 30, middle - 4)], trace["line"]))
            parts.append(_mark((x + 15, middle - 4), trace["marker"].get("symbol", "circle"), 4.5, colour))
        parts.append(text_svg(x + 36, middle, plain(trace["name"])))
    return parts


STROKES = {
    "/": "M0 8L8 0",
    "\\": "M0 0L8 8",
    "x": "M0 8L8 0M0 0L8 8",
    "-": "M0 4H8",
    "|": "M4 0V8",
    "+": "M0 4H8M4 0V8",
    ".": "M3.5 4H4.5",
}


def _has_patterns(figure: FigureContent) -> bool:
    return any(((trace.get("marker") or {}).get("pattern") or {}).get("shape") for trace in figure["data"])


def _pattern(index: int) -> str:
    """The pattern of a hue.  Every figure of a page defines it alike, so that it does not matter which one is used."""
    return (
        f'<pattern id="dpnb-pattern-{index}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<path d="{STROKES[PATTERNS[index]]}" stroke="{HUES[index]}" stroke-width="1.2"/></pattern>'
    )
