"""Objects that must not be copied: secret noise with a count of its answers."""

from __future__ import annotations

import os
import threading

from dpnb.copying import NotCopyable
from dpnb.errors import MechanismClosed


class SingleUse(NotCopyable):
    """An object that must not be copied: a copy would count its answers from zero, on the same noise."""

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

    def _check_left(self, left: int, why: str) -> None:
        if left < 1:
            raise MechanismClosed(f"{type(self).__name__}: is used up, {why}; launch another one (charged again)")
