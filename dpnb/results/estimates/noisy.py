"""The noisy sums of a query, their quotients, and numbers with intervals that are computed from others.

Quotients of two sums have intervals by Fieller's theorem, exact for normal noise.  For the true quotient phi = A/B, a -
phi b is normal with mean 0 and variance v_a - 2 phi c + phi^2 v_b, so the set of all phi for which ``|a - phi b|`` is
at most z times its standard deviation has exactly the coverage of z.  Where the denominator is clear of 0 (``|b| > z
sqrt(v_b)``) the set is an interval between the roots of a quadratic; elsewhere it is not bounded, and the whole range
of the quantity is returned.

Where a number is computed from others, the intervals of differences and ratios are those of
`dpnb.results.tables.operators`, which says what they cover.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpnb._compile import LinearQuery
from dpnb._compile.features import Feature

Cells = NDArray[np.float64]

_EXACT = Context(prec=1000)
"""Enough digits for every double with 300 decimals."""


@dataclass(frozen=True)
class NoisyArrays:
    """The noisy sums of one feature."""

    value: Cells  # shape (cells, slots)
    scale: Cells  # shape (cells,): standard deviation of the noise of each slot

    @property
    def single(self) -> Cells:
        """The sums of a feature with one slot, shape (cells,)."""
        return self.value[:, 0]


@dataclass(frozen=True)
class IntervalArrays:
    """Numbers with intervals; each array has shape (cells, outputs)."""

    value: Cells  # NaN where the noise is too large for an estimate (a mean of a group that may be empty)
    low: Cells
    high: Cells
    noise_scale: Cells  # standard deviation of the noise; approximate for statistics that are not linear in the sums
    # Value and limits before they were clipped to the range of the quantity; the limits are infinite where the noise is
    # too large for an estimate.  Arithmetic needs them, since a clipped limit does not show the noise.
    raw: tuple[Cells, Cells, Cells] | None = None
    # where the interval is the whole range of the quantity, or computed from one; by default where it has no end
    whole_range: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, value: Cells, low: Cells, high: Cells, noise_scale: Cells) -> IntervalArrays:
        """One number for each cell, from arrays of shape (cells,)."""
        arrays = [np.asarray(array, np.float64).reshape(-1, 1) for array in (value, low, high, noise_scale)]
        first, second, third, fourth = arrays
        return cls(first, second, third, fourth)

    @classmethod
    def side_by_side(cls, parts: list[IntervalArrays], axis: Literal[0, 1] = 1) -> IntervalArrays:
        """Concatenate the outputs of several estimates of the same cells, or, with axis 0, the cells of several."""
        arrays = zip(*((part.value, part.low, part.high, part.noise_scale) for part in parts), strict=True)
        raw = zip(*(part.unclipped for part in parts), strict=True)
        value, low, high, scale = (np.concatenate(array, axis) for array in arrays)
        first, second, third = (np.concatenate(array, axis) for array in raw)
        whole_range = np.concatenate([part.has_whole_range for part in parts], axis)
        return cls(value, low, high, scale, (first, second, third), whole_range)

    @cached_property
    def has_whole_range(self) -> NDArray[np.bool_]:
        """Where the interval is the whole range of the quantity: the noise leaves no value out."""
        if self.whole_range is not None:
            return self.whole_range
        _, low, high = self.unclipped
        return np.asarray(np.isneginf(low) & np.isposinf(high))

    @property
    def is_unknown(self) -> NDArray[np.bool_]:
        """Where there is no estimate, or its interval is the whole range: displays show no number there."""
        return np.asarray(np.isnan(self.value) | self.has_whole_range)

    @property
    def displayed(self) -> Cells:
        """The values, NaN where they are unknown."""
        return np.where(self.is_unknown, np.nan, self.value)

    @cached_property
    def unclipped(self) -> tuple[Cells, Cells, Cells]:
        """Value and limits before they were clipped."""
        return self.raw or (self.value, self.low, self.high)

    @property
    def half_width(self) -> Cells:
        """Half of each interval's length."""
        with np.errstate(all="ignore"):  # a length beyond the range of doubles is infinite or unknown
            return np.asarray(self.high - self.low) / 2

    def rescaled(self, scale: float = 1.0, shift: float = 0.0) -> IntervalArrays:
        """The estimate of ``scale * x + shift``, for a positive scale."""
        value, low, high, first, second, third = [
            scale * end + shift for end in (self.value, self.low, self.high, *self.unclipped)
        ]
        return IntervalArrays(value, low, high, scale * self.noise_scale, (first, second, third), self.whole_range)

    def clipped(self, lower: float, upper: float, *, value: bool = True) -> IntervalArrays:
        """The intervals (and values) clipped to the range of the quantity."""
        clipped = np.clip(self.value, lower, upper) if value else self.value
        low, high = np.clip(self.low, lower, upper), np.clip(self.high, lower, upper)
        whole_range = (self.low <= lower) & (self.high >= upper) & (lower < upper)
        return IntervalArrays(clipped, low, high, self.noise_scale, self.unclipped, self.has_whole_range | whole_range)

    def select(self, rows: slice, columns: slice) -> IntervalArrays:
        """The selected cells and outputs."""
        value, low, high, scale = (
            array[rows, columns] for array in (self.value, self.low, self.high, self.noise_scale)
        )
        first, second, third = (array[rows, columns] for array in self.unclipped)
        whole_range = self.has_whole_range[rows, columns]
        return IntervalArrays(value, low, high, scale, (first, second, third), whole_range)

    def take(self, rows: Sequence[int], columns: Sequence[int]) -> IntervalArrays:
        """The cells and outputs with these indices, in this order."""
        index = np.ix_(np.array(rows, np.intp), np.array(columns, np.intp))
        taken = self._each(lambda array, _: array[index])
        return replace(taken, noise_scale=self.noise_scale[index], whole_range=self.has_whole_range[index])

    def rounded(self, decimals: Sequence[int]) -> IntervalArrays:
        """The values to the nearest multiple and the limits outward; `decimals` for each output, noise unchanged."""

        def multiple(array: Cells, rounding: str) -> Cells:
            columns = [
                [_to_multiple(number, digits, rounding) for number in column]
                for column, digits in zip(array.T.tolist(), decimals, strict=True)
            ]
            return np.array(columns, np.float64).reshape(array.T.shape).T

        return self._each(multiple)

    def _each(self, function: Callable[[Cells, str], Cells]) -> IntervalArrays:
        """A function of each array and the direction in which it may be rounded."""
        ways = (ROUND_HALF_EVEN, ROUND_FLOOR, ROUND_CEILING)
        value, low, high = map(function, (self.value, self.low, self.high), ways)
        raw = None if self.raw is None else tuple(map(function, self.raw, ways))
        whole_range = self.whole_range
        return IntervalArrays(value, low, high, self.noise_scale, raw, whole_range)  # type: ignore[arg-type]  # three of three

    def widened(self, below: Cells, above: Cells, *, additive: bool = False) -> IntervalArrays:
        """The same values, with intervals that also cover errors of other kinds.

        `below` and `above` are the distances from the estimate to the limits through these errors alone, NaN where they
        are not known; they are added in quadrature, or with `additive` in full.
        """
        value, low, high = self.unclipped
        add = np.add if additive else np.hypot
        whole = self.has_whole_range | np.isnan(below)
        with np.errstate(all="ignore"):
            low = np.where(whole, -np.inf, value - add(value - low, below))
            high = np.where(whole, np.inf, value + add(high - value, above))
        return IntervalArrays(self.value, low, high, self.noise_scale, (value, low, high), whole)

    def beyond(self, noise: IntervalArrays) -> tuple[Cells, Cells]:
        """The distances by which these intervals exceed those of the noise: their difference in quadrature."""
        (value, low, high), (_, noise_low, noise_high) = self.unclipped, noise.unclipped
        with np.errstate(all="ignore"):
            below = np.sqrt(np.maximum((value - low) ** 2 - (value - noise_low) ** 2, 0.0))
            above = np.sqrt(np.maximum((high - value) ** 2 - (noise_high - value) ** 2, 0.0))
        return below, above

    @property
    def is_collapsed(self) -> NDArray[np.bool_]:
        """Where the whole interval is outside the range of the quantity, so that clipping left one value."""
        _, low, high = self.unclipped
        return np.asarray((self.low == self.high) & (low < high))

    def within(self, other: IntervalArrays) -> IntervalArrays:
        """The same values, with the intervals intersected with another estimate's, but still containing the value.

        Where the two intervals are disjoint, the interval is left unchanged.
        """
        low, high = np.maximum(self.low, other.low), np.minimum(self.high, other.high)
        meet = low <= high
        inside = np.clip(self.value, self.low, self.high)
        low, high = np.fmin(low, inside), np.fmax(high, inside)
        low, high = np.where(meet, low, self.low), np.where(meet, high, self.high)
        whole_range = self.has_whole_range & (low == self.low) & (high == self.high)
        return IntervalArrays(self.value, low, high, self.noise_scale, self.raw, whole_range)


