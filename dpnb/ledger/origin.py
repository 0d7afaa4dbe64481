"""Where a row of the ledger comes from: who made the request, its id, and the node that it charges.

A node is the session itself, an analyst's part of it, or a mechanism launched in it.  A launch is a row too, and so is
the grant of a part of the budget to an analyst, so a node is written with the number of the row that made it:

==============  ==================================================================
``""``          the session that the ledger was created for
``"7"``         the sub-session, scan, ... that row 7 launched, or the part of the budget that row 7 granted
``'7 ["a"]'``   the part with key ``"a"`` of the partition that row 7 launched
``" files"``    no session: a row that no filter, odometer, log or statement counts
==============  ==================================================================

The service sets who made a request, its *origin*, around the execution of a request; every charge that is written
meanwhile, in the same thread, has it.  So no pipeline passes it on, and in a local session, which has no origin, the
columns are empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dpnb.errors import InvalidValueError, StorageExceeded

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


MAX_ACTOR, MAX_ID = 200, 100
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class RequestOrigin:
    """Who made a request (the name of the analyst), and which one it was.

    `id` is what the client chose.  In the ledger it belongs to the first row that the request wrote in each node; the
    other rows of the request (of a batch, for example) have None.  `digest` is the SHA-256 of the request's body, in
    hexadecimal.  `received`, if it is not None, is the time of the rows, rather than that of the charge.  `room` is the
    number of bytes that the rows of the request may take, with their answers; None for any number.
    """

    actor: str
    id: str | None = None
    digest: str | None = None
    received: datetime | None = field(default=None, compare=False)
    room: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not _is_text(self.actor, MAX_ACTOR):
            raise InvalidValueError(f"actor: must be 1 to {MAX_ACTOR} printable characters; got another value")
        if (self.id is None) != (self.digest is None):
            raise InvalidValueError("request: must have an id and a digest, or neither; got one of them")
        if self.id is not None and not _is_text(self.id, MAX_ID):
            raise InvalidValueError(f"id: must be 1 to {MAX_ID} printable characters; got another value")
        if self.digest is not None and _DIGEST.fullmatch(self.digest) is None:
            raise InvalidValueError("digest: must be a SHA-256 digest in hexadecimal; got another value")


_current: ContextVar[RequestOrigin | None] = ContextVar("request_origin", default=None)


current_origin: Callable[[], RequestOrigin | None] = _current.get
"""The origin of the request that this thread executes; None outside a service."""


@contextmanager
def requested_by(origin: RequestOrigin) -> Iterator[None]:
    """Record an origin with every row that is charged in the block."""
    token = _current.set(origin)
    try:
        yield
    finally:
        _current.reset(token)


def refuse_beyond_room(size: int) -> None:
    """Refuse a row or an answer that is larger than the request may store; call before the charge is durable."""
    origin = current_origin()
    if origin is not None and origin.room is not None and size > origin.room:
        raise StorageExceeded(
            f"request: must take at most the {origin.room:,} bytes of the ledger that the curator's limit leaves you; "
            f"it takes up to {size:,}; nothing was charged; ask for fewer groups, or ask the curator"
        )


def _is_text(value: object, most: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= most and value.isprintable()
