"""Output of engines is discarded: on both standard streams, in their loggers, and from their other processes.

It may quote a row or show the progress of a query, and a notebook shows and saves everything that is written to
descriptors 1 and 2 of its kernel, by any process, thread or library.  It is not written to a file either, since a
kernel's files are not private to the curator.

The descriptors themselves are replaced, not only ``sys.stdout`` and ``sys.stderr``: code that is not written in Python
(for example a panic of polars) writes to descriptor 2, and processes that are started meanwhile inherit both.  This
affects every thread of the process, so it is done only around engines, and ends with the last of concurrent queries.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import sys
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, TextIO, TypeVar

DESCRIPTORS = (1, 2)
NAMES = ("stdout", "stderr")

FileIdentity = tuple[int, int]
"""Device and inode, by which two processes know that they write to the same pipe, terminal or file."""


class _SilencedTask:
    """A task during which the output is discarded; `waited_for` is False if an interrupt may abandon it."""

    def __init__(self, waited_for: bool) -> None:
        self.waited_for = waited_for


class _Sink(io.RawIOBase):
    """Discards every byte."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return len(data)


_nowhere: TextIO = io.TextIOWrapper(io.BufferedWriter(_Sink()), "utf-8", "backslashreplace", write_through=True)
_lock = threading.RLock()
_active: weakref.WeakSet[_SilencedTask] = weakref.WeakSet()  # weak, so that an interrupt cannot leave an entry behind
_descriptors: dict[int, int] = {}
"""Copies of the descriptors that were replaced, by their numbers."""
_streams: dict[str, Any] = {}
_logging: list[int] = []


@contextmanager
def discard_output(*, waited_for: bool = True) -> Iterator[None]:
    """Show nothing that this process prints, logs or warns of during the block.

    `waited_for` is False in a thread that continues when an interrupt abandons its work.  Until it ends the descriptors
    stay replaced, but Python's own streams are restored after the interrupt; where these write to the descriptors, as
    in a terminal, both are restored.
    """
    work = _SilencedTask(waited_for)
    try:
        with _lock:
            if waited_for or not _python_writes_there():
                _active.add(work)
                _exchange(waited_for)
        yield
    finally:
        try:
            _end(work)
        except KeyboardInterrupt:  # it came between two steps: repeat all of them
            _end(work)
            raise


def identities() -> set[FileIdentity]:
    """Where the standard streams of this process lead while no engine works."""
    result = set()
    with _lock:
        for descriptor in DESCRIPTORS:
            with suppress(OSError):
                result.add(identity(_descriptors.get(descriptor, descriptor)))
    return result


def identity(descriptor: int) -> FileIdentity:
    """The identity of what a descriptor of this process leads to."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def redirect_to_null(descriptors: tuple[int, ...]) -> None:
    """Discard what is written to these descriptors from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for descriptor in descriptors:
            os.dup2(nowhere, descriptor)
    finally:
        os.close(nowhere)


def _end(work: _SilencedTask) -> None:
    with _lock:
        _active.discard(work)
        if not any(each.waited_for for each in _active):
            _restore_python_streams()
        if not _active:
            _restore_descriptors()


def _exchange(waited_for: bool) -> None:
    """Replace the streams.  Each step is recorded before it is done, so that it can be undone."""
    _flush()
    for descriptor in DESCRIPTORS:
        if descriptor not in _descriptors:
            try:
                _descriptors[descriptor] = os.dup(descriptor)
            except OSError as error:
                if error.errno != errno.EBADF:  # a process may lack the descriptor; any other error ends the query
                    raise
                continue
            redirect_to_null((descriptor,))
    if not waited_for:
        return
    for name in NAMES:
        if getattr(sys, name) is not _nowhere:
            _streams[name] = getattr(sys, name)
            setattr(sys, name, _nowhere)
    if not _logging:
        _logging.append(logging.root.manager.disable)
    _disable_logging(sys.maxsize)


def _restore_python_streams() -> None:
    for name in NAMES:
        if name in _streams:
            if getattr(sys, name) is _nowhere:  # unless it has been replaced meanwhile
                setattr(sys, name, _streams[name])
            del _streams[name]
    if _logging:
        _disable_logging(_logging[0])
        _logging.clear()


def _disable_logging(level: int) -> None:
    """As `logging.disable`, in which an interrupt could leave a lock held that blocks other threads forever.

    Before Python 3.13 that function may not release the lock when interrupted.  A `with` statement does: up to that
    version no interrupt is handled between the acquisition of a lock and the block.
    """
    with logging._lock:  # type: ignore[attr-defined]
        manager = logging.root.manager
        manager.disable = level
        for logger in (logging.root, *manager.loggerDict.values()):
            if isinstance(logger, logging.Logger):
                logger._cache.clear()  # type: ignore[attr-defined]  # which levels are enabled


