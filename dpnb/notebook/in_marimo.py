"""In marimo, which has no extensions of IPython: the budget picker as a widget, and refusals without dpnb's own frames.

marimo displays what ``_display_`` returns, and prints the ``__traceback__`` of an error.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

from dpnb._core import open_sessions
from dpnb.errors import DpnbError
from dpnb.notebook.cell_output import outside
from dpnb.query.query import Query


def install() -> None:
    """Enable both, if this process runs a marimo notebook."""
    marimo = sys.modules.get("marimo")
    if marimo is None or not marimo.running_in_notebook():
        return
    whole: Any = BaseException.__dict__["__traceback__"]
    trimmed = property(lambda error: outside(whole.__get__(error)), whole.__set__)
    DpnbError.__traceback__ = trimmed  # type: ignore[assignment]
    if importlib.util.find_spec("anywidget") is not None:
        Query._display_ = _picker  # type: ignore[attr-defined]


def _picker(query: Query) -> Any:
    from dpnb.notebook import picker  # imports ipywidgets, so only when a picker is displayed

    open_sessions.subscribe(picker.follow)
    return picker.widget(query)
