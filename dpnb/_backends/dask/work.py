"""The work of Dask's workers for one request, which is cancelled when an interrupt abandons it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from dpnb._backends.quiet import run_silently
from dpnb._backends.worker_thread import BackgroundRunner, is_stopped, refuse_stopped
from dpnb.threads import POLL_SECONDS

T = TypeVar("T")

PAUSE = 5 * POLL_SECONDS
"""Seconds between two checks whether the workers have finished cancelled tasks."""

_background = BackgroundRunner()
_here = threading.local()


def run(work: Callable[[], T]) -> T:
    """Run work on the workers, after any interrupted work has ended; an interrupt cancels it."""
    started: list[Any] = []

    def tracked() -> T:
        _here.started = started
        try:
            return work()
        finally:
            if is_stopped():
                _wait_for_workers(started)
            # Here, not in the waiting thread: Python drops an interrupt that arrives in the __del__ of a future.
            started.clear()

    def cancel() -> None:
        futures = list(started)
        if futures:
            futures[0].client.cancel(futures)

    return run_silently(tracked, "dask", (), lambda work: _background.run(work, cancel))


def settle() -> None:
    """Wait until interrupted work has ended."""
    _background.settle()


def persisted(tasks: Iterable[Any]) -> list[Any]:
    """Run tasks whose results stay on the workers; called only inside `run`."""
    import dask

    refuse_stopped()
    results = list(dask.persist(*tasks))
    _here.started += _futures(results)
    return results


def _futures(results: list[Any]) -> list[Any]:
    """The scheduler's futures of tasks; none without a scheduler, as with Dask's threads in this process."""
    try:
        from distributed.client import futures_of
    except ImportError:
        return []
    return list(futures_of(results))


def _wait_for_workers(started: list[Any]) -> None:
    """Wait for the tasks that have begun: a worker finishes even cancelled tasks before it begins others."""
    if not started:
        return
    keys, client = [future.key for future in started], started[0].client
    with suppress(Exception):  # do not wait for a cluster that is gone
        while any(client.run(_is_busy, keys).values()):
            time.sleep(PAUSE)


def _is_busy(keys: list[Any], dask_worker: Any = None) -> bool:
    """On a worker: whether it is busy with one of these tasks."""
    states = (dask_worker.state.tasks[key].state for key in keys if key in dask_worker.state.tasks)
    return any(state in ("executing", "long-running", "cancelled", "resumed") for state in states)
