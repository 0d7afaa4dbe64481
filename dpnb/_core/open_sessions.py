"""The sessions of this process, most recently used first, the listeners to their changes, and the current cell.

Also the watch that a service sets around the execution of a request, as it sets the request's origin
(`dpnb.ledger.origin`): it is told before rows are read.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from dpnb.errors import BudgetExceeded, ErrorEstimateUnavailable, InvalidValueError, PlanError, RequestError
from dpnb.ledger import Charge

# --- the exceptions that a request raises before anything is charged --------------------------------------------------


REFUSALS = (BudgetExceeded, InvalidValueError, PlanError, RequestError, ErrorEstimateUnavailable)


# --- the sessions of this process -------------------------------------------------------------------------------------


class Listed(Protocol):
    """A session, a sub-session or a part."""

    @property
    def id(self) -> str:
        """Identifier, the same for every session on one node of one ledger."""


_lock = [threading.RLock()]
"""In a list, so that a fork can replace it: at the fork, another thread may hold the lock."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _lock.__setitem__(0, threading.RLock()))
_sessions: list[weakref.ref[Listed]] = []
_listeners: list[Callable[[], None]] = []
_front_end: list[Callable[[], str | None]] = []
_later: list[Callable[[Callable[[str], None]], None]] = []


def note_use(session: Listed) -> None:
    """Note that a session is new or has changed, and notify the listeners."""
    with _lock[0]:
        others = [ref for ref in _sessions if ref() not in (None, session)]
        _sessions[:] = [weakref.ref(session), *others]
        listeners = list(_listeners)
    for listener in listeners:
        listener()


def note_shown(session: Listed) -> None:
    """Note that a session is displayed that is not listed otherwise, for example a part of a partition."""
    with _lock[0]:
        if not any(ref() is session for ref in _sessions):
            _sessions.append(weakref.ref(session))


def sessions() -> list[Listed]:
    """Live sessions, most recently used first; for each node of a ledger only the most recent one."""
    with _lock[0]:
        alive = [session for ref in _sessions if (session := ref()) is not None]
    newest: dict[str, Listed] = {}
    for session in alive:
        newest.setdefault(session.id, session)
    return list(newest.values())


def current_cell() -> str | None:
    """Id of the notebook cell that is running; None if it is unknown, as outside a notebook."""
    return _front_end[-1]() if _front_end else None


def when_cell_identified(listener: Callable[[str], None]) -> None:
    """Call `listener` with the id of the running cell if that is unknown now, or wrong, and becomes known later."""
    for later in _later:
        later(listener)


def set_cell_provider(
    cell_id: Callable[[], str | None] | None, later: Callable[[Callable[[str], None]], None] | None = None
) -> None:
    """Set the function that returns the id of the running cell; None removes it.

    `later` is called with a function, which it must call with the id of the running cell when that becomes known later.
    """
    _front_end[:] = [] if cell_id is None else [cell_id]
    _later[:] = [] if later is None else [later]


def subscribe(listener: Callable[[], None]) -> None:
    """Call `listener` whenever a session is created or changes.  Repeated subscriptions have no effect."""
    with _lock[0]:
        if listener not in _listeners:
            _listeners.append(listener)


def unsubscribe(listener: Callable[[], None]) -> None:
    """Stop calling `listener`."""
    with _lock[0]:
        if listener in _listeners:
            _listeners.remove(listener)


# --- the watch before rows are read -----------------------------------------------------------------------------------


Watch = Callable[[Charge | None], None]
"""Called before rows are read for a charge, or for no charge of their own; may refuse that with an exception."""

_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


def before_reading(charge: Charge | None = None) -> None:
    """Tell the service that rows are read next in this thread: for a charge, or to open the table or compare."""
    watch = _watch.get()
    if watch is not None:
        watch(charge)


@contextmanager
def watched_by(watch: Watch) -> Iterator[None]:
    """Call a watch before rows are read in the block."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)
