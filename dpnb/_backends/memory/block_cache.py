"""What the blocks of a table share while one query is computed: everything that does not depend on rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

import msgspec
import numpy as np

from dpnb._plan.expressions.nodes import Node

N = TypeVar("N", bound=Node)
T = TypeVar("T")

MOST_BYTES = 2**26
"""Size of the results that are kept, besides the last one.  A result may have a value for each text of a column."""

ENTRY_BYTES = 200
"""Memory for an entry of a mapping, besides the characters of a text."""


class SubexpressionCache:
    """Expressions by number, so that a long one is processed once, not in every block; and their cached properties.

    All properties are forgotten once they are large together, and then computed again when they are needed.  Several
    threads may use it: two threads that compute the same entry get the same result.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._by_text: dict[bytes, int] = {}
        self._by_identity: dict[int, tuple[Node, int]] = {}  # with the expression, so that its id is not reused
        self._results: dict[tuple[str, int], Any] = {}
        self._bytes = 0

    def number(self, node: Node) -> int:
        """A number for an expression; equal for equal JSON (1, 1.0 and True, equal in Python, are different)."""
        entry = self._by_identity.get(id(node))
        if entry is None:
            entry = node, self._by_text.setdefault(msgspec.json.encode(node), next(self._numbers))
            self._by_identity[id(node)] = entry
        return entry[1]

    def once(self, what: str, node: N, compute: Callable[[N], T]) -> T:
        """The result of `compute` for an expression, computed once."""
        key, results = (what, self.number(node)), self._results
        result: T
        if key in results:
            result = results[key]
        else:
            result = results[key] = compute(node)
            self._bytes += bytes_of(result)
            if self._bytes > MOST_BYTES:
                self._results, self._bytes = {}, 0  # another thread may read the old ones
        return result


def bytes_of(result: object) -> int:
    """About how much memory a result takes."""
    match result:
        case np.ndarray():
            return result.nbytes
        case dict():
            return sum(ENTRY_BYTES + (len(key) if isinstance(key, str) else 0) for key in result)
        case tuple() | list():
            return sum(map(bytes_of, result))
        case _ if hasattr(result, "__dataclass_fields__"):
            return sum(map(bytes_of, vars(result).values()))
    return 0


def bytes_without_views(result: Any) -> int:
    """Memory of a result of one block; none for a part of a column of the table."""
    parts = result if isinstance(result, tuple) else (result,)
    return sum(part.nbytes for part in parts if isinstance(part, np.ndarray) and part.base is None)
