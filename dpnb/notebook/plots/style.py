"""Style of figures: colours for light and dark themes, margins, title and notes.

A figure has a transparent background and does not change with the Lab's theme, so its colours must be distinguishable
from white and from nearly black.  No colour has more than 4.35 : 1 against both #ffffff and #111111; ink
has that.  Hues are those of Okabe and Ito (2008, *Color Universal Design*), the four light ones darkened until each has
3 : 1 against both, and the ink's grey for their black.  A symbol, dash or pattern conveys the same as each hue.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from html import unescape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpnb._plan.description import describe_aggregation
from dpnb._plan.expressions.spoken import spoken
from dpnb._plan.measurements import QuantileTree, statistic_of
from dpnb.render.numbers import format_cost, format_mu_up
from dpnb.render.tables import heading_of, interval_name, intervals_name, released
from dpnb.results.answer import Answer
from dpnb.results.tables.table import Estimates

UNBOUNDED = "triangles: the interval has no end there"

INK = "#797979"
LOUD = "#d1495b"
GRID = "rgba(121,121,121,.3)"
HUES = ("#0072b2", "#d55e00", "#009e73", "#c2739f", "#b87f00", "#4590ba", "#908928", INK)
SYMBOLS = ("circle", "square", "diamond", "cross", "x", "star", "pentagon", "hexagram")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "6px 2px", "2px 6px")
PATTERNS = ("", "/", "x", "-", "|", "+", ".", "\\")

TITLE_SIZE, SMALL = 16, 12
LINE = 21
"""Pixels between the lines of a title: 1.3 of its size, also where a line has a smaller one."""

TITLE_WIDTH, NOTE_WIDTH, LABEL_WIDTH, LEGEND_WIDTH = 60, 86, 32, 14
"""In characters: lines that are read easily, in 540 pixels.  The page does not wrap the texts of a figure again; in
narrower cells JupyterLab shows them smaller (``outputs.css``)."""

AXIS_WIDTH = 48
"""In characters: what fits beside a figure with one panel."""

_AXIS = {
    "automargin": True,
    "gridcolor": GRID,
    "linecolor": INK,
    "showline": True,
    "tickfont": {"size": SMALL},
    "tickcolor": INK,
    "title": {"font": {"size": 13}, "standoff": 8},
    "zerolinecolor": INK,
}

TEMPLATE = go.layout.Template(
    layout={
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "colorway": list(HUES),
        "font": {"color": INK, "size": 13},
        "hoverlabel": {
            "align": "left",
            "bgcolor": "#ffffff",
            "bordercolor": INK,
            "font": {"color": "#1a1a1a", "size": 13},
        },
        "legend": {"font": {"size": SMALL}, "itemwidth": 40, "title": {"font": {"size": SMALL}}},
        "bargap": 0.25,
        "scattermode": "group",
        "scattergap": 0.25,
        "hovermode": "closest",
        "modebar": {"activecolor": HUES[0], "bgcolor": "rgba(0,0,0,0)", "color": INK},
        "xaxis": {**_AXIS, "showgrid": False, "zeroline": False},
        "yaxis": _AXIS,
    }
)
"""Passed to each figure, so that the analyst's default plotly template is not changed."""


def text(value: object) -> str:
    """Text escaped for plotly, which interprets mark-up and formulas between dollars."""
    plain = str(value).replace("&", "&amp;").replace("<", "&lt;")
    return plain.replace("$", "&#36;") if plain.count("$") > 1 else plain


def translucent(hue: str, opacity: float = 0.35) -> str:
    """A hue as the colour of an area."""
    return f"rgba({','.join(str(int(hue[i : i + 2], 16)) for i in (1, 3, 5))},{opacity:g})"


def short(value: object, width: int = LABEL_WIDTH) -> str:
    """A label, truncated to `width`."""
    label = str(value)
    if len(label) > width:
        label = f"{label[: width - 1].rstrip(' ,')}…"
    return text(label)


def legend_title(value: str) -> str:
    """The title of a legend, wrapped so that it is not wider than the legend's entries."""
    return "<br>".join(map(text, textwrap.wrap(unescape(short(value)), LEGEND_WIDTH)))


