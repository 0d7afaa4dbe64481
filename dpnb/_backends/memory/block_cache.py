"""What the blocks of a table share while one query is computed: everything that does not depend on rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

import msgspec

from dpnb._plan.expressions.nodes import Node

N = TypeVar("N", bound=Node)
T = TypeVar("T")


class SubexpressionCache:
    """Expressions by number, so that a long one is processed once, not in every block; and their cached properties.

    Several threads may use it: two threads that compute the same entry get the same result.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._by_text: dict[bytes, int] = {}
        self._by_identity: dict[int, tuple[Node, int]] = {}  # with the expression, so that its id is not reused
        self._results: dict[tuple[str, int], Any] = {}

    def number(self, node: Node) -> int:
        """A number for an expression; equal for equal JSON (1, 1.0 and True, equal in Python, are different)."""
        entry = self._by_identity.get(id(node))
        if entry is None:
            entry = node, self._by_text.setdefault(msgspec.json.encode(node), next(self._numbers))
            self._by_identity[id(node)] = entry
        return entry[1]

    def once(self, what: str, node: N, compute: Callable[[N], T]) -> T:
        """The result of `compute` for an expression, computed once."""
        key = what, self.number(node)
        if key not in self._results:
            self._results[key] = compute(node)
        result: T = self._results[key]
        return result
