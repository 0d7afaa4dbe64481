"""One vector for each privacy unit: what it adds to a question.  Reads rows; all of it is private until noised.

Everything here is worked out from a unit's own rows alone: its vector, its norm, and what is left of the vector once it
is scaled down.  Individual accounting (`dpnb.accounting.individual`) rests on that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.contribution import Integers, starts_of
from dpnb.accounting.individual.admission import EXACT

Floats = NDArray[np.float64]
Sums = NDArray[np.int64] | NDArray[np.object_]

SCALING_MARGIN = 2.0**-40
SUMMING_MARGIN = 2.0**-52
"""A unit's vector is scaled down to a little less than the allowed norm: the doubles that scale it are off by less than
the first, and a sum of n squares is off by less than n times the second."""


def rounded_up(squares: Floats, terms: Integers | int, longest_squared: int) -> Floats:
    """Sums of so many squares of integers, in doubles, made no less than they are; where all are exact, as they are."""
    if longest_squared < EXACT:
        return squares
    return np.asarray(squares * (1 + (np.asarray(terms) + 3) * (2 * SUMMING_MARGIN)))


def added(one: Sums, other: Sums) -> Sums:
    """Exact sums, in 64 bits where they suffice."""
    if one.dtype == other.dtype == np.int64:
        total = one + other
        # It wrapped round where both have one sign and the total has the other.
        if not ((one ^ total) & (other ^ total) < 0).any():
            return np.asarray(total)
    return np.asarray(one.astype(object) + other.astype(object))


@dataclass(frozen=True, repr=False)
class UnitVectors:
    """The vectors of the units that add something.  A private value: it has no repr, and none of it may be shown.

    Parameters
    ----------
    owners : int64 array, shape (vectors,)
        Whose vector it is, ascending.
    starts : int64 array, shape (vectors,)
        Where each vector's entries begin.
    slots : int64 array, shape (entries,)
        Which number of the answer an entry is added to; each once in a vector.
    values : int64 or object array, shape (entries,)
    width : int
        Numbers of the answer.
    longest_squared : int
        No vector's norm is larger than the root of this, whatever the rows are.
    """

    owners: Integers
    starts: Integers
    slots: Integers
    values: NDArray[Any]
    width: int
    longest_squared: int

    @classmethod
    def summed(
        cls, owners: Integers, slots: Integers, values: NDArray[Any], width: int, longest_squared: int
    ) -> UnitVectors:
        """The vectors whose entries are the sums, by owner and slot, of what single rows add, in any order."""
        place = owners * width + slots
        if not (place[1:] > place[:-1]).all():
            order = np.argsort(place, kind="stable")
            first = starts_of([place[order]])
            owners, slots = owners[order[first]], slots[order[first]]
            values = np.add.reduceat(values[order], first)
        starts = starts_of([owners])
        return cls(owners[starts], starts, slots, values, width, longest_squared)

    def joined(self, others: UnitVectors) -> UnitVectors:
        """These vectors with the entries of others added to them."""
        owners = np.concatenate([np.repeat(part.owners, part.sizes) for part in (self, others)])
        slots, values = np.r_[self.slots, others.slots], np.r_[self.values, others.values]
        return self.summed(owners, slots, values, self.width, self.longest_squared)

    def taken(self, cells: tuple[int, ...], each: int) -> UnitVectors:
        """The entries of some cells of `each` slots, ascending, as vectors of their own."""
        places = np.full(self.width // each, -1)
        places[list(cells)] = np.arange(len(cells))
        cell, slot = np.divmod(self.slots, each)
        kept = places[cell] >= 0
        owners = np.repeat(self.owners, self.sizes)[kept]
        slots = (places[cell] * each + slot)[kept]
        return self.summed(owners, slots, self.values[kept], len(cells) * each, self.longest_squared)

    @property
    def sizes(self) -> Integers:
        """Entries of each vector."""
        return np.asarray(np.diff(np.r_[self.starts, len(self.slots)]))

    def squares(self) -> Floats:
        """The square of each vector's norm, rounded up; exact where no vector of the question can need more bits."""
        return rounded_up(self._squares(), self.sizes, self.longest_squared)

    def _squares(self) -> Floats:
        """The same as doubles add it up."""
        if not len(self.owners):
            return np.zeros(0)
        return np.asarray(np.add.reduceat(self.values.astype(np.float64) ** 2, self.starts))

    def shortened(self, allowed_squared: int) -> UnitVectors:
        """The vectors, those that are longer than allowed scaled down toward zero."""
        squares = self._squares()
        margin = SCALING_MARGIN + SUMMING_MARGIN * self.sizes
        # Surely short enough by the doubles; if not, by the integers themselves.
        long = squares * (1 + 4 * margin) > allowed_squared
        for place in np.flatnonzero(long & (squares * (1 - 4 * margin) <= allowed_squared)).tolist():
            part = self.values[self.starts[place] : self.starts[place] + self.sizes[place]].tolist()
            long[place] = sum(entry * entry for entry in part) > allowed_squared
        return self._scaled(long, math.sqrt(allowed_squared) / np.sqrt(np.maximum(squares, 1.0)))

    def within(self, radii: Floats) -> UnitVectors:
        """The vectors, those that are longer than a radius of their own, >= 0, scaled down toward zero.

        Parameters
        ----------
        radii : float64 array, shape (vectors,)
        """
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
        return UnitVectors(self.owners, self.starts, self.slots, values, self.width, self.longest_squared)

    def sums(self, active: NDArray[np.bool_] | None = None) -> Sums:
        """What the vectors add up to, exactly, shape (width,); with `active` only those for which it is true."""
        totals = np.zeros(self.width, self.values.dtype)
        slots, values = self.slots, self.values
        if active is not None:
            chosen = np.repeat(active, self.sizes)
            slots, values = slots[chosen], values[chosen]
        np.add.at(totals, slots, values)
        return totals
