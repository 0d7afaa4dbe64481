"""Which cell a request belongs to where the request does not say so.

JupyterLab sends the id of a cell with the request that runs it.  Where the server runs the cells instead
(jupyter-server-nbmodel, used by collaborative hubs), it sends only their code.  dpnb's Lab extension then tells the
kernel which cells are about to be run, and which request runs which cell, as soon as it sees the request.  A kernel
that is running a cell reads that message only afterwards: requests for a privacy budget are then assigned to the cell
later.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict, deque
from collections.abc import Callable

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
