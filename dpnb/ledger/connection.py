"""Connections to an untrusted file: no code in the file is run, and every statement terminates."""

from __future__ import annotations

import os
import sqlite3

MEMORY = ":memory:"
BUSY_SECONDS = 60.0
STEPS_AT_ONCE = 100_000
"""Steps of SQLite's virtual machine between two checks of the limit; some milliseconds."""

LEAST_STEPS = 10**7
"""Steps that any statement may take; about a second."""

STEPS_PER_BYTE = 1
"""Additional steps per byte of the file.  Reading a whole ledger takes a tenth of that."""


class StepLimit:
    """A limit on the work of one statement, since a damaged file can send SQLite into an endless loop.

    Counting the steps also lets Python handle an interrupt, which SQLite then reports as one of its own errors.  There
    is no limit for a ledger in memory, which only this process writes.
    """

    def __init__(self, path: str) -> None:
        self._path, self._steps, self._limit = path, 0, LEAST_STEPS

    def begin(self) -> None:
        """Start counting for a new statement."""
        self._steps, self._limit = 0, LEAST_STEPS

    @property
    def exceeded(self) -> bool:
        """Whether the statement took more steps than any statement of dpnb needs."""
        return self._path != MEMORY and self._steps > self._limit

    def __call__(self) -> bool:
        """Count the next steps; return whether to stop."""
        self._steps += STEPS_AT_ONCE
        if self.exceeded:
            try:
                self._limit = LEAST_STEPS + STEPS_PER_BYTE * os.stat(self._path).st_size
            except OSError:
                return True
        return self.exceeded


def harden(connection: sqlite3.Connection, effort: StepLimit) -> sqlite3.Connection:
    """Configure a connection to run no code from the file and to detect damaged pages; the file is not read yet."""
    connection.set_progress_handler(effort, STEPS_AT_ONCE)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    if hasattr(connection, "setconfig"):  # from Python 3.12 on
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)  # type: ignore[attr-defined,unused-ignore]
    return connection
