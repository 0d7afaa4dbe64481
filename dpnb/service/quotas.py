"""How much one analyst may ask of the service and store in its ledger, so that nobody keeps the others waiting.

Every limit counts an analyst's own requests only: in reserved mode nothing that an analyst receives depends on what the
others did, and a limit that all share would show whether they are at work.  Failed logins, which are nobody's, are
counted by peer.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

from pyrate_limiter import Duration, InMemoryBucket, Rate, RateItem

from dpnb.copying import NotCopyable
from dpnb.errors import StorageFull
from dpnb.ledger import Ledger
from dpnb.ledger.charge import LAUNCH
from dpnb.service.configuration.settings import Limits
from dpnb.wire.messages import Refused

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


# --- how much one analyst may ask of the service ----------------------------------------------------------------------


MINUTE = 60.0
"""Seconds."""

UNREAD_REPLIES = 2
"""Replies with rows of one person that are made or written at once; others wait, and are made only then."""


def _refusal(message: str, error: str = "RequestError") -> tuple[int, Refused]:
    return 429, Refused(error, message)


TOO_OFTEN = _refusal("request: too many in the last minute; nothing was charged; wait, and send it again")
TOO_MANY_OPEN = _refusal("request: too many are open at once; nothing was charged; wait for the other replies")
FAILED_TOO_OFTEN = _refusal(
    "token: must be valid; too many were not in the last minute; wait, and send it again", "AccessDenied"
)
TOO_MANY = _refusal("request: too many run or wait at once; nothing was charged; wait for one of them")
TOO_MUCH_WORK = _refusal(
    "request: the requests of the last minute took too much work to decode, check or repeat; nothing was charged; "
    "wait, and send it again"
)
WAITED = 503, Refused("ServiceUnavailable", "request: waited too long for others; nothing was charged; send it again")


class RequestRate(NotCopyable):
    """The requests of one analyst within the last minute."""

    def __init__(self, per_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        self._bucket, self._now = InMemoryBucket([Rate(per_minute, Duration.MINUTE)]), now

    def wait(self) -> int:
        """Count a request; 0, or if it is beyond the limit, after how many whole seconds it would be within it."""
        request = RateItem("request", int(1000 * self._now()))
        self._bucket.leak(request.timestamp)
        if self._bucket.put(request):
            return 0
        return cast("int", self._bucket.waiting(request)) // 1000 + 1  # it waits for nothing


class OpenRequests:
    """The open requests of one person, and how often they send one."""

    def __init__(self, rate: RequestRate) -> None:
        self.rate, self.open = rate, 0
        self.replies = asyncio.Semaphore(UNREAD_REPLIES)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Count a request until its reply was written."""
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1


class CpuSeconds(NotCopyable):
    """The CPU seconds that the service has spent within the last minute on the free work of one analyst.

    Free is what does not read rows: decoding bodies, also malformed ones, requests that are refused or find a recorded
    answer, replies, pages of rows, and descriptions of the table.  How much time that takes is a function of what the
    analyst sent, of the ledger and of the machine, so a refusal beyond the limit says nothing about rows.

    An execution that reads rows counts nothing, however long it takes: its time depends on rows, and an analyst who
    keeps a few seconds below the limit would see from the next refusal whether it was longer than that.  It was charged
    for, or repeats a charge, and it takes its turn between the others.

    Like all timing, what the time of free work depends on beside this, such as how busy the machine is, is outside the
    guarantee, as waiting is.
    """

    def __init__(self, per_minute: float, now: Callable[[], float] = time.monotonic) -> None:
        self._most, self._now, self._lock = per_minute, now, threading.Lock()
        self._spent: deque[tuple[float, float]] = deque()  # when, and how much; at most one entry a second

    def add(self, seconds: float) -> None:
        """Count CPU seconds."""
        with self._lock:
            now = self._now()
            last = self._spent[-1][0] if self._spent else -math.inf
            if now - last < 1:
                self._spent[-1] = last, self._spent[-1][1] + seconds
            else:
                self._spent.append((now, seconds))

    def wait(self) -> int:
        """0, or if the limit is reached, after how many whole seconds it is not."""
        with self._lock:
            now = self._now()
            while self._spent and self._spent[0][0] <= now - MINUTE:
                self._spent.popleft()
            over = math.fsum(seconds for _, seconds in self._spent) - self._most
            if over < 0:
                return 0
            until = now
            for when, seconds in self._spent:
                over, until = over - seconds, when + MINUTE
                if over < 0:
                    break
            return math.ceil(until - now)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the CPU seconds of the block, in this thread."""
        began = time.thread_time()
        try:
            yield
        finally:
            self.add(time.thread_time() - began)


FAILURES_PER_MINUTE = 30
MOST_PEERS = 1000
"""Peers whose failures are counted."""


class FailedLogins(NotCopyable):
    """Counts the failed logins of each peer.

    A valid token is always accepted: it cannot be guessed, and others behind the same address must not be able to lock
    anybody out.
    """

    def __init__(self) -> None:
        self._rates: OrderedDict[str, RequestRate] = OrderedDict()

    def wait(self, peer: str) -> int:
        """Count a failed login; after how many seconds another one is answered, or 0."""
        rate = self._rates.setdefault(peer, RequestRate(FAILURES_PER_MINUTE))
        self._rates.move_to_end(peer)
        while len(self._rates) > MOST_PEERS:
            self._rates.popitem(last=False)
        return rate.wait()
