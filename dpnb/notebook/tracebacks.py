"""An error of dpnb's, raised on purpose, points at the notebook's own line, and says nothing of the lines inside dpnb.

A refusal is an everyday event for an analyst, and its message says all there is to say.  ``%debug`` still goes in.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any

from dpnb.errors import DpnbError

_OURS = str(Path(__file__).parents[1]) + os.sep
HOOK = "_render_traceback_"
"""What IPython calls on an error that knows how to show itself."""


def shorten(shell: Any) -> None:
    """Show errors of dpnb's shortly from now on."""

    def render(error: DpnbError) -> list[str]:
        shown = _outside(error.__traceback__)
        offset = int(shown is not None and shown.tb_next is not None)  # the first frame is the shell's own
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(error), error, shown, tb_offset=offset)
        return lines

    setattr(DpnbError, HOOK, render)


def lengthen() -> None:
    """Show them with all their lines again."""
    if HOOK in vars(DpnbError):
        delattr(DpnbError, HOOK)


def _outside(traceback: TracebackType | None) -> TracebackType | None:
    """The frames before the first of dpnb's own."""
    if traceback is None or traceback.tb_frame.f_code.co_filename.startswith(_OURS):
        return None
    return TracebackType(_outside(traceback.tb_next), traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)
