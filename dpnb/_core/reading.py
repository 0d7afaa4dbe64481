"""What a service hears before rows are read, so that it knows what runs.

A service sets a watch around the execution of a request, as it sets the request's origin (`dpnb.ledger.origin`); a
local session has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from dpnb.ledger import Charge

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
