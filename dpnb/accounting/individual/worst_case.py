"""What is public under individual accounting: how the unit stands that every question touches in full.

Each unit keeps to the budget by itself, so no question is refused.  The sum of the worst cases, up to the budget, is
never below what any unit has spent: while it is within the budget everybody surely takes part; from where it would
exceed it on, somebody may be left out, and nobody can be told whether.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, Self, TypeVar

from dpnb.accounting.filters import GDPFilter, SumFilter, ZCDPFilter
from dpnb.accounting.losses import GDP, ZCDP, Loss
from dpnb.errors import BudgetExceeded, InvalidValueError

__all__ = ["WorstCaseFilter", "worst_case_filter"]

L = TypeVar("L", bound=Loss)


@dataclass(frozen=True, init=False, repr=False)
class WorstCaseFilter(SumFilter[L], Generic[L]):
    """Adds up the worst cases, up to the budget, and refuses nothing but a delta that does not fit.

    Every unit's own losses keep to the budget, whatever is asked (Feldman and Zrnic 2021, Theorem 4.3; for Gaussian
    noise Smith and Thakurta 2022, Theorem 1, applied to the two tables that differ in that unit).  Deltas, of which
    every question has its own for everybody alike, are added up and refused as everywhere.

    Notes
    -----
    `headroom`, `affordable` and `max_repetitions` apply to all units: what is left for a unit that pays for
    everything in full, and how many more questions every unit takes part in.  Once the sum of the worst cases has
    reached the budget it stays there, also for questions that are cheaper than the one that passed it.

    Examples
    --------
    >>> from dpnb.accounting import GDP, GDPFilter
    >>> from dpnb.accounting.individual import worst_case_filter
    >>> public = worst_case_filter(GDPFilter(mu=1)).step(GDP(0.8))
    >>> public.admits_all_units(GDP(0.5)), public.admits_all_units(GDP(0.8)), public.admits(GDP(0.8))
    (True, False, True)
    """

    def admits(self, loss: Loss) -> bool:
        """Whether the losses' deltas fit; a unit that cannot pay the rest is left out of the question instead."""
        return (self.spent + self.to_filter_loss(loss)).delta <= self.budget.delta

    def admits_all_units(self, loss: Loss) -> bool:
        """Whether everybody can surely pay for a question: the worst cases of all together are within the budget."""
        return (self.spent + self.to_filter_loss(loss)).within(self.budget)

    def step(self, loss: Loss) -> Self:
        """After a question, whoever took part in it.

        Raises
        ------
        BudgetExceeded
            Its delta does not fit.
        """
        total = self.spent + self.to_filter_loss(loss)
        if total.delta > self.budget.delta:
            raise BudgetExceeded(self._refusal(loss))
        capped = tuple(min(part, whole) for part, whole in zip(total.parts, self.budget.parts, strict=True))
        return self._changed(spent=total.with_parts(capped))

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing is left for the unit that pays for everything in full."""
        return self.spent.parts[0] == self.budget.parts[0]

    @property
    def rule(self) -> str:
        """What holds for each unit, in words."""
        return f"for each unit by itself, {super().rule}"

    def mu_squared(self, loss: Loss) -> Fraction:
        """A loss as mu squared, for a Gaussian answer: what units are charged in."""
        raise NotImplementedError

    @property
    def unit_budget(self) -> Fraction:
        """What each unit may lose in all, as mu squared."""
        return self.mu_squared(self.budget)


@dataclass(frozen=True, init=False, repr=False)
class WorstCaseGDPFilter(WorstCaseFilter[GDP], GDPFilter):
    """Of a budget in Gaussian differential privacy."""

    def mu_squared(self, loss: Loss) -> Fraction:
        """A loss as mu squared."""
        return self.to_filter_loss(loss).mu_squared


@dataclass(frozen=True, init=False, repr=False)
class WorstCaseZCDPFilter(WorstCaseFilter[ZCDP], ZCDPFilter):
    """Of a budget in zero-concentrated differential privacy."""

    def mu_squared(self, loss: Loss) -> Fraction:
        """A loss as mu squared: twice the rho of a Gaussian answer."""
        return 2 * self.to_filter_loss(loss).rho


def worst_case_filter(filter_: object) -> WorstCaseFilter[GDP] | WorstCaseFilter[ZCDP]:
    """What is public where each unit keeps to a fresh filter's budget by itself.

    Parameters
    ----------
    filter_ : GDPFilter or ZCDPFilter
        Of which nothing is spent.

    Returns
    -------
    WorstCase
        Counts what the filter counts, and holds to the same budget.

    Raises
    ------
    InvalidValueError
        Individual accounting is proved for sums of mu squared and of rho; the filter is of another kind.

    Examples
    --------
    >>> from dpnb.accounting import ZCDPFilter
    >>> from dpnb.accounting.individual import worst_case_filter
    >>> worst_case_filter(ZCDPFilter(rho=0.5)).unit_budget
    Fraction(1, 1)
    """
    if isinstance(filter_, GDPFilter):
        return WorstCaseGDPFilter.from_loss(filter_.budget)
    if isinstance(filter_, ZCDPFilter):
        return WorstCaseZCDPFilter(filter_.budget.rho, filter_.budget.delta)
    raise InvalidValueError(
        f"accounting: 'individual' is proved for filter='gdp' and filter='zcdp'; got {type(filter_).__name__}; take "
        "one of these"
    )
