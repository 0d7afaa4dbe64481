"""How budget and odometers stood after rows of the ledger, for a picture of the budget over time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dpnb._core.accountant.comparison import FilterComparison
from dpnb.accounting.exact import decimal_up, exact

MAX_POINTS = 256
"""Rows, evenly spread, of which there is a point; a power of two."""


@dataclass(frozen=True)
class TimelineEntry:
    """How things stood after one row of the ledger.

    Parameters
    ----------
    place : int
        Among the rows that count here, and the start, which has 0.
    id : int
        Of the row; 0 before the first.
    spent : float
        Share of the enforced filter's budget, rounded up.
    bounds : dict of str to float
        Of the time-uniform odometers that can count everything so far, by name.
    """

    place: int
    id: int
    spent: float
    bounds: dict[str, float]


class Timeline:
    """Points in the order of the ledger's rows.

    However many rows there are, no more points are kept than a picture can show: those in places that are multiples of
    a power of two, the last one, and between two of them the first at which the odometers paused.
    """

    def __init__(self) -> None:
        self._points: list[TimelineEntry] = []
        self._count = 0

    def kept(self, more: int) -> set[int]:
        """Which of a number of new rows need a point, counted from 0.

        Besides one is needed wherever the odometers may begin to pause.
        """
        stride = _stride(self._count + more, MAX_POINTS)
        return {*range(-self._count % stride, more, stride), more - 1}

    def note(self, now: FilterComparison, rows: int = 1, *, paused: bool = False) -> None:
        """Add how things stand after this many more rows; without the time-uniform odometers while they pause."""
        self._count += rows
        spent = decimal_up(1 - exact(now.standings[now.enforced].filter.headroom))
        bounds = {
            name: bound
            for name, odometer in now.odometers.items()
            if not paused and odometer.kind == "time-uniform" and math.isfinite(bound := odometer.bound)
        }
        self._points.append(TimelineEntry(self._count - 1, now.seen, spent, bounds))
        if len(self._points) > 4 * MAX_POINTS:
            self._points = [*_every(_stride(self._count, MAX_POINTS), self._points[:-1]), self._points[-1]]

    def thinned(self, most: int) -> list[TimelineEntry]:
        """The first point, the last one, and others as evenly as a power of two between them; at most `most` + 1.

        A power of two, so that from one more row to the next nearly all of them stay the same.  Where the odometers
        paused between two of these, one point more says so: a line must not be drawn through.

        Parameters
        ----------
        most : int
            At most `MAX_POINTS`.
        """
        chosen, last = _every(_stride(self._count, most), self._points), self._points[-1]
        return chosen if chosen[-1] is last else [*chosen, last]


def _stride(count: int, most: int) -> int:
    """The smallest power of two such that there are no more than `most` multiples of it below `count`."""
    return 1 << max(0, (-(-count // most) - 1).bit_length())


def _every(stride: int, points: Iterable[TimelineEntry]) -> list[TimelineEntry]:
    """The points in places that are multiples of a power of two, and the first pause between two of these."""
    chosen: list[TimelineEntry] = []
    for point in points:
        if point.place % stride == 0 or (chosen[-1].bounds and not point.bounds):
            chosen.append(point)
    return chosen
