"""One vector for each privacy unit: its contribution to a query.  Reads rows; all of it is private until noised.

Everything here is computed from a unit's own rows alone: its vector, its norm, and the vector scaled down.  Individual
accounting (`dpnb.accounting.individual`) assumes this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.contribution import Integers, starts_of
from dpnb.accounting.individual.arrays import EXACT

Floats = NDArray[np.float64]
Sums = NDArray[np.int64] | NDArray[np.object_]

SCALING_MARGIN = 2.0**-40
SUMMING_MARGIN = 2.0**-52
"""A unit's vector is scaled down to slightly less than the allowed norm: the relative error of the scaling is less than
the first, and that of a sum of n squares is less than n times the second."""


def rounded_up(squares: Floats, terms: Integers | int, max_norm_squared: int) -> Floats:
    """Sums of squares of integers, in doubles, rounded up; unchanged where all are exact."""
    if max_norm_squared < EXACT:
        return squares
    return np.asarray(squares * (1 + (np.asarray(terms) + 3) * (2 * SUMMING_MARGIN)))


def added(one: Sums, other: Sums) -> Sums:
    """Exact sums, in 64 bits where they suffice."""
    if one.dtype == other.dtype == np.int64:
        total = one + other
        # It overflowed where both have the same sign and the total has the other.
        if not ((one ^ total) & (other ^ total) < 0).any():
            return np.asarray(total)
    return np.asarray(one.astype(object) + other.astype(object))


@dataclass(frozen=True, repr=False)
class UnitVectors:
    """The vectors of the units that contribute.  A private value: it has no repr, and none of it may be shown."""

    owners: Integers  # int64, shape (vectors,): the unit of each vector, ascending
    starts: Integers  # int64, shape (vectors,): index of the first entry of each vector
    # int64, shape (entries,): the component of the answer to which an entry is added; each once in a vector
    slots: Integers
    values: NDArray[Any]  # int64 or object, shape (entries,)
    width: int  # number of components of the answer
    max_norm_squared: int  # no vector's squared norm exceeds this, whatever the rows are

    @classmethod
    def summed(
        cls, owners: Integers, slots: Integers, values: NDArray[Any], width: int, max_norm_squared: int
    ) -> UnitVectors:
        """The vectors whose entries are the sums, by owner and slot, of the entries of single rows, in any order."""
        index = owners * width + slots
        if not (index[1:] > index[:-1]).all():
            order = np.argsort(index, kind="stable")
            first = starts_of([index[order]])
            owners, slots = owners[order[first]], slots[order[first]]
            values = values[order] if len(first) == len(order) else np.add.reduceat(values[order], first)
        starts = starts_of([owners])
        return cls(owners[starts], starts, slots, values, width, max_norm_squared)

    def joined(self, others: UnitVectors) -> UnitVectors:
        """The sum of these vectors and others."""
        owners = np.concatenate([np.repeat(part.owners, part.sizes) for part in (self, others)])
        slots, values = np.r_[self.slots, others.slots], np.r_[self.values, others.values]
        return self.summed(owners, slots, values, self.width, self.max_norm_squared)

    def taken(self, cells: tuple[int, ...], each: int) -> UnitVectors:
        """The vectors restricted to some cells of `each` slots, ascending."""
        indices = np.full(self.width // each, -1)
        indices[list(cells)] = np.arange(len(cells))
        cell, slot = np.divmod(self.slots, each)
        kept = indices[cell] >= 0
        owners = np.repeat(self.owners, self.sizes)[kept]
        slots = (indices[cell] * each + slot)[kept]
        return self.summed(owners, slots, self.values[kept], len(cells) * each, self.max_norm_squared)

    @cached_property
    def sizes(self) -> Integers:
        """Number of entries of each vector."""
        return np.asarray(np.diff(np.r_[self.starts, len(self.slots)]))

    def squares(self) -> Floats:
        """The squared norm of each vector, rounded up; exact if no vector of the query can need more bits."""
        return rounded_up(self._squares(), self.sizes, self.max_norm_squared)

    def _squares(self) -> Floats:
        """The squared norm of each vector, summed in doubles."""
        if not len(self.owners):
            return np.zeros(0)
        return np.asarray(np.add.reduceat(self.values.astype(np.float64) ** 2, self.starts))

    def shortened(self, allowed_squared: int) -> UnitVectors:
        """The vectors, with those longer than allowed scaled down toward zero."""
        squares = self._squares()
        margin = SCALING_MARGIN + SUMMING_MARGIN * self.sizes
        # Decided by the doubles where they are certain, otherwise by the integers.
        long = squares * (1 + 4 * margin) > allowed_squared
        for index in np.flatnonzero(long & (squares * (1 - 4 * margin) <= allowed_squared)).tolist():
            entries = self.values[self.starts[index] : self.starts[index] + self.sizes[index]].tolist()
            long[index] = sum(entry * entry for entry in entries) > allowed_squared
        return self._scaled(long, math.sqrt(allowed_squared) / np.sqrt(np.maximum(squares, 1.0)))

    def within(self, radii: Floats) -> UnitVectors:
        """The vectors, with those longer than their own radius, >= 0, scaled down toward zero."""
        norms = np.sqrt(self.squares())
        long = norms * (1 + 4 * SCALING_MARGIN) > radii
        return self._scaled(long, np.minimum(radii / np.maximum(norms, 1.0), 1.0))

    def _scaled(self, long: NDArray[np.bool_], factors: Floats) -> UnitVectors:
        factors = factors * (1 - SCALING_MARGIN - SUMMING_MARGIN * self.sizes)
        shrunk = np.trunc(self.values.astype(np.float64) * np.repeat(factors, self.sizes))
        if self.values.dtype == np.int64:
            exact: NDArray[Any] = shrunk.astype(np.int64)
        else:
            exact = np.array([int(x) for x in shrunk], object)
        values = np.where(np.repeat(long, self.sizes), exact, self.values)
        return UnitVectors(self.owners, self.starts, self.slots, values, self.width, self.max_norm_squared)

    def sums(self, active: NDArray[np.bool_] | None = None) -> Sums:
        """The exact sum of the vectors, shape (width,); with `active` only of those for which it is true."""
        totals = np.zeros(self.width, self.values.dtype)
        slots, values = self.slots, self.values
        if active is not None:
            chosen = np.flatnonzero(np.repeat(active, self.sizes))  # faster than a mask that is hard to predict
            slots, values = slots[chosen], values[chosen]
        np.add.at(totals, slots, values)
        return totals
