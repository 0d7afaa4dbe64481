"""Imports what the first session and the first picker need, when the cell that loaded the extension has ended.

The kernel is then usually idle; a cell that is already waiting is delayed by no more than it would otherwise spend on
the same imports.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from dpnb._core.libraries import import_libraries

DELAY = 0.05
"""Seconds after the cell, so that its last messages are sent first."""


def begin() -> None:
    """Schedule the imports in the event loop that is running the cell, if any."""
    with suppress(RuntimeError):  # no loop is running
        loop = asyncio.get_running_loop()
        for imports in (_import_picker, import_libraries):  # one by one, so that messages are handled in between
            loop.call_later(DELAY, imports)


def _import_picker() -> None:
    with suppress(ImportError):  # without widgets, output is static
        from dpnb.notebook import picker  # noqa: F401
