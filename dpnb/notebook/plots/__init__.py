"""Figures of answers and histories, drawn with plotly, which is imported when a figure is first requested.

``text``         a figure as text, also without plotly
``answers``      an answer or computed estimates as panels of series
``regressions``  the coefficients of a regression
``marks``        numbers with intervals as marks, and the history of an answer
``style``        colours, title and margins
``figure``       the figure that is returned, with its SVG (``svg``, ``axes``) and its text
"""

from __future__ import annotations

from typing import Any

from dpnb.notebook.plots.text import TextPlot, text_history, text_plot
from dpnb.results.display import to_picture
from dpnb.results.regression import RegressionAnswer, RegressionResult
from dpnb.results.tables.table import Estimates


@to_picture.register
def _draw(estimates: Estimates, history: bool) -> Any:
    text = text_history(estimates.history) if history else text_plot(estimates)
    try:
        from dpnb.notebook.plots.figure import AnswerFigure

        if isinstance(estimates, RegressionAnswer | RegressionResult):
            from dpnb.notebook.plots import regressions

            figure = regressions.draw(estimates, history)
        else:
            from dpnb.notebook.plots.answers import draw

            figure = draw(estimates, history)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "plotly":
            raise
        return TextPlot(text)
    return AnswerFigure.drawn(figure, text)
