"""Run work on rows so that only its result is observable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dpnb.errors import DpnbError, ExecutionError

T = TypeVar("T")


def run_guarded(
    work: Callable[[], T], message: str, *, interrupted: str = "", public_errors: type[DpnbError] | tuple[()] = ()
) -> T:
    """Run `work`; any error becomes one constant `ExecutionError`, and an interrupt a plain interrupt.

    This holds for every `BaseException`: a panic of polars is not an `Exception`, and neither is a `SystemExit` from a
    function that the curator's plan calls; both may quote a value.

    The new exception is raised outside the handler, so it has no cause, no context and no traceback frame in which
    rows are local variables (IPython's verbose mode prints those).

    An error of the class `public_errors`, which never quotes rows, keeps its message.  `interrupted` is the message of
    the new `KeyboardInterrupt`.
    """
    kind: type[BaseException] = ExecutionError
    arguments: tuple[Any, ...] = (message,)
    try:
        return work()
    except KeyboardInterrupt:
        kind, arguments = KeyboardInterrupt, (interrupted,) if interrupted else ()
    except public_errors as error:
        kind, arguments = type(error), error.args
    except BaseException:  # noqa: BLE001, S110  (its message may quote rows)
        pass
    raise kind(*arguments)
