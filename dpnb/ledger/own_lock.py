"""A lock that belongs to one process."""

from __future__ import annotations

import os
import threading

from dpnb.errors import LedgerError


class ProcessLock:
    """A re-entrant lock that raises at once in a fork of its process.

    A fork has only one thread.  If another thread held the lock at the moment of the fork, nothing would ever release
    it, so the process is checked before waiting for the lock.
    """

    def __init__(self, path: str) -> None:
        self._path, self._process, self._lock = path, os.getpid(), threading.RLock()

    @property
    def is_own_process(self) -> bool:
        """Whether this is the process that created the lock."""
        return os.getpid() == self._process

    def checked(self) -> threading.RLock:
        """The lock, for a `with` statement; a `LedgerError` in a fork of the process that created it.

        It is not acquired here: an interrupt in a method that has acquired it would leave it locked.
        """
        if os.getpid() != self._process:
            # SQLite's locks do not survive a fork, and a ledger in memory would be spent twice.
            raise LedgerError(
                f"ledger {self._path!r}: can only be used by the process that opened it; this is a fork of that "
                "process; create the session again in this process, or run the query in the first one"
            )
        return self._lock
