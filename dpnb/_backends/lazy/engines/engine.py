"""What engines do each in a way of their own; everything else is said once, in narwhals.

Nothing here may fail on account of what a row holds: an engine's own message would quote it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import narwhals as nw

from dpnb._backends.contribution import LIMB_BITS, MULTIPLIER, PRIME
from dpnb._backends.numpy_settings import isolated_numeric_settings
from dpnb._backends.worker_thread import BackgroundRunner, refuse_stopped

Frame = nw.LazyFrame[Any]
T = TypeVar("T")

Paths = Callable[[], Iterable[str]]
"""Looks up the files of a table each time: by now a pattern may match more of them."""

LIMB = 2**LIMB_BITS

ROWS_AT_ONCE = 2**24
"""Of a few columns they take between one and two gigabytes to put in order."""

HEX_DIGITS = 15
"""Of an MD5, as in `dpnb._backends.contribution.label_hash`."""


class Engine(ABC):
    """What every engine can do through narwhals alone, or would have to override."""

    name = ""
    rows_at_once: int | None = None
    """About persons a longer table is asked share by share, since the engine would put all of its rows in order at
    once; None for an engine that spreads them over machines."""
    wide_sums = False
    """Sums of 64-bit integers are wider than these, and cannot wrap round however many rows there are."""

    def __init__(self) -> None:
        self._background = BackgroundRunner()

    def run(self, work: Callable[[], T], natives: Iterable[Any]) -> T:
        """Have the engine do something for some of its frames; an interrupt ends it and is raised as an interrupt.

        All work of an engine goes through this method: see `dpnb._backends.worker_thread`.
        """
        del natives
        return self._background.run(work)

    def settle(self) -> None:
        """Wait until what an interrupt left behind has ended."""
        self._background.settle()

    def opened(self, native: Any) -> Frame:
        """The native frame as narwhals sees it."""
        with isolated_numeric_settings():  # narwhals warns of plugins that could be installed
            return opened(native)

    def rows(self, native: Any) -> int:
        """How many a frame has."""
        return int(self.collected(self.opened(native).select(rows=nw.len()))[0]["rows"])

    @abstractmethod
    def hashed(self, frame: Frame, columns: Mapping[str, str]) -> Frame:
        """The frame with the number of each text, as `name_number` gives it, for every ``from: to`` of `columns`."""

    def microseconds(self, frame: Frame, columns: Mapping[str, str]) -> Frame:
        """The frame with moments in microseconds since 1970, in UTC, for every ``from: to`` of `columns`."""
        return frame.with_columns(**{to: nw.col(column).dt.timestamp("us") for column, to in columns.items()})

    @abstractmethod
    def dated(self, frame: Frame, column: str, to: str) -> Frame:
        """The frame with dates, of 32-bit days since 1970."""

    @abstractmethod
    def row_hash(self, frame: Frame, columns: Sequence[str], to: str) -> Frame:
        """The frame with a hash of integer columns, not negative ones, as `dpnb._backends.contribution.row_hash`."""

    def divided(self, column: nw.Expr, by: float) -> nw.Expr:
        """A column of finite doubles divided by one number, correctly rounded."""
        return column / by

    def placed(self, column: nw.Expr, values: Sequence[Any], places: Sequence[int]) -> nw.Expr:
        """The place of a column's value in a public list, whose values are of its type; -1 for any other."""
        return column.replace_strict(list(values), list(places), default=-1, return_dtype=nw.Int64)

    def collected(self, frame: Frame) -> list[dict[str, Any]]:
        """The rows of a small result."""
        refuse_stopped()
        with isolated_numeric_settings():
            return frame.collect().rows(named=True)

    @abstractmethod
    def kept(self, frame: Frame) -> Frame:
        """The same rows, worked out once, where the engine keeps them."""

    @abstractmethod
    def unstable(self, native: Any) -> str | None:
        """What in a frame's plan need not give the same rows each time; see `dpnb._backends.lazy.stability`."""

    @abstractmethod
    def files(self, native: Any) -> Paths:
        """What looks up the files that a frame is read from; see `dpnb._backends.lazy.files`."""


def opened(native: Any) -> Frame:
    """An engine's own frame as narwhals sees it."""
    frame: Frame = nw.from_native(native)
    return frame


def folded(limbs: Sequence[Any]) -> Any:
    """The state of the hash after some limbs, in an engine's own words: narwhals' remainder holds its operand twice."""
    state = limbs[0] % PRIME + (MULTIPLIER + 1)
    for limb in limbs[1:]:
        state = state % PRIME * MULTIPLIER + limb % PRIME + 1
    return state % PRIME


def squared(state: Any) -> Any:
    """Without a square the hash would be linear."""
    return (state * state % PRIME * MULTIPLIER + state) % PRIME
