"""``answer.plot``: the figure of estimates, also under the names that pandas has for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from dpnb.errors import AnswerAttributeError, RequestError
from dpnb.results.display import to_picture

KINDS = ("bar", "barh", "hist", "line")
"""The kinds of pandas that are accepted: what is drawn follows from the answer, always with its intervals."""

DRAWING = frozenset(
    ["kind", "ax", "alpha", "bins", "color", "figsize", "fontsize", "grid", "label", "legend", "rot", "style", "title",
     "width", "xlabel", "ylabel", "xlim", "ylim", "yerr"]
)  # fmt: skip
"""Arguments of pandas for the drawing, which have no effect."""


class Drawn(Protocol):
    """The part of `Estimates` that its figure needs."""

    @property
    def description(self) -> str:
        """The estimated quantity in words."""

    def _refuse_dates(self, verb: str) -> None: ...


class EstimatesPlot:
    """Draws estimates: ``answer.plot()``, or ``answer.plot.bar()`` as in pandas."""

    __slots__ = ("_estimates",)

    def __init__(self, estimates: Drawn) -> None:
        self._estimates = estimates

    def __call__(self, *, history: bool = False, **drawing: object) -> Any:
        """The numbers with their intervals as a ``plotly.graph_objects.Figure``; free.

        With `history`, the answers after each observation; for released answers only.  Arguments of pandas for the
        drawing have no effect: the figure can be changed by its own methods.
        """
        if not isinstance(history, bool | np.bool_):
            raise RequestError(f"history: must be True or False; got {history!r}")
        unknown = sorted(drawing.keys() - DRAWING)
        if unknown:
            raise RequestError(f"plot: has no argument {unknown[0]!r}; use history=True, or change the figure itself")
        kind = drawing.get("kind", KINDS[0])
        if kind not in KINDS:
            self._refuse(str(kind))
        self._estimates._refuse_dates("plot")
        return to_picture(self._estimates, bool(history))

    def bar(self, **drawing: object) -> Any:
        """The figure of ``plot()``; arguments of pandas for the drawing have no effect."""
        return self(history=False, **drawing)

    barh = hist = line = bar

    if not TYPE_CHECKING:  # a type checker refuses what is not offered, and names it

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            self._refuse(name)

    def _refuse(self, kind: str) -> NoReturn:
        raise AnswerAttributeError(
            f".plot.{kind} of {self._estimates.description}: is not offered; use .plot(), which draws the intervals "
            f"too, or .to_pandas()['estimate'].plot.{kind}() without them"
        )
