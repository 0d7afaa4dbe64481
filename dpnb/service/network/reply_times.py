"""The points in time at which replies and events leave, so that exact durations, which depend on rows, are not seen.

A request has a slot of 0.25 s times a power of two, which is chosen before anything is executed, from public figures
and the call.  Its reply leaves at the end of the slot, or, if it is not ready then, after twice the time, four times,
...  A slot that was missed is counted and shown to the curator, and never to an analyst.

The time is counted from the receipt of a request, which includes the time that it waited for others: counted from its
execution, it would show how long the others' requests take to the millisecond.  All replies leave at multiples of 0.25
s of one clock, and what they show of the ledger is read after that point; so are rows that are asked for alone, and
events.  Otherwise an analyst could find out when a request ended by repeating it, or asking for its row, at many
moments.  What is left to see is coarse, and outside the guarantee, as all timing is.

An event tells a connected session that rows were added or answered.  It has two numbers only, and the session then
fetches the rows that it does not have.  A slow session misses events but never the last one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec

from dpnb._backends.memory.memory_backend import MemoryBackend
from dpnb._core.core import SessionCore
from dpnb._request import AnyRequest, DescendGradient, LaunchMechanism, ReleaseBatch
from dpnb.copying import NotCopyable
from dpnb.wire.messages import Changed

POINT = 0.25
"""Seconds between two points."""

ROWS_PER_POINT = 500_000
"""Rows that a release reads within one point; a public figure, of no exact meaning."""

UNKNOWN_ROWS = 2_000_000
"""Assumed of a table in an engine whose number of rows is not public."""


def assumed_rows(core: SessionCore) -> int:
    """The public number of rows of a table; without one, few if the table is in memory, and many in an engine."""
    public = core.pricer.public
    known = [*public.rows.values(), *([] if public.units is None else [public.units])]
    return max(known, default=0 if isinstance(core.tables.opened, MemoryBackend) else UNKNOWN_ROWS)


class TimeGrid(NotCopyable):
    """The grid of a table with a public, or an assumed, number of rows.

    `missed` is called with the number of slots that a reply missed.  Only tests pass another clock, in seconds, and
    another way to wait.
    """

    def __init__(
        self,
        rows: int,
        missed: Callable[[int], None],
        now: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self._rows, self._missed, self._now, self._sleep = rows, missed, now, sleep

    def slot(self, request: AnyRequest) -> float:
        """The first time after its receipt at which the reply to a request may leave, in seconds."""
        work = self._rows / ROWS_PER_POINT
        if isinstance(request, ReleaseBatch):
            work *= max(len(request.releases), 1)
        if isinstance(request, LaunchMechanism) and isinstance(request.mechanism, DescendGradient):
            work *= 16
        slot = POINT
        while slot < POINT * work:
            slot *= 2
        return slot

    async def hold(self, received: float, request: AnyRequest) -> None:
        """Wait until the reply that is ready now may leave; its request came at `received`, by the clock of `time`."""
        slot, missed = self.slot(request), 0
        while self.time() > _point_at(received + slot):
            slot, missed = 2 * slot, missed + 1
        if missed:
            self._missed(missed)
        await self._until(_point_at(received + slot))

    async def next_point(self) -> None:
        """Wait for the next point, after which the state of the ledger may be read or told."""
        await self._until(_point_at(self.time()))

    async def _until(self, moment: float) -> None:
        while (rest := moment - self.time()) > 0:  # a timer may end slightly early
            await self._sleep(rest)

    def time(self) -> float:
        """The time by the clock."""
        return asyncio.get_running_loop().time() if self._now is None else self._now()


def _point_at(time: float) -> float:
    """The first point that is not before a time."""
    return math.ceil(time / POINT) * POINT


HEARTBEAT_SECONDS = 15.0
"""Time after the last event at which a comment is sent, so that both sides notice a lost connection.

It does not depend on how often a stream looks for new rows, since it does so whenever another analyst asked something.
"""

POLL_SECONDS = 1.0
"""Time after which changes that other processes made to the ledger are looked for."""


class ChangeFeed(NotCopyable):
    """The events of one table for one analyst, in at most `most` streams at once.

    `count` returns the event for the current state of the ledger, and is called in another thread; `foreign` returns a
    number that changes when another process has changed the ledger.  Without a grid, events leave at once.
    """

    def __init__(
        self, count: Callable[[], Changed], foreign: Callable[[], int], most: int, grid: TimeGrid | None
    ) -> None:
        self._count, self._foreign, self._most, self._grid = count, foreign, most, grid
        self._loop = asyncio.get_running_loop()
        self._streams: set[asyncio.Event] = set()
        self._ended = False

    @property
    def streams(self) -> int:
        """The number of open streams."""
        return len(self._streams)

    @property
    def is_full(self) -> bool:
        """Whether no further stream may be opened."""
        return len(self._streams) >= self._most

    def notify(self) -> None:
        """Send an event to every stream; may be called in any thread."""
        with suppress(RuntimeError):  # the loop is closed: the service has stopped
            self._loop.call_soon_threadsafe(self._wake)

    def end(self) -> None:
        """End all streams, so that the service can stop."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        for woken in self._streams:
            woken.set()

    async def stream(self, is_valid: Callable[[], bool]) -> AsyncIterator[bytes]:
        """The text of a stream, from the current state on, until the token is no longer valid."""
        if self.is_full:  # others were opened since that was asked
            return
        woken = asyncio.Event()
        woken.set()
        self._streams.add(woken)
        sent: Changed | None = None
        try:
            seen = await asyncio.to_thread(self._foreign)
            beat = self._loop.time() + HEARTBEAT_SECONDS
            while not self._ended and is_valid():
                if woken.is_set() or self._loop.time() >= beat:
                    woken.clear()
                    if self._grid is not None:
                        await self._grid.next_point()
                    now, is_due = await asyncio.to_thread(self._count), self._loop.time() >= beat
                    if now != sent or is_due:
                        beat = self._loop.time() + HEARTBEAT_SECONDS
                        yield b": still here\n\n" if now == sent else b"data: " + msgspec.json.encode(now) + b"\n\n"
                        sent = now
                with suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), min(POLL_SECONDS, max(beat - self._loop.time(), 0)))
                    continue
                foreign = await asyncio.to_thread(self._foreign)
                if foreign != seen:
                    seen = foreign
                    woken.set()
        finally:
            self._streams.discard(woken)
