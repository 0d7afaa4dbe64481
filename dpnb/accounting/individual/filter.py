"""The individual filter: a unit takes part in a query as far as its own budget covers the loss."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnb.accounting.exact import Number, exact, shown
from dpnb.accounting.frozen import Frozen
from dpnb.accounting.individual.losses import remaining_of
from dpnb.accounting.individual.rounding import Floats, minus_down, plus_up, plus_up_within
from dpnb.accounting.individual.units import (
    MAX_DOUBLE,
    UnitIndices,
    budget_as_double,
    changed,
    indices_of,
    per_unit,
    read_only,
    unit_count,
)
from dpnb.copying import safe_repr
from dpnb.errors import InvalidValueError

OnExhausted = Literal["skip", "drop", "clip"]


@dataclass(frozen=True, init=False, repr=False, eq=False)
class IndividualFilter(Frozen):
    """Each unit takes part in a query only if, or as far as, its own budget covers the loss.

    Parameters
    ----------
    budget : Number
        The total loss of each unit, zCDP rho or Renyi loss at one order, >= 0 and below 2^1000.
    units : int
        Number of units, >= 0.
    on_exhausted : {"skip", "drop", "clip"}, default "skip"
        "skip" (Algorithm 3): a unit whose budget is too small is excluded, is charged nothing and may take part in a
        cheaper query later.  "drop" (the set S_t of Theorem 1.2): an excluded unit stays excluded.  The two sets of
        active units differ and both are private; accuracy refers to the set that was used.  "clip" (Algorithm 7): like
        "skip", but a query whose vectors can be scaled down uses `step_clipped`.

    Raises
    ------
    InvalidValueError
        A budget or on_exhausted outside these ranges, or units that is not an integer >= 0.

    Notes
    -----
    A unit's loss must be a function of its own data and of released answers, never of other units' data.

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Theorem 4.3, 4.5 (Algorithm 3) and Theorem 1.2.

    Examples
    --------
    >>> state = IndividualFilter(1, units=2)
    >>> state, active = state.step([0.75, 0.25])
    >>> state
    IndividualFilter(budget=1, on_exhausted='skip')
    """

    budget: Fraction
    on_exhausted: OnExhausted
    _spent: Floats
    _inside: NDArray[np.bool_]  # units that may still take part: all, except under "drop"

    def __init__(self, budget: Number, units: int, on_exhausted: OnExhausted = "skip") -> None:
        if on_exhausted not in get_args(OnExhausted):
            raise InvalidValueError(
                f"on_exhausted must be 'skip', 'drop' or 'clip', got {shown(on_exhausted)}; give one of them"
            )
        count = unit_count(units)
        budget_as_double(budget, name="budget")
        self._set(budget=exact(budget), on_exhausted=on_exhausted)
        self._set(_spent=read_only(np.zeros(count)), _inside=read_only(np.ones(count, dtype=np.bool_)))

    @property
    def spent(self) -> Floats:
        """The charges of each unit, rounded up; read-only.  SENSITIVE: each entry is for that unit alone."""
        return self._spent.view()  # a view cannot be made writeable if its base is read-only

    @property
    def remaining(self) -> Floats:
        """The remaining budget of each unit, rounded down.  SENSITIVE: each entry is for that unit alone.

        Under "drop" an excluded unit has a remainder that it can no longer use.
        """
        return remaining_of(self._spent, budget=self.budget)

    def step(self, losses: ArrayLike, of: UnitIndices | None = None) -> tuple[Self, NDArray[np.bool_]]:
        """The filter after a query, and the units that take part in it.

        Parameters
        ----------
        losses : array_like, shape (units,) or that of `of`
            The loss of each unit if it takes part, finite, >= 0, never under-counted.
        of : int array, optional
            Indices of the units whose losses these are, ascending, without repeats; the others lose nothing.

        Returns
        -------
        filter : IndividualFilter
        active : ndarray of bool, of the shape of `losses`
            Whether each unit takes part; the sum is over these units.  SENSITIVE, and so is their number.

        Raises
        ------
        InvalidValueError
            A loss is not finite or negative (the message is constant), or the shape differs.
        """
        indices, before, requested = self._selected(losses, of)
        inside = self._inside[indices] if self.on_exhausted == "drop" else None
        after, active = plus_up_within(self._limit(), before, requested, 0.0, inside)
        state = self._with(indices, after)
        if self.on_exhausted == "drop":
            state = state._changed(_inside=changed(self._inside, indices, active.copy()))
        return state, active

    def step_clipped(self, losses: ArrayLike, of: UnitIndices | None = None) -> tuple[Self, Floats]:
        """The filter after a query in which each unit takes part as far as its budget allows, and the allowed losses.

        Parameters
        ----------
        losses, of
            As for `step`.

        Returns
        -------
        filter : IndividualFilter
        allowed : ndarray, of the shape of `losses`
            The loss, or the unit's remaining budget if that is less: each unit's vector must be scaled down to this
            loss.  SENSITIVE.

        Raises
        ------
        InvalidValueError
            As for `step`.
        """
        indices, before, requested = self._selected(losses, of)
        limit = self._limit()
        # A unit that takes its whole remainder has exactly 0 left, not the amount by which it was rounded down.
        after, fits = plus_up_within(limit, before, requested, limit)
        allowed = requested * fits
        short = np.flatnonzero((before < limit) & ~fits)  # the other units have nothing left
        allowed[short] = minus_down(limit, before[short])  # which is less than what they would lose
        return self._with(indices, after), allowed

    def charge(self, losses: ArrayLike, of: UnitIndices | None = None) -> Self:
        """The filter after a query in which every unit takes part, without a check of the budget.

        For queries whose worst cases together are within the budget: `step` would exclude no unit either, except
        because of the last digits by which its sums are rounded up.  Also for losses that must be counted even if they
        exceed the budget.

        Parameters
        ----------
        losses, of
            As for `step`.

        Raises
        ------
        InvalidValueError
            As for `step`.
        """
        indices, before, requested = self._selected(losses, of)
        return self._with(indices, np.minimum(plus_up(before, requested), MAX_DOUBLE))

    def _selected(self, losses: ArrayLike, of: UnitIndices | None) -> tuple[UnitIndices | slice, Floats, Floats]:
        """The indices of the units in `of`, their spending, and their losses, checked."""
        indices = indices_of(of, len(self._spent))
        before = self._spent[indices]
        return indices, before, per_unit(losses, "losses", len(before))

    def _with(self, indices: UnitIndices | slice, spent: Floats) -> Self:
        return self._changed(_spent=changed(self._spent, indices, spent))

    def _limit(self) -> float:
        return budget_as_double(self.budget, name="budget")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IndividualFilter):
            return NotImplemented
        same = self.budget == other.budget and self.on_exhausted == other.on_exhausted
        return same and np.array_equal(self._spent, other._spent) and np.array_equal(self._inside, other._inside)

    def __hash__(self) -> int:
        return hash((self.budget, self.on_exhausted))  # only public values

    @safe_repr
    def __repr__(self) -> str:
        return f"IndividualFilter(budget={self.budget}, on_exhausted={self.on_exhausted!r})"
