"""The filter that adds epsilons and deltas."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from dpnb.accounting.budget import Budget
from dpnb.accounting.conversions import delta_from_mu
from dpnb.accounting.conversions.directed import checked_delta
from dpnb.accounting.convert import own_epsilon_delta
from dpnb.accounting.delta_split import split_loss
from dpnb.accounting.exact import Number, decimal_sqrt_up, decimal_up, exact, non_negative
from dpnb.accounting.filters.sum_filter import SumFilter
from dpnb.accounting.losses import ApproxDP, Loss


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

    name = "basic"
    label = "basic"
    theorem = "Rogers et al. 2016, Theorem 3.3: the sums of each answer's own epsilon and delta"
    guarantee = "sums of epsilon and delta"
    mu_squared_left = None
    interleaving_obstacle = None
    counted_filters = ("basic", "rogers", "gdp", "zcdp", "rdp", "approx-dp")

    def __init__(self, epsilon: Number, delta: Number = 0.0) -> None:
        self._start(ApproxDP(non_negative(epsilon, name="epsilon"), delta))

    @classmethod
    def from_budget(cls, budget: Budget) -> Self:
        """The filter that enforces a declared budget, of whose delta each answer has a part."""
        return cls(*cls._epsilon_delta(budget))

    @property
    def shared_delta(self) -> Fraction:
        """The delta that is divided among the answers: all of it."""
        return self.budget.delta

    def loss_of_release(self, loss: Loss) -> Loss:
        """A Gaussian release as :func:`~dpnb.accounting.delta_split.equivalent_epsilon_delta`."""
        return split_loss(loss, self, self.shared_delta)

    def _split(self, mu_squared: Fraction, n: Fraction, slack: Fraction) -> ApproxDP:
        """The loss of one of `n` equal releases; see :class:`~dpnb.accounting.delta_split.CountsEpsilons`."""
        return ApproxDP(self.budget.epsilon / n, slack / n)

    def _admits_split(self, mu_squared: Fraction, n: Fraction, slack: Fraction) -> bool:
        """Whether a release has that loss."""
        delta = delta_from_mu(decimal_sqrt_up(mu_squared), epsilon=self.budget.epsilon / n)
        return exact(delta) <= slack / n

    def _roughly_admits(self, n: float, epsilon: float) -> bool:
        """Whether `n` losses with this epsilon are within the bound, in doubles."""
        return n * epsilon <= float(self.budget.epsilon)

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
        return (
            f"the sums of epsilon and delta must stay within {self.budget.format(up=False, with_delta=True, digits=4)}"
        )

    def guaranteed_epsilon(self, delta: Number) -> float:
        """The budget's epsilon, if `delta` is at least its delta: see :meth:`Filter.guaranteed_epsilon`.

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
