"""A base class for frozen values whose constructor computes their fields."""

from __future__ import annotations

from typing import Self


class Frozen:
    """Base class of frozen dataclasses with a custom constructor (``init=False``), and of states with a next state."""

    def _set(self, **values: object) -> None:
        """Set the fields, in a constructor."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _changed(self, **changes: object) -> Self:
        """A copy with some fields changed, without the checks of the constructor."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes)
        return new