def _to_multiple(number: float, decimals: int, rounding: str) -> float:
    """A number rounded to decimals, in its decimal meaning."""
    if not math.isfinite(number):
        return number
    exact = Decimal(float.__repr__(number))
    if -int(exact.as_tuple().exponent) <= decimals:
        return number  # it has no more decimals, perhaps far fewer than the arithmetic would write
    return float(exact.quantize(Decimal(1).scaleb(-decimals), rounding, _EXACT))


@dataclass(frozen=True)
class SampledAs:
    """What the sampling error of an answer is computed with, for tests of the answer."""

    z: float  # half-width of its population intervals, in standard deviations
    statistic: Literal["count", "share"] | None = None
    ratio: float | None = None  # of a count or share, if M is not measured: M over that of independent rows, at most
    unit: str | None = None  # the column of the privacy unit, where it is known


def noisy_features(
    query: LinearQuery, sums: Cells, sigma: Cells, first: int, count: int
) -> list[tuple[Feature, NoisyArrays]]:
    """The features of one part, from index `first`, with their sums.

    `sums`, of shape (cells, slots), are those of all parts, in integer steps of the grid; `sigma` has shape (cells,).
    """
    start = sum([feature.slots for feature in query.features[:first]])
    features = []
    for feature in query.features[first : first + count]:
        unit = float(feature.unit)
        features.append((feature, NoisyArrays(sums[:, start : start + feature.slots] * unit, sigma * unit)))
        start += feature.slots
    return features


