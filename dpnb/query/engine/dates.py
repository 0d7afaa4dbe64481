"""Parts of points in time, by the engine's own calendar of days; see `dpnb.query.expressions.dates`."""

from __future__ import annotations

from collections.abc import Callable

import narwhals as nw

from dpnb.query.expressions.dates import DAY, SPANS
from dpnb.query.expressions.nodes import DatePart


def part_of(part: DatePart, seconds: nw.Expr, dated: Callable[[nw.Expr], nw.Expr]) -> nw.Expr:
    """The part of each point in time, or span, in seconds; a double without a fraction.

    Parameters
    ----------
    part : str
    seconds : Expr
        Doubles.
    dated : callable
        Makes a column of dates of days since 1970.  A date has no time zone, as a timestamp has in some engines.
    """
    if part in SPANS:
        return (seconds / SPANS[part]).floor()
    day = (seconds.floor() / DAY).floor()
    match part:
        case "dayofweek":  # 1970 began on a Thursday
            return (day + 3.0) - ((day + 3.0) / 7.0).floor() * 7.0
        case "hour":
            return ((seconds.floor() - day * DAY) / 3600.0).floor()
    date = dated(day.cast(nw.Int32)).dt
    match part:
        case "year":
            value = date.year()
        case "quarter":
            return ((date.month().cast(nw.Float64) - 1.0) / 3.0).floor() + 1.0
        case "month":
            value = date.month()
        case "day":
            value = date.day()
        case _:
            value = date.ordinal_day()
    return value.cast(nw.Float64)
