"""The figure that `plot()` returns: plotly's, which also has an SVG and a text where plotly's script does not run."""

from __future__ import annotations

import sys
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
