"""The line in a terminal, written over and over in its place; a script whose errors go elsewhere shows nothing."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from typing import TextIO


def line() -> Callable[[str, bool], None] | None:
    """A new line on standard error; None if that is no terminal."""
    out = sys.stderr
    return Line(out) if out is not None and out.isatty() else None


class Line:
    """One line.

    Parameters
    ----------
    out : text file
        A terminal.
    """

    def __init__(self, out: TextIO) -> None:
        self._out, self._width = out, 0

    def __call__(self, text: str, done: bool) -> None:
        """Show a text in place of the one before; the last stays, unless it is empty."""
        text = text[: shutil.get_terminal_size().columns - 1]  # a line that wraps cannot be written over
        blank = " " * (self._width - len(text))
        end = ("\n" if text else "\r") if done else ""
        self._out.write(f"\r{text}{blank}{end}")
        self._out.flush()
        self._width = len(text)
