"""Work on rows, so that nothing but its result comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dpnb.errors import DpnbError, ExecutionError

T = TypeVar("T")


def run_guarded(
    work: Callable[[], T], message: str, *, interrupted: str = "", told: type[DpnbError] | tuple[()] = ()
) -> T:
    """Run `work`; whatever it raises becomes one constant `ExecutionError`, and an interrupt a plain interrupt.

    This holds for every `BaseException`: a panic of polars is not an `Exception`, and neither is a `SystemExit` from a
    function that the curator's plan calls; both may quote a value.

    The new exception is raised outside the handler, so it has no cause, no context and no traceback frame in which
    rows are local variables (IPython's verbose mode prints those).

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
    KeyboardInterrupt
        A new one, with `interrupted` alone, whatever the original said.
    """
    kind: type[BaseException] = ExecutionError
    said: tuple[Any, ...] = (message,)
    try:
        return work()
    except KeyboardInterrupt:
        kind, said = KeyboardInterrupt, (interrupted,) if interrupted else ()
    except told as error:
        kind, said = type(error), error.args
    except BaseException:  # noqa: BLE001, S110  (what it says may quote rows)
        pass
    raise kind(*said)
