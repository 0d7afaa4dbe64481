"""Tracebacks of refusals with the analyst's frames alone: refusals are common, and their message is complete."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from types import TracebackType

_LIBRARIES = tuple(
    str(folder) + os.sep
    for folder in (Path(__file__).parents[1], *(sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")))
)


def outside(traceback: TracebackType | None) -> TracebackType | None:
    """The frames that are neither dpnb's nor a library's; the first, which is the notebook's own, stays."""
    if traceback is None:
        return None
    rest = traceback.tb_next
    while rest is not None and rest.tb_frame.f_code.co_filename.startswith(_LIBRARIES):
        rest = rest.tb_next
    return TracebackType(outside(rest), traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)
