"""Arithmetic, also with points in time, that gives the same bits on every engine.

Additions, multiplications, divisions of two columns, comparisons and `floor` of doubles are the same everywhere; the
operations that libraries round differently are composed of these.  For division by a constant see `Engine.divided`.
Only logarithms, `exp` and powers with a fraction are an engine's own, and may differ in the last bits.  Year, quarter,
month and day come from the engine's own dates, the other parts of a point in time from seconds; see
`dpnb._plan.expressions.periods`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import narwhals as nw

from dpnb._backends.lazy.engines.engine import Engine, toward_zero
from dpnb._compile import grid
from dpnb._plan.expressions.nodes import Arithmetic, DatePart, Expression, Function, Literal, PeriodUnit
from dpnb._plan.expressions.periods import DAY, LIMIT, MICROS, SPANS
from dpnb.times import Zone

# --- parts of points in time ------------------------------------------------------------------------------------------


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
    if part == "quarter":
        return divided(date.month().cast(nw.Float64) - 1.0, 3.0).floor() + 1.0
    value = {"year": date.year, "month": date.month, "day": date.day}.get(part, date.ordinal_day)()
    return value.cast(nw.Float64)


def index_of(
    unit: PeriodUnit,
    seconds: nw.Expr,
    to_dates: Callable[[nw.Expr], nw.Expr],
    divided: Callable[[nw.Expr, float], nw.Expr],
) -> nw.Expr:
    """The number of the calendar period of each point in time, as `dpnb._plan.expressions.periods.index_of`."""
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


def to_local(seconds: nw.Expr, zone: Zone) -> nw.Expr:
    """The local times of points in time, all in whole seconds: a column of doubles."""
    return seconds + _by_intervals(seconds, zone.starts, [float(ahead) for ahead in zone.seconds])


def to_instants(local: nw.Expr, zone: Zone) -> nw.Expr:
    """The points in time of local times, both in microseconds: a column of 64-bit integers."""
    least, most = -LIMIT, LIMIT  # far outside the bounds, so that no difference overflows
    inside = (
        nw.when(local > most).then(nw.lit(most)).otherwise(nw.when(local < least).then(nw.lit(least)).otherwise(local))
    )
    starts = [start * MICROS for start in zone.local_starts]
    return inside - _by_intervals(local, starts, [ahead * MICROS for ahead in zone.seconds])


def _by_intervals(column: nw.Expr, starts: Sequence[int], values: Sequence[float]) -> nw.Expr:
    """The value of the interval of each number; the second interval and each further one begin at one of `starts`."""
    if not starts:
        return nw.lit(values[0])
    middle = len(starts) // 2
    before = _by_intervals(column, starts[:middle], values[: middle + 1])
    return (
        nw.when(column < starts[middle])
        .then(before)
        .otherwise(_by_intervals(column, starts[middle + 1 :], values[middle + 1 :]))
    )


# --- arithmetic that gives the same bits on every engine --------------------------------------------------------------


EDGES_AT_ONCE = 512
"""Edges of bins that are compared in one expression."""


def clipped(column: nw.Expr, low: float | None, high: float | None) -> nw.Expr:
    """The number, clamped to the bounds."""
    if low is not None:
        column = nw.when(column < low).then(nw.lit(float(low))).otherwise(column)
    if high is not None:
        column = nw.when(column > high).then(nw.lit(float(high))).otherwise(column)
    return column


def to_grid(column: nw.Expr, bounds: grid.WithBounds) -> nw.Expr:
    """Numbers within the bounds in whole grid steps, toward zero; as in `dpnb._compile.grid`."""
    return toward_zero(column * 2.0 ** -grid.exponent(bounds), bounds.low)


def computed(
    node: Arithmetic,
    left: nw.Expr,
    right: nw.Expr,
    divided: Callable[[nw.Expr, float], nw.Expr],
    materialized: Callable[[nw.Expr], nw.Expr],
) -> nw.Expr:
    """``left operator right``; `divided` is `Engine.divided`, and `materialized` makes a column of the frame."""
    match node.operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/" if isinstance(node.right, Literal):
            return divided(left, _literal(node.right))
        case "/":
            return left / right
        case "**":
            return powered(left, _literal(node.right))
        case _:
            # `refuse_expression` has refused operands that are not whole, unless the divisor is 1.
            by = _literal(node.right)
            quotient = materialized(divided(left, by).floor())
            return quotient if node.operator == "//" else left - quotient * by


def bin_of(
    column: nw.Expr, edges: tuple[float, ...], materialized: Callable[[nw.Expr], nw.Expr], *, right: bool
) -> nw.Expr:
    """The index of the bin of each number between the outermost edges; `materialized` is as for `computed`."""
    index = _edges_below(column, edges[:EDGES_AT_ONCE], right=right) - 1
    for start in range(EDGES_AT_ONCE, len(edges), EDGES_AT_ONCE):
        more = materialized(_edges_below(column, edges[start : start + EDGES_AT_ONCE], right=right))
        index = materialized(index + more)
    at_end = (column == edges[0]) if right else (column == edges[-1])
    return nw.when(at_end).then(nw.lit(0 if right else len(edges) - 2)).otherwise(index)


def _edges_below(column: nw.Expr, edges: Sequence[float], before: int = 0, *, right: bool) -> nw.Expr:
    """How many edges are below each number, after those `before`.  By halves, since engines refuse deep expressions."""
    if not edges:
        return nw.lit(before)
    middle = len(edges) // 2
    is_above = column > edges[middle] if right else column >= edges[middle]
    above = _edges_below(column, edges[middle + 1 :], before + middle + 1, right=right)
    return nw.when(is_above).then(above).otherwise(_edges_below(column, edges[:middle], before, right=right))


def applied(function: Function, column: nw.Expr, engine: Engine) -> nw.Expr:
    """A function of one number, where it is defined."""
    match function:
        case "abs":
            return column.abs()
        case "exp":
            return column.exp()
        case "log1p":
            return (column + 1.0).log()
        case "log":
            return column.log()
    base = 2.0 if function == "log2" else 10.0
    logarithm = column.log(base)
    if not engine.shares_subexpressions:
        return logarithm
    # Engines divide two natural logarithms, so that of 1000 may be below 3, and another number after `floor`.
    nearest = (logarithm + 0.5).floor()
    return nw.when(nw.lit(base) ** nearest == column).then(nearest).otherwise(logarithm)


def rounded(column: nw.Expr, decimals: int, engine: Engine) -> nw.Expr:
    """The number rounded to some decimals, halves to even, as in numpy."""
    factor = float(10 ** abs(decimals))
    if decimals:
        column = column * factor if decimals > 0 else engine.divided(column, factor)
    below = column.floor()
    rest = column - below
    odd = below - 2 * (below * 0.5).floor()
    up = (rest > 0.5) | ((rest == 0.5) & (odd == 1))
    result = nw.when(up).then(below + 1.0).otherwise(below)
    if not decimals:
        return result
    return engine.divided(result, factor) if decimals > 0 else result * factor


def powered(column: nw.Expr, exponent: float) -> nw.Expr:
    """A power; with an integer exponent as a product."""
    if not float(exponent).is_integer():
        return column**exponent
    power: nw.Expr | None = None
    remaining = int(exponent)
    while remaining:
        if remaining % 2:
            power = column if power is None else power * column
        remaining //= 2
        column = column * column if remaining else column
    return column if power is None else power


def code_of_consecutive(column: nw.Expr, first: int, last: int) -> nw.Expr:
    """The distance of integers from the first of consecutive ones; -1 for any other."""
    inside = (column >= first) & (column <= last)
    return nw.when(inside).then(column).otherwise(nw.lit(first - 1)).cast(nw.Int64) - first


def _literal(node: Expression) -> float:
    if not isinstance(node, Literal):  # unreachable: `dtype_of` has refused it
        raise TypeError(type(node).__name__)
    return float(node.value)
