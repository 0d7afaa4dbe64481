"""Charging the units for one query, and deciding which of them take part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpnb.accounting.individual.filter import IndividualFilter
from dpnb.accounting.individual.losses import losses_of_squares
from dpnb.accounting.individual.rounding import Floats
from dpnb.accounting.individual.units import UnitIndices

ROOT_MARGIN = 2.0**-50
"""Above the relative error of a root and a product of doubles."""

MAX_NORM_STEPS = 2**12
"""Largest number of possible squared norms above 0 for which losses are looked up in a table."""

EXACT = 2**53
"""Doubles represent every integer up to this one exactly."""


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
