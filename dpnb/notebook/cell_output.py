"""What a cell shows beside answers: the progress of a long operation, and tracebacks of refusals."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Any

from dpnb.progress import ShowText
from dpnb.render.page import STYLE

_own: ContextVar[Callable[[], ShowText] | None] = ContextVar("dpnb_own_line", default=None)

_LIBRARIES = tuple(
    str(folder) + os.sep
    for folder in (Path(__file__).parents[1], *(sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")))
)


def begin_line() -> ShowText:
    """A new line: below the cell that is being run, or in the widget that makes the request."""
    own = _own.get()
    return ProgressLine() if own is None else own()


@contextmanager
def shown_by(own: Callable[[], ShowText]) -> Iterator[None]:
    """Show the progress of operations in the block in a widget, since output of its messages has no cell."""
    token = _own.set(own)
    try:
        yield
    finally:
        _own.reset(token)


class ProgressLine:
    """One line, displayed with its first text; an empty text hides it."""

    def __init__(self) -> None:
        self._handle: Any = None

    def __call__(self, text: str, done: bool) -> None:
        """Show a text in place of the one before."""
        del done  # the last text stays displayed
        html = f'<div style="{STYLE}">{escape(text)}</div>' if text else ""
        shown = {"text/plain": text, "text/html": html}
        if self._handle is not None:
            self._handle.update(shown, raw=True)
        elif text:
            from IPython.display import display  # imported when first used: marimo, which has none, needs `outside`

            self._handle = display(shown, raw=True, display_id=True)  # type: ignore[no-untyped-call]


def outside(traceback: TracebackType | None) -> TracebackType | None:
    """The frames that are neither dpnb's nor a library's; the first, which is the notebook's own, stays."""
    if traceback is None:
        return None
    rest = traceback.tb_next
    while rest is not None and rest.tb_frame.f_code.co_filename.startswith(_LIBRARIES):
        rest = rest.tb_next
    return TracebackType(outside(rest), traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)
