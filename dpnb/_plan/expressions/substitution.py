"""Expressions in the parts of a query, replaced."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec

from dpnb._plan.expressions.nodes import Expression, Node, arguments, with_arguments


class Substitution:
    """Replaces expressions inside tuples, structs and data classes; what has none of them stays the same object.

    `replacement` returns the new expression of a node, or None to replace what the node is computed from.
    """

    def __init__(self, replacement: Callable[[Expression], Expression | None]) -> None:
        self._replacement = replacement
        self._done: dict[int, tuple[Any, Any]] = {}  # with the part, so that its id is not reused

    def of(self, part: Any) -> Any:
        """A part with its expressions replaced."""
        key = id(part)
        done = self._done.get(key)
        if done is None:
            done = self._done[key] = part, self._of(part)
        return done[1]

    def _of(self, part: Any) -> Any:
        if isinstance(part, Node):
            node: Expression = part  # type: ignore[assignment]  # every node is one
            new = self._replacement(node)
            if new is not None:
                return new
            return with_arguments(node, self.of) if any(self.of(one) is not one for one in arguments(part)) else node
        if isinstance(part, tuple):
            values = [self.of(one) for one in part]
            return part if all(new is old for new, old in zip(values, part, strict=True)) else tuple(values)
        is_struct = isinstance(part, msgspec.Struct)
        if not is_struct and not dataclasses.is_dataclass(part):
            return part
        names = part.__struct_fields__ if is_struct else [field.name for field in dataclasses.fields(part)]
        new_values = {name: self.of(getattr(part, name)) for name in names}
        changed = {name: value for name, value in new_values.items() if value is not getattr(part, name)}
        if not changed:
            return part
        return msgspec.structs.replace(part, **changed) if is_struct else dataclasses.replace(part, **changed)
