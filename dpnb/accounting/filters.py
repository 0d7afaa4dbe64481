"""Filters refuse.  State and a loss give a new state, or a refusal that leaves the old state as it was.

A filter keeps one promise, fixed before the first answer, however the losses are chosen afterwards.  Its decisions are
comparisons of exact rationals: nothing is lost in a sum, and nothing above the budget is ever admitted.

==============  ======================================================
GDPFilter       Smith and Thakurta 2022, Theorem 1
==============  ======================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, Self

from dpnb.accounting.conversions import epsilon_of_gdp
from dpnb.accounting.exact import (
    Number,
    decimal_down,
    decimal_sqrt_down,
    decimal_up,
    exact,
    shown,
)
from dpnb.accounting.losses import GDP, Loss
from dpnb.errors import BudgetExceeded, ConversionError, InvalidValueError

__all__ = ["Filter", "GDPFilter"]


class Filter(Protocol):
    """What every filter can do; all filters are frozen."""

    @property
    def budget(self) -> Loss:
        """The bound that was fixed beforehand."""
        ...

    @property
    def spent(self) -> Loss:
        """Everything admitted so far."""
        ...

    @property
    def headroom(self) -> float:
        """Share of the budget left in the scale in which it is spent, 0 to 1, rounded down."""
        ...

    def admits(self, loss: Loss) -> bool:
        """Whether `step` would accept the loss."""
        ...

    def step(self, loss: Loss) -> Self:
        """The filter after the loss, or `BudgetExceeded`."""
        ...

    def affordable(self) -> Loss:
        """The largest single loss that is still admitted."""
        ...

    def guarantee(self, delta: Number) -> float:
        """The epsilon at `delta` that the whole budget promises, rounded up."""
        ...


@dataclass(frozen=True, slots=True, init=False, repr=False)
class GDPFilter:
    """Admits losses while the sum of mu squared stays within mu0 squared; then everything together is mu0-GDP.

    Smith and Thakurta 2022 (Fully Adaptive Composition for Gaussian Differential Privacy), Theorem 1: nothing is lost
    against mus fixed in advance.  Losses may carry a delta; their sum stays within the filter's own.

    Parameters
    ----------
    mu : Number
        The budget mu0, greater than 0; a float means its shortest decimal.
    delta : Number
        Budget for the losses' deltas, in [0, 1).

    Attributes
    ----------
    budget, spent : GDP

    Raises
    ------
    InvalidValueError
        mu is not positive or delta is outside [0, 1).

    Examples
    --------
    >>> half = GDPFilter(1).step(GDP("0.6"))
    >>> half.headroom, half.affordable(), half.admits(GDP(0.8)), half.admits(GDP(0.81))
    (0.64, GDP(mu=0.8), True, False)
    """

    budget: GDP
    spent: GDP

    def __init__(self, mu: Number, delta: Number = 0.0) -> None:
        self._set(_checked_budget(GDP(mu, delta)), GDP(0))

    @classmethod
    def from_loss(cls, budget: GDP) -> GDPFilter:
        """The filter whose budget is a loss, exact in mu squared.

        Raises
        ------
        ConversionError
            The budget is not GDP.
        InvalidValueError
            As the constructor.
        """
        return cls._of(_checked_budget(_checked_loss(budget)), GDP(0))

    @classmethod
    def _of(cls, budget: GDP, spent: GDP) -> GDPFilter:
        new = object.__new__(cls)
        new._set(budget, spent)
        return new

    def _set(self, budget: GDP, spent: GDP) -> None:
        object.__setattr__(self, "budget", budget)
        object.__setattr__(self, "spent", spent)

    def admits(self, loss: Loss) -> bool:
        """Whether the budget covers what was spent and `loss`.

        Raises
        ------
        ConversionError
            `loss` is not GDP.
        """
        return self._covers(self.spent + _checked_loss(loss))

    def step(self, loss: Loss) -> GDPFilter:
        """The filter after `loss`.

        Raises
        ------
        BudgetExceeded
            The budget does not cover it; this filter is unchanged.
        ConversionError
            `loss` is not GDP.
        """
        loss = _checked_loss(loss)
        total = self.spent + loss
        if not self._covers(total):
            raise BudgetExceeded(self._refusal(loss))
        return GDPFilter._of(self.budget, total)

    @property
    def headroom(self) -> float:
        """1 - (sum of mu squared) / mu0 squared, or the delta's share if that is smaller; 0 to 1, rounded down."""
        share = 1 - self.spent.mu_squared / self.budget.mu_squared
        if self.budget.delta:
            share = min(share, 1 - self.spent.delta / self.budget.delta)
        return decimal_down(share)

    def affordable(self) -> GDP:
        """The exact remainder: `step` admits it, and nothing larger in mu or in delta."""
        return GDP.from_squared(
            self.budget.mu_squared - self.spent.mu_squared, delta=self.budget.delta - self.spent.delta
        )

    def guarantee(self, delta: Number) -> float:
        """The epsilon such that everything together is (epsilon, `delta`)-DP, rounded up.

        The filter's own delta is taken off first: approximate mu0-GDP is (epsilon, own + delta_mu0(epsilon))-DP.
        Infinite if nothing is left.

        Parameters
        ----------
        delta : Number
            In (0, 1).

        Raises
        ------
        InvalidValueError
            delta is outside (0, 1).
        """
        number = exact(delta, name="delta")
        if not 0 < number < 1:
            raise InvalidValueError(f"delta must lie between 0 and 1, got {shown(delta)}; give for example 1e-6")
        return epsilon_of_gdp(self.budget.mu_squared, max(number - self.budget.delta, Fraction(0)))

    def __repr__(self) -> str:
        return f"GDPFilter(budget={self.budget!r}, spent={self.spent!r})"

    def _covers(self, total: GDP) -> bool:
        return total.mu_squared <= self.budget.mu_squared and total.delta <= self.budget.delta

    def _refusal(self, loss: GDP) -> str:
        left = self.affordable()
        largest = f"mu={decimal_sqrt_down(left.mu_squared)!r}"
        if self.budget.delta or loss.delta:
            largest += f" and delta={decimal_down(left.delta)!r}"
        asked = f"mu={loss.mu!r}" + (f" and delta={decimal_up(loss.delta)!r}" if loss.delta else "")
        remedy = f"ask for at most {largest}" if left.mu_squared else "every question that costs is now refused"
        return (
            f"budget: the sum of mu^2 must stay within {self.budget.mu!r}^2; asked for {asked}, remaining is {largest}"
            f" ({math.floor(1000 * self.headroom) / 10:g}% of the budget); {remedy}; nothing was charged"
        )


def _checked_loss(loss: Loss) -> GDP:
    if not isinstance(loss, GDP):
        raise ConversionError(
            f"loss: a GDP filter counts GDP losses alone, got {type(loss).__name__}; give GDP(mu), or use a filter of"
            " the loss's own kind"
        )
    return loss


def _checked_budget(budget: GDP) -> GDP:
    if not budget.mu_squared:
        raise InvalidValueError("mu must be greater than 0, got 0; a budget of 0 could answer nothing")
    if budget.delta >= 1:
        raise InvalidValueError(
            f"delta must be below 1, got {decimal_up(budget.delta)!r}; a delta of 1 promises nothing"
        )
    return budget
