"""Work on rows, so that nothing but its result comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dpnb.errors import ExecutionError

T = TypeVar("T")


def guarded(work: Callable[[], T], message: str) -> T:
    """Run `work`; any exception becomes one constant `ExecutionError`.

    The new exception is raised outside the handler, so it has no cause, no context and no traceback frame in which
    rows are local variables (IPython's verbose mode prints those).  An interrupt stays an interrupt, also bare.

    Raises
    ------
    ExecutionError
        With `message`, whatever went wrong.
    """
    interrupted = False
    try:
        return work()
    except KeyboardInterrupt:
        interrupted = True
    except Exception:  # noqa: BLE001, S110  (what it says may quote rows)
        pass
    if interrupted:
        raise KeyboardInterrupt
    raise ExecutionError(message)
