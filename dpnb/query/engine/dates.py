"""Parts of points in time by arithmetic on days, the same on every engine; see `dpnb.query.expressions.dates`.

The calendar is counted from the first of March of the year 0, in cycles of 400 years that are 146,097 days long, so
that the day that comes and goes is the last one of a year.
"""

from __future__ import annotations

from collections.abc import Callable

import narwhals as nw

from dpnb.query.expressions.dates import DAY, SPANS
from dpnb.query.expressions.nodes import DatePart

MARCH_TO_1970 = 719_468
CYCLE = 146_097


def part_of(part: DatePart, seconds: nw.Expr, made: Callable[[nw.Expr], nw.Expr]) -> nw.Expr:
    """The part of each point in time, or span, in seconds.

    Parameters
    ----------
    part : str
    seconds : Expr
        Doubles.
    made : callable
        Makes a column of an expression, so that it is not worked out again and again.
    """
    if part in SPANS:
        return _whole(seconds, SPANS[part])
    moment = made(seconds.floor())
    day = made(_whole(moment, DAY))
    if part == "dayofweek":
        return _rest(day + 3.0, 7.0)  # 1970 began on a Thursday
    if part == "hour":
        return _whole(moment - day * DAY, 3600.0)
    since = made(day + MARCH_TO_1970)
    cycle = made(_whole(since, CYCLE))
    of_cycle = made(since - cycle * CYCLE)
    leaps = _whole(of_cycle, 1460.0) - _whole(of_cycle, 36_524.0) + _whole(of_cycle, CYCLE - 1.0)
    year_of_cycle = made(_whole(of_cycle - leaps, 365.0))
    before = 365.0 * year_of_cycle + _whole(year_of_cycle, 4.0) - _whole(year_of_cycle, 100.0)
    of_year = made(of_cycle - before)  # 0 for the first of March
    march = made(_whole(5.0 * of_year + 2.0, 153.0))  # months since March
    late = march >= 10.0
    year = made(year_of_cycle + 400.0 * cycle + nw.when(late).then(nw.lit(1.0)).otherwise(nw.lit(0.0)))
    month = made(nw.when(late).then(march - 9.0).otherwise(march + 3.0))
    match part:
        case "year":
            return year
        case "quarter":
            return _whole(month - 1.0, 3.0) + 1.0
        case "month":
            return month
        case "day":
            return of_year - _whole(153.0 * march + 2.0, 5.0) + 1.0
    leap = (_rest(year, 4.0) == 0) & ((_rest(year, 100.0) != 0) | (_rest(year, 400.0) == 0))
    extra = nw.when(leap).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
    return nw.when(late).then(of_year - 305.0).otherwise(of_year + 60.0 + extra)


def _whole(number: nw.Expr, by: float) -> nw.Expr:
    """How often `by` goes into a whole number, downward; exact below 2**53."""
    return (number / by).floor()


def _rest(number: nw.Expr, by: float) -> nw.Expr:
    return number - (number / by).floor() * by
