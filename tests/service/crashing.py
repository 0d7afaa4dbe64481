"""A service that kills itself at a named point."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

from dpnb.__main__ import main
from dpnb._core.execution import executor, releases
from dpnb.ledger import Ledger, sqlite_file
from dpnb.ledger.charge import TABLE_FILES
from dpnb.service import server
from dpnb.service.requests import RequestRunner

sqlite_file.SYNCHRONOUS = "OFF"  # the process is killed, not the machine

POINTS: dict[str, tuple[Any, str]] = {
    "before the charge": (Ledger, "reserve"),
    "after the charge": (executor.LocalExecutor, "_answer"),
    "before the noise": (releases, "measure"),
    "before the answer is written": (Ledger, "answer"),
    "before the reply": (RequestRunner, "_reply"),
}


def wait_without_end(*_: object, **__: object) -> None:
    """Say that the answer is being computed, which never ends."""
    print("reading", flush=True)
    threading.Event().wait()


def kill_at(point: str) -> None:
    """Kill this process when it reaches a point; or let it wait there."""
    if point == "never ends":
        releases.measure = wait_without_end  # type: ignore[assignment]
        return
    owner, name = POINTS[point]
    real = getattr(owner, name)

    def killed(*arguments: object, **options: object) -> object:
        if options.get("kind") == TABLE_FILES:  # written when the table is opened
            return real(*arguments, **options)
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    setattr(owner, name, killed)


def serve_until(point: str, settings: str) -> int:
    """Serve until the point is reached; an empty one never is."""
    server.PRIVATE = int(os.environ.get("DPNB_TEST_MASK", server.PRIVATE))  # another one for a control
    if point:
        kill_at(point)
    return main(["serve", settings])
