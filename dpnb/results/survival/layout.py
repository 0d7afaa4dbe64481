"""The periods and groups of survival curves, and the cells in which rows are counted, in words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from msgspec.structs import replace

from dpnb._plan.plan import Plan
from dpnb.schema import Key


@dataclass(frozen=True)
class SurvivalLayout:
    """Periods and groups of survival curves: public, from the query alone."""

    time: str  # in words
    event: str  # in words
    names: tuple[str, ...]  # of the levels of groups
    keys: tuple[tuple[Key, ...], ...]  # of the groups; one empty key without levels
    ends: tuple[float, ...]  # the start, and the end of each period
    whole: bool = False  # whether each period has one time only, its end, since times are whole numbers

    @property
    def periods(self) -> int:
        """Number of periods."""
        return len(self.ends) - 1

    @property
    def outcome(self) -> str:
        """What is counted, in words."""
        return f"{self.time} until {self.event}{self._by}"

    @property
    def description(self) -> str:
        """The curves in words."""
        return f"survival in {self.time} until {self.event}{self._by}"

    def described(self, counts: Plan) -> str:
        """The curves in words, with the rows that are counted."""
        return f"{self.description}{replace(counts, group_by=()).scope_description}"

    @property
    def _by(self) -> str:
        return f", by {', '.join(self.names)}" if self.names else ""

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The start and the ends as distinct texts."""
        texts = tuple(f"{end:g}" for end in self.ends)
        return texts if len(set(texts)) == len(texts) else tuple(map(repr, self.ends))

    @property
    def events(self) -> tuple[str, ...]:
        """The cells of rows with an event, by time."""
        return (*(f"event up to {text}" for text in self.texts[1:]), self._after)

    @property
    def censored(self) -> tuple[str, ...]:
        """The cells of rows without an event, from the last time to the first."""
        until = "up to" if self.whole else "before"
        return (self._after, *(f"censored {until} {text}" for text in self.texts[:0:-1]))

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of a group in the order of their cumulative counts."""
        return (*self.events, *self.censored[1:])

    @property
    def _after(self) -> str:
        return f"at risk after {self.texts[-1]}"

    def label(self, key: tuple[Key, ...], cell: str) -> str:
        """A cell of a group."""
        return "; ".join((*(f"{name} {part!r}" for name, part in zip(self.names, key, strict=True)), cell))
