"""Keep the errors that dpnb hides, for a test whose rows are public and whose failure is to be understood.

A notebook's kernel runs this as an IPython startup file.
"""

from __future__ import annotations

import os
import sys
import traceback
import types
from typing import Any

LOG = "DPNB_TEST_HIDDEN_ERRORS"
"""Environment variable: the file to which tracebacks are appended."""


def keep(*_: object) -> None:
    """Log what `run_guarded` catches, from the next call on; does nothing before dpnb is imported, or if done."""
    guard = sys.modules.get("dpnb._backends.worker_thread")
    if guard is None or hasattr(guard, "hidden"):
        return
    namespace: dict[str, Any] = vars(guard)
    hiding = guard.run_guarded
    namespace["hidden"] = types.FunctionType(hiding.__code__, namespace, "hidden", hiding.__defaults__)
    namespace["hidden"].__kwdefaults__ = hiding.__kwdefaults__
    namespace["log_error"] = _log
    hiding.__kwdefaults__ = None
    hiding.__code__ = _run_logged.__code__  # in place: other modules have imported the function by name


def _run_logged(work: Any, message: str, **options: Any) -> Any:
    def logged() -> Any:
        try:
            return work()
        except BaseException:
            log_error()  # type: ignore[name-defined]  # noqa: F821  (this runs in the namespace of the guard)
            raise

    return hidden(logged, message, **options)  # type: ignore[name-defined]  # noqa: F821


def _log() -> None:
    with open(os.environ[LOG], "a", encoding="utf-8") as file:
        file.write(traceback.format_exc())


if "get_ipython" in globals():
    globals()["get_ipython"]().events.register("post_run_cell", keep)
