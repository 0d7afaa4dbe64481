"""Operators of whole tables: refused, since each column has its own type and bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from dpnb.errors import PlanError

REFLECTED = {
    **{"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@"},
    **{"and": "&", "or": "|", "xor": "^"},
}
"""The operators that have a reflected method, by the names of their methods."""

OTHERS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "neg": "-", "abs": "abs", "invert": "~"}
"""The other operators."""


class NoOperators:
    """Base class of frames and groups; their columns have operators."""

    __slots__ = ()

    if TYPE_CHECKING:  # of each subclass

        def _description(self) -> str: ...
        def _example(self, template: str) -> str: ...

    else:

        def __eq__(self, other: object) -> bool:
            """Identity; a comparison with a constant is refused."""
            if isinstance(other, bool | int | float | str):
                _refuse(self, "==")
            return NotImplemented

        __hash__ = object.__hash__


def _refuse(table: Any, symbol: str) -> NoReturn:
    raise PlanError(
        f"{table._description()} {symbol}: is not offered for a whole table; write it for a column, as in "
        + table._example("{number} * 2 or {number} > 1")
    )


def _refusal(symbol: str) -> Callable[..., NoReturn]:
    def method(self: NoOperators, *_: object) -> NoReturn:
        _refuse(self, symbol)

    return method


for _name, _symbol in REFLECTED.items():
    setattr(NoOperators, f"__r{_name}__", _refusal(_symbol))
for _name, _symbol in {**REFLECTED, **OTHERS}.items():
    setattr(NoOperators, f"__{_name}__", _refusal(_symbol))
