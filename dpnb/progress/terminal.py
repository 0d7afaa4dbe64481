"""The line in a terminal, written over and over in its place; a script whose errors go elsewhere shows nothing.

It has a descriptor of its own, since that of standard error leads nowhere while an engine works.
"""

from __future__ import annotations

import os
import shutil
import sys
import weakref
from collections.abc import Callable
from typing import Protocol, TextIO


class TextStream(Protocol):
    """What a line is written to."""

    def write(self, text: str, /) -> int:
        """Show a text."""
        ...

    def flush(self) -> None:
        """Show it now."""
        ...


def line() -> Callable[[str, bool], None] | None:
    """A new line on standard error; None if that is no terminal."""
    out = sys.stderr
    return Line(_own(out)) if out is not None and out.isatty() else None


class _DescriptorStream:
    """A terminal by a descriptor of its own."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    def write(self, text: str) -> int:
        return os.write(self._descriptor, text.encode(errors="replace"))

    def flush(self) -> None:
        pass


def _own(out: TextIO) -> TextStream:
    try:
        return _DescriptorStream(os.dup(out.fileno()))
    except (AttributeError, OSError):  # it has none; `io.UnsupportedOperation` is an OSError
        return out


class Line:
    """One line.

    Parameters
    ----------
    out : Out
        A terminal.
    """

    def __init__(self, out: TextStream) -> None:
        self._out, self._width = out, 0

    def __call__(self, text: str, done: bool) -> None:
        """Show a text in place of the one before; the last stays, unless it is empty."""
        text = text[: shutil.get_terminal_size().columns - 1]  # a line that wraps cannot be written over
        blank = " " * (self._width - len(text))
        end = ("\n" if text else "\r") if done else ""
        self._out.write(f"\r{text}{blank}{end}")
        self._out.flush()
        self._width = len(text)
