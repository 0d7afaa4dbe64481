"""A line in the cell that says what long work is doing, brought up to date in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from typing import Any

from IPython.display import display

from dpnb.progress import Tell
from dpnb.render.page import STYLE

_own: ContextVar[Callable[[], Tell] | None] = ContextVar("dpnb_own_line", default=None)


def begin() -> Tell:
    """A new line: below the cell that is being run, or where the widget that is asking shows its own."""
    own = _own.get()
    return ProgressLine() if own is None else own()


@contextmanager
def shown_by(own: Callable[[], Tell]) -> Iterator[None]:
    """Whatever works in the block, a widget shows; what a widget's message displays goes below no cell."""
    token = _own.set(own)
    try:
        yield
    finally:
        _own.reset(token)


class ProgressLine:
    """One line, shown when it is first told something; of an empty text nothing is seen."""

    def __init__(self) -> None:
        self._handle: Any = None

    def __call__(self, text: str, done: bool) -> None:
        """Show a text in place of the one before."""
        del done  # the last one stays as it is
        html = f'<div style="{STYLE}">{escape(text)}</div>' if text else ""
        shown = {"text/plain": text, "text/html": html}
        if self._handle is not None:
            self._handle.update(shown, raw=True)
        elif text:
            self._handle = display(shown, raw=True, display_id=True)  # type: ignore[no-untyped-call]
