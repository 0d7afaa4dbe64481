"""How an untrusted file is opened: no code in it is run, every statement terminates, and one process holds its lock.

Another program may have given a ledger a write-ahead log.  When SQLite reads such a file, it creates files beside it,
which then belong to the reader and may lock sessions out.  So a file that is not in use is read as immutable.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from types import TracebackType

from dpnb.errors import LedgerError

# --- content that cannot be read --------------------------------------------------------------------------------------


class refuse_unreadable:  # noqa: N801  (a context manager; a generator would take longer than reading a row)
    """Refuse a ledger if the block, which interprets its `content`, fails in any way but for want of memory."""

    __slots__ = ("_content",)

    def __init__(self, content: str) -> None:
        self._content = content

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, LedgerError | MemoryError):  # the file is untrusted
            raise unreadable(self._content, error) from None


def unreadable(content: str, error: Exception) -> LedgerError:
    """The refusal of a ledger whose `content` could not be interpreted."""
    return LedgerError(
        f"ledger: {content} must be as dpnb wrote it; reading it raised {type(error).__name__}; restore the file from "
        "a copy that has every charge"
    )


# --- a lock that belongs to one process -------------------------------------------------------------------------------


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


# --- connections to an untrusted file ---------------------------------------------------------------------------------


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
        self._path, self._limit = path, LEAST_STEPS
        self.steps = 0  # of the current statement; set to 0 before each

    @property
    def exceeded(self) -> bool:
        """Whether the statement took more steps than any statement of dpnb needs."""
        return self._path != MEMORY and self.steps > self._limit

    def __call__(self) -> bool:
        """Count the next steps; return whether to stop."""
        self.steps += STEPS_AT_ONCE
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


# --- a copy of the file in memory -------------------------------------------------------------------------------------


VERSION_BYTE = 18
WAL = 2
"""The value of that byte in the header of an SQLite file in WAL mode."""

PAGES_AT_ONCE = 5_000
"""Pages copied between two points at which Python can handle an interrupt."""

ATTEMPTS, PAUSE_SECONDS = 40, 0.05
"""Attempts before a journal is regarded as left by a crash, and seconds between two attempts."""


def read_only_copy(path: str) -> sqlite3.Connection:
    """A connection to a copy in memory; an `sqlite3.Error` if the file cannot be read."""
    if not Path(path).is_file():
        raise LedgerError(
            f"ledger {path!r}: must be an existing file; there is none; nothing was created; give the path of the "
            "session's ledger, by default <name>.dpnb in the notebook's folder"
        )
    alone = _wal_mode(path) and not _in_use(path)
    copied = _copied(path, alone)
    if alone and _in_use(path):  # another process opened it meanwhile
        copied.close()
        return _copied(path, False)
    return copied


def _copied(path: str, alone: bool) -> sqlite3.Connection:
    uri = f"{Path(path).absolute().as_uri()}?mode=ro{'&immutable=1' if alone else ''}"
    copied = sqlite3.connect(MEMORY, isolation_level=None, check_same_thread=False)
    attempts = 1
    try:
        while True:
            try:
                _copy(uri, copied)
                return copied
            except sqlite3.OperationalError as error:
                # The journal of a charge that is being written can look briefly like one left by a crash.
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY or attempts == ATTEMPTS:
                    raise
            attempts += 1
            time.sleep(PAUSE_SECONDS)
    except BaseException:
        copied.close()
        raise


def _copy(uri: str, copied: sqlite3.Connection) -> None:
    with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS)) as source:
        source.execute("BEGIN")  # one consistent state of the file, also if a session charges meanwhile
        # Waits for another session's charge, at most `timeout` seconds; `backup` would wait indefinitely.
        source.execute("PRAGMA page_count").fetchone()
        source.backup(copied, pages=PAGES_AT_ONCE, progress=lambda *_: None)


def _wal_mode(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            header = file.read(VERSION_BYTE + 1)
    except OSError:
        return False  # SQLite will report the error
    return header[VERSION_BYTE:] == bytes([WAL])


def _in_use(path: str) -> bool:
    """Whether the file has a write-ahead log, because it is open or was left by a crash."""
    return Path(f"{path}-wal").exists()
