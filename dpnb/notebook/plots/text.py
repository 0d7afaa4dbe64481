"""A figure as text: estimates and intervals as marks on lines, for a terminal; it needs no plotly.

``|---o---|`` is an interval with its estimate, ``<`` and ``>`` are sides without an end, ``?`` is an unknown estimate
in the middle of its interval, and ``=`` fills the bar of a count or a sum from 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpnb.errors import AnswerAttributeError
from dpnb.render.charts import Ticks, adds_up, has_common_scale
from dpnb.render.numbers import format_mu_up
from dpnb.render.page import with_notice
from dpnb.render.tables import heading_of, interval_name, rows_of, table_text
from dpnb.results.answer import Answer
from dpnb.results.display import PLOTLY_MISSING, Displayed, to_text
from dpnb.results.tables.table import Estimates

WIDTH = 48
"""Characters of the axis."""

MAX_LINES = 100
"""Most numbers of one figure."""


@dataclass(frozen=True, repr=False)
class TextPlot(Displayed):
    """The figure of an answer where plotly is not installed."""

    text: str

    def show(self) -> None:
        """Print the text, as the figure of plotly does in a terminal."""
        print(self)  # noqa: T201  (output for the user)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AnswerAttributeError(f".{name} of this plot: {PLOTLY_MISSING}")


@to_text.register
def _text(plot: TextPlot) -> str:
    return f"{plot.text}\n  as text; {PLOTLY_MISSING.removeprefix('plot: ')}"


def text_plot(estimates: Estimates) -> str:
    """The estimates with their intervals: all on one axis, or each statistic on its own, since their units differ."""
    rows, n_outputs = rows_of(estimates), estimates.arrays.value.shape[1]
    values, lows, highs = (
        array.ravel().tolist() for array in (estimates.arrays.displayed, estimates.arrays.low, estimates.arrays.high)
    )
    marks = [
        _Mark([*labels, value, interval if estimates.has_intervals else ""], *ends)
        for (labels, value, interval), *ends in zip(rows, values, lows, highs, strict=True)
    ]
    panels = [marks] if has_common_scale(estimates) else [marks[at::n_outputs] for at in range(n_outputs)]
    bars = adds_up(estimates) if estimates.names else [False]
    lines = [heading_of(estimates)]
    each = max(1, MAX_LINES // len(panels))
    for at, panel in enumerate(panels):
        lines += _panel(panel[:each], bars=bars[at % len(bars)])
    notes = [interval_name(estimates)] if estimates.has_intervals else []
    shown = sum(min(len(panel), each) for panel in panels)
    notes += [f"the first {shown} of {len(marks)} numbers"] if shown < len(marks) else []
    return with_notice(estimates.notice, [*lines, *([f"  {'; '.join(notes)}"] if notes else [])])


def text_history(history: Sequence[Answer]) -> str:
    """The first number of an answer after each observation."""
    last = history[-1]
    marks = []
    for at, answer in enumerate(history, start=1):
        label, value, interval = rows_of(answer)[0]
        ends = (float(array.flat[0]) for array in (answer.arrays.displayed, answer.arrays.low, answer.arrays.high))
        marks.append(_Mark([str(at), f"mu {format_mu_up(answer.total_loss)}", *label, value, interval], *ends))
    count = last.arrays.value.size
    notes = [f"{interval_name(last)} after each observation", *([f"the first of {count} numbers"] if count > 1 else [])]
    lines = [heading_of(last), *_panel(marks[-MAX_LINES:], bars=False), f"  {'; '.join(notes)}"]
    return with_notice(last.notice, lines)


@dataclass(frozen=True)
class _Mark:
    texts: list[str]
    value: float
    low: float
    high: float


def _panel(marks: list[_Mark], *, bars: bool) -> list[str]:
    """Lines with aligned texts and marks, and the axis below them."""
    if not marks:
        return []
    ends = [end for mark in marks for end in (mark.value, mark.low, mark.high) if math.isfinite(end)]
    if bars:
        ends.append(0.0)
    low, high = (min(ends), max(ends)) if ends else (0.0, 0.0)
    if not 0 < high - low < math.inf:
        return table_text([mark.texts for mark in marks], left=range(len(marks[0].texts) - 2), indent="  ")

    def place(end: float) -> int:
        return round((min(max(end, low), high) - low) / (high - low) * (WIDTH - 1))

    drawn = [_drawn(mark, place, bars=bars) for mark in marks]
    count = len(marks[0].texts)
    columns = [[*mark.texts, line] for mark, line in zip(marks, drawn, strict=True)]
    ticks = Ticks.between(low, high, 4)
    axis = [" "] * (WIDTH + 12)
    for tick in ticks.within(low, high) if ticks else []:
        at, label = place(tick), ticks.label(tick) if ticks else ""
        axis[at : at + len(label)] = label
    text = "".join(axis).rstrip()
    rows = [*columns, *([[""] * count + [text]] if text else [])]
    return table_text(rows, left=[*range(count - 2), count], indent="  ")


def _drawn(mark: _Mark, place: Any, *, bars: bool) -> str:
    line = [" "] * WIDTH
    if bars and math.isfinite(mark.value):
        first, last = sorted((place(0.0), place(mark.value)))
        line[first : last + 1] = "=" * (last + 1 - first)
    if not (math.isnan(mark.low) or math.isnan(mark.high)):
        first, last = place(mark.low), place(mark.high)
        line[first : last + 1] = "-" * (last + 1 - first)
        line[first] = "|" if math.isfinite(mark.low) else "<"
        line[last] = "|" if math.isfinite(mark.high) else ">"
        if not math.isfinite(mark.value):
            line[(first + last) // 2] = "?"
    if math.isfinite(mark.value):
        line[place(mark.value)] = "o"
    return "".join(line)
