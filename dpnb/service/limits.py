"""How much one analyst may ask of the service, so that nobody keeps the others waiting.

Every limit counts an analyst's own requests only: in reserved mode nothing that an analyst receives depends on what the
others did, and a limit that all share would show whether they are at work.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import cast

from pyrate_limiter import Duration, InMemoryBucket, Rate, RateItem

from dpnb.copying import NotCopyable


class RequestRate(NotCopyable):
    """The requests of one analyst within the last minute.

    Parameters
    ----------
    per_minute : int
        The limit.
    now : callable
        The clock, in seconds.
    """

    def __init__(self, per_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        self._bucket, self._now = InMemoryBucket([Rate(per_minute, Duration.MINUTE)]), now

    def wait(self) -> int:
        """Count a request; 0, or if it is beyond the limit, after how many whole seconds it would be within it."""
        request = RateItem("request", int(1000 * self._now()))
        self._bucket.leak(request.timestamp)
        if self._bucket.put(request):
            return 0
        return cast("int", self._bucket.waiting(request)) // 1000 + 1  # it waits for nothing
