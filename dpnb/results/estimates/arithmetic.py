"""Numbers with intervals that are computed from others: sums, differences, ratios and increasing functions.

The intervals of differences and ratios are those of `dpnb.results.tables.operators`, which says what they cover.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpnb.results.estimates.noisy import Cells, IntervalArrays

Combination = Callable[[IntervalArrays, IntervalArrays], IntervalArrays]
"""A function of two numbers with intervals."""


def negative(one: IntervalArrays) -> IntervalArrays:
    """The estimate of -x."""
    value, low, high = one.unclipped
    return IntervalArrays(-one.value, -one.high, -one.low, one.noise_scale, (-value, -high, -low), one.has_whole_range)


def scaled(one: IntervalArrays, by: float) -> IntervalArrays:
    """The estimate of x times a number."""
    if by == 0:
        zeros = np.zeros_like(one.value)
        return IntervalArrays(zeros, zeros, zeros, zeros)
    return one.rescaled(by) if by > 0 else negative(one).rescaled(-by)


def difference(a: IntervalArrays, b: IntervalArrays) -> IntervalArrays:
    """The estimate of x - y, by square-and-add."""
    with np.errstate(all="ignore"):
        (x, x_low, x_high), (y, y_low, y_high) = a.unclipped, b.unclipped
        low, high = x - y - np.hypot(x - x_low, y_high - y), x - y + np.hypot(x_high - x, y - y_low)
        # Where one of them is unknown because of the noise, its whole range is combined with the other's interval.
        known = np.isfinite(low) & np.isfinite(high)
        low, high = np.where(known, low, a.low - b.high), np.where(known, high, a.high - b.low)
        scale = np.hypot(a.noise_scale, b.noise_scale)
        return IntervalArrays(a.value - b.value, low, high, scale, None, a.has_whole_range | b.has_whole_range)


def ratio(a: IntervalArrays, b: IntervalArrays) -> IntervalArrays:
    """The roots phi of |x - phi y| = the square-and-add distance; unbounded where the interval of y contains 0."""
    with np.errstate(all="ignore"):
        (x, x_low, x_high), (y, y_low, y_high) = a.unclipped, b.unclipped
        reach = np.maximum(y - y_low, y_high - y)
        clear = (np.abs(y) > reach) & np.isfinite(reach)

        def root(distance: Cells, sign: float) -> Cells:
            """The root for that distance of y which gives the wider interval."""
            ends = []
            for side in (y - y_low, y_high - y):
                square = y**2 - side**2
                inner = np.sqrt(np.maximum((x * y) ** 2 - square * (x**2 - distance**2), 0.0))
                ends.append((x * y + sign * inner) / square)
            return np.asarray(np.fmin(*ends) if sign < 0 else np.fmax(*ends))

        # Dividing by a negative number swaps which side of x matters.
        below, above = np.where(y > 0, x - x_low, x_high - x), np.where(y > 0, x_high - x, x - x_low)
        corners = np.stack([end / other for end in (a.low, a.high) for other in np.broadcast_arrays(y_low, y_high)])
        known = np.isfinite(below) & np.isfinite(above)
        low = np.where(known, root(below, -1.0), np.fmin.reduce(corners))
        high = np.where(known, root(above, 1.0), np.fmax.reduce(corners))
        value = np.where(b.value != 0, a.value / b.value, np.nan)
        scale = np.hypot(a.noise_scale, value * b.noise_scale) / np.abs(b.value)
        low, high = np.where(clear, low, -np.inf), np.where(clear, high, np.inf)
        unbounded = np.isneginf(low) & np.isposinf(high)
        whole_range = a.has_whole_range | b.has_whole_range | unbounded
        return IntervalArrays(value, low, high, np.where(clear, scale, np.nan), None, whole_range)


MONOTONE: dict[str, Callable[[Cells], Cells]] = {
    **{"log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt},
    **{"exp": np.exp, "exp2": np.exp2, "expm1": np.expm1},
}
"""Increasing functions of numpy: the ends of an interval are the ends of the result's.

``np.exp`` of the coefficients of a logistic regression is their odds ratios.
"""


def increased(one: IntervalArrays, function: Callable[[Cells], Cells]) -> IntervalArrays:
    """The estimate of an increasing function of x; where it is undefined at an end, the limit is infinite."""

    def moved(cells: Cells) -> Cells:
        return np.asarray(function(cells))

    low, high = moved(one.low), moved(one.high)
    low = np.where(np.isnan(low) & ~np.isnan(one.low), -np.inf, low)
    known = ~np.isnan(high) | np.isnan(one.high)
    low, high = np.where(known, low, -np.inf), np.where(known, high, np.inf)
    return IntervalArrays(moved(one.value), low, high, np.full_like(one.noise_scale, np.nan), None, one.has_whole_range)


EXACT = {"-": 0.0, "/": 1.0}
"""What an operator gives for a number and itself, whatever its noise."""


def exact_at(row: int, number: float, combine: Combination) -> Combination:
    """The combination, but for one group a number that is known exactly."""

    def combined(a: IntervalArrays, b: IntervalArrays) -> IntervalArrays:
        found = combine(a, b)
        here = np.arange(len(found.value))[:, np.newaxis] == row
        value, low, high = (np.where(here, number, cells) for cells in (found.value, found.low, found.high))
        return IntervalArrays(
            value, low, high, np.where(here, 0.0, found.noise_scale), None, found.has_whole_range & ~here
        )

    return combined
