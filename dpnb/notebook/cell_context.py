"""The origin of a request: which notebook cell makes it, and whether widgets can be displayed."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from dpnb._protocol.messages import CellEnded, CellScheduled, CellStarted, PanelRequest
from dpnb.notebook.cell_runs import CellRun, CellRuns, checked_cell_id

SERVER_SESSION = "JPY_SESSION_NAME"
"""The variable that a Jupyter server sets in a kernel that it starts for a notebook or console of a front end."""

_widget_of: ContextVar[CellRun | None] = ContextVar("dpnb_widget_of", default=None)
_runs = CellRuns()
_front_ends: set[int] = set()
"""Ids of the processes (one, or none) to which dpnb's Lab extension has sent a message."""


def current_run() -> CellRun | None:
    """The run of the cell that is being run, or that contains the widget being used; None outside a notebook."""
    widget = _widget_of.get()
    if widget is not None:
        return widget
    message = _request()
    if message is None:
        return None
    sent = _sent_cell(message)
    if sent is not None:
        return CellRun(checked_cell_id(sent))
    request_id, code = (message.get("header") or {}).get("msg_id"), (message.get("content") or {}).get("code")
    if not isinstance(request_id, str) or not isinstance(code, str):
        return None  # not a request to run code
    return _runs.of(request_id, code)


def current_cell() -> str | None:
    """Id of the cell that is being run, or that contains the widget being used; None if unknown."""
    run = current_run()
    return run.cell_id if run is not None else None


def when_identified(listener: Callable[[str], None]) -> None:
    """Call `listener` with the id of the current cell if it is unknown now, or wrong, and becomes known later."""
    run = current_run()
    if run is not None:
        run.on_identified(listener)


@contextmanager
def in_run(run: CellRun | None) -> Iterator[None]:
    """Attribute requests made in the block to a widget that this run of a cell displayed."""
    token = _widget_of.set(run)
    try:
        yield
    finally:
        _widget_of.reset(token)


def note_message(request: PanelRequest) -> bool:
    """Use what dpnb's Lab extension sent; return whether it was about the runs of cells."""
    _front_ends.add(os.getpid())
    match request:
        case CellScheduled(cell_id=cell, code=code) if checked_cell_id(cell):
            _runs.schedule(cell, code)
        case CellStarted(cell_id=cell, request_id=request_id) if checked_cell_id(cell):
            _runs.identify(request_id, cell)
        case CellEnded(cell_id=cell):
            _runs.cancel(cell)
    return isinstance(request, CellScheduled | CellStarted | CellEnded)


def has_live_widgets() -> bool:
    """Whether output that is displayed now can contain live widgets.

    A browser or editor sends the id of the cell that it runs.  Programs that execute notebooks do not; the output that
    they save is read without a kernel, where a widget would be empty, so they are given static output.  A server that
    runs cells for a browser sends no id either; its kernels are recognised by the messages of dpnb's Lab extension, and
    before the first of these by the variable that the server sets.
    """
    if importlib.util.find_spec("anywidget") is None:
        return False
    return _is_certain() or (_request() is not None and SERVER_SESSION in os.environ)


def is_front_end_unknown() -> bool:
    """Whether a cell is being run for which it is not certain that its front end shows widgets.

    A front end that claims to show Jupyter's widgets, but has no kernel for them, replaces them by an error.
    """
    return _request() is not None and not _is_certain()


def _is_certain() -> bool:
    """Whether the front end certainly shows widgets."""
    if _widget_of.get() is not None or "google.colab" in sys.modules:
        return True
    message = _request()
    return message is not None and (_sent_cell(message) is not None or os.getpid() in _front_ends)


def _request() -> dict[str, Any] | None:
    """The message that this kernel is answering."""
    if threading.current_thread() is not threading.main_thread():
        return None  # a thread may outlive the cell that started it
    ipython = sys.modules.get("IPython")
    kernel = getattr(ipython.get_ipython(), "kernel", None) if ipython is not None else None
    return None if kernel is None else kernel.get_parent("shell")


def _sent_cell(message: dict[str, Any]) -> str | None:
    """The id, or the URI, of the cell that a message contains."""
    cell = (message.get("metadata") or {}).get("cellId")
    return cell if isinstance(cell, str) and cell else None
