"""Objects that must not be copied: hidden noise, and the number of answers given with it."""

from __future__ import annotations

import os
import threading

from dpnb.copying import NotCopyable
from dpnb.errors import MechanismClosed


class SingleUse(NotCopyable):
    """An object that must not be copied: a copy would give answers with the same noise, counted from zero."""

    __slots__ = ("_lock", "_process")

    _not_copied = "its noise is secret and its answers are counted; launch another one"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise MechanismClosed(
                f"{type(self).__name__}: must be used in the process that launched it; got a fork of that process; use "
                "it there, or launch another one"
            )

    def _check_remaining(self, remaining: int, why: str) -> None:
        if remaining < 1:
            raise MechanismClosed(
                f"{type(self).__name__}: is exhausted, {why}; launch another one, which is charged again"
            )
