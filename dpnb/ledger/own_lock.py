"""A lock that belongs to one process."""

from __future__ import annotations

import os
import threading
from types import TracebackType

from dpnb.errors import LedgerError


class ProcessLock:
    """A re-entrant lock; in a fork of its process it refuses at once.

    A fork has only one thread.  If another thread held the lock at the moment of the fork, nothing would ever release
    it, so the process is checked before waiting for the lock.

    Parameters
    ----------
    path : str
        Of the ledger that it guards, for the error.

    Raises
    ------
    LedgerError
        On entering, in a fork of the process that made it.
    """

    def __init__(self, path: str) -> None:
        self._path, self._process, self._lock = path, os.getpid(), threading.RLock()

    @property
    def is_ours(self) -> bool:
        """Whether this is the process that made it."""
        return os.getpid() == self._process

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    def acquire(self, timeout: float = -1) -> bool:
        """Wait for it, without limit or for so many seconds; return whether it was acquired."""
        if not self.is_ours:
            # SQLite's locks do not survive a fork, and a ledger in memory would be spent twice.
            raise LedgerError(
                f"ledger {self._path!r}: serves the process that opened it, got a fork of that process; make the "
                "session again in this process, or ask the question in the first one"
            )
        return self._lock.acquire(timeout=timeout)

    def release(self) -> None:
        """Let the next thread have it."""
        self._lock.release()
