"""Tracebacks of refusals without the frames inside dpnb: refusals are common, and their message is complete."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

_OURS = str(Path(__file__).parents[1]) + os.sep


def outside(traceback: TracebackType | None) -> TracebackType | None:
    """The frames before the first frame inside dpnb."""
    if traceback is None or traceback.tb_frame.f_code.co_filename.startswith(_OURS):
        return None
    return TracebackType(outside(traceback.tb_next), traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)
