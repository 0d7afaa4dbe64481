"""The node of a row of the ledger: the session itself, an analyst's part of it, or a mechanism launched in it.

A launch is a row too, and so is the grant of a part of the budget to an analyst, so a node is written with the number
of the row that made it:

==============  ==================================================================
``""``          the session that the ledger was created for
``"7"``         the sub-session, scan, ... that row 7 launched, or the part of the budget that row 7 granted
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
"""Node of the rows about the table: its files and what is declared of it.  They are not counted."""

_NODE = re.compile(r"([1-9][0-9]{0,18}( \[.*\])?)?")


def node_of(launch: int, key: tuple[Any, ...] | None = None) -> str:
    """The node that a row made: a mechanism, or one of its parts, or a part of the budget."""
    return str(launch) if key is None else f"{launch} {json.dumps(key)}"


def is_node(text: str) -> bool:
    """Whether a text is a node whose losses are counted: a session or a mechanism launched in one."""
    return _NODE.fullmatch(text) is not None


def parent_launch(node: str) -> tuple[int, str] | None:
    """The row that made a node, and the part's key as it is written there; None for the root."""
    number, _, part = node.partition(" ")
    return (int(number), part) if number else None
