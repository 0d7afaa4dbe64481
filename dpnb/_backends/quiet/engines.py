"""Output of engines outside this process, or not by its standard streams, is switched off for good."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, TypeVar

from dpnb._backends.quiet import loggers, streams

T = TypeVar("T")
Work = Callable[[], T]

Process = tuple[str, int]

_THIS = uuid.uuid4().hex


def run_silently(
    work: Work[T], engine: str, frames: Sequence[Any], run: Callable[[Work[T]], T] = lambda work: work()
) -> T:
    """Run work on an engine without showing its output.

    Parameters
    ----------
    work : callable
    engine : str
        One of polars, duckdb, pyspark and dask.
    frames : sequence of native frames
        The frames that it works on.
    run : callable
        Does the work, perhaps in a thread that continues when this one is interrupted.
    """

    def there() -> T:
        with streams.discard_output(waited_for=False):
            loggers.silence()
            with _SILENCED[engine](frames):
                return work()

    with streams.discard_output():
        return run(there)


@contextmanager
def _polars(frames: Sequence[Any]) -> Iterator[None]:
    yield  # a panic and the curator's own functions write to the streams alone


@contextmanager
def _duckdb(frames: Sequence[Any]) -> Iterator[None]:
    """In a notebook DuckDB shows its progress in a widget of its own."""
    for frame in frames:
        frame.query("dpnb", "set enable_progress_bar = false")
    yield


@contextmanager
def _spark(frames: Sequence[Any]) -> Iterator[None]:
    """The Java virtual machine inherited the kernel's descriptors, and a progress bar writes to them."""
    import pyspark

    known: Any = getattr(pyspark, "SparkContext", None)  # a client of Spark Connect may have none
    java, gateway, context = (getattr(known, name, None) for name in ("_jvm", "_gateway", "_active_spark_context"))
    if context is not None:
        context.setLogLevel("OFF")
        progress = context._jsc.sc().progressBar()
        if progress.isDefined():
            progress.get().stop()
    if (
        java is not None and getattr(gateway, "proc", None) is not None
    ):  # started by Python, and not the other way round
        # On Unix Java does not close descriptors 1 and 2, but redirects them to /dev/null.
        java.System.out.close()
        java.System.err.close()
    for frame in frames:
        if frame.sparkSession.__class__.__module__.startswith("pyspark.sql.connect"):
            os.environ["SPARK_CONNECT_PROGRESS_BAR_ENABLED"] = "0"
            frame.sparkSession.clearProgressHandlers()
    yield


@contextmanager
def _dask(frames: Sequence[Any]) -> Iterator[None]:
    """Workers are separate processes, and progress bars are registered for every query."""
    from dask.callbacks import Callback

    if "distributed" in sys.modules:
        _quiet_workers()
    bars = set(Callback.active)
    Callback.active.clear()
    try:
        yield
    finally:
        Callback.active.update(bars)


def _quiet_workers() -> None:
    """Silence the workers of the current client, and those that join it later; once for each client."""
    import distributed

    try:
        client = distributed.default_client()
    except ValueError:
        return
    if client.id in _clients:
        return

    class Quiet(distributed.WorkerPlugin):  # type: ignore[misc]  # whether Dask is installed or not
        name = "dpnb quiet"
        here, seen = (_THIS, os.getpid()), streams.identities()

        def setup(self, worker: Any) -> None:
            quiet_worker(self.here, self.seen)

    client.register_plugin(Quiet())
    _clients.add(client.id)


_clients: set[str] = set()


def quiet_worker(asking: Process, seen: set[streams.Identity]) -> None:
    """Keep a worker from writing where the asking process would show it.

    Parameters
    ----------
    asking : Process
        The asking process.
    seen : set of Identity
        Where the standard streams of that process lead: a worker that it has started writes there too.
    """
    loggers.silence()
    if asking == (_THIS, os.getpid()):
        return
    with suppress(OSError):
        streams.redirect_to_null(tuple(one for one in streams.DESCRIPTORS if streams.identity(one) in seen))


_SILENCED: dict[str, Callable[[Sequence[Any]], AbstractContextManager[None]]] = {
    "polars": _polars,
    "duckdb": _duckdb,
    "pyspark": _spark,
    "dask": _dask,
}
