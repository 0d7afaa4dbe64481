"""Run work on rows so that only its result is observable, under fixed numeric settings.

An analyst's settings must not decide whether the work fails or what it shows: ``numpy.seterr(all="raise")`` or
``warnings.simplefilter("error")`` would turn an overflow in one row into an error, and ``numpy.seterr(all="print")``
would print a line for it in the notebook.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from dpnb.errors import DpnbError, ExecutionError

# --- fixed numeric settings for work on rows --------------------------------------------------------------------------


_lock = threading.RLock()
_inside: list[object] = []
_filters: list[warnings.catch_warnings[None]] = []
"""Restores the filters that were set before the first of several blocks; empty outside of them."""


@contextmanager
def isolated_numeric_settings() -> Iterator[None]:
    """Ignore warnings and floating-point errors during the block; also a decorator.

    Warning filters belong to the whole process, and blocks in several threads need not end in the order in which they
    began: work that an interrupt left behind ends later than the query.  So the first block saves the filters, and the
    last one to end restores them.
    """
    block = object()
    try:
        with _lock:
            _inside.append(block)
            if not _filters:
                before = warnings.catch_warnings()
                before.__enter__()
                _filters.append(before)
            warnings.simplefilter("ignore")
        with np.errstate(all="ignore"):
            yield
    finally:
        with _lock:
            if block in _inside:  # an interrupt may come before it was added
                _inside.remove(block)
            if _filters and not _inside:
                _filters.pop().__exit__(None, None, None)


# --- work on rows of which only the result is observable --------------------------------------------------------------


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
