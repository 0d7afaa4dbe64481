"""A field of estimates that is computed when it is first read."""

from __future__ import annotations

from typing import Any, overload

from dpnb.results.estimates.noisy import IntervalArrays


class Deferred:
    """A field of a dataclass, None by default, which is given as its value or as a callable that returns the value.

    The callable is called once, and not at all if the field is never read.  Two threads that read the field at the same
    time may both call it.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> None: ...
    @overload
    def __get__(self, instance: Any, owner: type) -> IntervalArrays | None: ...
    def __get__(self, instance: Any, owner: type) -> IntervalArrays | None:
        if instance is None:  # the default of the field
            return None
        value = vars(instance)[self._name]
        if callable(value):
            value = vars(instance)[self._name] = value()
        arrays: IntervalArrays | None = value
        return arrays

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)[self._name] = value
