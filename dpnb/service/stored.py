"""What each analyst has stored in the ledger of a table, and whether there is room for more."""

from __future__ import annotations

import os
from collections import Counter

from dpnb.copying import NotCopyable
from dpnb.errors import StorageFull
from dpnb.ledger import Ledger
from dpnb.ledger.charge import LAUNCH
from dpnb.service.settings import Limits

MB = 10**6
NOT_CHARGED = (
    "service: has no room on its disk to record a charge; nothing was charged; tell the curator, who must make room "
    "there; repeating the request is safe"
)
CHARGED = (
    "service: could not write the answer, since its disk has no room; the request was charged, and the charge stands; "
    "tell the curator, who must make room there; repeating the request then answers it for the same charge"
)


class StoredRows(NotCopyable):
    """The bytes of the rows of each analyst, read once and then followed; call in the thread of the table."""

    def __init__(self, ledger: Ledger, limits: Limits) -> None:
        self._ledger, self._limits = ledger, limits
        self._folder = os.path.dirname(ledger.path) or "."
        self._bytes: Counter[str] = Counter()
        self._launches: Counter[str] = Counter()
        self._last = 0

    @property
    def largest(self) -> int:
        """The bytes of the analyst who has stored most, as far as they were counted."""
        return max(self._bytes.values(), default=0)

    @property
    def free(self) -> int:
        """The bytes that are free on the disk of the ledger."""
        status = os.statvfs(self._folder)
        return status.f_bavail * status.f_frsize

    def room(self, analyst: str, kind: str) -> int:
        """How many bytes the rows of another call may take, with their answers.

        Launches have a limit of their own, since the service keeps what they are in memory.
        """
        last = self._ledger.count
        if last > self._last:
            for (actor, row), size in self._ledger.stored_bytes(self._last).items():
                self._bytes[actor] += size
                if row == LAUNCH:
                    self._launches[actor] += size
            self._last = last
        room = self._limits.stored_mb * MB - self._bytes[analyst]
        if kind == "launch":
            room = min(room, self._limits.launches_mb * MB - self._launches[analyst])
        return max(room, 0)

    def refuse_full_disk(self) -> None:
        """Refuse a charge before the last free bytes of the disk are used."""
        if self.free < self._limits.disk_reserve_mb * MB:
            raise StorageFull(NOT_CHARGED)
