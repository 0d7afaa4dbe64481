"""Objects that can be made again from the ledger: few are kept, besides those that somebody uses."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class Kept(Generic[T]):
    """One object for each key while it is used, and the `most` recent ones longer."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used: WeakValueDictionary[Hashable, T] = WeakValueDictionary()
        self._recent: OrderedDict[Hashable, T] = OrderedDict()

    def __len__(self) -> int:
        return len(self._used)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The object of a key, made now if there is none."""
        kept = self._used.get(key)
        if kept is None:
            kept = self._used[key] = make()
        self._recent[key] = kept
        self._recent.move_to_end(key)
        while len(self._recent) > self._most:
            self._recent.popitem(last=False)
        return kept
