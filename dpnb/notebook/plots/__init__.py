"""Figures of answers and histories, drawn with plotly, which is imported when a figure is first requested."""

from __future__ import annotations

from typing import Any

from dpnb.errors import RequestError
from dpnb.results.display import PLOTLY_MISSING, to_picture
from dpnb.results.regression import RegressionAnswer, RegressionResult
from dpnb.results.tables.table import Estimates


@to_picture.register
def _draw(estimates: Estimates, history: bool) -> Any:
    try:
        if isinstance(estimates, RegressionAnswer | RegressionResult):
            from dpnb.notebook.plots import regressions

            return regressions.draw(estimates, history)
        from dpnb.notebook.plots.answers import draw

        return draw(estimates, history)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "plotly":
            raise
        raise RequestError(PLOTLY_MISSING) from None
