"""Tells the connected sessions of a table that rows were added or answered, as server-sent events.

An event has two numbers only, and a session then fetches the rows that it does not have.  A slow session misses events
but never the last one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import msgspec

from dpnb.copying import NotCopyable
from dpnb.service.grid import TimeGrid
from dpnb.wire.replies import Changed

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
