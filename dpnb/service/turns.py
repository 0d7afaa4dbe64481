"""Work that analysts take turns in: much work of one waits behind itself, and does not keep the others waiting long.

Each analyst has a queue of their own, first in, first out.  The next work is that of the analyst whose last turn was
longest ago, and at most one piece of work of an analyst runs at a time.  So with one thread an analyst's next work
begins after at most one piece of work of each other analyst, however much the others have queued.

Work that reads no rows, such as decoding what people send, is done in threads of its own, in turns between people, one
piece of a person's at a time: neither many bodies nor large replies of one person keep those of the others waiting, and
the threads in which curators act, and tokens are checked, do none of it.  Its CPU seconds are counted; see
`dpnb.service.quotas.CpuSeconds`.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import Any, Generic, TypeVar

from dpnb.copying import NotCopyable
from dpnb.service.configuration.settings import Limits
from dpnb.service.monitoring import Metrics
from dpnb.service.quotas import CpuSeconds
from dpnb.wire.decoding import decode_envelope
from dpnb.wire.messages import Envelope

T = TypeVar("T")

SETTINGS = ""
"""Who has the turns in which the settings are applied: no analyst has this name."""


class Turn(Generic[T]):
    """A piece of work that waits, runs or has ended, in the turn of its owner; `future` has its result."""

    def __init__(self, turns: Turns, owner: str, work: Callable[[], T]) -> None:
        self._turns, self.owner, self._work = turns, owner, work
        self.since = monotonic()
        self.future: Future[T] = Future()

    def drop(self, result: T) -> bool:
        """End it with a result if it has not begun; return whether it had not."""
        if not self._turns._remove(self):
            return False
        if self.future.set_running_or_notify_cancel():  # else nobody waits for it
            self.future.set_result(result)
        return True

    def _run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self._work()
        except BaseException as error:  # noqa: BLE001  (raised where the result is waited for)
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


class Turns(NotCopyable):
    """Threads whose work is shared out in turns; they start when there is work."""

    def __init__(self, name: str, threads: int = 1) -> None:
        self._name, self._most, self._threads = name, threads, list[threading.Thread]()
        self._changed = threading.Condition()
        self._queues: OrderedDict[str, deque[Turn[Any]]] = OrderedDict()  # the next turn is that of the first
        self._working: set[str] = set()
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """The number of pieces of work that wait."""
        with self._changed:
            return sum(map(len, self._queues.values()))

    @property
    def age(self) -> float:
        """For how long the work that was submitted first waits, in seconds; 0 if none waits."""
        with self._changed:
            first = min((queue[0].since for queue in self._queues.values()), default=None)
        return 0.0 if first is None else monotonic() - first

    def submit(self, owner: str, work: Callable[[], T]) -> Turn[T]:
        """Let a piece of work wait for its owner's turn; `RuntimeError` after `close`."""
        turn = Turn(self, owner, work)
        with self._changed:
            if self._is_closed:
                raise RuntimeError(f"{self._name}: is closed")
            self._queues.setdefault(owner, deque()).append(turn)
            if len(self._threads) < self._most:
                thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                thread.start()
                self._threads.append(thread)
            self._changed.notify_all()
        return turn

    def close(self) -> None:
        """Do what waits, accept nothing more, and end the threads."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _remove(self, turn: Turn[Any]) -> bool:
        """Whether it waited, and does no longer."""
        with self._changed:
            queue = self._queues.get(turn.owner, deque())
            if turn not in queue:
                return False
            queue.remove(turn)
            if not queue:
                del self._queues[turn.owner]
            return True

    def _work(self) -> None:
        while (turn := self._next()) is not None:
            turn._run()
            owner = turn.owner
            del turn  # it may refer to what the work holds
            with self._changed:
                self._working.discard(owner)
                if owner in self._queues:
                    self._queues.move_to_end(owner)  # behind those who came while it had its turn
                self._changed.notify_all()

    def _next(self) -> Turn[Any] | None:
        """Wait for the next turn; None if it is closed and nothing waits."""
        with self._changed:
            while True:
                owner = next((one for one in self._queues if one not in self._working), None)
                if owner is not None:
                    queue = self._queues.pop(owner)
                    turn = queue.popleft()
                    if queue:
                        self._queues[owner] = queue
                    self._working.add(owner)
                    return turn
                if self._is_closed and not self._queues:
                    return None
                self._changed.wait()


# --- free work --------------------------------------------------------------------------------------------------------


SMALL_BODY = 2**12
"""Bytes of a body that is decoded at once: that takes less time than to wait for a turn."""

DECODERS, REPLIERS = 1, 2
"""Threads.  More would only share the interpreter's lock with the event loop."""


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

    async def decode(self, person: str, body: bytes) -> Envelope:
        """The request in a body; `WireError` if it is none, `TooMuch` if the person's CPU seconds are used up."""
        if len(body) <= SMALL_BODY:
            with self.spent(person).counted():
                return decode_envelope(body)
        return await self._done(self._decoding, person, partial(decode_envelope, body), is_limited=True)

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
