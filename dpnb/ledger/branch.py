"""Where a row of the ledger was asked: in the session itself, or in something that was launched in it.

A launch is a row too, so a branch is written with the number of the row that launched it:

==============  ==================================================================
``""``          the session that the ledger was made for
``"7"``         the sub-session, scan, ... that row 7 launched
``'7 ["a"]'``   the part with key ``"a"`` of the partition that row 7 launched
==============  ==================================================================
"""

from __future__ import annotations

import json
from typing import Any

TRUNK = ""


def branch_of(launch: int, key: tuple[Any, ...] | None = None) -> str:
    """The branch of what a row launched, or of one of its parts."""
    return str(launch) if key is None else f"{launch} {json.dumps(key)}"


def launch_of(branch: str) -> tuple[int, str] | None:
    """The row that launched a branch, and the part's key as it is written there; None for the trunk."""
    number, _, part = branch.partition(" ")
    return (int(number), part) if number else None
