"""The most memory that a process held since a moment, as Linux counts it."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path

PROCESS = Path("/proc/self")


def let_go() -> None:
    """Give back what was freed, so that it is not taken for free again, unseen."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _kept(name: str) -> int:
    for line in (PROCESS / "status").read_text().splitlines():
        if line.startswith(name):
            return 1024 * int(line.split()[1])
    raise OSError(f"{PROCESS / 'status'} has no {name}")


class Peak:
    """From now on, above what is held now."""

    def __init__(self) -> None:
        (PROCESS / "clear_refs").write_text("5")  # forget the earlier peak
        self.start = _kept("VmRSS")

    def bytes(self) -> int:
        """So far."""
        return _kept("VmHWM") - self.start

    def whole(self) -> int:
        """So far, with everything that was there."""
        return _kept("VmHWM")
