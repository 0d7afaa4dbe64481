"""Figures of answers and histories, drawn with plotly, which is imported when a figure is first requested.

``text``         a figure as text, also without plotly
``answers``      an answer or computed estimates as panels of series
``tables``       box plots and heat maps
``regressions``  the coefficients of a regression
``survival``     survival curves with their bands
``marks``        numbers with intervals as marks, and the history of an answer
``style``        colours, title and margins
``figure``       the figure that is returned, with its SVG (``svg``, ``axes``) and its text
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpnb.notebook.plots.text import TextPlot, text_history, text_plot
from dpnb.render.charts import adds_up
from dpnb.results.answer import History
from dpnb.results.display import to_picture
from dpnb.results.regression import RegressionAnswer, RegressionResult
from dpnb.results.survival import SurvivalAnswer
from dpnb.results.tables.exports import BARS
from dpnb.results.tables.table import Estimates


@to_picture.register
def _draw(estimates: Estimates, history: bool, title: str | None = None, kind: str | None = None) -> Any:
    past: History | None = estimates.history if history else None
    if title is not None:
        estimates = replace(estimates, description=title)
        past = past and History(tuple(replace(answer, description=title) for answer in past))
    note = "" if past is not None else _other_kind(estimates, kind)
    text = text_plot(estimates) if past is None else text_history(past.answers)
    text += f"\n  {note}" if note else ""
    try:
        from dpnb.notebook.plots.figure import AnswerFigure

        if past is not None:
            from dpnb.notebook.plots.marks import fan

            figure = fan(past)
        elif isinstance(estimates, RegressionAnswer | RegressionResult):
            from dpnb.notebook.plots.studies import draw_regression

            figure = draw_regression(estimates)
        elif isinstance(estimates, SurvivalAnswer):
            from dpnb.notebook.plots.studies import draw_survival

            figure = draw_survival(estimates)
        else:
            from dpnb.notebook.plots.answers import draw

            figure = draw(estimates)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "plotly":
            raise
        return TextPlot(text)
    if note:
        from dpnb.notebook.plots.style import with_note

        figure = with_note(figure, note)
    return AnswerFigure.drawn(figure, text)


def _other_kind(estimates: Estimates, kind: str | None) -> str:
    """That the figure is not of a kind of pandas, which was asked for; empty if it is."""
    if kind == "line":
        return "not a line: each number is drawn with its interval"
    if kind in BARS and not (estimates.names and all(adds_up(estimates))):
        return "points instead of bars, which are drawn for counts and sums by group"
    return ""
