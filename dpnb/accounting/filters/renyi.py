"""The filter of Renyi differential privacy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpnb.accounting.conversions import epsilon_from_curve
from dpnb.accounting.conversions.directed import checked_delta
from dpnb.accounting.convert import convert
from dpnb.accounting.exact import Number
from dpnb.accounting.filters.sum_filter import SumFilter
from dpnb.accounting.losses import RDP, Loss

__all__ = ["RDPFilter"]


@dataclass(frozen=True, init=False, repr=False)
class RDPFilter(SumFilter[RDP]):
    """Admits losses while, at every order, the sum of Renyi losses stays within that order's budget.

    Feldman and Zrnic 2021, Theorem 4.3 for one order, and for interactive mechanisms Haney et al. 2023, Theorem 4.6.
    With several orders, all of them must admit the loss.  To continue while *some* order has budget left is not
    private: a first answer could choose which order to exhaust.

    Parameters
    ----------
    budget : mapping of Number to Number
        The budget of each order; orders above 1, budgets at least 0.

    Raises
    ------
    InvalidValueError
        No order, one that is not above 1, or a negative budget.

    Examples
    --------
    >>> from dpnb.accounting import GDP, RDPFilter
    >>> filter_ = RDPFilter({10: 5, 20: 8}).step(GDP(0.5))
    >>> filter_.spent, filter_.admits(GDP(0.8))
    (RDP({10.0: 1.25, 20.0: 2.5}), False)
    """

    def __init__(self, budget: Mapping[Any, Number]) -> None:
        self._start(RDP(budget))

    def to_filter_loss(self, loss: Loss) -> RDP:
        """The loss at the filter's orders.

        Parameters
        ----------
        loss : Loss
            The loss of one release.

        Examples
        --------
        >>> from dpnb.accounting import GDP, RDPFilter
        >>> RDPFilter({8: 1}).to_filter_loss(GDP(mu="0.5"))
        RDP({8.0: 1.0})
        """
        if isinstance(loss, RDP) and loss.orders == self.budget.orders:
            return loss
        return convert(loss, RDP, orders=self.budget.orders)

    @property
    def rule(self) -> str:
        """The rule that the filter enforces, in words."""
        return f"at each order the sum of Renyi losses must stay within {self.budget.format(up=False)}"

    def guaranteed_epsilon(self, delta: Number) -> float:
        """The epsilon for which all releases together are (epsilon, `delta`)-DP; see :class:`SumFilter`.

        The smallest over the orders, whose budgets were fixed beforehand (Canonne, Kamath and Steinke 2020, Prop. 12).

        Parameters
        ----------
        delta : Number
            In [0, 1).

        Examples
        --------
        >>> from dpnb.accounting import RDPFilter
        >>> round(RDPFilter({8: 1}).guaranteed_epsilon(delta=1e-6), 3)
        2.543
        """
        number = checked_delta(delta)
        return epsilon_from_curve(self.budget.curve, number)
