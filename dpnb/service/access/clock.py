"""The clock by which tokens and logins expire."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic

from dpnb.copying import NotCopyable

KEPT_SECONDS = 60
"""How far the time must proceed for it to be written again."""


class Clock(NotCopyable):
    """A clock that is never behind what it was, also before a restart, nor behind the time that has passed since.

    With an older time, tokens that have expired would be valid again.  The clock of the machine, `wall`, may be set
    back; `file` keeps the time for the next start.
    """

    def __init__(self, wall: Callable[[], datetime], file: Path | None = None) -> None:
        self._wall, self._file, self._lock = wall, file, threading.Lock()
        self._last = self._kept = datetime.min.replace(tzinfo=UTC)
        self._at = monotonic()
        if file is not None:
            with suppress(OSError, ValueError):  # without it, the last rows of the ledgers tell the time
                self.reach(file.read_text("ascii"))

    def reach(self, stamp: str) -> None:
        """Be at least at a time, as rows of a ledger write it; `ValueError` if it is no time."""
        with self._lock:
            self._proceed(datetime.fromisoformat(stamp).astimezone(UTC))

    def now(self) -> datetime:
        """The time."""
        with self._lock:
            self._proceed(self._wall())
            if self._file is not None and self._last - self._kept >= timedelta(seconds=KEPT_SECONDS):
                self._kept = self._last
                with suppress(OSError):  # it is kept again later, and this process goes on
                    new = Path(f"{self._file}.new")
                    new.write_text(self._last.isoformat(timespec="milliseconds"), "ascii")
                    os.replace(new, self._file)
            return self._last

    def _proceed(self, least: datetime) -> None:
        """Count the seconds since the last call once, also if a ledger was ahead meanwhile."""
        at = monotonic()
        self._last, self._at = max(least, self._last + timedelta(seconds=at - self._at)), at
