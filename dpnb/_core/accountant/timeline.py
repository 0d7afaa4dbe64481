"""The spent budget and the odometers after rows of the ledger, for a plot over time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dpnb._core.accountant.comparison import FilterComparison
from dpnb.accounting.exact import decimal_up, exact

MAX_POINTS = 256
"""Number of evenly spaced rows that have a point; a power of two."""


@dataclass(frozen=True)
class TimelineEntry:
    """The state after one row of the ledger.

    `index` counts the rows that are counted here, and `id` is that of the row; both are 0 before the first.  `spent` is
    the fraction of the enforced filter's budget, rounded up; None without a budget.  `bounds` are those of the
    time-uniform odometers that can count all losses so far, by name; empty while they pause.
    """

    index: int
    id: int
    spent: float | None
    bounds: dict[str, float]


class Timeline:
    """Points in the order of the ledger's rows.

    The number of points does not grow with the number of rows: those whose index is a multiple of a power of two, the
    last one, and between two of these the first one at which the odometers paused.
    """

    def __init__(self) -> None:
        self._points: list[TimelineEntry] = []
        self._count = 0

    def required_indices(self, count: int) -> set[int]:
        """The indices, from 0, of those of `count` new rows that need a point.

        In addition, a row needs a point if the odometers may begin to pause there.
        """
        stride = _stride(self._count + count, MAX_POINTS)
        return {*range(-self._count % stride, count, stride), count - 1}

    def add(self, comparison: FilterComparison, rows: int = 1, *, paused: bool = False) -> None:
        """Add the state after `rows` more rows, without the time-uniform odometers while they are `paused`."""
        self._count += rows
        headroom = comparison.states[comparison.enforced].filter.headroom
        spent = None if math.isnan(headroom) else decimal_up(1 - exact(headroom))
        bounds = {
            name: bound
            for name, odometer in comparison.odometers.items()
            if not paused and odometer.kind == "time-uniform" and math.isfinite(bound := odometer.bound)
        }
        self._points.append(TimelineEntry(self._count - 1, comparison.last_id, spent, bounds))
        if len(self._points) > 4 * MAX_POINTS:
            self._points = [*_every(_stride(self._count, MAX_POINTS), self._points[:-1]), self._points[-1]]

    def thinned(self, max_points: int) -> list[TimelineEntry]:
        """The first point, the last one, and evenly spaced points between them; at most `max_points` + 1.

        Their distance is a power of two, so that nearly all of them stay the same when a row is added.  If the
        odometers paused between two of them, one more point is included, where the curves are interrupted.
        `max_points` is at most `MAX_POINTS`.
        """
        points, last = _every(_stride(self._count, max_points), self._points), self._points[-1]
        return points if points[-1] is last else [*points, last]


def _stride(count: int, max_points: int) -> int:
    """The smallest power of two that has at most `max_points` multiples below `count`."""
    return 1 << max(0, (-(-count // max_points) - 1).bit_length())


def _every(stride: int, points: Iterable[TimelineEntry]) -> list[TimelineEntry]:
    """The points whose index is a multiple of `stride`, and the first pause between two of these."""
    thinned: list[TimelineEntry] = []
    for point in points:
        if point.index % stride == 0 or (thinned[-1].bounds and not point.bounds):
            thinned.append(point)
    return thinned
