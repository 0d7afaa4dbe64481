"""Both standard streams of this process lead nowhere while an engine works.

The descriptors themselves are exchanged, and not only ``sys.stdout`` and ``sys.stderr``: libraries that are not written
in Python (a panic of polars, say) write to descriptor 2, and processes that are started meanwhile inherit both.  This
holds for every thread of the process, so it is done around engines alone, and ends with the last of several questions.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

DESCRIPTORS = (1, 2)
NAMES = ("stdout", "stderr")

Identity = tuple[int, int]
"""Device and inode, by which two processes know that they write to the same pipe, terminal or file."""


class _Question:
    """That one question is being worked on."""


class _Sink(io.RawIOBase):
    """Takes every byte."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return len(data)


_nowhere: TextIO = io.TextIOWrapper(io.BufferedWriter(_Sink()), "utf-8", "backslashreplace", write_through=True)
_lock = threading.RLock()
_asked: weakref.WeakSet[_Question] = weakref.WeakSet()  # weak, so that an interrupt at the wrong moment leaves none
_descriptors: dict[int, int] = {}
"""Copies of those that were exchanged."""
_streams: dict[str, Any] = {}
_logging: list[int] = []


@contextmanager
def kept() -> Iterator[None]:
    """During the block nothing that this process prints, logs or warns of is seen."""
    question = _Question()
    try:
        with _lock:
            _asked.add(question)
            _exchange()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        try:
            _end(question)
        except KeyboardInterrupt:  # it came between two steps: take all of them again
            _end(question)
            raise


def identities() -> set[Identity]:
    """Where the standard streams of this process lead while no engine works."""
    found = set()
    with _lock:
        for descriptor in DESCRIPTORS:
            with suppress(OSError):
                found.add(identity(_descriptors.get(descriptor, descriptor)))
    return found


def identity(descriptor: int) -> Identity:
    """Of what a descriptor of this process leads to."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def lead_nowhere(descriptors: tuple[int, ...]) -> None:
    """What is written to these descriptors is lost from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for descriptor in descriptors:
            os.dup2(nowhere, descriptor)
    finally:
        os.close(nowhere)


def _end(question: _Question) -> None:
    with _lock:
        _asked.discard(question)
        if not _asked:
            _restore()


def _exchange() -> None:
    """Every step is noted before it is taken, so that `_restore` takes back what was done by then."""
    _flush()
    for descriptor in DESCRIPTORS:
        if descriptor not in _descriptors:
            try:
                _descriptors[descriptor] = os.dup(descriptor)
            except OSError as error:
                if error.errno != errno.EBADF:  # a process may have none; otherwise nothing is asked
                    raise
                continue
            lead_nowhere((descriptor,))
    for name in NAMES:
        if getattr(sys, name) is not _nowhere:
            _streams[name] = getattr(sys, name)
            setattr(sys, name, _nowhere)
    if not _logging:
        _logging.append(logging.root.manager.disable)
    logging.disable(sys.maxsize)


def _restore() -> None:
    for name in NAMES:
        if name in _streams:
            if getattr(sys, name) is _nowhere:  # and nobody has put another in its place
                setattr(sys, name, _streams[name])
            del _streams[name]
    _flush()  # what has gone to a descriptor, and waits in a buffer
    for descriptor, copy in list(_descriptors.items()):
        os.dup2(copy, descriptor)
        del _descriptors[descriptor]
        os.close(copy)
    if _logging:
        logging.disable(_logging[0])
        _logging.clear()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(Exception):
            if stream is not None:
                stream.flush()
