"""Calendar periods: the hour, day, week, month, quarter or year that contains a point in time, as a category.

The categories are the periods between the declared bounds of the dates, so they are public, whatever the rows are.  A
clamped date falls into the first or the last period.  Periods are numbered by calendar units since the beginning of
1970, so every backend computes the number of a period by arithmetic, and no list of edges is part of a plan.

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
from datetime import datetime
from functools import lru_cache, reduce

import numpy as np

from dpnb._plan.expressions.calendar import DAY, index_of
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
    Expression,
    Literal,
    Not,
    Or,
    Period,
    PeriodUnit,
)
from dpnb._plan.expressions.text import words
from dpnb.errors import PlanError
from dpnb.times import UTC_ZONE, seconds_of

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
