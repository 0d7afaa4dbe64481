"""The figure that `plot()` returns, also as SVG and as text.

A figure as text: estimates and intervals as marks on lines, for a terminal; it needs no plotly.

``|---o---|`` is an interval with its estimate, ``<`` and ``>`` are sides without an end, ``?`` is an unknown estimate
in the middle of its interval, and ``=`` fills the bar of a count or a sum from 0.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

import plotly.graph_objects as go
import plotly.io as pio
from plotly.io.json import to_json_plotly

from dpnb.errors import AnswerAttributeError, RequestError
from dpnb.notebook.plots.svg import svg_of
from dpnb.render.charts import Ticks, adds_up, has_common_scale
from dpnb.render.numbers import format_mu_up
from dpnb.render.page import with_notice
from dpnb.render.tables import heading_of, interval_name, rows_of, table_text
from dpnb.results.answer import Answer
from dpnb.results.display import PLOTLY_MISSING, Displayed, to_text
from dpnb.results.tables.table import Estimates

SVG = "image/svg+xml"

OUTSIDE = ("", "browser", "vscode", "plotly_mimetype", "plotly_mimetype+notebook")
"""What plotly chooses outside notebooks: it opens a browser, or shows nothing.  Another one was chosen by the user."""


class AnswerFigure(go.Figure):  # type: ignore[misc]  # plotly has no types
    """A figure of plotly.

    Its output in a notebook has an SVG beside plotly's JSON: exports and code hosts do not run plotly's script, and
    would show nothing.  There is no SVG of a figure in which more than the title and the size has been changed, since
    the SVG does not draw all that plotly can.  In a terminal it is text, which ``.show()`` prints; ``.show("browser")``
    opens a browser.
    """

    @classmethod
    def drawn(cls, figure: go.Figure, text: str) -> Self:
        """A figure as this package has drawn it, and the same as text."""
        own = cls(figure)
        own.layout.meta = {"text": text, "digest": own._dpnb_digest}  # in the layout, so that copies have them too
        return own

    def show(self, *arguments: Any, **options: Any) -> None:
        """As in plotly; where there is no notebook and no renderer was chosen, the text is printed."""
        if arguments or "renderer" in options or _has_kernel() or pio.renderers.default not in OUTSIDE:
            super().show(*arguments, **options)
        else:
            print(repr(self))  # noqa: T201  (output for the user)

    def write_image(self, file: Any, format: str | None = None, **options: Any) -> None:
        """As in plotly, which needs the package kaleido; without it, as SVG and as the figure was drawn.

        Parameters
        ----------
        file : str, path or file
            Where to write, for example ``"delays.svg"``.
        format : str, optional
            By default the suffix of the file.
        **options
            As for `plotly.graph_objects.Figure.write_image`.
        """
        if find_spec("kaleido") is not None:
            super().write_image(file, format, **options)
            return
        suffix = Path(fspath(file)).suffix if isinstance(file, str | PathLike) else ""
        if (format or suffix).lower().strip(".") != "svg" or options or not self._dpnb_is_as_drawn:
            raise RequestError(
                "write_image: without the package kaleido a figure is written as SVG, changed in title and size alone; "
                "use answer.plot(title=...).write_image('figure.svg'), or .write_html('figure.html') for any figure, "
                "or pip install kaleido"
            )
        text = svg_of(self)
        if isinstance(file, str | PathLike):
            Path(file).write_text(text, encoding="utf-8")
        else:
            file.write(text.encode())

    def __getattr__(self, prop: str) -> Any:
        if prop == "savefig":
            raise AnswerAttributeError(".savefig of a figure: is matplotlib's; use .write_image('figure.svg')")
        return object.__getattribute__(self, prop)

    def __repr__(self) -> str:
        return self._dpnb_text or str(super().__repr__())

    @property
    def _dpnb_text(self) -> str:
        """The figure as text; empty if its user has removed it."""
        return str(self._dpnb_meta.get("text", ""))

    @property
    def _dpnb_meta(self) -> dict[str, Any]:
        meta = self.layout.meta
        return meta if isinstance(meta, dict) else {}

    @property
    def _dpnb_is_as_drawn(self) -> bool:
        """Whether no more has been changed than the SVG shows."""
        return bool(self._dpnb_meta.get("digest") == self._dpnb_digest)

    @property
    def _dpnb_digest(self) -> str:
        """The digest of all but what the user may change without losing the SVG."""
        content = self.to_plotly_json()
        for free in ("meta", "title", "width", "height"):
            content["layout"].pop(free, None)
        return sha256(to_json_plotly(content, engine="json").encode()).hexdigest()

    def _repr_mimebundle_(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(*arguments, **options)
        return {**bundle, **({SVG: svg_of(self)} if self._dpnb_is_as_drawn else {}), "text/plain": repr(self)}

    def _ipython_display_(self) -> None:
        # plotly's own method displays neither the SVG nor the text, and opens a browser from a terminal.
        if not _has_kernel():
            print(repr(self))  # noqa: T201  (output for the user)
            return
        from IPython.display import display

        bundle = self._repr_mimebundle_()
        if bundle.keys() <= {SVG, "text/plain"}:  # the user has chosen a renderer that is not a part of the page
            super()._ipython_display_()
            return
        display(bundle, raw=True)  # type: ignore[no-untyped-call]


def _has_kernel() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


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
