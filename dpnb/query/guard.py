"""Work on rows, so that nothing but its result comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dpnb.errors import DpnbError, ExecutionError

T = TypeVar("T")


def guarded(work: Callable[[], T], message: str, *, interrupted: str = "", told: type[DpnbError] | tuple[()] = ()) -> T:
    """Run `work`; any exception becomes one constant `ExecutionError`.

    The new exception is raised outside the handler, so it has no cause, no context and no traceback frame in which
    rows are local variables (IPython's verbose mode prints those).  An interrupt stays an interrupt, as bare.

    Parameters
    ----------
    work : callable
    message : str
        Of the error.
    interrupted : str
        What an interrupt says; nothing if left out.
    told : type, optional
        An error that may say what it says, since it never quotes rows.

    Raises
    ------
    ExecutionError
        With `message`, whatever went wrong.
    """
    kind: type[BaseException] = ExecutionError
    said: tuple[Any, ...] = (message,)
    try:
        return work()
    except KeyboardInterrupt:
        kind, said = KeyboardInterrupt, (interrupted,) if interrupted else ()
    except told as error:
        kind, said = type(error), error.args
    except Exception:  # noqa: BLE001, S110  (what it says may quote rows)
        pass
    raise kind(*said)
