"""Copy the current content of a ledger's file into memory, without leaving any other files behind.

Another program may have given a ledger a write-ahead log.  When SQLite reads such a file, it creates files beside it,
which then belong to the reader and may lock sessions out.  So a file that is not in use is read as immutable.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from dpnb.errors import LedgerError
from dpnb.ledger.connection import BUSY_SECONDS, MEMORY

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
