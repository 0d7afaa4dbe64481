"""The jobs that Spark does for one request, so that these and no others are cancelled when it is interrupted."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class TaggedJobs:
    """Jobs that bear a tag.

    Parameters
    ----------
    natives : iterable of pyspark.sql.DataFrame
        Whose sessions do them.
    """

    def __init__(self, natives: Iterable[Any]) -> None:
        sessions = {id(session): session for session in (native.sparkSession for native in natives)}
        self._calls = [_calls(session) for session in sessions.values()]
        self._tag = f"dpnb-{time.monotonic_ns()}"

    def of(self, work: Callable[[], T]) -> T:
        """Have the jobs of some work bear the tag, in the thread that does it."""
        for add, _, _ in self._calls:
            add(self._tag)
        try:
            return work()
        finally:
            for _, remove, _ in self._calls:
                remove(self._tag)

    def cancel(self) -> None:
        """End them, from any thread."""
        for _, _, cancel in self._calls:
            cancel(self._tag)


Call = Callable[[str], Any]


def _calls(session: Any) -> tuple[Call, Call, Call]:
    """What gives a thread's jobs a tag, what no longer does, and what cancels those that have it."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        return session.addTag, session.removeTag, session.interruptTag
    context = session.sparkContext  # the tags of a session are known to one thread alone
    return context.addJobTag, context.removeJobTag, context.cancelJobsWithTag


@contextmanager
def heard_by_python() -> Iterator[None]:
    """Put Python's own handler of interrupts in place of PySpark's for a while, which cancels everybody's jobs.

    It also talks to the JVM in the middle of whatever else does, and its answer may then be taken for another.
    """
    before = signal.getsignal(signal.SIGINT)
    ours = threading.current_thread() is threading.main_thread()
    if not ours or not getattr(before, "__module__", "").startswith("pyspark"):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
