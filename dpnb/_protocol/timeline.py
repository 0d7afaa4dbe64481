"""The budget and the odometers of a session from request to request."""

from __future__ import annotations

from dpnb._protocol.types import NonNegative, Proportion, Record


class BudgetAxis(Record, frozen=True):
    """The part of a timeline that shows the budget.

    Parameters
    ----------
    label : str
    text : str
        More about it in words; may be empty.
    """

    label: str
    text: str


class OdometerAxis(Record, frozen=True):
    """The part of a timeline that shows the odometers.

    Parameters
    ----------
    label : str
    end : float or None
        The value at which the scale ends, unless a curve exceeds it; None where the curves alone determine the scale.
    text : str
        What the scale and the curves mean.
    """

    label: str
    end: float | None
    text: str


class Curve(Record, frozen=True):
    """One odometer of a timeline.

    Parameters
    ----------
    id : str
        Stable name, unique within a timeline.
    label : str
    """

    id: str
    label: str


class TimelinePoint(Record, frozen=True):
    """The state of a session at one moment.

    Parameters
    ----------
    id : int
        Number of the last request before this moment; 0 is before the first request.
    spent : float or None
        Fraction of the budget that was spent; None without a budget, for all points.
    bounds : list of (float or None)
        What each curve reported, in the order of the curves; None where it reported nothing.
    text : str
        The request in words.
    """

    id: NonNegative
    spent: Proportion | None
    bounds: list[float | None]
    text: str


class TimelineChart(Record, frozen=True):
    """The budget and the odometers from request to request; thinned by the kernel, so not every request has a point.

    Parameters
    ----------
    budget : BudgetAxis
    odometers : OdometerAxis
    curves : list of Curve
    points : list of TimelinePoint
        Oldest first; each has one bound for every curve.
    """

    budget: BudgetAxis
    odometers: OdometerAxis
    curves: list[Curve]
    points: list[TimelinePoint]