# --- quotients of two noisy sums --------------------------------------------------------------------------------------


def totals(cells: Cells, size: int) -> Cells:
    """For each cell, the sum over its `size` consecutive cells; over all cells if `size` is 0."""
    blocks = cells.reshape(-1, size or len(cells) or 1)
    return np.repeat(blocks.sum(axis=1), blocks.shape[1])


def quotient(
    a: Cells,
    b: Cells,
    variances: tuple[Cells, Cells],
    covariance: Cells | float,
    z: Cells,
    bounds: tuple[float, float],
    *,
    positive: bool = True,
) -> IntervalArrays:
    """The quotient a/b, within its range `bounds`, with its interval; all arrays have shape (cells,).

    `variances` and `covariance` are those of the noise of numerator and denominator, and `z` is the half-width of an
    interval in standard deviations.  `positive` says that the denominator is known to be at least 0.
    """
    va, vb = variances
    with np.errstate(all="ignore"):
        clear = (b if positive else np.abs(b)) > z * np.sqrt(vb)
        square = b**2 - z**2 * vb
        mixed = a * b - z**2 * covariance
        root = np.sqrt(np.maximum(mixed**2 - square * (a**2 - z**2 * va), 0.0))
        low = np.where(clear, (mixed - root) / square, -np.inf)
        high = np.where(clear, (mixed + root) / square, np.inf)
        value = np.where(b > 0 if positive else b != 0, a / b, np.nan)
        spread = np.sqrt(np.maximum(va - 2 * value * covariance + value**2 * vb, 0.0)) / np.abs(b)
        scale = np.where(clear, spread, np.nan)
    return IntervalArrays.of(value, low, high, scale).clipped(*bounds)


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
