"""Threads for tests: begun together, waited for no longer than everything else, and never left behind unseen."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable

from waiting import LIMIT


def joined(*threads: threading.Thread, within: float = LIMIT) -> None:
    """Wait until the threads have ended; say what each does that has not within that many seconds, all in all."""
    deadline = time.monotonic() + within
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()))
    running = [thread.ident for thread in threads if thread.is_alive()]
    stacks = ["".join(traceback.format_stack(frame)) for one, frame in sys._current_frames().items() if one in running]
    assert not running, f"{len(running)} threads have not ended within {within:.0f} s:\n" + "\n".join(stacks)


def at_once(*work: Callable[[], object], within: float = LIMIT) -> list[str]:
    """Run in threads of their own, begun together, for some seconds; the tracebacks of what went wrong in them."""
    start, faults = threading.Barrier(len(work)), []

    def begun(one: Callable[[], object]) -> None:
        try:
            start.wait(LIMIT)
            one()
        except BaseException:  # noqa: BLE001  (the test says which)
            faults.append(traceback.format_exc())

    threads = [threading.Thread(target=begun, args=(one,), daemon=True) for one in work]
    for thread in threads:
        thread.start()
    joined(*threads, within=within)
    return faults
