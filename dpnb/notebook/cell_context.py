"""The origin of a request: which notebook cell makes it, and whether widgets can be displayed.

JupyterLab sends the id of a cell with the request that runs it.  Where the server runs the cells instead
(jupyter-server-nbmodel, used by collaborative hubs), it sends only their code.  dpnb's Lab extension then tells the
kernel which cells are about to be run, and which request runs which cell, as soon as it sees the request.  A kernel
that is running a cell reads that message only afterwards: requests for a privacy budget are then assigned to the cell
later.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from dpnb._browser.messages import CellEnded, CellScheduled, CellStarted, PanelRequest

# --- cells that the server runs ---------------------------------------------------------------------------------------


CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Cell ids as the notebook format defines them."""

MAX_RUNS = 200
"""Runs, and announced cells, that are remembered: one that is never identified must not be kept forever."""


def checked_cell_id(value: object) -> str | None:
    """The value if it is the id of a cell, otherwise None.

    Some editors send a URI with local folder names instead, which must not be recorded in a ledger.
    """
    return value if isinstance(value, str) and CELL_ID.fullmatch(value) else None


class CellRun:
    """One run of a cell, whose `cell_id` may become known later; it is None until then."""

    def __init__(self, cell_id: str | None = None) -> None:
        self.cell_id = cell_id
        self._is_certain = False
        self._listeners: list[Callable[[str], None]] = []

    def on_identified(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the id of the cell if another one than the present `cell_id` turns out to be right."""
        if not self._is_certain:
            self._listeners.append(listener)

    def identify(self, cell_id: str) -> None:
        """Set the id of the cell for good, and notify the listeners if it has changed."""
        has_changed, self.cell_id, self._is_certain = cell_id != self.cell_id, cell_id, True
        listeners, self._listeners = self._listeners, []
        for listener in listeners if has_changed else []:
            listener(cell_id)


class CellRuns:
    """The runs of cells whose requests contain no cell id, and the cells that the browser announced."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # a browser's message may be handled in another thread than the cell
        self._scheduled: deque[tuple[str, str]] = deque(maxlen=MAX_RUNS)
        self._runs: OrderedDict[str, CellRun] = OrderedDict()

    def schedule(self, cell_id: str, code: str) -> None:
        """Note that a cell with this code is about to be run."""
        with self._lock:
            self._forget(cell_id)
            self._scheduled.append((cell_id, code))

    def identify(self, request_id: str, cell_id: str) -> None:
        """Note that a request, which may have been answered already, runs this cell."""
        with self._lock:
            self._forget(cell_id)
            run = self._run(request_id)
        run.identify(cell_id)

    def cancel(self, cell_id: str) -> None:
        """Note that a cell that was announced will not be run."""
        with self._lock:
            self._forget(cell_id)

    def of(self, request_id: str, code: str) -> CellRun:
        """The run of a request; if it is new, of the first announced cell with the same code."""
        with self._lock:
            is_new = request_id not in self._runs
            run = self._run(request_id)
            if is_new:
                found = next((one for one in self._scheduled if one[1] == code), None)
                if found is not None:
                    self._scheduled.remove(found)
                    run.cell_id = found[0]
            return run

    def _forget(self, cell_id: str) -> None:
        for one in [one for one in self._scheduled if one[0] == cell_id]:
            self._scheduled.remove(one)

    def _run(self, request_id: str) -> CellRun:
        run = self._runs.setdefault(request_id, CellRun())
        while len(self._runs) > MAX_RUNS:
            self._runs.popitem(last=False)
        return run


# --- the origin of a request ------------------------------------------------------------------------------------------


SERVER_SESSION = "JPY_SESSION_NAME"
"""The variable that a Jupyter server sets in a kernel that it starts for a notebook or console of a front end."""

VOILA = "VOILA_REQUEST_URL"
"""The variable that Voilà sets in the kernel of a page, which has a kernel for widgets."""

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
    before the first of these by the variable that the server sets.  So are those of Voilà.
    """
    if importlib.util.find_spec("anywidget") is None:
        return False
    return _is_certain() or (_request() is not None and SERVER_SESSION in os.environ)


def is_voila() -> bool:
    """Whether this is the kernel of a page of Voilà, which has no panel and hides the messages of errors."""
    return VOILA in os.environ


def is_front_end_unknown() -> bool:
    """Whether a cell is being run for which it is not certain that its front end shows widgets.

    A front end that claims to show Jupyter's widgets, but has no kernel for them, replaces them by an error.
    """
    return _request() is not None and not _is_certain()


def _is_certain() -> bool:
    """Whether the front end certainly shows widgets."""
    if _widget_of.get() is not None or "google.colab" in sys.modules or is_voila():
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
