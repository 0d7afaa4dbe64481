"""Short tracebacks: an error that dpnb raises deliberately shows the lines of the notebook, not those inside dpnb.

Refusals are common, and their message is complete.  ``%debug`` still enters dpnb's frames.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any

from dpnb.errors import DpnbError

_OURS = str(Path(__file__).parents[1]) + os.sep
HOOK = "_render_traceback_"
"""The method that IPython calls on an error with a custom traceback."""


def shorten(shell: Any) -> None:
    """Show short tracebacks for errors of dpnb."""

    def render(error: DpnbError) -> list[str]:
        shown = _outside(error.__traceback__)
        offset = int(shown is not None and shown.tb_next is not None)  # the first frame is the shell's own
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(error), error, shown, tb_offset=offset)
        return lines

    setattr(DpnbError, HOOK, render)


def lengthen() -> None:
    """Show full tracebacks again."""
    if HOOK in vars(DpnbError):
        delattr(DpnbError, HOOK)


def _outside(traceback: TracebackType | None) -> TracebackType | None:
    """The frames before the first frame inside dpnb."""
    if traceback is None or traceback.tb_frame.f_code.co_filename.startswith(_OURS):
        return None
    return TracebackType(_outside(traceback.tb_next), traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)
