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
    longest_squared : int
        No square of a unit's norm is larger.
    surely : bool
        Everybody can surely pay.
    in_part : bool
        Who cannot pay for all of it counts with as much as can be paid for.

    Examples
    --------
    >>> from dpnb.accounting.individual import UnitChargeTerms
    >>> UnitChargeTerms(sigma=4.0, longest_squared=9, surely=False).rough
    False
    """

    sigma: float
    longest_squared: int
    surely: bool
    in_part: bool = False

    @property
    def rough(self) -> bool:
        """Whether squares are doubles that were rounded up themselves."""
        return self.longest_squared >= EXACT


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
    >>> terms = UnitChargeTerms(sigma=2.0, longest_squared=9, surely=False)
    >>> till = UnitAdmission(IndividualFilter(units=3, budget=1), terms)
    >>> till.active(np.array([0, 2]), np.array([1.0, 9.0]))
    array([ True, False])
    >>> till.units.spent
    array([0.25, 0.  , 0.  ])
    """

    def __init__(self, units: IndividualFilter, terms: UnitChargeTerms) -> None:
        self.units, self._terms = units, terms
        self.owners: Places = np.zeros(0, np.int64)
        self.asked: Floats = np.zeros(0)
        self.radii: Floats | None = None
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
        if self._terms.surely:
            self.units = self.units.charge(self.asked, of=owners)
            return None
        if not self._terms.in_part:
            self.units, active = self.units.step(self.asked, of=owners)
            return active
        self.units, allowed = self.units.step_in_part(self.asked, of=owners)
        short = allowed < self.asked
        self.radii = np.full(len(self.units.spent), -1.0)
        self.radii[owners[short]] = np.sqrt(allowed[short]) * self._terms.sigma * (1 - ROOT_MARGIN)
        return np.asarray(~short)

    def _note(self, owners: Places, squares: Floats) -> None:
        terms = self._terms
        self.owners = owners
        if terms.longest_squared > FEW:
            self.asked = losses_of_squares(squares, sigma=terms.sigma, rough=terms.rough)
        else:  # as of counts: every loss that there can be
            table = losses_of_squares(np.arange(terms.longest_squared + 1.0), sigma=terms.sigma)
            self.asked = table[squares.astype(np.int64)]
