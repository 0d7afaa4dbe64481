"""How tests wait: for a condition, never for a fixed time, and with one generous limit for all of them.

The limit is two minutes. ``DPNB_TEST_PATIENCE`` multiplies it, for a machine that is very slow or very busy. It is a
limit for something that has gone wrong, not a statement about speed: no test asserts how long anything takes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

LIMIT = 120.0 * float(os.environ.get("DPNB_TEST_PATIENCE") or 1)
"""Seconds that a test waits for anything before it fails."""

LIMIT_MS = 1000 * LIMIT
"""The same in milliseconds, as browsers count."""


def wait_until(condition: Callable[[], Value], what: str, state: Callable[[], object] = lambda: "") -> Value:
    """Return the first true value of `condition`, asked again and again.

    Parameters
    ----------
    condition : callable
        Asked every few milliseconds until it returns something true.
    what : str
        What is waited for; the failure's message begins with it.
    state : callable, optional
        What there is to see when the limit is over, for the failure's message.

    Raises
    ------
    AssertionError
        If nothing true was returned within `LIMIT` seconds.
    """
    deadline = time.monotonic() + LIMIT
    pause = 0.001
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {LIMIT:.0f} s. {state()}"
        time.sleep(pause)
        pause = min(2 * pause, 0.1)
    return value
