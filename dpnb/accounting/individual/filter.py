"""A unit takes part in a question as far as its own budget pays for it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnb.accounting.exact import Number, exact, shown
from dpnb.accounting.frozen import Frozen
from dpnb.accounting.individual.losses import remaining_of
from dpnb.accounting.individual.rounding import Floats, minus_down, plus_up
from dpnb.accounting.individual.units import (
    GREATEST,
    Places,
    budget_as_double,
    changed,
    per_unit,
    places_of,
    read_only,
    unit_count,
)
from dpnb.copying import safe_repr
from dpnb.errors import InvalidValueError

__all__ = ["IndividualFilter", "OnExhausted"]

OnExhausted = Literal["skip", "drop", "clip"]


@dataclass(frozen=True, init=False, repr=False, eq=False)
class IndividualFilter(Frozen):
    """Each unit takes part in a question only if its own budget pays for it, or as far as it does.

    Parameters
    ----------
    budget : Number
        What each unit may lose in all, zCDP rho or Renyi loss at one order, >= 0 and below 2^1000.
    units : int
        Number of units, >= 0.
    on_exhausted : {"skip", "drop", "clip"}
        "skip" (Algorithm 3): a unit that cannot pay sits out, is charged nothing and may return for a cheaper
        question.  "drop" (the set S_t of Theorem 1.2): once out, out for ever.  They are different sets and both are
        private; accuracy is with respect to the one that was used.  "clip" (Algorithm 7): like "skip", and a question
        that can be scaled down takes `step_clipped`.

    Raises
    ------
    InvalidValueError
        A budget or on_exhausted outside these ranges, or units that is no integer >= 0.

    Notes
    -----
    A unit's loss must be a function of its own data and of what was released, never of other units.

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Theorem 4.3, Algorithm 3 and Theorem 1.2.

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
    _inside: NDArray[np.bool_]  # who may still take part; everybody but with "drop"

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
        """What each unit was charged, rounded up; read-only.  SENSITIVE: each entry is for that unit alone."""
        return self._spent.view()  # of an array that cannot be made writeable through it

    @property
    def remaining(self) -> Floats:
        """What each unit has left, rounded down.  SENSITIVE: each entry is for that unit alone.

        With "drop" a unit that is out keeps a remainder that it can no longer use.
        """
        return remaining_of(self._spent, budget=self.budget)

    def step(self, losses: ArrayLike, of: Places | None = None) -> tuple[Self, NDArray[np.bool_]]:
        """The filter after a question, and who takes part in it.

        Parameters
        ----------
        losses : array_like, shape (units,) or that of `of`
            What each unit would lose if it took part, finite, >= 0, never under-counted.
        of : int array, optional
            Places of the units whose losses these are, ascending, each once; the others lose nothing.

        Returns
        -------
        filter : IndividualFilter
        active : ndarray of bool, of the shape of `losses`
            The units to sum over.  SENSITIVE, and so is their number.

        Raises
        ------
        InvalidValueError
            A loss is not finite or is negative (the text is constant), or the shape differs.
        """
        places, before, asked = self._of(losses, of)
        after = plus_up(before, asked)
        active = self._inside[places] & (after <= self._limit())
        state = self._with(places, np.where(active, after, before))
        if self.on_exhausted == "drop":
            state = state._changed(_inside=changed(self._inside, places, active))
        return state, active

    def step_clipped(self, losses: ArrayLike, of: Places | None = None) -> tuple[Self, Floats]:
        """The filter after a question in which a unit takes part as far as it can pay, and how far that is.

        Parameters
        ----------
        losses, of
            As for `step`.

        Returns
        -------
        filter : IndividualFilter
        allowed : ndarray, of the shape of `losses`
            The loss itself, or what is left of the unit's budget if that is less: each unit's vector is to be scaled
            down until it loses no more.  SENSITIVE.

        Raises
        ------
        InvalidValueError
            As `step`.
        """
        places, before, asked = self._of(losses, of)
        left = minus_down(self._limit(), before)
        short = asked > left
        # Who takes all that is left has nothing left, not the crumb by which that was rounded down.
        after = np.where(short, np.maximum(before, self._limit()), plus_up(before, asked))
        return self._with(places, after), np.where(short, left, asked)

    def charge(self, losses: ArrayLike, of: Places | None = None) -> Self:
        """The filter after a question in which everybody took part, because everybody surely could pay for it.

        For when the worst case of all questions together is within the budget: `step` would leave out nobody either,
        but for the last digits by which its sums are rounded up.  And for what has to be counted although it may be
        more than there was.

        Parameters
        ----------
        losses, of
            As for `step`.

        Raises
        ------
        InvalidValueError
            As `step`.
        """
        places, before, asked = self._of(losses, of)
        return self._with(places, np.minimum(plus_up(before, asked), GREATEST))

    def _of(self, losses: ArrayLike, of: Places | None) -> tuple[Places | slice, Floats, Floats]:
        """Where the units of some losses are, what they have spent, and the losses, checked."""
        places = places_of(of, len(self._spent))
        before = self._spent[places]
        return places, before, per_unit(losses, "losses", len(before))

    def _with(self, places: Places | slice, spent: Floats) -> Self:
        return self._changed(_spent=changed(self._spent, places, spent))

    def _limit(self) -> float:
        return budget_as_double(self.budget, name="budget")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IndividualFilter):
            return NotImplemented
        same = self.budget == other.budget and self.on_exhausted == other.on_exhausted
        return same and np.array_equal(self._spent, other._spent) and np.array_equal(self._inside, other._inside)

    def __hash__(self) -> int:
        return hash((self.budget, self.on_exhausted))  # of what is public alone

    @safe_repr
    def __repr__(self) -> str:
        return f"IndividualFilter(budget={self.budget}, on_exhausted={self.on_exhausted!r})"