def describe_value(estimates: Estimates, width: int = AXIS_WIDTH) -> str:
    """Label of the axis of values."""
    answer = released(estimates)
    if answer is not None:
        if answer.outputs and isinstance(answer.plan.aggregation, QuantileTree):
            return short(spoken(answer.plan.aggregation.column), width)  # its levels are on the other axis
        return short(
            describe_aggregation(statistic_of(answer.plan.aggregation), answer.view, spoken).rstrip(","), width
        )
    return "estimate"


def notes_of(estimates: Estimates, *, drawn: bool = True) -> list[str]:
    """The notes below the title: intervals, whether they are drawn, cost and warnings."""
    notes = []
    if estimates.has_intervals:
        notes.append(interval_name(estimates) if estimates.is_scalar else intervals_name(estimates))
    if estimates.has_population_intervals and drawn:
        notes.append("thin lines are population intervals")
    if isinstance(estimates, Answer):
        known = f"known at mu {format_mu_up(estimates.total_loss)}"
        notes.append(
            f"cost {format_cost(estimates.cost, estimates.cost_fraction)}"
            if estimates.cost.mu_squared and not estimates.was_known
            else known
        )
        notes += [f"{estimates.n_observations} observations combined"] if estimates.n_observations > 1 else []
    marks = {"unknown": "open marks are "}
    notes += [marks.get(explanation, "") + warning for explanation, warning in estimates.warnings]
    return [*notes, *([UNBOUNDED] if np.isinf([estimates.arrays.low, estimates.arrays.high]).any() else [])]


@dataclass(frozen=True)
class PlotLayout:
    """The number and size of panels, in pixels."""

    rows: int = 1
    cols: int = 1
    panel: int = 320  # height of a panel
    gap: int = 0  # between rows of panels

    @property
    def height(self) -> int:
        """Height of all panels with their gaps."""
        return self.rows * self.panel + (self.rows - 1) * self.gap

    def cell(self, at: int) -> tuple[int, int]:
        """Row and column of a panel by its index, from 1."""
        return at // self.cols + 1, at % self.cols + 1

    def subplots(self, titles: list[str], *, apart: bool, **shared: Any) -> go.Figure:
        """An empty figure with these panels; gaps between columns are wider if each panel has its own scale."""
        return make_subplots(
            self.rows,
            self.cols,
            subplot_titles=titles if len(titles) > 1 else None,
            vertical_spacing=self.gap / self.height,  # as a fraction, as plotly expects it
            horizontal_spacing=None if self.cols == 1 else 0.09 if apart else 0.03,
            figure=go.Figure(layout={"template": TEMPLATE}),
            **shared,
        )


def framed(figure: go.Figure, estimates: Estimates, notes: list[str], layout: PlotLayout) -> go.Figure:
    """Add title, notes and margins, so that no text is cut off."""
    title = textwrap.wrap(heading_of(estimates), TITLE_WIDTH) or [""]
    small = textwrap.wrap("; ".join(notes), NOTE_WIDTH)
    lines = [f"<b>{text(line)}</b>" for line in title]
    if estimates.notice:
        lines.insert(0, f'<b style="color:{LOUD}">{text(estimates.notice)}</b>')
    lines += map(_small, small)
    top = 40 + LINE * len(lines)
    bottom = 60
    figure.update_layout(
        title={
            "text": "<br>".join(lines),
            "font": {"size": TITLE_SIZE},
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 18, "l": 12},
        },
        margin={"t": top, "b": bottom, "l": 70, "r": 24},
        height=top + bottom + layout.height,
    )
    return figure


def with_note(figure: go.Figure, note: str) -> go.Figure:
    """A framed figure with another note below its title."""
    lines = textwrap.wrap(note, NOTE_WIDTH)
    more = LINE * len(lines)
    figure.layout.title.text = "<br>".join([figure.layout.title.text, *map(_small, lines)])
    figure.layout.margin.t += more
    figure.layout.height += more
    return figure


def _small(line: str) -> str:
    return f'<span style="font-size:{SMALL + 1}px">{text(line)}</span>'
