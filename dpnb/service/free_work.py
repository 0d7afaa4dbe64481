"""Work for people that reads no rows: decoding what they send, and making replies.

It is done in threads of its own, in turns between people, one piece of a person's at a time: neither many bodies nor
large replies of one person keep those of the others waiting, and the threads in which curators act, and tokens are
checked, do none of it.  Its CPU seconds are counted; see `dpnb.service.limits.CpuSeconds`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from dpnb.copying import NotCopyable
from dpnb.service.limits import CpuSeconds
from dpnb.service.metrics import Metrics
from dpnb.service.settings import Limits
from dpnb.service.turns import Turns
from dpnb.wire.calls import Request
from dpnb.wire.decoding import decode_request

SMALL_BODY = 2**12
"""Bytes of a body that is decoded at once: that takes less time than to wait for a turn."""

DECODERS, REPLIERS = 1, 2
"""Threads.  More would only share the interpreter's lock with the event loop."""

T = TypeVar("T")


class TooMuch(Exception):  # noqa: N818
    """A person is beyond a limit, which is named, and may try again after some seconds."""

    def __init__(self, limit: str, seconds: int) -> None:
        super().__init__(limit)
        self.limit, self.seconds = limit, seconds


class FreeWork(NotCopyable):
    """Decodes bodies and makes replies, within the limits of each person."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self._limits, self._metrics = limits, metrics
        self._decoding, self._replies = Turns("dpnb-decode", DECODERS), Turns("dpnb-reply", REPLIERS)
        self._spent: dict[str, CpuSeconds] = {}
        self._receiving: Counter[str] = Counter()

    def spent(self, person: str) -> CpuSeconds:
        """The CPU seconds of a person."""
        return self._spent.setdefault(person, CpuSeconds(self._limits.cpu_seconds_per_minute))

    def refuse_beyond(self, person: str) -> None:
        """Raise `TooMuch` for a person whose CPU seconds are used up."""
        if seconds := self.spent(person).wait():
            self._metrics.limited("cpu_seconds_per_minute")
            raise TooMuch("cpu_seconds_per_minute", seconds)

    @contextmanager
    def receiving(self, person: str) -> Iterator[None]:
        """Receive and decode a body in the block; in the event loop.

        Raises `TooMuch` if too many other bodies of the person are received or decoded at once.
        """
        if self._receiving[person] >= self._limits.running:
            self._metrics.limited("running")
            raise TooMuch("running", 1)
        self._receiving[person] += 1
        try:
            yield
        finally:
            self._receiving[person] -= 1
            if not self._receiving[person]:
                del self._receiving[person]

    async def decode(self, person: str, body: bytes) -> Request:
        """The request in a body; `WireError` if it is none, `TooMuch` if the person's CPU seconds are used up."""
        if len(body) <= SMALL_BODY:
            with self.spent(person).counted():
                return decode_request(body)
        return await self._done(self._decoding, person, partial(decode_request, body), is_limited=True)

    async def reply(self, person: str, make: Callable[[], T]) -> T:
        """What `make` returns, from one of the threads for replies."""
        return await self._done(self._replies, person, make, is_limited=False)

    async def _done(self, turns: Turns, person: str, make: Callable[[], T], *, is_limited: bool) -> T:
        def counted() -> T:
            if is_limited:  # again: what waited before it was counted meanwhile
                self.refuse_beyond(person)
            with self.spent(person).counted():
                return make()

        return await asyncio.wrap_future(turns.submit(person, counted).future)

    def close(self) -> None:
        """Do what waits, and end the threads."""
        self._decoding.close()
        self._replies.close()
