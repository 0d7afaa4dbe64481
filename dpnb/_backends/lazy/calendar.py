"""Parts of points in time, by the engine's own calendar of days; see `dpnb._plan.expressions.calendar`."""

from __future__ import annotations

from collections.abc import Callable

import narwhals as nw

from dpnb._plan.expressions.calendar import DAY, SPANS
from dpnb._plan.expressions.nodes import DatePart, PeriodUnit


def part_of(
    part: DatePart,
    seconds: nw.Expr,
    to_dates: Callable[[nw.Expr], nw.Expr],
    divided: Callable[[nw.Expr, float], nw.Expr],
) -> nw.Expr:
    """The part of each point in time, or duration, in seconds; a double without a fraction.

    `seconds` are doubles.  `to_dates` converts days since 1970 to dates: unlike a timestamp in some engines, a date has
    no time zone.  `divided` is `Engine.divided`.
    """
    if part in SPANS:
        return divided(seconds, SPANS[part]).floor()
    day = divided(seconds.floor(), DAY).floor()
    match part:
        case "dayofweek":  # 1970 began on a Thursday
            return (day + 3.0) - divided(day + 3.0, 7.0).floor() * 7.0
        case "hour":
            return divided(seconds.floor() - day * DAY, 3600.0).floor()
        case "minute":
            minutes = divided(seconds.floor(), 60.0).floor()
            return minutes - divided(minutes, 60.0).floor() * 60.0
        case "second":
            return seconds.floor() - divided(seconds.floor(), 60.0).floor() * 60.0
    date = to_dates(day.cast(nw.Int32)).dt
    match part:
        case "year":
            value = date.year()
        case "quarter":
            return divided(date.month().cast(nw.Float64) - 1.0, 3.0).floor() + 1.0
        case "month":
            value = date.month()
        case "day":
            value = date.day()
        case _:
            value = date.ordinal_day()
    return value.cast(nw.Float64)


def index_of(
    unit: PeriodUnit,
    seconds: nw.Expr,
    to_dates: Callable[[nw.Expr], nw.Expr],
    divided: Callable[[nw.Expr, float], nw.Expr],
) -> nw.Expr:
    """The number of the calendar period of each point in time, as `dpnb._plan.expressions.calendar.index_of`.

    For the arguments see `part_of`.
    """
    if unit == "hour":
        return divided(seconds.floor(), 3600.0).floor()
    day = divided(seconds.floor(), DAY).floor()
    if unit == "day":
        return day
    if unit == "week":
        return divided(day + 3.0, 7.0).floor()
    year = part_of("year", seconds, to_dates, divided) - 1970.0
    if unit == "year":
        return year
    if unit == "quarter":
        return year * 4.0 + (part_of("quarter", seconds, to_dates, divided) - 1.0)
    return year * 12.0 + (part_of("month", seconds, to_dates, divided) - 1.0)
