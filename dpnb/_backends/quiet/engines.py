"""Output of engines from other processes, or not through the standard streams, is switched off permanently."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, TypeVar

from dpnb._backends.quiet import loggers, streams

T = TypeVar("T")

Process = tuple[str, int]

_THIS = uuid.uuid4().hex


def run_silently(
    work: Callable[[], T],
    engine: str,
    frames: Sequence[Any],
    run: Callable[[Callable[[], T]], T] = lambda work: work(),
) -> T:
    """Run work on an engine, one of polars, duckdb, pyspark and dask, without showing its output.

    `frames` are the native frames that it works on; `run` may call it in a thread that continues when this one is
    interrupted.
    """

    def silenced() -> T:
        with streams.discard_output(waited_for=False):
            loggers.silence()
            with _SILENCED[engine](frames):
                return work()

    with streams.discard_output():
        return run(silenced)


@contextmanager
def _polars(frames: Sequence[Any]) -> Iterator[None]:
    yield  # a panic and the curator's own functions write only to the standard streams


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

    spark_context: Any = getattr(pyspark, "SparkContext", None)  # a client of Spark Connect may have none
    names = ("_jvm", "_gateway", "_active_spark_context")
    java, gateway, context = (getattr(spark_context, name, None) for name in names)
    if context is not None:
        context.setLogLevel("OFF")
        progress = context._jsc.sc().progressBar()
        if progress.isDefined():
            progress.get().stop()
    if java is not None and getattr(gateway, "proc", None) is not None:  # Python started Java
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
        client_process, client_streams = (_THIS, os.getpid()), streams.identities()

        def setup(self, worker: Any) -> None:
            quiet_worker(self.client_process, self.client_streams)

    client.register_plugin(Quiet())
    _clients.add(client.id)


_clients: set[str] = set()


def quiet_worker(client_process: Process, client_streams: set[streams.FileIdentity]) -> None:
    """Discard the output of a worker that would appear in the client's process.

    `client_streams` are where the standard streams of that process lead: a worker that it has started writes there too.
    """
    loggers.silence()
    if client_process == (_THIS, os.getpid()):
        return
    with suppress(OSError):
        streams.redirect_to_null(
            tuple(number for number in streams.DESCRIPTORS if streams.identity(number) in client_streams)
        )


_SILENCED: dict[str, Callable[[Sequence[Any]], AbstractContextManager[None]]] = {
    "polars": _polars,
    "duckdb": _duckdb,
    "pyspark": _spark,
    "dask": _dask,
}
