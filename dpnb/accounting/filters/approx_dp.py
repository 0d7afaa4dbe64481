"""The filters of (epsilon, delta)-DP: one adds epsilons, the other adds epsilons squared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from dpnb.accounting.budget import Budget
from dpnb.accounting.conversions import delta_from_mu, epsilon_from_rho, rho_from_epsilon
from dpnb.accounting.conversions.directed import checked_delta
from dpnb.accounting.convert import convert, own_epsilon_delta
from dpnb.accounting.delta_split import split_loss
from dpnb.accounting.exact import (
    Number,
    decimal_down,
    decimal_sqrt_down,
    decimal_sqrt_up,
    decimal_up,
    display_down,
    display_up,
    exact,
    non_negative,
    of_budget,
    shown,
)
from dpnb.accounting.filters.sum_filter import SumFilter
from dpnb.accounting.losses import ZCDP, ApproxDP, EpsilonLoss, Loss
from dpnb.accounting.losses.epsilon import is_range
from dpnb.copying import safe_repr
from dpnb.errors import InvalidValueError


@dataclass(frozen=True, init=False, repr=False)
class BasicFilter(SumFilter[ApproxDP]):
    """Admits losses while the sums of epsilon and of delta stay within the budget's.

    Rogers et al. 2016, Theorem 3.3.  A GDP, ZCDP or RDP must be converted first.  The `guaranteed_epsilon` is the
    budget's epsilon, at its delta or more.

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
    >>> filter_.affordable(), filter_.guaranteed_epsilon(delta=1e-6)
    (ApproxDP(epsilon=0.6, delta=9e-07), 1.0)
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
        return loss if type(loss) is ApproxDP else ApproxDP.of(*own_epsilon_delta(loss))

    @property
    def rule(self) -> str:
        return (
            f"the sums of epsilon and delta must stay within {self.budget.format(up=False, with_delta=True, digits=4)}"
        )

    def guaranteed_epsilon(self, delta: Number) -> float:
        return decimal_up(self.budget.epsilon) if checked_delta(delta) >= self.budget.delta else math.inf


