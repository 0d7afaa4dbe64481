"""A lock that belongs to one process."""

from __future__ import annotations

import os
import threading

from dpnb.errors import LedgerError


class ProcessLock:
    """A re-entrant lock; in a fork of its process it refuses at once.

    A fork has only one thread.  If another thread held the lock at the moment of the fork, nothing would ever release
    it, so the process is checked before waiting for the lock.

    Parameters
    ----------
    path : str
        Of the ledger that it guards, for the error.
    """

    def __init__(self, path: str) -> None:
        self._path, self._process, self._lock = path, os.getpid(), threading.RLock()

    @property
    def is_own_process(self) -> bool:
        """Whether this is the process that made it."""
        return os.getpid() == self._process

    def checked(self) -> threading.RLock:
        """The lock, for a `with` statement.

        It is not entered here: an interrupt in a method that had acquired it would leave it to this thread for ever.

        Raises
        ------
        LedgerError
            This is a fork of the process that made it.
        """
        if not self.is_own_process:
            # SQLite's locks do not survive a fork, and a ledger in memory would be spent twice.
            raise LedgerError(
                f"ledger {self._path!r}: serves the process that opened it, got a fork of that process; make the "
                "session again in this process, or ask the question in the first one"
            )
        return self._lock
