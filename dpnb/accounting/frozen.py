"""A base for frozen values whose constructor works out what they hold."""

from __future__ import annotations

from typing import Self

__all__ = ["Frozen"]


class Frozen:
    """Base of frozen dataclasses with a constructor of their own (``init=False``), and of states with a next state."""

    def _set(self, **values: object) -> None:
        """Give the fields their values, in a constructor."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _changed(self, **changes: object) -> Self:
        """A copy with some fields changed, which no constructor checks."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes)
        return new
