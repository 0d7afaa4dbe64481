"""What a ledger's file holds at one moment, copied into memory: it is read without a trace.

Another program may have given a ledger a write-ahead log.  When SQLite reads such a file, it makes files beside it,
which then belong to the reader and may keep sessions out.  So a file that nobody is using is read as it stands.
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
"""What the header of an SQLite file says there, in WAL mode."""

PAGES_AT_ONCE = 5_000
"""Pages copied between two moments at which Python handles an interrupt."""

ATTEMPTS, PAUSE_SECONDS = 40, 0.05
"""Before a journal is taken for one that a crash has left, and seconds between two of them."""


def read_only_copy(path: str) -> sqlite3.Connection:
    """A connection to a copy in memory.

    Raises
    ------
    LedgerError
        There is no such file.
    sqlite3.Error
        It cannot be read.
    """
    if not Path(path).is_file():
        raise LedgerError(
            f"ledger {path!r}: must be a file that is there, and there is none; nothing was made; give the session's "
            "ledger, which is <name>.dpnb in the notebook's folder unless ledger= said otherwise"
        )
    alone = _wal_mode(path) and not _in_use(path)
    copied = _copied(path, alone)
    if alone and _in_use(path):  # somebody began meanwhile
        copied.close()
        return _copied(path, False)
    return copied


def _copied(path: str, alone: bool) -> sqlite3.Connection:
    place = f"{Path(path).absolute().as_uri()}?mode=ro{'&immutable=1' if alone else ''}"
    copied = sqlite3.connect(MEMORY, isolation_level=None, check_same_thread=False)
    attempts = 1
    try:
        while True:
            try:
                _copy(place, copied)
                return copied
            except sqlite3.OperationalError as error:
                # The journal of a charge that is just being written looks for a moment like one that a crash has left.
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY or attempts == ATTEMPTS:
                    raise
            attempts += 1
            time.sleep(PAUSE_SECONDS)
    except BaseException:
        copied.close()
        raise


def _copy(uri: str, copied: sqlite3.Connection) -> None:
    with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS)) as source:
        source.execute("BEGIN")  # one state of the file, also if a session charges meanwhile
        # Waits until another session's charge is written, at most so many seconds; `backup` would wait for ever.
        source.execute("PRAGMA page_count").fetchone()
        source.backup(copied, pages=PAGES_AT_ONCE, progress=lambda *_: None)


def _wal_mode(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            header = file.read(VERSION_BYTE + 1)
    except OSError:
        return False  # SQLite will say what is the matter
    return header[VERSION_BYTE:] == bytes([WAL])


def _in_use(path: str) -> bool:
    """Whether somebody has the file open with its log, or left it in a crash."""
    return Path(f"{path}-wal").exists()
