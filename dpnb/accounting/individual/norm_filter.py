"""The norm filter: each unit's vectors are clipped to the remainder of the unit's budget of squared norms."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnb.accounting.exact import Frozen, Number, binary_down, exact, positive
from dpnb.accounting.individual.arrays import (
    Floats,
    budget_as_double,
    minus_down,
    per_unit,
    plus_up,
    read_only,
    root_down,
    squares_up,
    unit_count,
)
from dpnb.copying import safe_repr


@dataclass(frozen=True, init=False, repr=False, eq=False)
class NormFilter(Frozen):
    """Each unit's vectors are clipped to a constant, and to the remainder of the unit's budget of squared norms.

    Parameters
    ----------
    clip : Number
        C, > 0: the largest norm of one contribution.
    norm_budget : Number
        B_norm, >= 0 and below 2^1000: the largest sum of a unit's squared clipped norms.
    units : int
        Number of units, >= 0.

    Raises
    ------
    InvalidValueError
        A number outside these ranges.

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Algorithm 7.

    Examples
    --------
    >>> state = NormFilter(1, norm_budget=4, units=2)
    >>> state, clipped = state.step([5.0, 0.5])
    >>> state
    NormFilter(clip=1, norm_budget=4)
    """

    clip: Fraction
    norm_budget: Fraction
    _spent: Floats

    def __init__(self, clip: Number, norm_budget: Number, units: int) -> None:
        budget_as_double(norm_budget, name="norm_budget")
        self._set(clip=positive(clip, name="clip"), norm_budget=exact(norm_budget))
        self._set(_spent=read_only(np.zeros(unit_count(units))))

    @property
    def spent(self) -> Floats:
        """Each unit's sum of squared clipped norms, rounded up; read-only.  SENSITIVE: for that unit alone."""
        return self._spent.view()  # a view cannot be made writeable if its base is read-only

    @property
    def radius(self) -> Floats:
        """Each unit's current clipping radius: min(C, sqrt(B_norm - spent)), rounded down.  SENSITIVE."""
        return np.minimum(self._root(), binary_down(self.clip))

    @property
    def active(self) -> NDArray[np.bool_]:
        """Whether each unit can still contribute: a radius above zero.  SENSITIVE, and so is their number."""
        return self.radius > 0

    def step(self, norms: ArrayLike) -> tuple[Self, Floats]:
        """The filter after a query, and the norms to which the units' vectors must be clipped.

        Parameters
        ----------
        norms : array_like, shape (units,)
            L2 norm of each unit's vector, finite, >= 0.

        Returns
        -------
        filter : NormFilter
        clipped_norms : ndarray, shape (units,)
            min(norm, radius); 0 for a norm of 0.  SENSITIVE.  Scale each vector so that its norm after rounding is not
            above this.

        Raises
        ------
        InvalidValueError
            A norm is not finite or negative (the message is constant), or the shape differs.
        """
        values = per_unit(norms, "norms", len(self._spent))
        root = self._root()
        clipped = np.minimum(values, np.minimum(root, binary_down(self.clip)))
        after = plus_up(self._spent, squares_up(clipped))
        # A unit that takes its whole remainder has exactly 0 left, not the amount by which the root was rounded down.
        after = np.where(clipped >= root, self._limit(), after)
        return self._changed(_spent=read_only(after)), clipped

    def _limit(self) -> float:
        return budget_as_double(self.norm_budget, name="norm_budget")

    def _root(self) -> Floats:
        return root_down(minus_down(self._limit(), self._spent))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NormFilter):
            return NotImplemented
        same = self.clip == other.clip and self.norm_budget == other.norm_budget
        return same and np.array_equal(self._spent, other._spent)

    def __hash__(self) -> int:
        return hash((self.clip, self.norm_budget))  # only public values

    @safe_repr
    def __repr__(self) -> str:
        return f"NormFilter(clip={self.clip}, norm_budget={self.norm_budget})"