def _restore_descriptors() -> None:
    _flush()  # discards buffered output
    for descriptor, copy in list(_descriptors.items()):
        os.dup2(copy, descriptor)
        del _descriptors[descriptor]
        os.close(copy)


def _python_writes_there() -> bool:
    """Whether Python's own streams are the descriptors; those of a notebook's kernel are not."""
    for name in NAMES:
        stream = _streams.get(name, getattr(sys, name))
        with suppress(Exception):  # the stream has no descriptor
            if stream is not None and stream.fileno() in DESCRIPTORS:
                return True
    return False


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(Exception):
            if stream is not None:
                stream.flush()


# --- the loggers of engines -------------------------------------------------------------------------------------------


OF_ENGINES = ("pyspark", "py4j", "distributed", "dask", "psycopg")
"""Disabled with all loggers below them."""

OF_QUERIES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers with which PySpark repeats the message of a failed query, with the value that caused the failure."""

SHARED = ("asyncio", "tornado.application", "tornado.general", "concurrent.futures")
"""Loggers that the kernel uses too."""

DASK_THREAD = "IO loop"
"""The thread in which a client of Dask, and a cluster in this process, wait for messages."""

NEVER = sys.maxsize
"""No record has this level."""


class _NotOfThread(logging.Filter):
    def __init__(self, thread: str) -> None:
        super().__init__()
        self._thread = thread

    def filter(self, record: logging.LogRecord) -> bool:
        return record.threadName != self._thread


_not_of_dask = _NotOfThread(DASK_THREAD)


def silence_thread(thread: str, library: str) -> None:
    """Drop the records of a thread from all loggers of a library, which others may use; called in that thread."""
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and name.partition(".")[0] == library:
            logger.addFilter(_NotOfThread(thread))


def silence() -> None:
    """Disable the loggers permanently; called before each query, since an engine may have created others."""
    if "pyspark" in sys.modules:
        from pyspark.logger import PySparkLogger

        # Their class takes additional arguments, so `getLogger` below must not create them.
        for name in OF_QUERIES:
            PySparkLogger.getLogger(name)
    for name in OF_ENGINES:
        logging.getLogger(name)
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and _is_of_an_engine(name):
            logger.disabled = True
            logger.setLevel(NEVER)  # loggers that are created below it later inherit this level
    for name in SHARED:
        logging.getLogger(name).addFilter(_not_of_dask)


def _is_of_an_engine(name: str) -> bool:
    return name in OF_QUERIES or name.partition(".")[0] in OF_ENGINES


# --- work on an engine, and output from other processes ---------------------------------------------------------------


T = TypeVar("T")

Process = tuple[str, int]

_THIS = uuid.uuid4().hex


def run_silently(
    work: Callable[[], T],
    engine: str,
    frames: Sequence[Any],
    run: Callable[[Callable[[], T]], T] = lambda work: work(),
) -> T:
    """Run work on an engine, a key of `_SILENCED`, without showing its output.

    `frames` are the native frames that it works on; `run` may call it in a thread that continues when this one is
    interrupted.
    """

    def silenced() -> T:
        with discard_output(waited_for=False):
            silence()
            with _SILENCED[engine](frames):
                return work()

    with discard_output():
        return run(silenced)


@contextmanager
def _quiet(frames: Sequence[Any]) -> Iterator[None]:
    yield  # of polars, a panic and the curator's own functions write only to the standard streams


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
        client_process, client_streams = (_THIS, os.getpid()), identities()

        def setup(self, worker: Any) -> None:
            quiet_worker(self.client_process, self.client_streams)

    client.register_plugin(Quiet())
    _clients.add(client.id)


_clients: set[str] = set()


def quiet_worker(client_process: Process, client_streams: set[FileIdentity]) -> None:
    """Discard the output of a worker that would appear in the client's process.

    `client_streams` are where the standard streams of that process lead: a worker that it has started writes there too.
    """
    silence()
    if client_process == (_THIS, os.getpid()):
        return
    with suppress(OSError):
        redirect_to_null(tuple(number for number in DESCRIPTORS if identity(number) in client_streams))


_SILENCED: dict[str, Callable[[Sequence[Any]], AbstractContextManager[None]]] = {
    **dict.fromkeys(("polars", "postgresql", "sqlite"), _quiet),
    "duckdb": _duckdb,
    "pyspark": _spark,
    "dask": _dask,
}
