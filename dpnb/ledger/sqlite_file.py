"""An SQLite file that several threads and kernels may share; a transaction that has returned is on disk.

SQLite writes with its rollback journal, so the file alone contains every transaction that has returned.  The journal
beside it contains, temporarily, the previous content.  So a copy of the file, or its state after a crash, never misses
a transaction.  With a write-ahead log it could, and two kernels that do not see the same log would spend one budget
twice.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from dpnb.errors import LedgerError, StorageFull
from dpnb.ledger.connection import BUSY_SECONDS, MEMORY, ProcessLock, StepLimit, harden, read_only_copy

APPLICATION_ID = 0x64706E62  # "dpnb"
CLOSING_SECONDS = 5.0
JOURNAL = "persist"
"""Created once and removed on closing; emptied at each commit, which is cheaper than creating it each time."""

SYNCHRONOUS = "FULL"
"""A commit survives a power failure immediately after it."""

_UNWRITABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
"""Primary codes: the disk, or what the process may write, is full; or the disk fails."""

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

Layout = frozenset[tuple[str, str, str, str]]
"""Type, name, table and statement of each object in a file's schema."""


class SqliteFile:
    """An SQLite file of dpnb, existing or new; closed when it is garbage-collected.

    ``":memory:"`` keeps everything in memory only.  `tables` are the statements that create its tables and indices, and
    `format_number` is the version of these, stored in the file.  With `copied`, a copy in memory of the file's current
    content is used; the file must exist and is not changed.
    """

    def __init__(self, path: str | os.PathLike[str], tables: str, format_number: int, *, copied: bool = False) -> None:
        self.path = str(path) if str(path) == MEMORY and not copied else str(Path(path).absolute())
        self.lock = ProcessLock(self.path)
        self._tables, self._format, self._copied = tables, format_number, copied
        self._effort = StepLimit(self.path)
        self._was_written = False
        self._connection = self._connect()
        # Device and inode; None for a ledger in memory, or a copy; (0, 0) is no file's, and refused at a statement.
        self._identity: tuple[int, int] | None = None if self.path == MEMORY or copied else (0, 0)
        self.close = weakref.finalize(self, _close, self._connection, self.lock)
        _open.add(self)
        try:
            if self._identity is not None:
                with suppress(OSError):
                    status = os.stat(self.path)
                    self._identity = status.st_dev, status.st_ino
            harden(self._connection, self._effort)
            if not self.is_new():  # checked first: another kernel may be creating it
                self._check_format()
            self._settle()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self.close()
            self._unusable(error)
        except BaseException:
            self.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        try:
            if self._copied:
                return read_only_copy(self.path)
            return sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self._unusable(error)

    # --- checks of the file -------------------------------------------------------------------------------------

    def is_new(self) -> bool:
        """Whether the file is empty."""
        return bool(self._pragma("page_count") == 0)

    def _check_format(self) -> None:
        """Called before anything else is read: a view, a trigger or another table might replace one of dpnb's."""
        application, version = self._pragma("application_id"), self._pragma("user_version")
        if (application, version) != (APPLICATION_ID, self._format):
            kind = f"one of format {version}" if application == APPLICATION_ID else "another program's"
            remedy = "give another file name, or restore it from a copy that has every charge"
            if not self.run("SELECT 1 FROM sqlite_master LIMIT 1"):
                kind = "a file without tables, perhaps the rest of a ledger that was copied or lost in part"
            elif application == APPLICATION_ID and version < self._format:
                kind += ", written by a development version"
                remedy = (
                    "start a new ledger; its budget is then spent in addition to what this one has spent, which only "
                    "the version that wrote it can audit"
                )
            raise LedgerError(
                f"ledger {self.path!r}: must be a dpnb ledger of format {self._format}; it is {kind}; {remedy}"
            )
        if _structure_of(self.run("SELECT type, name, tbl_name, sql FROM sqlite_master")) != _expected(self._tables):
            raise LedgerError(
                f"ledger {self.path!r}: must contain exactly the tables and indices that dpnb creates; it does not; "
                "restore it from a copy that has every charge, or give another file name"
            )

    def _settle(self) -> None:
        """Set the journal mode; another program may have set a write-ahead log."""
        if self._identity is not None:
            deadline = time.monotonic() + BUSY_SECONDS
            while True:
                try:
                    self._connection.execute(f"PRAGMA journal_mode = {JOURNAL}")
                    break
                except sqlite3.OperationalError as error:  # SQLite's own timeout does not apply here
                    if error.sqlite_errorcode not in _BUSY or time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)
        self._connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        self._connection.execute("PRAGMA fullfsync = ON")  # macOS: flush the drive's cache too; no effect elsewhere

    def create(self) -> bool:
        """Create the tables, unless another kernel already has; return whether they were created here.

        Call inside `transaction`.
        """
        if self.run("SELECT 1 FROM sqlite_master LIMIT 1"):
            self._check_format()
            return False
        for statement in self._tables.split(";")[:-1]:
            self._connection.execute(statement)
        self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._connection.execute(f"PRAGMA user_version = {self._format}")
        return True

    def touch(self) -> None:
        """Write a value that the file already contains.  Call inside `transaction`."""
        self._connection.execute(f"PRAGMA user_version = {self._format}")

    # --- use ----------------------------------------------------------------------------------------------------

    def run(self, statement: str, *arguments: object) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        with self.lock.checked():
            self._effort.steps = 0
            try:
                if self._identity is not None and not self._connection.in_transaction:  # which checks at its ends
                    self._check_still_ours()
                return self._connection.execute(statement, arguments).fetchall()
            except (sqlite3.Error, UnicodeDecodeError) as error:
                self._unusable(error)

    def change(self, statement: str, *arguments: object) -> int:
        """Run a statement that changes rows and return how many it has changed; call in `transaction`."""
        before = self._connection.total_changes
        self.run(statement, *arguments)
        return self._connection.total_changes - before

    def content(self) -> bytes:
        """The content of the file, or of the copy of it in memory."""
        with self.lock.checked():
            return self._connection.serialize()

    def each(self, statement: str, *arguments: object) -> Iterator[tuple[Any, ...]]:
        """Iterate over the rows of one statement without keeping them in memory; call in `transaction`."""
        self._effort.steps = 0
        try:
            yield from self._connection.execute(statement, arguments)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self._unusable(error)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Block all other writers until the block ends; an exception rolls it back.  The caller holds the lock.

        When the block ends, its writes are on disk, in the file at the path.  Whether that is still the file is checked
        before the first statement, before the commit and after it: what the block does counts only if it is committed.
        """
        self._effort.steps = 0
        try:
            self._check_still_ours()
            try:  # BEGIN is inside the try, so that an interrupt just after it does not leave the file locked
                self._connection.execute("BEGIN IMMEDIATE")
                self._check_journal()
                yield
                self._check_still_ours()
                self._connection.execute("COMMIT")
                self._was_written = True
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._check_still_ours()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self._unusable(error)

    def _check_journal(self) -> None:
        """Refuse a file whose journal mode another program has changed."""
        if self._identity is None or self._connection.execute("PRAGMA journal_mode").fetchone() == (JOURNAL,):
            return
        raise LedgerError(
            f"ledger {self.path!r}: must have the journal mode {JOURNAL!r}; another program has changed that; "
            "nothing was written; close every other session and program that uses the file, and create the session "
            "again, which restores the mode"
        )

    def _check_still_ours(self) -> None:
        """Refuse a file that is no longer the one that was opened, or that has several names by now.

        SQLite's journal belongs to one name only, so with several names kernels could spend the budget twice.
        """
        if self._identity is None:
            return
        try:
            status = os.stat(self.path)
        except OSError:
            status = None
        if status is not None and status.st_nlink > 1:
            raise LedgerError(
                f"ledger {self.path!r}: must have one name; it has {status.st_nlink} (hard links); remove all names "
                "but one, and use only that one"
            )
        if status is None or (status.st_dev, status.st_ino) != self._identity:
            raise LedgerError(
                f"ledger {self.path!r}: must stay in place while it is open; it was moved, deleted or replaced; put it "
                "back and create the session again"
            )

    # --- SQLite -------------------------------------------------------------------------------------------------

    def _pragma(self, name: str) -> Any:
        return self.run(f"PRAGMA {name}")[0][0]

    def _unusable(self, error: sqlite3.Error | UnicodeDecodeError) -> NoReturn:
        """Raise what an error of SQLite means; its message may quote bytes of the file."""
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_INTERRUPT and not self._effort.exceeded:
            raise KeyboardInterrupt from None  # SQLite reports an interrupt as its own error
        primary = None if code is None else code & 0xFF
        # A disk that fails may be mounted read-only meanwhile.
        if primary in _UNWRITABLE or (primary == sqlite3.SQLITE_READONLY and self._was_written):
            raise StorageFull(
                f"ledger {self.path!r}: cannot be written ({error}); nothing of this was written; make room on its "
                "disk, or repair it; repeating the request then is safe"
            ) from None
        raise LedgerError(f"ledger {self.path!r}: cannot be used ({error}); {self._remedy(code)}") from None

    def _remedy(self, code: int | None) -> str:
        if code in _BUSY:
            return f"another kernel has held it for {BUSY_SECONDS:.0f} seconds; interrupt or restart that kernel"
        if code == sqlite3.SQLITE_INTERRUPT:
            return "reading it takes more work than any ledger of its size needs; restore it from a copy"
        if code == sqlite3.SQLITE_CORRUPT:
            return "keep the file, and put its newest copy in its place; a new ledger would be a second budget"
        if self._copied and Path(f"{self.path}-journal").exists():
            return "a crash has interrupted a charge; open its session once, which repairs it"
        if self._copied:
            return "give the path of a dpnb ledger that you may read"
        return "give the path of a dpnb ledger, or of a file that does not exist yet in a folder you can write to"


def _structure_of(rows: list[tuple[Any, ...]]) -> Layout:
    return frozenset((str(kind), str(name), str(table), " ".join(str(sql).split())) for kind, name, table, sql in rows)


@lru_cache
def _expected(tables: str) -> Layout:
    connection = sqlite3.connect(MEMORY)
    try:
        connection.executescript(tables)
        return _structure_of(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall())
    finally:
        connection.close()


# --- closing --------------------------------------------------------------------------------------------------------


def _close(connection: sqlite3.Connection, lock: ProcessLock) -> None:
    """Close the connection, unless this is a fork, where it belongs to the other process.

    Waits while another thread uses the connection, which can happen when the interpreter exits.
    """
    if lock.is_own_process and (held := lock.checked()).acquire(timeout=CLOSING_SECONDS):
        try:
            # If another kernel is writing, or the folder is no longer writable, the journal stays.
            with suppress(sqlite3.Error, UnicodeDecodeError):
                connection.execute("PRAGMA busy_timeout = 0")
                if connection.execute("PRAGMA journal_mode").fetchone() == (JOURNAL,):  # not in another program's file
                    connection.execute("PRAGMA journal_mode = DELETE")
            connection.close()
        finally:
            held.release()


_open: weakref.WeakSet[SqliteFile] = weakref.WeakSet()


def _abandon() -> None:
    """In a fork, never close a connection: that would roll back what a thread of the first process is writing."""
    for file in _open:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(file._connection))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon)
