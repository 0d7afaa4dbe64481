"""Who draws the picture of an answer: answers know nothing of plotly, so whoever does is named from above."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dpnb.errors import RequestError

if TYPE_CHECKING:
    from dpnb.answer.figures import Figures

MISSING = 'plot: pictures need plotly, which is not installed here; run: pip install "dpnb[lab]"'

Drawer = Callable[["Figures", bool], Any]
"""Makes a figure of an answer, or of its history."""


def _nobody(figures: Figures, history: bool) -> Any:
    raise RequestError(MISSING)


_drawer: Drawer = _nobody


def drawn_by(drawer: Drawer) -> None:
    """Name who draws."""
    global _drawer
    _drawer = drawer


def drawn(figures: Figures, history: bool) -> Any:
    """The picture of an answer, or of its history.

    Raises
    ------
    RequestError
        plotly is missing, or `figures` has no history.
    """
    try:
        return _drawer(figures, history)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "plotly":
            raise
        raise RequestError(MISSING) from None
