"""The hidden noise of above-threshold scans, which exists in one process only and is never stored.

It is kept under a token that the launch in the ledger names.  A kernel that has the token's noise can continue, also
through a reopened session; any other kernel can read the earlier answers.
"""

from __future__ import annotations

import os
import secrets
import threading
from typing import NamedTuple

from dpnb._core.accountant.tree import Launch
from dpnb.interactive.threshold.options import Core


class HiddenNoise(NamedTuple):
    """The hidden noise of a launch, and the lock under which it answers."""

    core: Core
    lock: threading.RLock


_hidden: dict[tuple[int, str], HiddenNoise] = {}
"""By process and token.  Empty in a forked process: the same noise must not answer in two processes."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_hidden.clear)


def keep_hidden_noise(core: Core) -> str:
    """Keep the hidden noise of a launch; returns its token, which the launch's row in the ledger names."""
    token = secrets.token_hex(16)
    _hidden[_noise_key(token)] = HiddenNoise(core, threading.RLock())
    return token


def discard_hidden_noise(token: str) -> None:
    """Discard the noise of a token."""
    _hidden.pop(_noise_key(token), None)


def hidden_noise(launch: Launch) -> HiddenNoise | None:
    """The noise of a launch; None if it was drawn in another process or is lost."""
    return _hidden.get(_noise_key(str(launch.resolved["noise_token"])))


def _noise_key(token: str) -> tuple[int, str]:
    return os.getpid(), token