@dataclass(frozen=True, init=False, repr=False)
class ApproxDPFilter(SumFilter[ZCDP]):
    """Admits (epsilon, delta)-DP losses while sqrt(2 l V) + V/2 stays within epsilon, V the sum of their epsilon^2.

    Whitehouse et al. 2023, Theorem 8, with l = log(1/conversion_delta), and the sum of the losses' deltas within
    slack_delta.  All releases together are then (epsilon, slack_delta + (1 - slack_delta) conversion_delta)-DP.
    (Theorem 2 of the paper spends one delta for both purposes, which does not hold.)

    The condition is V <= y* with y* = (2 epsilon / (sqrt(2 l + 2 epsilon) + sqrt(2 l)))^2, so the filter is that of
    approximate y*/2-zCDP, and admits GDP and zCDP losses too, at V = 2 rho.  For a DP loss, ``convert(loss, ZCDP)``
    gives V = 2 epsilon tanh(epsilon/2), which is smaller than the theorem's epsilon^2.  The V of several equal DP
    losses is the sum.

    The `guaranteed_epsilon` at slack_delta + (1 - slack_delta) conversion_delta or more is at most the epsilon of
    Theorem 8; the tight conversion of the same y*/2-zCDP makes it smaller.

    Parameters
    ----------
    epsilon : Number
        At least 0, in nats; a float means its shortest decimal.
    conversion_delta : Number
        In (0, 1): the delta of the conversion from zCDP to (epsilon, delta)-DP.
    slack_delta : Number, default 0
        Budget for the losses' deltas, in [0, 1]; with 1 the `guaranteed_epsilon` is infinite.

    Attributes
    ----------
    epsilon, conversion_delta : Fraction
    budget, spent : ZCDP
        The bound and the sum so far, with rho = V/2.

    Raises
    ------
    InvalidValueError
        A number is out of range.

    Examples
    --------
    >>> from dpnb.accounting import ApproxDPFilter, PureDP
    >>> filter_ = ApproxDPFilter(epsilon=1, conversion_delta=1e-6)
    >>> filter_.max_repetitions(PureDP(0.01)), round(filter_.guaranteed_epsilon(delta=1e-6), 3)
    (349, 0.837)
    """

    name = "approx-dp"
    label = "approx. DP"
    theorem = (
        "Whitehouse et al. 2023, Theorem 8: the sum V of mu^2, so that sqrt(2 V log(1/delta)) + V/2 is within epsilon"
    )
    counts_range = True
    interleaving_obstacle = None  # Haney et al. 2023, Theorem 4.10; with a delta see `renyi`
    counted_filters = ("approx-dp", "zcdp", "gdp")
    epsilon: Fraction
    conversion_delta: Fraction

    def __init__(self, epsilon: Number, *, conversion_delta: Number, slack_delta: Number = 0.0) -> None:
        delta, slack = (
            checked_delta(conversion_delta, name="conversion_delta"),
            non_negative(slack_delta, name="slack_delta"),
        )
        if not delta or slack > 1:
            raise InvalidValueError(
                f"conversion_delta must be greater than 0 and slack_delta at most 1, got {shown(conversion_delta)} and "
                f"{shown(slack_delta)}; give for example 1e-6 and 0"
            )
        self._set(epsilon=non_negative(epsilon, name="epsilon"), conversion_delta=delta)
        # y*/2 is the rho whose simple conversion is epsilon (Feldman and Zrnic 2021, Theorem 4.9).
        self._start(ZCDP(rho_from_epsilon(self.epsilon, delta=delta, method="simple"), slack))

    @classmethod
    def from_budget(cls, budget: Budget) -> Self:
        """The filter that enforces a declared budget.

        The whole delta is for the conversion, since Gaussian losses have none.
        """
        epsilon, delta = cls._epsilon_delta(budget, discovery=True)
        return cls(epsilon, conversion_delta=delta, slack_delta=budget.discovery_delta)

    def to_filter_loss(self, loss: Loss) -> ZCDP:
        if type(loss) is ZCDP:
            return loss
        if isinstance(loss, EpsilonLoss) and not is_range(loss):
            # The sum of epsilon^2/2 in integers: four times as fast as products of Fractions.
            top, bottom = loss.epsilon.as_integer_ratio()
            return ZCDP.of(Fraction(top**2, 2 * loss.count * bottom**2), loss.delta)
        return convert(loss, ZCDP)

    def affordable(self) -> ApproxDP:
        """The largest (epsilon, delta) that `step` admits; epsilon is a double, rounded down."""
        left = self.budget - self.spent
        return ApproxDP(decimal_sqrt_down(2 * left.rho), left.delta)

    @property
    def rule(self) -> str:
        delta = display_up(decimal_up(self.conversion_delta))
        return (
            f"sqrt(2 V log(1/{delta})) + V/2, V the sum of epsilon^2 or mu^2, must stay "
            f"within {display_down(decimal_down(self.epsilon))}{self._delta_rule}"
        )

    @property
    def guarantee(self) -> str:
        """What is guaranteed, for example ``V within 0.05``."""
        return f"V within {display_up(decimal_up(2 * self.budget.rho))}"

    @property
    def spent_words(self) -> str:
        """V and its bound."""
        return of_budget("V", decimal_up(2 * self.spent.rho), decimal_down(2 * self.budget.rho))

    def guaranteed_epsilon(self, delta: Number) -> float:
        return self._guarantee(delta, lambda good: epsilon_from_rho(self.budget.rho, delta=good))

    @safe_repr
    def __repr__(self) -> str:
        epsilon, delta = decimal_up(self.epsilon), decimal_up(self.conversion_delta)
        return f"ApproxDPFilter(epsilon={epsilon!r}, conversion_delta={delta!r}, spent={self.spent!r})"
