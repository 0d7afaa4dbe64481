"""Where the units pay for one question, and who of them takes part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpnb.accounting.individual.filter import IndividualFilter
from dpnb.accounting.individual.losses import losses_of_squares
from dpnb.accounting.individual.rounding import Floats
from dpnb.accounting.individual.units import Places

__all__ = ["UnitAdmission", "UnitChargeTerms"]

ROOT_MARGIN = 2.0**-50
"""Above what a root and a product of doubles can be off."""

FEW = 2**12
"""Different squares of norms, of which the losses are looked up."""

EXACT = 2**53
"""Doubles hold every integer up to here."""


@dataclass(frozen=True)
class UnitChargeTerms:
    """On which terms a question is paid for: all of it is public.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, in integer steps.
    max_norm_squared : int
        No square of a unit's norm is larger.
    all_admitted : bool
        Everybody can surely pay.
    clips : bool
        Who cannot pay for all of it counts with as much as can be paid for.

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

    @property
    def rough(self) -> bool:
        """Whether squares are doubles that were rounded up themselves."""
        return self.max_norm_squared >= EXACT


class UnitAdmission:
    """Where the units pay for one question.

    Parameters
    ----------
    units : IndividualFilter
        Before the question; replaced by how they stand after it.
    terms : Terms

    Examples
    --------
    >>> import numpy as np
    >>> from dpnb.accounting.individual import IndividualFilter, UnitAdmission, UnitChargeTerms
    >>> terms = UnitChargeTerms(sigma=2.0, max_norm_squared=9, all_admitted=False)
    >>> till = UnitAdmission(IndividualFilter(units=3, budget=1), terms)
    >>> till.active(np.array([0, 2]), np.array([1.0, 9.0]))
    array([ True, False])
    >>> till.units.spent
    array([0.25, 0.  , 0.  ])
    """

    def __init__(self, units: IndividualFilter, terms: UnitChargeTerms) -> None:
        self.units, self._terms = units, terms
        self.unit_indices: Places = np.zeros(0, np.int64)
        self.requested: Floats = np.zeros(0)
        self.clip_norms: Floats | None = None
        """To which norm the vectors of those are to be scaled down who can pay for a part, unit by unit; -1 for the
        others.  None where nobody counts in part, which is public."""

    def active(self, owners: Places, squares: Floats) -> NDArray[np.bool_] | None:
        """Who takes part in full, of those whom the question touches; None if it is public that all do.

        Parameters
        ----------
        owners : int64 array, shape (touched,)
            Places of units, ascending.
        squares : float64 array, shape (touched,)
            Of the norms of what they add, rounded up.
        """
        self._note(owners, squares)
        if self._terms.all_admitted:
            self.units = self.units.charge(self.requested, of=owners)
            return None
        if not self._terms.clips:
            self.units, active = self.units.step(self.requested, of=owners)
            return active
        self.units, allowed = self.units.step_clipped(self.requested, of=owners)
        short = allowed < self.requested
        self.clip_norms = np.full(len(self.units.spent), -1.0)
        self.clip_norms[owners[short]] = np.sqrt(allowed[short]) * self._terms.sigma * (1 - ROOT_MARGIN)
        return np.asarray(~short)

    def _note(self, owners: Places, squares: Floats) -> None:
        terms = self._terms
        self.unit_indices = owners
        if terms.max_norm_squared > FEW:
            self.requested = losses_of_squares(squares, sigma=terms.sigma, rough=terms.rough)
        else:  # as of counts: every loss that there can be
            table = losses_of_squares(np.arange(terms.max_norm_squared + 1.0), sigma=terms.sigma)
            self.requested = table[squares.astype(np.int64)]
