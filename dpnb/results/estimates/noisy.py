"""The noisy sums of one part of a query, in natural units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpnb._compile import LinearQuery
from dpnb._compile.features import Feature

Cells = NDArray[np.float64]


@dataclass(frozen=True)
class NoisyArrays:
    """The noisy sums of one feature.

    Parameters
    ----------
    value : float64 array, shape (cells, slots)
    scale : float64 array, shape (cells,)
        Standard deviation of the noise of each slot.
    """

    value: Cells
    scale: Cells

    @property
    def single(self) -> Cells:
        """The sums of a feature with one slot, shape (cells,)."""
        return self.value[:, 0]


@dataclass(frozen=True)
class IntervalArrays:
    """Numbers with intervals; each array has shape (cells, outputs).

    Parameters
    ----------
    value : float64 array
        NaN where the noise is too large for an estimate (a mean of a group that may be empty).
    low, high : float64 array
        Limits of the interval of each number.
    noise_scale : float64 array
        Standard deviation of the noise; approximate for statistics that are not linear in the sums.
    raw : tuple of three float64 arrays, optional
        Value and limits before they were clipped to the range of the quantity; the limits are infinite where the noise
        is too large for an estimate.  Arithmetic needs them, since a clipped limit does not show the noise.
    """

    value: Cells
    low: Cells
    high: Cells
    noise_scale: Cells
    raw: tuple[Cells, Cells, Cells] | None = None

    @classmethod
    def of(cls, value: Cells, low: Cells, high: Cells, noise_scale: Cells) -> IntervalArrays:
        """One number for each cell, from arrays of shape (cells,)."""
        arrays = (np.asarray(array, np.float64).reshape(-1, 1) for array in (value, low, high, noise_scale))
        first, second, third, fourth = arrays
        return cls(first, second, third, fourth)

    @classmethod
    def side_by_side(cls, parts: list[IntervalArrays]) -> IntervalArrays:
        """Concatenate the outputs of several estimates of the same cells."""
        arrays = zip(*((part.value, part.low, part.high, part.noise_scale) for part in parts), strict=True)
        raw = zip(*(part.unclipped for part in parts), strict=True)
        value, low, high, scale = (np.concatenate(array, axis=1) for array in arrays)
        first, second, third = (np.concatenate(array, axis=1) for array in raw)
        return cls(value, low, high, scale, (first, second, third))

    @property
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
        value, low, high = (scale * end + shift for end in (self.value, self.low, self.high))
        first, second, third = (scale * end + shift for end in self.unclipped)
        return IntervalArrays(value, low, high, scale * self.noise_scale, (first, second, third))

    def clipped(self, lower: float, upper: float, *, value: bool = True) -> IntervalArrays:
        """The intervals (and values) clipped to the range of the quantity."""
        clipped = np.clip(self.value, lower, upper) if value else self.value
        low, high = np.clip(self.low, lower, upper), np.clip(self.high, lower, upper)
        return IntervalArrays(clipped, low, high, self.noise_scale, self.unclipped)

    def select(self, rows: slice, columns: slice) -> IntervalArrays:
        """The selected cells and outputs."""
        value, low, high, scale = (
            array[rows, columns] for array in (self.value, self.low, self.high, self.noise_scale)
        )
        first, second, third = (array[rows, columns] for array in self.unclipped)
        return IntervalArrays(value, low, high, scale, (first, second, third))

    def within(self, other: IntervalArrays) -> IntervalArrays:
        """The same values, with the intervals intersected with another estimate's, but still containing the value.

        Where the two intervals are disjoint, the interval is left unchanged.
        """
        low, high = np.maximum(self.low, other.low), np.minimum(self.high, other.high)
        meet = low <= high
        inside = np.clip(self.value, self.low, self.high)
        low, high = np.fmin(low, inside), np.fmax(high, inside)
        low, high = np.where(meet, low, self.low), np.where(meet, high, self.high)
        return IntervalArrays(self.value, low, high, self.noise_scale, self.raw)


def noisy_features(
    query: LinearQuery, sums: Cells, sigma: Cells, first: int, count: int
) -> list[tuple[Feature, NoisyArrays]]:
    """The features of one part, with their sums.

    Parameters
    ----------
    query : LinearQuery
    sums : float64 array, shape (cells, slots)
        Sums of all parts, in integer steps of the grid.
    sigma : float64 array, shape (cells,)
    first, count : int
        Index of the first feature and number of features.
    """
    start = sum(feature.slots for feature in query.features[:first])
    features = []
    for feature in query.features[first : first + count]:
        unit = float(feature.unit)
        features.append((feature, NoisyArrays(sums[:, start : start + feature.slots] * unit, sigma * unit)))
        start += feature.slots
    return features
