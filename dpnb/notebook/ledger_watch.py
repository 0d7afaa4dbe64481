"""Lets the panel follow other kernels and scripts that charge the same ledger.

While a page shows this kernel, a thread looks at the ledgers' files once a second.  It reads a file's status, and only
if that has changed SQLite's counter of the commits of others; it writes nothing.  A page renews its announcement while
it is visible, so that the thread ends when every page is hidden, closed or lost.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from dpnb.errors import DpnbError
from dpnb.ledger import MEMORY, Ledger
from dpnb.ledger.replica import ReplicaLedger
from dpnb.threads import ThreadTask

INTERVAL = 1.0
"""Seconds between two looks: another kernel's charge is shown within two seconds."""

LEASE_SECONDS = 900.0
"""Time after which a page that has not announced itself again counts as closed.  It does so every five minutes."""

FileStatus = tuple[int, int, int] | None


class LedgerWatch:
    """Calls a function when another process has changed one of the ledgers, while a page is looking.

    `changed` is called from the watching thread, which looks every `interval` seconds; a page is believed to be looking
    for `lease` seconds.  `is_running` says whether the thread runs.
    """

    def __init__(
        self,
        ledgers: Callable[[], list[Ledger]],
        changed: Callable[[], None],
        *,
        interval: float = INTERVAL,
        lease: float = LEASE_SECONDS,
    ) -> None:
        self._ledgers, self._changed, self._interval, self._lease = ledgers, changed, interval, lease
        self._lock = threading.Lock()  # for the two fields below
        self._pages: dict[str, float] = {}
        self.is_running = False
        self._seen: dict[str, tuple[FileStatus, int]] = {}

    def follow(self, page: str, is_visible: bool) -> None:
        """Note that a page shows this kernel, or no longer does."""
        with self._lock:
            self._pages.pop(page, None)
            if is_visible:
                self._pages[page] = time.monotonic() + self._lease
        self.wake()

    def wake(self) -> None:
        """Start the thread if a page is looking and there is a ledger to look at."""
        if not self._pages or not self._files():
            return
        with self._lock:
            if self.is_running:
                return
            self.is_running = True
        try:
            ThreadTask(self._run).start()
        except RuntimeError:  # no threads, as in a browser: the panel follows other kernels at the next cell
            self.is_running = False
        except BaseException:
            self.is_running = False
            raise

    def look(self) -> bool:
        """Return whether another connection has changed a ledger since the last look, or a ledger is new."""
        ledgers = {ledger.path: ledger for ledger in self._files()}
        for path in [path for path in self._seen if path not in ledgers]:
            del self._seen[path]
        changes = [self._has_changed(path, ledger) for path, ledger in ledgers.items()]
        return any(changes)

    def _has_changed(self, path: str, ledger: Ledger) -> bool:
        status, (old, version) = _status(path), self._seen.get(path, (None, -1))
        if status == old and path in self._seen:
            return False
        now = -1
        with suppress(DpnbError):  # the snapshot shows the reason
            now = ledger.foreign_changes()
        self._seen[path] = (status, now)
        return now != version or now == -1

    def _files(self) -> list[Ledger]:
        ledgers = [ledger for ledger in self._ledgers() if ledger.path != MEMORY]
        return [ledger for ledger in ledgers if not isinstance(ledger, ReplicaLedger)]  # its service sends changes

    def _run(self) -> None:
        try:
            while self._is_needed():
                if self.look():
                    self._changed()
                time.sleep(self._interval)
        finally:
            self.is_running = False
        self.wake()  # a page may have come in the meantime

    def _is_needed(self) -> bool:
        now = time.monotonic()
        with self._lock:
            self._pages = {page: end for page, end in self._pages.items() if end > now}
            return bool(self._pages) and bool(self._files())


def _status(path: str) -> FileStatus:
    """What the status of a file says about its content.

    The file is not opened: closing it would end SQLite's locks on it, which belong to the whole process.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
