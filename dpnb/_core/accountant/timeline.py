"""The spent budget and the odometers after rows of the ledger, for a plot over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dpnb._core.accountant.comparison import ChargeBatch, FilterComparison
from dpnb._core.accountant.tree import BudgetTree
from dpnb.accounting.exact import decimal_up, exact
from dpnb.ledger import ChargeSummary
from dpnb.ledger.charge import ABOUT_BUDGET

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
    """Filters and odometers over the rows of a ledger, with points in the order of the rows.

    The number of points does not grow with the number of rows: those whose index is a multiple of a power of two, the
    last one, and between two of these the first one at which the odometers paused.  Counted are the losses of the node
    `root`, including those that reach it through partitions.
    """

    def __init__(self, start: FilterComparison, tree: BudgetTree, root: str) -> None:
        self.state = start
        self._tree, self._root = tree, root
        self._points: list[TimelineEntry] = []
        self._count = 0
        self._add()

    def read(self, charges: Sequence[ChargeSummary]) -> None:
        """Count the next rows; those between two points are counted at once."""
        path_of, root = self._tree.path, self._root
        paths = [() if charge.node == root else path_of(charge.node, root) for charge in charges]
        own = [(charge, path) for charge, path in zip(charges, paths, strict=True) if path is not None]
        requests = len(own) - sum(charge.launch is not None and charge.kind in ABOUT_BUDGET for charge, _ in own)
        indices = self._required_indices(requests) if requests else set()
        batch: list[ChargeSummary] = []
        rows = index = 0
        for charge, path in own:
            plain = charge.is_plain
            is_request = plain or charge.kind not in ABOUT_BUDGET
            if plain and not path:
                batch.append(charge)
            is_point = is_request and (not plain or index in indices)  # after such a row the odometers may pause
            index, rows = index + is_request, rows + is_request
            if batch and (is_point or path or not plain):
                self.state, batch = self.state.after_batch(ChargeBatch.of(batch)), []
            if path or not plain:
                self.state, _ = self.state.after(charge.id, charge.loss, path, charge.charged)
            if is_point:
                self._add(rows, paused=bool(self._tree.open_launches_at(charge.id, root)))
                rows = 0
        self.state = replace(self.state, last_id=charges[-1].id)

    def _required_indices(self, count: int) -> set[int]:
        """The indices, from 0, of those of `count` new rows that need a point.

        In addition, a row needs a point if the odometers may begin to pause there.
        """
        stride = _stride(self._count + count, MAX_POINTS)
        return {*range(-self._count % stride, count, stride), count - 1}

    def _add(self, rows: int = 1, *, paused: bool = False) -> None:
        """Add the state after `rows` more rows, without the time-uniform odometers while they are `paused`."""
        self._count += rows
        headroom = self.state.own.filter.headroom
        spent = None if math.isnan(headroom) else decimal_up(1 - exact(headroom))
        bounds = {
            name: bound
            for name, odometer in self.state.odometers.items()
            if not paused and odometer.kind == "time-uniform" and math.isfinite(bound := odometer.bound)
        }
        self._points.append(TimelineEntry(self._count - 1, self.state.last_id, spent, bounds))
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
