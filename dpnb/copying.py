"""Objects that give access to private rows or a budget: they are never copied or pickled; a repr never raises."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, SupportsIndex

__all__ = ["NotCopyable", "safe_repr"]


def safe_repr(method: Callable[[Any], str]) -> Callable[[Any], str]:
    """Make a ``__repr__`` that never raises: a debugger also shows an object whose `__init__` has not finished."""

    @wraps(method)
    def safe(self: Any) -> str:
        try:
            return method(self)
        except Exception:  # noqa: BLE001  (a repr must never raise)
            return f"<{type(self).__name__}, repr failed>"

    return safe


class NotCopyable:
    """Base class of objects that give access to rows; `copy`, `deepcopy` and `pickle` refuse them immediately.

    A copy that fails half-way has already duplicated private arrays, which are then local variables in the traceback
    and are printed by IPython's verbose mode; a successful copy would hold rows outside the session.  All copying
    protocols of Python use the methods below; `dataclasses.replace` calls the constructor and copies nothing.
    """

    __slots__ = ()

    _not_copied = (
        "it gives access to a private table; use the object itself, or pass on the result of .to_pandas() of an answer"
    )
    """The reason for the refusal, and an alternative."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(f"{type(self).__name__}: cannot be copied or pickled: {self._not_copied}")

    def __reduce__(self) -> NoReturn:
        self.__reduce_ex__(2)

    def __copy__(self) -> NoReturn:
        self.__reduce_ex__(2)

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__reduce_ex__(2)

    def __getstate__(self) -> NoReturn:
        self.__reduce_ex__(2)
