"""A call of another library's function, whose arguments are written as the analyst wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpnb._plan.expressions.dtypes import Numeric
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import as_code

MAX_WRITTEN = 200
"""Characters of a constant that is repeated."""

_UNKNOWN: Any = object()


class Unwritten(Exception):  # noqa: N818  (caught where counterparts are written)
    """An argument is missing, or cannot be written as code."""


@dataclass(frozen=True)
class Call:
    """A function that was called, with its arguments by name and the variables of the code that called it."""

    library: str
    function: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The class whose method was called; empty for a function."""
        names = ("self", "cls", *(["estimator"] if self.library == "sklearn" else []))
        owner = next((self.arguments[name] for name in names if name in self.arguments), None)
        return "" if owner is None else (owner if isinstance(owner, type) else type(owner)).__name__

    @property
    def words(self) -> str:
        """What was called, in a message: a model is made by several methods."""
        public = "" if self.function.startswith("_") or self.model else self.function
        return self.model or public

    def value(self, *names: str) -> Any:
        """The first of some arguments that was given."""
        given = [self.arguments[name] for name in names if self.arguments.get(name) is not None]
        if not given:
            raise Unwritten
        return given[0]

    def code(self, *names: str) -> str:
        """The first of some arguments that was given, as code."""
        return self.written(self.value(*names))

    def option(self, name: str, default: object = None) -> str:
        """``, name=value`` for an argument that differs from its default; otherwise an empty text."""
        value = self.arguments.get(name, default)
        return "" if value is None or value is default or value == default else f", {name}={self.written(value)}"

    def frame(self, value: Any) -> str:
        """The table that a table or a column is of, by the analyst's name for it: ``df`` if several are possible."""
        own = value._view
        same = [
            (other._view is own, name)
            for name, other in self.variables.items()
            if not name.startswith("_") and hasattr(type(other), "_view") and not hasattr(type(other), "_node")
            and getattr(other._view, "source", _UNKNOWN) == own.source
        ]  # fmt: skip
        names = [name for is_own, name in same if is_own] or [name for _, name in same]
        return "df" if not names or "df" in names else names[0]

    def selected(self, value: Any) -> str:
        """That table with the rows that were selected of it."""
        name, where = self.frame(value), value._view.where
        return name if where is None else f"{name}[{as_code(where, name)}]"

    def written(self, value: Any) -> str:
        """A column, a table, several of them, or a constant as code."""
        if hasattr(value, "_node") and hasattr(value, "_view"):
            if value._node not in value._view.columns.values():
                if value._view.where is not None:
                    raise Unwritten
                return f"({as_code(value._node, self.frame(value))})"
            return f"{self.selected(value)}[{own_name(value)!r}]"
        if hasattr(value, "_view"):
            return f"{self.selected(value)}[{list(value._view.columns)!r}]"
        if isinstance(value, list | tuple) and any(hasattr(one, "_view") for one in value):
            return f"[{', '.join(map(self.written, value))}]"
        if isinstance(value, str | int | float | bool | list | tuple) and len(repr(value)) <= MAX_WRITTEN:
            return repr(value)
        raise Unwritten

    def column(self, *names: str) -> Any:
        """A column, which was given itself or by its name in ``data=``."""
        value = self.value(*names)
        if isinstance(value, str):
            value = self.value("data", "data_frame")[value]
        if not hasattr(value, "_node"):
            raise Unwritten
        return value

    def groups(self, *names: str) -> str:
        """A column as the key of groups: numbers in bins."""
        column = self.column(*names)
        if isinstance(dtype_of(column._node, column._view.schema), Numeric):
            return f"dpnb.cut({self.written(column)}, 10)"
        return repr(own_name(column)) if column._node in column._view.columns.values() else self.written(column)


def own_name(column: Any) -> str:
    """The name of a column in its table."""
    for name, node in column._view.columns.items():
        if node == column._node:
            return str(name)
    raise Unwritten
