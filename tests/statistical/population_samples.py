"""Many samples from one population, each a group of one table, so that one release answers for all of them.

Units of a sample are independent, and their number is Poisson, as for units that arrive independently.  So few values
are beyond the bounds that clamping changes no statistic by more than a fiftieth of a standard error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import dpnb
from dpnb.ledger import MEMORY

Array = NDArray[Any]
Shape = Literal["normal", "skewed"]
ROWS = 5
"""Rows of a person."""

BOUNDS = {"normal": ((2, 10), (2, 10)), "skewed": ((0, 12), (0, 24))}
TRUTH: dict[str, dict[str, float]] = {
    "normal": {"x": 6, "y": 6, "variance": 1, "correlation": 0.6},
    "skewed": {"x": 1, "y": 2, "variance": 1, "correlation": 0.5**0.5},
}


def covers(low: Array, high: Array, truth: Any) -> Array:
    """A missing limit covers nothing."""
    return np.asarray((low <= truth) & (truth <= high))


@dataclass(frozen=True)
class Samples:
    """Rows, with the index of their sample s and their unit u, and how to compute statistics without noise."""

    shape: Shape
    persons: bool
    units: int  # expected in each sample
    table: pd.DataFrame  # s, u, x, y, b, g
    count: int

    def session(self, **options: Any) -> dpnb.Session:
        """A session on all rows, each row or each person a unit."""
        (low, high), (low_y, high_y) = BOUNDS[self.shape]
        schema = {
            "s": dpnb.Categories(list(range(self.count))),
            "x": dpnb.Bounded(low, high),
            "y": dpnb.Bounded(low_y, high_y),
            "b": dpnb.Bounded(0, 1, integer=True),
            "g": dpnb.Categories(["a", "b"]),
        }
        unit = {"privacy_unit": "u", "max_rows_per_unit": ROWS} if self.persons else {}
        return dpnb.Session(
            self.given,
            name="samples",
            budget=dpnb.Budget.gdp(100),
            schema=schema,
            ledger=MEMORY,
            not_private_test_seed=len(self.table),
            **{**unit, **options},
        )

    @cached_property
    def given(self) -> pd.DataFrame:
        """The table of a session, always the same object."""
        return self.table if self.persons else self.table.drop(columns="u")

    def of(self, rows: Array) -> Samples:
        """The same samples with some of the rows."""
        return Samples(self.shape, self.persons, self.units, self.table[rows], self.count)

    def total(self, values: Array | float) -> Array:
        """The sum of values of rows, by sample."""
        sums, (first, lengths) = np.zeros(self.count), self._rows_of_samples
        values = np.broadcast_to(values, len(self.table))
        sums[lengths > 0] = np.add.reduceat(values, first[lengths > 0], dtype=float)
        return sums

    def squares(self, values: Array | float, *, by_row: bool = False) -> Array:
        """The sum over units of the squared sum of values of rows, by sample."""
        if by_row or not self.persons:
            return self.total(np.asarray(values, float) ** 2)
        first = self._first_rows_of_units
        sums = np.add.reduceat(np.broadcast_to(values, len(self.table)), first, dtype=float)
        return np.bincount(self.table["s"].to_numpy()[first], sums**2, self.count)

    def each(self, by_sample: Array) -> Array:
        """A number of each sample, beside each row."""
        return np.repeat(by_sample, self._rows_of_samples[1])

    @cached_property
    def _rows_of_samples(self) -> tuple[Array, Array]:
        """The first row of each sample, and how many it has; rows are in the order of samples and units."""
        ends = np.searchsorted(self.table["s"].to_numpy(), np.arange(self.count + 1))
        return ends[:-1], np.diff(ends)

    @cached_property
    def _first_rows_of_units(self) -> Array:
        return np.flatnonzero(np.diff(self.table["u"].to_numpy(), prepend=-1))


def samples(shape: Shape, units: int, count: int, seed: int, *, persons: bool = False, rare: float = 0.1) -> Samples:
    """Samples of some expected number of units; persons have 5 rows each, with intra-class correlation 0.5.

    A unit is in group a with probability `rare`, and in b otherwise.
    """
    chance = np.random.default_rng(seed)
    sizes = chance.poisson(units, count)
    rows = ROWS if persons else 1
    of_unit, of_row = (int(sizes.sum()), 1), (int(sizes.sum()), rows)

    def noise(draw: Callable[[Any], Array]) -> Array:
        """A number for each row, as the sum of one of the unit and one of the row."""
        return np.broadcast_to(draw(of_unit), of_row) + draw(of_row)

    if shape == "normal":
        z, w = (noise(lambda size: chance.normal(0, 0.5**0.5, size)) for _ in range(2))
        x, y = 6 + z, 6 + 0.6 * z + 0.8 * w
        b = z > 0.5244005127080407  # of which a normal number is above with probability 0.3
    else:  # the sum of two gamma variables of shape 1/2, which are halves of squared normal ones, is exponential
        e, f = (noise(lambda size: chance.normal(0, 0.5**0.5, size) ** 2) for _ in range(2))
        x, y, b = e, e + f, e > -np.log(0.3)
    (low, high), (low_y, high_y) = BOUNDS[shape]
    unit = np.repeat(np.arange(sizes.sum()), rows)
    table = pd.DataFrame(
        {
            "s": np.repeat(np.repeat(np.arange(count), sizes), rows),
            "u": unit,
            "x": np.clip(x, low, high).ravel(),
            "y": np.clip(y, low_y, high_y).ravel(),
            "b": b.ravel().astype(int),
            "g": np.where(chance.random(int(sizes.sum())) < rare, "a", "b")[unit],
        }
    )
    return Samples(shape, persons, units, table, count)
