"""A line in the cell that says how far something is, brought up to date in its place; of public figures only."""

from __future__ import annotations

import logging
import time
from html import escape
from typing import Any

from IPython.display import display

from dpnb.answer.faces import STYLE

INTERVAL = 0.2
"""Seconds between two updates; the last one always comes."""

_log = logging.getLogger("dpnb")


class Line:
    """One line, shown when it is first told something.

    Parameters
    ----------
    interval : float
        Seconds between two updates, >= 0.
    """

    def __init__(self, interval: float = INTERVAL) -> None:
        self._interval = interval
        self._handle: Any = None
        self._last = -interval

    def __call__(self, text: str, done: bool) -> None:
        """Show how far it is; `done` if nothing more follows."""
        now = time.monotonic()
        if self._handle is not None and now < self._last + self._interval and not done:
            return
        self._last = now
        shown = {"text/plain": text, "text/html": f'<div style="{STYLE}">{escape(text)}</div>'}
        try:
            if self._handle is None:
                self._handle = display(shown, raw=True, display_id=True)  # type: ignore[no-untyped-call]
            else:
                self._handle.update(shown, raw=True)
        except Exception as error:  # noqa: BLE001
            # What was paid for must not fail because it could not be shown.
            _log.error("dpnb could not show how far it is (%s)", type(error).__name__)
