"""Where a row of the ledger was asked: in the session itself, or in something that was launched in it.

A launch is a row too, so a branch is written with the number of the row that launched it:

==============  ==================================================================
``""``          the session that the ledger was made for
``"7"``         the sub-session, scan, ... that row 7 launched
``'7 ["a"]'``   the part with key ``"a"`` of the partition that row 7 launched
``" files"``    none: a row that no filter, odometer, log or statement counts
==============  ==================================================================
"""

from __future__ import annotations

import json
import re
from typing import Any

ROOT = ""
UNCOUNTED = " files"
"""Nothing is launched there, so nothing is counted; for the files of a table alone."""

_NODE = re.compile(r"([1-9][0-9]*( \[.*\])?)?")


def node_of(launch: int, key: tuple[Any, ...] | None = None) -> str:
    """The branch of what a row launched, or of one of its parts."""
    return str(launch) if key is None else f"{launch} {json.dumps(key)}"


def is_node(text: str) -> bool:
    """Whether a text names a session or something launched in one, whose losses are counted."""
    return _NODE.fullmatch(text) is not None


def parent_launch(branch: str) -> tuple[int, str] | None:
    """The row that launched a branch, and the part's key as it is written there; None for the trunk."""
    number, _, part = branch.partition(" ")
    return (int(number), part) if number else None
