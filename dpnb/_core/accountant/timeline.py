"""The spent budget and the odometers after rows of the ledger, for a plot; and the view that is cut at a threshold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dpnb._core.accountant.filters_and_odometers import ChargeBatch, FilterComparison
from dpnb._core.accountant.tree import BudgetTree
from dpnb.accounting.exact import Number, decimal_up, exact, shown
from dpnb.accounting.odometers import TruncatedView
from dpnb.errors import ConversionError, InvalidValueError
from dpnb.ledger import ChargeSummary
from dpnb.ledger.charge import ABOUT_BUDGET

MAX_POINTS = 256
"""Number of evenly spaced rows that have a point; a power of two."""


@dataclass(frozen=True)
class TimelineEntry:
    """The state after one row of the ledger.

    `index` counts the rows that are counted here, and `id` is that of the row; both are 0 before the first.  `spent` is
    the fraction of the enforced filter's budget, rounded up; None without a budget.  `bounds` are those of the
    time-uniform odometers that can count all losses so far, by name.
    """

    index: int
    id: int
    spent: float | None
    bounds: dict[str, float]


class Timeline:
    """Filters and odometers over the rows of a ledger, with points in the order of the rows.

    The number of points does not grow with the number of rows: those whose index is a multiple of a power of two, and
    the last one.  Counted are the losses of the node `root`, including those that reach it through partitions.
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
            is_point = is_request and index in indices
            index, rows = index + is_request, rows + is_request
            if batch and (is_point or path or not plain):
                self.state, batch = self.state.after_batch(ChargeBatch(batch)), []
            if path or not plain:
                self.state, _ = self.state.after(charge, path)
            if is_point:
                self._add(rows)
                rows = 0
        self.state = replace(self.state, last_id=charges[-1].id)

    def _required_indices(self, count: int) -> set[int]:
        """The indices, from 0, of those of `count` new rows that need a point."""
        stride = _stride(self._count + count, MAX_POINTS)
        return {*range(-self._count % stride, count, stride), count - 1}

    def _add(self, rows: int = 1) -> None:
        """Add the state after `rows` more rows."""
        self._count += rows
        headroom = self.state.own.filter.headroom
        spent = None if math.isnan(headroom) else decimal_up(1 - exact(headroom))
        bounds = {
            name: bound
            for name, odometer in self.state.odometers.items()
            if odometer.kind == "time-uniform" and math.isfinite(bound := odometer.bound)
        }
        self._points.append(TimelineEntry(self._count - 1, self.state.last_id, spent, bounds))
        if len(self._points) > 4 * MAX_POINTS:
            self._points = [*_every(_stride(self._count, MAX_POINTS), self._points[:-1]), self._points[-1]]

    def thinned(self, max_points: int) -> list[TimelineEntry]:
        """The first point, the last one, and evenly spaced points between them; at most `max_points` + 1.

        Their distance is a power of two, so that nearly all of them stay the same when a row is added.  `max_points` is
        at most `MAX_POINTS`.
        """
        points, last = _every(_stride(self._count, max_points), self._points), self._points[-1]
        return points if points[-1] is last else [*points, last]


def _stride(count: int, max_points: int) -> int:
    """The smallest power of two that has at most `max_points` multiples below `count`."""
    return 1 << max(0, (-(-count // max_points) - 1).bit_length())


def _every(stride: int, points: Iterable[TimelineEntry]) -> list[TimelineEntry]:
    """The points whose index is a multiple of `stride`."""
    return [point for point in points if point.index % stride == 0]


def truncated_view(
    state: FilterComparison,
    charges: Iterable[ChargeSummary],
    tree: BudgetTree,
    root: str,
    threshold: Number,
    odometer: str | None,
) -> TruncatedView:
    """The history of a node up to the launch with which an odometer would exceed the threshold.

    `state` is that before the first row, and the messages are the ids of the requests.  Losses are counted as in the
    comparison of odometers, those in partitions by the growth of the largest part.
    """
    own = f"{state.enforced}-accumulator"
    name: object = odometer or (own if own in state.odometers else "mixture")
    if not isinstance(name, str) or name not in state.odometers:
        raise InvalidValueError(
            f"odometer: must be one of {', '.join(map(repr, state.odometers))}; got {shown(odometer)}; see "
            "session.odometers"
        )
    view = TruncatedView(state.odometers[name], threshold)  # type: ignore[arg-type]  # all of them count losses
    for charge in charges:
        path = tree.path(charge.node, root)
        if path is None or view.truncated:
            continue
        state, _ = state.after(charge, path)
        reached = state.odometers.get(name)
        if reached is None:
            raise ConversionError(
                f"odometer: {name!r} cannot count the loss of request {charge.id}, {charge.loss!r}; choose another "
                "one, for example 'mixture'"
            )
        messages = () if charge.kind in ABOUT_BUDGET else (charge.id,)
        view = view.after_launch(reached, *messages)  # type: ignore[arg-type]
    return view
