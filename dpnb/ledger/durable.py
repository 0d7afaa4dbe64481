"""A file in which a transaction that has returned is on disk, and which several threads and kernels may share."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from dpnb.errors import LedgerError
from dpnb.ledger.copied import MEMORY, copy_of
from dpnb.ledger.local_disk import is_local_disk

APPLICATION_ID = 0x64706E62  # "dpnb"
BUSY_SECONDS = 60.0
CLOSING_SECONDS = 5.0
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class DurableFile:
    """An SQLite file of dpnb's, opened or new; closed when it is collected.

    Parameters
    ----------
    path : str or path
        Made if there is none, or if it is empty; ``":memory:"`` forgets everything with the process.
    layout : int
        Number of the tables' layout.
    copied : bool
        Work on a copy in memory of what the file holds now; it must be there, and is left alone.

    Raises
    ------
    LedgerError
        The file cannot be opened, is not one of dpnb's, or has another layout.
    """

    def __init__(self, path: str | os.PathLike[str], layout: int, *, copied: bool = False) -> None:
        self.path = str(path) if str(path) == MEMORY and not copied else str(Path(path).absolute())
        self.lock = threading.RLock()
        self._copied = copied
        self._process = os.getpid()
        self._connection = self._connect()
        self._identity = self._identity_now()
        self.close = weakref.finalize(self, _close, self._connection, self._process, self.lock)
        try:
            with self._translated():
                self._check_layout(layout)
                self._settle()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        try:
            if self._copied:
                return copy_of(self.path)
            return sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            self._unusable(error)

    def _check_layout(self, layout: int) -> None:
        if self.is_new():  # looked at first: another kernel may be making it, tables and marks in one transaction
            return
        application, found = self._pragma("application_id"), self._pragma("user_version")
        if (application, found) == (APPLICATION_ID, layout):
            return
        kind = f"one of format {found}" if application == APPLICATION_ID else "another program's"
        raise LedgerError(
            f"ledger {self.path!r}: must be a dpnb ledger of format {layout}; it is {kind}; give another file name"
        )

    def _settle(self) -> None:
        """Choose how SQLite writes.

        WAL needs memory that every reader shares, which a network file system does not give.  A file that has the
        rollback journal keeps it: the kernel that chose it may be on another machine.
        """
        if self.path != MEMORY and not self._copied:
            if not is_local_disk(self.path):
                self._set_journal_mode("DELETE")
            elif self.is_new():
                self._set_journal_mode("WAL")
        # EXTRA is FULL, and in rollback mode a commit also survives a power cut that follows at once.
        self._connection.execute("PRAGMA synchronous = EXTRA")
        self._connection.execute("PRAGMA fullfsync = ON")  # macOS: past the drive's own cache; no effect elsewhere

    def _set_journal_mode(self, mode: str) -> None:
        deadline = time.monotonic() + BUSY_SECONDS
        while str(self._pragma("journal_mode")).upper() != mode:
            try:
                self._connection.execute(f"PRAGMA journal_mode = {mode}")
            except sqlite3.OperationalError as error:  # SQLite does not wait here by itself for another kernel
                if error.sqlite_errorcode not in _BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def is_new(self) -> bool:
        """Whether nothing was ever written to it."""
        return not self.run("SELECT 1 FROM sqlite_master LIMIT 1")

    def create(self, statements: str, layout: int) -> None:
        """Make the tables; call inside `transaction`."""
        for statement in statements.split(";")[:-1]:
            self._connection.execute(statement)
        self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._connection.execute(f"PRAGMA user_version = {layout}")

    def run(self, statement: str, *arguments: object) -> list[tuple[Any, ...]]:
        """Run one statement and give its rows."""
        with self.lock, self._translated():
            self._check_still_ours()
            return self._connection.execute(statement, arguments).fetchall()

    def each(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """The rows of one statement, one after the other, for more than memory should hold; call in `transaction`."""
        with self._translated():
            yield from self._connection.execute(statement)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep every other thread and kernel from writing until the block is done; an exception undoes the block.

        On leaving the block what it wrote is on disk.
        """
        with self.lock, self._translated():
            self._check_still_ours()
            try:  # BEGIN is inside: an interrupt just after it must not leave the file locked
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _check_still_ours(self) -> None:
        if os.getpid() != self._process:
            # SQLite's locks do not survive a fork, and a ledger in memory would be spent twice.
            raise LedgerError(
                f"ledger {self.path!r}: serves the process that opened it, got a fork of that process; make the "
                "session anew in this process, or ask the question in the first one"
            )
        if self._identity_now() != self._identity:
            raise LedgerError(
                f"ledger {self.path!r}: must stay where it was opened, it was moved, deleted or replaced; put it back "
                "and make the session anew"
            )

    def _identity_now(self) -> tuple[int, int] | None:
        """Which file the path leads to."""
        if self.path == MEMORY or self._copied:
            return None
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _pragma(self, name: str) -> Any:
        return self.run(f"PRAGMA {name}")[0][0]

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            self._unusable(error)

    def _unusable(self, error: sqlite3.Error) -> NoReturn:
        busy = getattr(error, "sqlite_errorcode", None) in _BUSY
        remedy = (
            f"another kernel has held it for {BUSY_SECONDS:.0f} seconds; interrupt or restart that kernel"
            if busy
            else "give the path of a dpnb ledger that you may read"
            if self._copied
            else "give the path of a dpnb ledger, or of a file that does not exist yet in a folder you can write to"
        )
        raise LedgerError(f"ledger {self.path!r}: cannot be used ({error}); {remedy}") from None


def _close(connection: sqlite3.Connection, process: int, lock: threading.RLock) -> None:
    """Close, unless this is a fork: the file is the other process's.

    Not while another thread uses the connection, as one may still do when the interpreter ends.
    """
    if os.getpid() == process and lock.acquire(timeout=CLOSING_SECONDS):
        try:
            connection.close()
        finally:
            lock.release()
