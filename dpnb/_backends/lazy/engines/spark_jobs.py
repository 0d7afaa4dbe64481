"""The jobs of Spark for one request, tagged so that an interrupt cancels these and no others."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class TaggedJobs:
    """Jobs with a tag, run by the sessions of some data frames of Spark."""

    def __init__(self, natives: Iterable[Any]) -> None:
        sessions = {id(session): session for session in (native.sparkSession for native in natives)}
        self._calls = [_calls(session) for session in sessions.values()]
        self._tag = f"dpnb-{time.monotonic_ns()}"

    def run(self, work: Callable[[], T]) -> T:
        """Run work in this thread and tag its jobs."""
        for add, _, _ in self._calls:
            add(self._tag)
        try:
            return work()
        finally:
            for _, remove, _ in self._calls:
                remove(self._tag)

    def cancel(self) -> None:
        """Cancel the jobs, from any thread."""
        for _, _, cancel in self._calls:
            cancel(self._tag)


TagCall = Callable[[str], Any]


def _calls(session: Any) -> tuple[TagCall, TagCall, TagCall]:
    """Three calls: start tagging a thread's jobs, stop tagging them, and cancel the jobs with the tag."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        return session.addTag, session.removeTag, session.interruptTag
    context = session.sparkContext  # a session's tags are visible in one thread only
    return context.addJobTag, context.removeJobTag, context.cancelJobsWithTag


@contextmanager
def python_sigint_handler() -> Iterator[None]:
    """Use Python's handler of interrupts instead of PySpark's, which cancels the jobs of all threads.

    PySpark's handler also calls the JVM during other calls, whose answers may then be mixed up.
    """
    before = signal.getsignal(signal.SIGINT)
    is_main_thread = threading.current_thread() is threading.main_thread()
    if not is_main_thread or not getattr(before, "__module__", "").startswith("pyspark"):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
