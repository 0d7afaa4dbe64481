"""Work that analysts take turns in: much work of one waits behind itself, and does not keep the others waiting long.

Each analyst has a queue of their own, first in, first out.  The next work is that of the analyst whose last turn was
longest ago, and at most one piece of work of an analyst runs at a time.  So with one thread an analyst's next work
begins after at most one piece of work of each other analyst, however much the others have queued.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from time import monotonic
from typing import Any, Generic, TypeVar

from dpnb.copying import NotCopyable

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
