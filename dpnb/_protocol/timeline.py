"""The budget and the odometers of a session from request to request."""

from __future__ import annotations

from dpnb._protocol.types import NonNegative, Proportion, Record


class BudgetAxis(Record, frozen=True):
    """The part of a timeline that shows the budget."""

    label: str
    text: str  # More about it in words; may be empty.


class OdometerAxis(Record, frozen=True):
    """The part of a timeline that shows the odometers."""

    label: str
    # The value at which the scale ends, unless a curve exceeds it; None where the curves alone determine the scale.
    end: float | None
    text: str  # What the scale and the curves mean.


class Curve(Record, frozen=True):
    """One odometer of a timeline."""

    id: str  # Stable name, unique within a timeline.
    label: str


class TimelinePoint(Record, frozen=True):
    """The state of a session at one moment."""

    id: NonNegative  # Number of the last request before this moment; 0 is before the first request.
    spent: Proportion | None  # Fraction of the budget that was spent; None without a budget, for all points.
    bounds: list[float | None]  # What each curve reported, in the order of the curves; None where it reported nothing.
    text: str  # The request in words.


class TimelineChart(Record, frozen=True):
    """The budget and the odometers from request to request; thinned by the kernel, so not every request has a point."""

    budget: BudgetAxis
    odometers: OdometerAxis
    curves: list[Curve]
    points: list[TimelinePoint]  # Oldest first; each has one bound for every curve.
