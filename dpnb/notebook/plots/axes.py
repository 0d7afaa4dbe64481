"""The axes of a figure of plotly in pixels, and their grid, ticks and labels as SVG."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape, unescape
from typing import Any

from dpnb.notebook.plots.style import GRID, INK, LOUD
from dpnb.render.charts import Ticks

CHARACTER = 6.6
"""Width of a character of a label, in pixels."""

LINE = 17
"""Height of a line of small text."""

FigureContent = dict[str, Any]
"""A figure as plotly sends it to a page."""


@dataclass(frozen=True)
class Axis:
    """One axis: where it begins and ends, and what is placed on it."""

    layout: dict[str, Any]  # of plotly
    start: float  # pixels of its lower end
    end: float
    categories: dict[str, int] | None  # positions of names; None for numbers
    low: float
    high: float

    def place(self, value: Any) -> float:
        """The pixels of a value.  As for plotly, a number that is no category is a position among them."""
        if self.categories is not None:
            value = self.categories.get(str(value), value)
        share = (float(value) - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return self.start + share * (self.end - self.start)

    @property
    def unit(self) -> float:
        """Pixels between two categories, or from 0 to 1."""
        return abs(self.end - self.start) / (self.high - self.low) if self.high > self.low else 0.0

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Pixels and label of each tick."""
        layout = self.layout
        values, texts = layout.get("tickvals"), layout.get("ticktext")
        if values is not None:
            named = values if texts is None else texts
            texts = [f"{name:g}" if isinstance(name, float) else str(name) for name in named]
            return [(self.place(value), text) for value, text in zip(values, texts, strict=True)]
        if self.categories is not None:
            return [(self.place(name), name) for name in self.categories]
        form, step = layout.get("tickformat"), layout.get("dtick")
        if form is None or step is None:
            ticks = Ticks.between(self.low, self.high, 6)
            if ticks is None:
                return [(self.place(end), f"{end:.3g}") for end in (self.low, self.high)]
            return [(self.place(tick), ticks.label(tick)) for tick in ticks.within(self.low, self.high)]
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [(self.place(at * step), format(at * step, f"z{form}")) for at in range(first, last + 1)]

    @property
    def labels(self) -> list[tuple[float, str]]:
        """The ticks that are labelled: none, or as many ordered ones as there is room for."""
        return self.ticks if self.layout.get("showticklabels", True) else []


def axes_of(figure: FigureContent, letter: str, start: float, end: float) -> dict[str, Axis]:
    """The axes of a letter by their name in a trace, such as ``x2``, between two places in pixels."""
    layout = figure["layout"]
    found = {}
    for key in layout:
        if not re.fullmatch(rf"{letter}axis\d*", key):
            continue
        name, own = key.replace("axis", ""), layout[key]
        values = [
            value
            for trace in figure["data"]
            if trace.get(f"{letter}axis", letter) == name
            for value in trace.get(letter) or ()
            if value is not None
        ]
        domain = own.get("domain") or (0.0, 1.0)
        ends = [start + share * (end - start) for share in domain]
        categories = None
        if own.get("type") == "category":
            named = [*(own.get("categoryarray") if own.get("categoryarray") is not None else ()), *values]
            categories = {category: at for at, category in enumerate(dict.fromkeys(map(str, named)))}
            low, high = -0.5, max(len(categories), 1) - 0.5
        else:
            numbers = [float(value) for value in own.get("range") or values]
            low, high = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
        if own.get("autorange") == "reversed":
            ends.reverse()
        found[name] = Axis(own, ends[0], ends[1], categories, low, high)
    return found


# --- texts ------------------------------------------------------------------------------------------------------------


_TAG = re.compile(r"<[^>]*>")
_SIZE = re.compile(r"font-size:\s*(\d+)px")


def plain(text: object) -> str:
    """A text of plotly without its mark-up."""
    return unescape(_TAG.sub("", str(text)))


def text_svg(x: float, y: float, text: str, *, anchor: str = "start", more: str = "") -> str:
    """One line of text, from text without mark-up."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def title_svg(title: str, x: float, y: float) -> str:
    """The title of a figure: plotly's lines, of which some are bold, small or in another colour."""
    parts = []
    for line in title.split("<br>"):
        size = _SIZE.search(line)
        height = float(size[1]) if size else 16.0
        y += height * 1.3
        more = f' font-size="{height:g}"' + (' font-weight="700"' if "<b" in line else "")
        more += f' fill="{LOUD}"' if LOUD in line else ""
        parts.append(text_svg(x, y, plain(line), more=more))
    return "".join(parts)


# --- grid, ticks and labels -------------------------------------------------------------------------------------------


def line_svg(x1: float, y1: float, x2: float, y2: float, *, colour: str = INK, width: float = 1, more: str = "") -> str:
    """A line between two places."""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width:g}"{more}/>'
    )


def grid_svg(horizontal: Axis, vertical: Axis) -> str:
    """Grid and axes of one panel, with the labels of their ticks."""
    left, right = sorted((horizontal.start, horizontal.end))
    top, bottom = sorted((vertical.start, vertical.end))
    parts = []
    if vertical.layout.get("showgrid", True):
        parts += [line_svg(left, at, right, at, colour=GRID) for at, _ in vertical.ticks]
        if vertical.categories is None and vertical.low < 0 < vertical.high:
            parts.append(line_svg(left, vertical.place(0), right, vertical.place(0)))
    if horizontal.layout.get("showgrid", False):
        parts += [line_svg(at, top, at, bottom, colour=GRID) for at, _ in horizontal.ticks]
    parts += [line_svg(left, bottom, right, bottom), line_svg(left, top, left, bottom)]
    parts += [text_svg(left - 6, at + 4, plain(text), anchor="end") for at, text in _spaced(vertical.labels, LINE)]
    for at, text in spaced(horizontal):
        if is_turned(horizontal):
            more = f' transform="rotate(-45 {at:.1f} {bottom + 14:.1f})"'
            parts.append(text_svg(at, bottom + 14, plain(text), anchor="end", more=more))
        else:
            for line, own in enumerate(str(text).split("<br>")):
                parts.append(text_svg(at, bottom + LINE * (line + 1), plain(own), anchor="middle"))
    return "".join(parts)


def spaced(axis: Axis) -> Sequence[tuple[float, str]]:
    """The labels of a horizontal axis that have room: turned ones need only the height of a line."""
    return _spaced(axis.labels, LINE if is_turned(axis) else longest(label for _, label in axis.labels) + 4)


def is_turned(axis: Axis) -> bool:
    """Whether the labels of a horizontal axis are turned: names that do not fit beside each other."""
    if axis.categories is None or axis.layout.get("tickangle") == 0 or not axis.labels:
        return False
    texts = [text for _, text in axis.labels]
    return longest(texts) + 4 > axis.unit and not all(plain(text).lstrip("-").isdigit() for text in texts)


def _spaced(labels: Sequence[tuple[float, str]], room: float) -> Sequence[tuple[float, str]]:
    if len(labels) < 2:
        return labels
    distance = abs(labels[-1][0] - labels[0][0]) / (len(labels) - 1)
    return labels[:: max(1, math.ceil(room / distance))] if distance else labels[:1]


def longest(texts: Iterable[object]) -> float:
    """The width of the longest line of some texts."""
    return CHARACTER * max((len(plain(line)) for text in texts for line in str(text).split("<br>")), default=0)
