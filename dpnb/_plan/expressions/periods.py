"""Points in time, and the calendar period that contains one, as a category.

Points in time are seconds since the beginning of 1970, in UTC; a float of them is exact to the microsecond until the
year 2255.  Their parts are whole numbers.  In another zone the parts are those of the local time, which is also written
in seconds, as if it were in UTC.

The categories of a period are the periods between the declared bounds of the dates, so they are public, whatever the
rows are.  A clamped date falls into the first or the last period.  Periods are numbered by calendar units since the
beginning of 1970, so every backend computes the number of a period by arithmetic, and no list of edges is part of a
plan.

===========  ======================  =====================  ==========================
period       frequency               label                  starts
===========  ======================  =====================  ==========================
``hour``     ``h``                   ``2017-06-05T14:00``   every hour
``day``      ``D``                   ``2017-06-05``         at midnight
``week``     ``W``, ``W-SUN``        ``2017-06-05``         on Monday
``month``    ``M``, ``ME``, ``MS``   ``2017-06``            on the first day
``quarter``  ``Q``, ``QE``, ``QS``   ``2017Q2``             January, April, July, October
``year``     ``Y``, ``YE``, ``YS``   ``2017``               on 1 January
===========  ======================  =====================  ==========================

All are in the local time of the zone of the dates, UTC by default.  An hour that occurs twice, when the clock is put
back, is one period.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from functools import lru_cache, reduce

import numpy as np
from numpy.typing import NDArray

from dpnb._plan.expressions.dtypes import (
    Categorical,
    Dtype,
    Timestamp,
    as_constant,
    described,
    of_zone,
    refuse,
    utc_literal,
)
from dpnb._plan.expressions.nodes import (
    And,
    Compare,
    ComparisonOperator,
    DatePart,
    Expression,
    Literal,
    Not,
    Or,
    Period,
    PeriodUnit,
)
from dpnb._plan.expressions.text import words
from dpnb.errors import PlanError
from dpnb.times import UTC_ZONE, Zone, seconds_of

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

MAX_PERIODS = 100_000
"""Largest number of periods between the declared dates."""

ANY_DATES = Timestamp(-math.inf, math.inf)
"""The type of dates in UTC, whatever their bounds are."""

ALIASES: dict[str, PeriodUnit] = {
    **dict.fromkeys(["h", "H"], "hour"),
    **dict.fromkeys(["D", "d"], "day"),
    **dict.fromkeys(["W", "w", "W-SUN"], "week"),
    **dict.fromkeys(["M", "ME", "MS"], "month"),
    **dict.fromkeys(["Q", "QE", "QS", "Q-DEC", "QE-DEC", "QS-JAN"], "quarter"),
    **dict.fromkeys(["Y", "YE", "YS", "A", "AS", "Y-DEC", "YE-DEC", "YS-JAN"], "year"),
}
"""The frequencies of pandas, old and new, that are periods of the calendar."""


# --- points in time ---------------------------------------------------------------------------------------------------


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


# --- periods ----------------------------------------------------------------------------------------------------------


def period_of(node: Expression, freq: object, zone: str = UTC_ZONE) -> Period:
    """The periods of a date column, by one of the frequencies in the module docstring (text or pandas offset)."""
    alias = getattr(freq, "freqstr", freq)
    unit = ALIASES.get(alias) if isinstance(alias, str) else None
    if unit is None:
        raise PlanError(
            f"periods of {words(node)}: must be hours 'h', days 'D', weeks 'W' (from Monday), months 'M', quarters 'Q' "
            f"or years 'Y'; got {freq!r}; group by a part such as .dt.hour, or by dpnb.cut() of dates, for others"
        )
    return Period(unit, node, zone)


def period(node: Period, kind: Dtype) -> Categorical:
    """The labels of the periods between the bounds of the dates."""
    if not isinstance(kind, Timestamp):
        refuse(node, f"only dates have periods; this is {described(kind)}; declare it as dpnb.Dates(first, last)")
    of_zone(node, kind, node.zone)
    first, last = index_range(node.unit, kind)
    if last - first >= MAX_PERIODS:
        refuse(
            node,
            f"the declared dates have {last - first + 1:,} periods, and at most {MAX_PERIODS:,} can be groups; take "
            "longer periods",
        )
    return Categorical(_labels(node.unit, first, last))


def index_range(unit: PeriodUnit, kind: Timestamp) -> tuple[int, int]:
    """The numbers of the first and the last period of dates within bounds."""
    low, high = kind.local
    return _index(unit, low), _index(unit, high)


def start_of(unit: PeriodUnit, index: int) -> int:
    """The first second of a period, by its number."""
    match unit:
        case "hour":
            return index * 3600
        case "day":
            return index * int(DAY)
        case "week":
            return (index * 7 - 3) * int(DAY)  # 1970 began on a Thursday
    months = index * {"month": 1, "quarter": 3, "year": 12}[unit]
    return int(np.datetime64(months, "M").astype("datetime64[s]").astype(np.int64))


def date_constant(node: Expression, kind: Dtype, text: str, dates: Timestamp = ANY_DATES) -> str:
    """A text that is compared with dates or periods: a year or a month means its first instant, as in pandas.

    For dates it gets its distance from UTC.  For periods, of the dates `dates`, it is the label of the period that
    starts at the date, if one does.  The texts that are compared with other expressions do not change.
    """
    try:
        if isinstance(kind, Timestamp):
            return as_constant(node, kind, _full_date(text))
        if not isinstance(node, Period):
            return text
        seconds = _local_seconds(node, dates, text)
    except PlanError:
        return text  # refused where the type of the expression is found
    index = _index(node.unit, seconds)
    return _labels(node.unit, index, index)[0] if start_of(node.unit, index) == seconds else _full_date(text)


def compared(node: Period, operator: ComparisonOperator, text: str, dates: Timestamp = ANY_DATES) -> Expression:
    """A comparison of periods with a date: by the starts of the periods, as a comparison of the dates themselves."""
    if operator in ("==", "!="):
        return Compare(operator, node, Literal(text))
    seconds = _local_seconds(node, dates, text)
    index = _index(node.unit, seconds)
    if operator in (">", "<=") or start_of(node.unit, index) < seconds:
        index += 1
    start = start_of(node.unit, index)
    try:
        if dates.zone is None:
            found: list[tuple[int | None, int | None]] = [(start, None)]
        else:
            found = dates.zone.not_before(start)
        intervals = [_between(node.inner, dates, *ends) for ends in found]
    except OverflowError:
        refuse(node, f"{text!r} is too late, since no period follows")
    later = reduce(Or, intervals)
    if operator in (">", ">="):
        return later
    return Compare("<", later.left, later.right) if isinstance(later, Compare) else Not(later)


def _between(node: Expression, dates: Timestamp, start: int | None, end: int | None) -> Expression:
    """Whether a date is in an interval without its end; it has a start or an end."""
    sides: list[tuple[ComparisonOperator, int | None]] = [(">=", start), ("<", end)]
    conditions: list[Expression] = [
        Compare(operator, node, Literal(as_constant(node, dates, str(utc_literal(seconds).value))))
        for operator, seconds in sides
        if seconds is not None
    ]
    return reduce(And, conditions)


def _local_seconds(node: Period, dates: Timestamp, text: str) -> float:
    """The local time that a text means, in seconds since 1970."""
    full = _full_date(text)
    constant = as_constant(node, dates, full)  # refuses what is not a date
    moment = datetime.fromisoformat(full)
    if moment.tzinfo is not None:  # else it is a local time itself, even if no clock shows it
        moment = datetime.fromisoformat(constant).replace(tzinfo=None)
    return seconds_of(moment.isoformat())


def _index(unit: PeriodUnit, seconds: float) -> int:
    return int(index_of(unit, np.array([seconds]))[0])


def _full_date(text: str) -> str:
    """A year, quarter or month as its first day; any other text unchanged."""
    match = re.fullmatch(r"(\d{4})(?:-(\d{2})|Q([1-4]))?", text)
    if match is None:
        return text
    year, month, quarter = match.groups()
    return f"{year}-{month or f'{3 * int(quarter or 1) - 2:02d}'}-01"


@lru_cache(maxsize=64)
def _labels(unit: PeriodUnit, first: int, last: int) -> tuple[str, ...]:
    indices = np.arange(first, last + 1)
    match unit:
        case "quarter":
            return tuple(f"{1970 + index // 4:04d}Q{index % 4 + 1}" for index in indices.tolist())
        case "week":
            days = indices * 7 - 3  # 1970 began on a Thursday
            return tuple(np.datetime_as_string(days.astype("datetime64[D]")).tolist())
        case "hour":
            return tuple(f"{label}:00" for label in np.datetime_as_string(indices.astype("datetime64[h]")).tolist())
    numpy_unit = {"day": "D", "month": "M", "year": "Y"}[unit]
    return tuple(np.datetime_as_string(indices.astype(f"datetime64[{numpy_unit}]")).tolist())
