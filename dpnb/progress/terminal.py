"""The progress line in a terminal, overwritten in place; nothing is shown if standard error is not a terminal.

It uses a duplicated descriptor, since that of standard error is redirected while an engine works.
"""

from __future__ import annotations

import os
import shutil
import sys
import weakref
from collections.abc import Callable
from typing import Protocol, TextIO


class TextStream(Protocol):
    """A stream that a line is written to."""

    def write(self, text: str, /) -> int:
        """Write a text."""
        ...

    def flush(self) -> None:
        """Flush the stream."""
        ...


def line() -> Callable[[str, bool], None] | None:
    """A new line on standard error; None if that is not a terminal."""
    out = sys.stderr
    return Line(_own(out)) if out is not None and out.isatty() else None


class _DescriptorStream:
    """A terminal, by a duplicated descriptor."""

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
    """One progress line of a terminal."""

    def __init__(self, out: TextStream) -> None:
        self._out, self._width = out, 0

    def __call__(self, text: str, done: bool) -> None:
        """Show a text in place of the previous one; the last one remains, unless it is empty."""
        text = text[: shutil.get_terminal_size().columns - 1]  # a wrapped line cannot be overwritten
        blank = " " * (self._width - len(text))
        end = ("\n" if text else "\r") if done else ""
        self._out.write(f"\r{text}{blank}{end}")
        self._out.flush()
        self._width = len(text)
