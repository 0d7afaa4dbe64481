"""``df.pipe(function)``: the function receives the view or column itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Pipe:
    """The method of frames, groups and columns."""

    __slots__ = ()

    def pipe(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """``func(self, *args, **kwargs)``: the function receives the view or column, never rows."""
        return func(self, *args, **kwargs)
