"""The node of a row of the ledger: the session itself, or an interactive mechanism that was launched in it.

A launch is a row too, so a node is written with the number of the row that launched it:

==============  ==================================================================
``""``          the session that the ledger was created for
``"7"``         the sub-session, scan, ... that row 7 launched
``'7 ["a"]'``   the part with key ``"a"`` of the partition that row 7 launched
``" files"``    no session: a row that no filter, odometer, log or statement counts
==============  ==================================================================
"""

from __future__ import annotations

import json
import re
from typing import Any

ROOT = ""
UNCOUNTED = " files"
"""Node of the rows about a table's files, which are not counted."""

_NODE = re.compile(r"([1-9][0-9]{0,18}( \[.*\])?)?")


def node_of(launch: int, key: tuple[Any, ...] | None = None) -> str:
    """The node of the mechanism that a row launched, or of one of its parts."""
    return str(launch) if key is None else f"{launch} {json.dumps(key)}"


def is_node(text: str) -> bool:
    """Whether a text is a node whose losses are counted: a session or a mechanism launched in one."""
    return _NODE.fullmatch(text) is not None


def parent_launch(node: str) -> tuple[int, str] | None:
    """The row that launched a node, and the part's key as it is written there; None for the root."""
    number, _, part = node.partition(" ")
    return (int(number), part) if number else None
