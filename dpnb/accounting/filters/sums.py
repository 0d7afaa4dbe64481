"""Filters that hold an exact sum of losses to a bound; their decisions are comparisons of rationals.

Nothing is lost in a sum, and nothing above the budget is ever admitted.  Where a bound is irrational it is rounded
down, where a loss is converted it is rounded up.  A step takes constant time and memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, Self, TypeVar

from dpnb.accounting.conversions import (
    epsilon_from_rdp,
    epsilon_from_rho,
    epsilon_of_gdp,
    rho_from_epsilon,
)
from dpnb.accounting.conversions.directed import checked_delta
from dpnb.accounting.convert import convert, good_delta, own_epsilon_delta
from dpnb.accounting.exact import Number, decimal_down, decimal_sqrt_down, decimal_up, non_negative
from dpnb.accounting.filters.protocol import refusal
from dpnb.accounting.losses import GDP, RDP, ZCDP, ApproxDP, EpsilonLoss, Loss
from dpnb.errors import BudgetExceeded, ConversionError, InvalidValueError

__all__ = ["ApproxDPFilter", "BasicFilter", "GDPFilter", "RDPFilter", "SumFilter", "ZCDPFilter"]

L = TypeVar("L", bound=Loss)
_ZERO = Fraction(0)
_HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SumFilter(Generic[L]):
    """Admits losses while every part of their sum stays within the budget's; the base of the filters below.

    Attributes
    ----------
    budget, spent : Loss
        In the kind in which the filter counts.
    """

    budget: L
    spent: L

    def counted(self, loss: Loss) -> L:
        """The loss in the kind in which this filter counts.

        Raises
        ------
        ConversionError
            No theorem turns it into that kind.
        """
        raise NotImplementedError

    @property
    def rule(self) -> str:
        """What the filter holds to, in words."""
        raise NotImplementedError

    def guarantee(self, delta: Number) -> float:
        """The epsilon such that everything together is (epsilon, `delta`)-DP, rounded up; infinite if there is none.

        Parameters
        ----------
        delta : Number
            In [0, 1).

        Raises
        ------
        InvalidValueError
            delta is outside [0, 1).
        """
        raise NotImplementedError

    def admits(self, loss: Loss) -> bool:
        """Whether the budget covers what was spent and `loss`.

        Raises
        ------
        ConversionError
            The filter cannot count `loss`.
        """
        return (self.spent + self.counted(loss)).within(self.budget)

    def step(self, loss: Loss) -> Self:
        """The filter after `loss`.

        Raises
        ------
        BudgetExceeded
            The budget does not cover it; this filter is unchanged.
        ConversionError
            The filter cannot count `loss`.
        """
        total = self.spent + self.counted(loss)
        if not total.within(self.budget):
            raise BudgetExceeded(self._refusal(loss))
        return self._after(total)

    @property
    def headroom(self) -> float:
        """1 - spent/budget, for the part of which the smallest share is left; 0 to 1, rounded down.

        Nothing is left of a budget of 0; a delta that was never given is not counted.
        """
        pairs = zip(self.spent.parts, self.budget.parts, strict=True)
        return decimal_down(min((1 - spent / budget for spent, budget in pairs if budget), default=_ZERO))

    def affordable(self) -> Loss:
        """The exact remainder: `step` admits it, and nothing larger in any part."""
        return self.budget - self.spent

    def times(self, loss: Loss) -> int | None:
        """How many more losses like `loss` are admitted; None if it costs nothing.

        Raises
        ------
        ConversionError
            The filter cannot count `loss`.
        """
        left = (self.budget - self.spent).parts
        cost = self.counted(loss).parts
        return min((int(rest // part) for rest, part in zip(left, cost, strict=True) if part), default=None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(budget={self.budget!r}, spent={self.spent!r})"

    def restarted(self, budget: Loss) -> Self:
        """A fresh filter of the same rule with another budget of the same kind.

        Raises
        ------
        ConversionError
            The budget is of another kind.
        InvalidValueError
            Its delta is above 1.
        """
        if type(budget) is not type(self.budget):
            raise ConversionError(
                f"budget: must be {type(self.budget).__name__}, got {type(budget).__name__}; give one of the same kind"
            )
        new = self._after(self.spent)
        new._start(budget)
        return new

    def _start(self, budget: L) -> None:
        if budget.delta > 1:
            raise InvalidValueError(f"delta must be at most 1, got {decimal_up(budget.delta)!r}; give for example 1e-6")
        object.__setattr__(self, "budget", budget)
        object.__setattr__(self, "spent", budget.with_parts((Fraction(0),) * len(budget.parts)))

    def _after(self, spent: L) -> Self:
        new = object.__new__(type(self))
        object.__setattr__(new, "budget", self.budget)
        object.__setattr__(new, "spent", spent)
        return new

    def _refusal(self, loss: Loss) -> str:
        left = self.affordable()
        with_delta = bool(self.budget.delta or loss.delta)
        return refusal(
            rule=self.rule,
            loss=loss.words(up=True),
            left=left.words(up=False, with_delta=with_delta),
            headroom=self.headroom,
            anything=all(part for part, whole in zip(left.parts, self.budget.parts, strict=True) if whole)
            and any(self.budget.parts),
        )


@dataclass(frozen=True, slots=True, init=False, repr=False)
class GDPFilter(SumFilter[GDP]):
    """Admits losses while the sum of mu squared stays within mu0 squared; then everything together is mu0-GDP.

    Smith and Thakurta 2022 (Fully Adaptive Composition for Gaussian Differential Privacy), Theorem 1: nothing is lost
    against mus fixed in advance.  Losses may carry a delta; their sum stays within the filter's own.

    Parameters
    ----------
    mu : Number
        The budget mu0, at least 0; a float means its shortest decimal.
    delta : Number
        Budget for the losses' deltas, in [0, 1]; with 1 the `guarantee` is infinite.

    Raises
    ------
    InvalidValueError
        mu is negative or delta is outside [0, 1].

    Examples
    --------
    >>> half = GDPFilter(1).step(GDP("0.6"))
    >>> half.headroom, half.affordable(), half.admits(GDP(0.8)), half.admits(GDP(0.81))
    (0.64, GDP(mu=0.8), True, False)
    """

    def __init__(self, mu: Number, delta: Number = 0.0) -> None:
        self._start(GDP(non_negative(mu, name="mu"), delta))

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
        new = object.__new__(cls)
        new._start(convert(budget, GDP))
        return new

    def counted(self, loss: Loss) -> GDP:
        """The loss as GDP; ZCDP and RDP do not imply it."""
        return loss if type(loss) is GDP else convert(loss, GDP)

    @property
    def rule(self) -> str:
        """What the filter holds to, in words."""
        return f"the sum of mu^2 must stay within {decimal_sqrt_down(self.budget.mu_squared)!r}^2"

    def guarantee(self, delta: Number) -> float:
        """The epsilon such that everything together is (epsilon, `delta`)-DP: see :meth:`SumFilter.guarantee`.

        Dong, Roth and Su 2022, Corollary 2.13, at what the filter's own delta leaves of `delta`.
        """
        return epsilon_of_gdp(self.budget.mu_squared, good_delta(checked_delta(delta), self.budget.delta))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ZCDPFilter(SumFilter[ZCDP]):
    """Admits losses while the sum of rho stays within the budget; then everything together is rho-zCDP.

    Whitehouse et al. 2023, Theorem 1; without a delta also Feldman and Zrnic 2021, Remark 4.4, and, for interactive
    mechanisms that are interleaved freely, Haney et al. 2023, Theorem 4.10.  With a delta, concurrent use is open.

    Parameters
    ----------
    rho : Number
        At least 0; a float means its shortest decimal.
    delta : Number
        Budget for the losses' deltas, in [0, 1]; with 1 the `guarantee` is infinite.

    Raises
    ------
    InvalidValueError
        rho is negative or delta is outside [0, 1].
    """

    def __init__(self, rho: Number, delta: Number = 0.0) -> None:
        self._start(ZCDP(non_negative(rho, name="rho"), delta))

    def counted(self, loss: Loss) -> ZCDP:
        """The loss as zCDP; RDP of finitely many orders does not imply it."""
        return loss if type(loss) is ZCDP else convert(loss, ZCDP)

    @property
    def rule(self) -> str:
        """What the filter holds to, in words."""
        return f"the sum of rho must stay within {decimal_down(self.budget.rho)!r}"

    def guarantee(self, delta: Number) -> float:
        """The epsilon such that everything together is (epsilon, `delta`)-DP: see :meth:`SumFilter.guarantee`.

        Canonne, Kamath and Steinke 2020, at what the filter's own delta leaves of `delta`.
        """
        return epsilon_from_rho(self.budget.rho, delta=good_delta(checked_delta(delta), self.budget.delta))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class RDPFilter(SumFilter[RDP]):
    """Admits losses while, at every order, the sum of Renyi losses stays within that order's budget.

    Feldman and Zrnic 2021, Theorem 4.3 for one order, and for interactive mechanisms Haney et al. 2023, Theorem 4.6.
    With several orders all of them must admit.  To go on while *some* order has budget left is not private: a first
    answer could choose which order to exhaust.

    Parameters
    ----------
    budget : mapping of Number to Number
        The budget of each order; orders above 1, budgets at least 0.

    Raises
    ------
    InvalidValueError
        No order, one that is not above 1, or a negative budget.
    """

    def __init__(self, budget: Mapping[Any, Number]) -> None:
        self._start(RDP(budget))

    def counted(self, loss: Loss) -> RDP:
        """The loss at the filter's orders."""
        if isinstance(loss, RDP) and loss.orders == self.budget.orders:
            return loss
        return convert(loss, RDP, orders=self.budget.orders)

    @property
    def rule(self) -> str:
        """What the filter holds to, in words."""
        return f"at each order the sum of Renyi losses must stay within {self.budget.words(up=False)}"

    def guarantee(self, delta: Number) -> float:
        """The epsilon such that everything together is (epsilon, `delta`)-DP: see :meth:`SumFilter.guarantee`.

        The best of the orders, whose budgets were all fixed beforehand (Canonne, Kamath and Steinke 2020, Prop. 12).
        """
        number = checked_delta(delta)
        return min(epsilon_from_rdp(order, rho, delta=number) for order, rho in self.budget.curve)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class BasicFilter(SumFilter[ApproxDP]):
    """Admits losses while the sums of epsilon and of delta stay within the budget's.

    Rogers et al. 2016, Theorem 3.3.

    Parameters
    ----------
    epsilon : Number
        At least 0, in nats; a float means its shortest decimal.
    delta : Number
        In [0, 1].

    Raises
    ------
    InvalidValueError
        epsilon is negative or delta is outside [0, 1].
    """

    def __init__(self, epsilon: Number, delta: Number = 0.0) -> None:
        self._start(ApproxDP(non_negative(epsilon, name="epsilon"), delta))

    def counted(self, loss: Loss) -> ApproxDP:
        """The loss as (epsilon, delta)-DP; one that has no epsilon of its own must be converted before."""
        return loss if type(loss) is ApproxDP else ApproxDP.of(*own_epsilon_delta(loss))

    @property
    def rule(self) -> str:
        """What the filter holds to, in words."""
        return f"the sums of epsilon and delta must stay within {self.budget.words(up=False, with_delta=True)}"

    def guarantee(self, delta: Number) -> float:
        """The budget's epsilon, if `delta` is at least its delta: see :meth:`SumFilter.guarantee`."""
        return decimal_up(self.budget.epsilon) if checked_delta(delta) >= self.budget.delta else math.inf


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ApproxDPFilter(SumFilter[ZCDP]):
    """Admits (epsilon, delta)-DP losses while sqrt(2 l V) + V/2 stays within epsilon, V the sum of their epsilon^2.

    Whitehouse et al. 2023, Theorem 8, with l = log(1/conversion_delta), and the sum of the losses' deltas within
    slack_delta.  Everything together is then (epsilon, slack_delta + (1 - slack_delta) conversion_delta)-DP.  (Theorem
    2 of the paper spends one delta for both purposes, which does not hold.)

    The condition is V <= y* with y* = (2 epsilon / (sqrt(2 l + 2 epsilon) + sqrt(2 l)))^2, so the filter is that of
    approximate y*/2-zCDP, and admits GDP and zCDP losses too, at V = 2 rho.  For a DP loss, ``convert(loss, ZCDP)``
    gives V = 2 epsilon tanh(epsilon/2), which is smaller than the theorem's epsilon^2.

    Parameters
    ----------
    epsilon : Number
        At least 0, in nats; a float means its shortest decimal.
    conversion_delta : Number
        In (0, 1): what turning zCDP into epsilon may fail by.
    slack_delta : Number
        Budget for the losses' deltas, in [0, 1]; with 1 the `guarantee` is infinite.

    Attributes
    ----------
    epsilon, conversion_delta : Fraction
    budget, spent : ZCDP
        rho = V/2.

    Raises
    ------
    InvalidValueError
        A number is out of its range.
    """

    epsilon: Fraction
    conversion_delta: Fraction

    def __init__(self, epsilon: Number, *, conversion_delta: Number, slack_delta: Number = 0.0) -> None:
        delta = checked_delta(conversion_delta)
        if not delta:
            raise InvalidValueError("conversion_delta must be greater than 0, got 0; give for example 1e-6")
        object.__setattr__(self, "epsilon", non_negative(epsilon, name="epsilon"))
        object.__setattr__(self, "conversion_delta", delta)
        # y*/2 is the rho whose simple conversion is epsilon (Feldman and Zrnic 2021, Theorem 4.9).
        self._start(ZCDP(rho_from_epsilon(self.epsilon, delta=delta, method="simple"), slack_delta))

    def _after(self, spent: ZCDP) -> Self:
        new = super(ApproxDPFilter, self)._after(spent)
        object.__setattr__(new, "epsilon", self.epsilon)
        object.__setattr__(new, "conversion_delta", self.conversion_delta)
        return new

    def counted(self, loss: Loss) -> ZCDP:
        """The loss as approximate zCDP, rho = epsilon^2/2 for a DP loss, as in the theorem."""
        if type(loss) is ZCDP:
            return loss
        if isinstance(loss, EpsilonLoss):
            return ZCDP.of(loss.epsilon * loss.epsilon * _HALF, loss.delta)
        return convert(loss, ZCDP)

    def affordable(self) -> ApproxDP:
        """The largest (epsilon, delta) that `step` admits; epsilon is a double, rounded down."""
        left = self.budget - self.spent
        return ApproxDP(decimal_sqrt_down(2 * left.rho), left.delta)

    @property
    def rule(self) -> str:
        """What the filter holds to, in words."""
        return (
            f"sqrt(2 V log(1/{decimal_up(self.conversion_delta)!r})) + V/2, V the sum of epsilon^2, must stay within "
            f"{decimal_down(self.epsilon)!r}"
        )

    def guarantee(self, delta: Number) -> float:
        """The epsilon such that everything together is (epsilon, `delta`)-DP: see :meth:`SumFilter.guarantee`.

        At slack_delta + (1 - slack_delta) conversion_delta or more it is at most the epsilon of Theorem 8; the tight
        conversion of the same y*/2-zCDP makes it smaller.
        """
        return epsilon_from_rho(self.budget.rho, delta=good_delta(checked_delta(delta), self.budget.delta))

    def __repr__(self) -> str:
        epsilon, delta = decimal_up(self.epsilon), decimal_up(self.conversion_delta)
        return f"ApproxDPFilter(epsilon={epsilon!r}, conversion_delta={delta!r}, spent={self.spent!r})"
