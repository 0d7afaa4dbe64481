"""How budget and odometers stood after each row of the ledger, for a picture of the budget over time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dpnb.accounting.exact import decimal_up, exact
from dpnb.session.comparison import Comparison


@dataclass(frozen=True)
class Point:
    """How things stood after one row of the ledger.

    Parameters
    ----------
    id : int
        Of the row; 0 before the first.
    spent : float
        Share of the enforced filter's budget, rounded up.
    bounds : dict of str to float
        Of the time-uniform odometers that can count everything so far, by name.
    """

    id: int
    spent: float
    bounds: dict[str, float]


@dataclass
class Timeline:
    """Points in the order of the ledger's rows; grows with them."""

    points: list[Point] = field(default_factory=list)

    def note(self, now: Comparison, *, paused: bool = False) -> None:
        """Add how things stand now; without the time-uniform odometers while they pause."""
        spent = decimal_up(1 - exact(now.standings[now.enforced].filter.headroom))
        bounds = {
            name: odometer.bound
            for name, odometer in now.odometers.items()
            if not paused and odometer.reading == "time-uniform" and math.isfinite(odometer.bound)
        }
        self.points.append(Point(now.seen, spent, bounds))

    def thinned(self, most: int) -> list[Point]:
        """The first point, the last one, and others as evenly as a power of two between them; at most `most` + 1.

        A power of two, so that from one more row to the next nearly all of them stay the same.  Where the odometers
        paused between two of these, one point more says so: a line must not be drawn through.
        """
        step = 1
        while len(self.points) > most * step:
            step *= 2
        chosen = []
        for start in range(0, len(self.points), step):
            between = self.points[start : start + step]
            chosen.append(between[0])
            if between[0].bounds:
                chosen += [point for point in between[1:] if not point.bounds][:1]
        return chosen if chosen[-1] is self.points[-1] else [*chosen, self.points[-1]]
