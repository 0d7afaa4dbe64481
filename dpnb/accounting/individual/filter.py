"""The individual filter: a unit takes part in a query as far as its own budget covers the loss."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnb.accounting.exact import Frozen, Number, exact, shown
from dpnb.accounting.individual.arrays import (
    EXACT,
    MAX_DOUBLE,
    Floats,
    UnitIndices,
    budget_as_double,
    changed,
    indices_of,
    minus_down,
    per_unit,
    plus_up,
    plus_up_within,
    read_only,
    unit_count,
)
from dpnb.accounting.individual.losses import losses_of_squares, remaining_of
from dpnb.copying import safe_repr
from dpnb.errors import InvalidValueError

OnExhausted = Literal["skip", "drop", "clip"]

ROOT_MARGIN = 2.0**-50
"""Above the relative error of a root and a product of doubles."""

MAX_NORM_STEPS = 2**12
"""Largest number of possible squared norms above 0 for which losses are looked up in a table."""


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


@dataclass(frozen=True)
class UnitChargeTerms:
    """The terms on which units are charged for a query; all of them are public.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, in integer steps.
    max_norm_squared : int
        Upper bound on the square of a unit's norm.
    all_admitted : bool
        Whether it is certain that every unit's remaining budget covers the query.
    clips : bool, default False
        Whether the vector of a unit whose remaining budget is too small is scaled down to that budget.
    norm_step : int, default 1
        Every unit's squared norm is a multiple of this.

    Examples
    --------
    >>> from dpnb.accounting.individual import UnitChargeTerms
    >>> UnitChargeTerms(sigma=4.0, max_norm_squared=9, all_admitted=False).rough
    False
    """

    sigma: float
    max_norm_squared: int
    all_admitted: bool
    clips: bool = False
    norm_step: int = 1

    @property
    def rough(self) -> bool:
        """Whether the squares are so large that as doubles they have been rounded up."""
        return self.max_norm_squared >= EXACT


class UnitAdmission:
    """Charges the units for one query.

    Parameters
    ----------
    units : IndividualFilter
        The filter before the query; the attribute `units` is replaced by the filter after it.
    terms : UnitChargeTerms
        The terms of the query.

    Examples
    --------
    >>> import numpy as np
    >>> from dpnb.accounting.individual import IndividualFilter, UnitAdmission, UnitChargeTerms
    >>> terms = UnitChargeTerms(sigma=2.0, max_norm_squared=9, all_admitted=False)
    >>> admission = UnitAdmission(IndividualFilter(units=3, budget=1), terms)
    >>> admission.active(np.array([0, 2]), np.array([1.0, 9.0]))
    array([ True, False])
    >>> admission.units.spent
    array([0.25, 0.  , 0.  ])
    """

    def __init__(self, units: IndividualFilter, terms: UnitChargeTerms) -> None:
        self.units, self._terms = units, terms
        self.unit_indices: UnitIndices = np.zeros(0, np.int64)
        self.requested: Floats = np.zeros(0)
        self.clip_norms: Floats | None = None
        """The norm to which the vector of a unit must be scaled down if its remaining budget is too small; -1 for units
        that take part in full or not at all.  None if vectors are never scaled down, which is public."""

    def active(self, owners: UnitIndices, squares: Floats) -> NDArray[np.bool_] | None:
        """Whether each unit that the query uses takes part in full; None if it is public that all do.

        Parameters
        ----------
        owners : int64 array, shape (touched,)
            Indices of the units that the query uses, ascending.
        squares : float64 array, shape (touched,)
            Squared norms of their vectors, rounded up.
        """
        self._set_requested(owners, squares)
        if self._terms.all_admitted:
            self.units = self.units.charge(self.requested, of=owners)
            return None
        if not self._terms.clips:
            self.units, active = self.units.step(self.requested, of=owners)
            return active
        self.units, allowed = self.units.step_clipped(self.requested, of=owners)
        full = allowed >= self.requested
        self.clip_norms = np.full(len(self.units.spent), -1.0)
        at = np.flatnonzero((allowed > 0) & ~full)  # indices are faster than a mask that is hard to predict
        self.clip_norms[owners[at]] = np.sqrt(allowed[at]) * self._terms.sigma * (1 - ROOT_MARGIN)
        return np.asarray(full)

    def _set_requested(self, owners: UnitIndices, squares: Floats) -> None:
        terms = self._terms
        self.unit_indices = owners
        steps = terms.max_norm_squared // terms.norm_step
        if terms.rough or steps > MAX_NORM_STEPS:
            self.requested = losses_of_squares(squares, sigma=terms.sigma, rough=terms.rough)
        else:  # for example counts: a table of all possible losses
            table = losses_of_squares(np.arange(steps + 1.0) * terms.norm_step, sigma=terms.sigma)
            self.requested = table.take((squares / terms.norm_step).astype(np.int64))
