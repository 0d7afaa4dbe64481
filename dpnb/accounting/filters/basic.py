"""The filter that adds epsilons and deltas."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpnb.accounting.conversions.directed import checked_delta
from dpnb.accounting.convert import own_epsilon_delta
from dpnb.accounting.exact import Number, decimal_up, non_negative
from dpnb.accounting.filters.sum_filter import SumFilter
from dpnb.accounting.losses import ApproxDP, Loss

__all__ = ["BasicFilter"]


@dataclass(frozen=True, init=False, repr=False)
class BasicFilter(SumFilter[ApproxDP]):
    """Admits losses while the sums of epsilon and of delta stay within the budget's.

    Rogers et al. 2016, Theorem 3.3.

    Parameters
    ----------
    epsilon : Number
        At least 0, in nats; a float means its shortest decimal.
    delta : Number, default 0
        In [0, 1].

    Raises
    ------
    InvalidValueError
        epsilon is negative or delta is outside [0, 1].

    Examples
    --------
    >>> from dpnb.accounting import ApproxDP, BasicFilter
    >>> filter_ = BasicFilter(epsilon=1, delta=1e-6).step(ApproxDP(0.4, 1e-7))
    >>> filter_.affordable()
    ApproxDP(epsilon=0.6, delta=9e-07)
    """

    def __init__(self, epsilon: Number, delta: Number = 0.0) -> None:
        self._start(ApproxDP(non_negative(epsilon, name="epsilon"), delta))

    def to_filter_loss(self, loss: Loss) -> ApproxDP:
        """The loss as (epsilon, delta)-DP; a GDP, ZCDP or RDP must be converted first.

        Parameters
        ----------
        loss : Loss
            The loss of one release.

        Examples
        --------
        >>> from dpnb.accounting import BasicFilter, PureDP
        >>> BasicFilter(1, 1e-6).to_filter_loss(PureDP("0.5"))
        ApproxDP(epsilon=0.5)
        """
        return loss if type(loss) is ApproxDP else ApproxDP.of(*own_epsilon_delta(loss))

    @property
    def rule(self) -> str:
        """The rule that the filter enforces, in words."""
        return f"the sums of epsilon and delta must stay within {self.budget.format(up=False, with_delta=True)}"

    def guaranteed_epsilon(self, delta: Number) -> float:
        """The budget's epsilon, if `delta` is at least its delta: see :meth:`SumFilter.guaranteed_epsilon`.

        Parameters
        ----------
        delta : Number
            In [0, 1).

        Examples
        --------
        >>> from dpnb.accounting import BasicFilter
        >>> BasicFilter(1, 1e-6).guaranteed_epsilon(delta=1e-6)
        1.0
        """
        return decimal_up(self.budget.epsilon) if checked_delta(delta) >= self.budget.delta else math.inf
