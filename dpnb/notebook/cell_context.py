"""The origin of a request: which notebook cell makes it, and whether widgets can be displayed."""

from __future__ import annotations

import importlib.util
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Cell ids as the notebook format defines them."""

_widget_of: ContextVar[str | None] = ContextVar("dpnb_widget_of", default=None)


def current_cell() -> str | None:
    """Id of the cell that is being run, or that contains the widget being used; None if unknown."""
    cell = _widget_of.get() or _running_cell()
    # Some editors send a URI with local folder names instead, which must not be recorded in a ledger.
    return cell if cell is not None and CELL_ID.fullmatch(cell) else None


@contextmanager
def in_cell(cell: str | None) -> Iterator[None]:
    """Attribute requests made in the block to a widget of this cell."""
    token = _widget_of.set(cell)
    try:
        yield
    finally:
        _widget_of.reset(token)


def has_live_widgets() -> bool:
    """Whether output that is displayed now can contain live widgets.

    A browser or editor sends the id of the cell that it runs.  Programs that execute notebooks do not; the output that
    they save is read without a kernel, where a widget would be empty, so they are given static output.
    """
    if importlib.util.find_spec("anywidget") is None:
        return False
    return _running_cell() is not None or _widget_of.get() is not None or "google.colab" in sys.modules


def _running_cell() -> str | None:
    """Id of the cell whose run message this kernel is answering."""
    if threading.current_thread() is not threading.main_thread():
        return None  # a thread may outlive the cell that started it
    ipython = sys.modules.get("IPython")
    kernel = getattr(ipython.get_ipython(), "kernel", None) if ipython is not None else None
    if kernel is None:
        return None
    message: Any = kernel.get_parent("shell")
    cell = (message.get("metadata") or {}).get("cellId")
    return cell if isinstance(cell, str) and cell else None
