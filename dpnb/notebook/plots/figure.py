"""The figure that `plot()` returns: plotly's, which also has an SVG and a text where plotly's script does not run."""

from __future__ import annotations

import sys
from typing import Any

import plotly.graph_objects as go
import plotly.io as pio

from dpnb.notebook.plots.svg import svg_of

SVG = "image/svg+xml"

OUTSIDE = ("", "browser", "vscode", "plotly_mimetype", "plotly_mimetype+notebook")
"""What plotly chooses outside notebooks: it opens a browser, or shows nothing.  Another one was chosen by the user."""


class AnswerFigure(go.Figure):  # type: ignore[misc]  # plotly has no types
    """A figure of plotly.

    Its output in a notebook has an SVG beside plotly's JSON: exports and code hosts do not run plotly's script, and
    would show nothing.  In a terminal it is text, which ``.show()`` prints; ``.show("browser")`` opens a browser.
    """

    def show(self, *arguments: Any, **options: Any) -> None:
        """As in plotly; where there is no notebook and no renderer was chosen, the text is printed."""
        if arguments or "renderer" in options or _has_kernel() or pio.renderers.default not in OUTSIDE:
            super().show(*arguments, **options)
        else:
            print(repr(self))  # noqa: T201  (output for the user)

    def __repr__(self) -> str:
        return self._dpnb_text or str(super().__repr__())

    @property
    def _dpnb_text(self) -> str:
        """The figure as text; empty if its user has removed it."""
        meta = self.layout.meta
        return str(meta.get("text", "")) if isinstance(meta, dict) else ""

    def _repr_mimebundle_(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(*arguments, **options)
        picture = svg_of(self)
        return {**bundle, **({} if picture is None else {SVG: picture}), "text/plain": repr(self)}

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
