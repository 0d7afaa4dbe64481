"""Points in time are seconds since the beginning of 1970, in UTC; their parts are whole numbers.

In another zone the parts are those of the local time, which is also written in seconds, as if it were in UTC.

A float of seconds is exact to the microsecond until the year 2255.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from dpnb._plan.expressions.nodes import DatePart, PeriodUnit
from dpnb.times import Zone

Floats = NDArray[np.float64]

DAY = 86_400.0
MICROS = 10**6
LIMIT = 2**62
"""Microseconds until a year that no bound of a column can have."""
RANGES: dict[DatePart, tuple[int, int]] = {
    "quarter": (1, 4),
    "month": (1, 12),
    "day": (1, 31),
    "dayofyear": (1, 366),
    "dayofweek": (0, 6),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
"""Range of each part, whatever the bounds of the column are; the range of years follows from the bounds."""
SPANS: dict[DatePart, float] = {"days": DAY, "seconds": 1.0}
"""Parts of a duration, in seconds; counted in whole numbers, rounded down as in pandas."""


def year_of(seconds: float) -> int:
    """The calendar year of a point in time."""
    try:
        return (datetime(1970, 1, 1) + timedelta(seconds=seconds)).year
    except OverflowError:  # the last microseconds of the year 9999, rounded up
        return datetime.max.year


def part_of(part: DatePart, seconds: Floats) -> Floats:
    """The part of each point in time (or duration); NaN where it is missing."""
    if part in SPANS:
        return np.floor(seconds / SPANS[part])
    missing = np.isnan(seconds)
    moments = np.floor(np.where(missing, 0.0, seconds)).astype("datetime64[s]")
    days, months = moments.astype("datetime64[D]"), moments.astype("datetime64[M]")
    month = months.astype(np.int64) % 12
    match part:
        case "year":
            values = moments.astype("datetime64[Y]").astype(np.int64) + 1970
        case "quarter":
            values = month // 3 + 1
        case "month":
            values = month + 1
        case "day":
            values = (days - months).astype(np.int64) + 1
        case "dayofyear":
            values = (days - moments.astype("datetime64[Y]")).astype(np.int64) + 1
        case "dayofweek":
            values = (days.astype(np.int64) + 3) % 7  # 1970 began on a Thursday
        case "hour":
            values = (moments - days).astype(np.int64) // 3600
        case "minute":
            values = (moments - days).astype(np.int64) // 60 % 60
        case _:
            values = (moments - days).astype(np.int64) % 60
    return np.where(missing, np.nan, values.astype(np.float64))


def to_local(seconds: Floats, zone: Zone) -> Floats:
    """The local times of points in time, in whole seconds; NaN where they are missing."""
    whole = np.floor(seconds)
    ahead = np.array(zone.seconds, np.float64)
    return whole + ahead[np.searchsorted(np.array(zone.starts, np.float64), whole, side="right")]


def to_instants(local: NDArray[np.int64], zone: Zone) -> NDArray[np.int64]:
    """The points in time of local times, both in microseconds since 1970."""
    ahead = np.array(zone.seconds, np.int64)
    starts = np.array(zone.local_starts, np.int64)
    # Far outside the bounds, so that no difference overflows.
    return np.clip(local, -LIMIT, LIMIT) - MICROS * ahead[np.searchsorted(starts, local // MICROS, side="right")]


def index_of(unit: PeriodUnit, seconds: Floats) -> Floats:
    """The number of the calendar period that contains each point in time, from 0 for the one in which 1970 began.

    A week begins on Monday.  NaN where the point in time is missing.
    """
    missing = np.isnan(seconds)
    moments = np.floor(np.where(missing, 0.0, seconds)).astype(np.int64)
    match unit:
        case "hour":
            values = moments // 3600
        case "day":
            values = moments // int(DAY)
        case "week":
            values = (moments // int(DAY) + 3) // 7
        case _:
            months = moments.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
            values = months // {"month": 1, "quarter": 3, "year": 12}[unit]
    return np.where(missing, np.nan, values.astype(np.float64))
