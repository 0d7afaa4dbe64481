"""Discard what is written to both standard streams of this process while an engine works.

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
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

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
