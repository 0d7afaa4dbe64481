"""The GDP filter with a reserve for pure-DP losses.

The promise is RR(E) (x) G_R, in the notation of :mod:`dpnb.accounting.filters.gdp_residue`: no more than one bit of
randomised response with parameter E and one draw from N(0, 1) or N(R, 1) reveal.  E and R are fixed before the first
answer.  The state (e, r) is what is left of both, at the start (E, R).  An e1-DP mechanism with e1 <= e leads to
(e - e1, r); a mu-GDP one with mu <= r leads to (e, sqrt(r^2 - mu^2)).  An e1-DP mechanism with e1 > e is admitted if
some s >= 0 has RR(e1) (x) G_s >= RR(e) (x) G_r, and leads to (0, s) with the largest such s
(:mod:`dpnb.accounting.conversions.residue`).

Claim.  However the mechanisms are chosen, all of them together have at least the trade-off function RR(E) (x) G_R.

Proof.  As in :mod:`dpnb.accounting.filters.gdp_residue`, by induction over the number of remaining rounds: from the
state (e, r), and given any past, the view of the remaining rounds has at least RR(e) (x) G_r.  A constant view has, and
for the step it remains to compare three compositions with that function.  For e1 <= e: an e1-DP and an (e - e1)-DP
mechanism together are e-DP, so RR(e1) (x) RR(e - e1) >= RR(e), and composing with G_r keeps the order.  For a mu-GDP
mechanism G_mu (x) G_sqrt(r^2 - mu^2) = G_r.  For e1 > e the inequality is the rule of admission.  ∎

A mechanism is never split into a part for the reserve and a part for the rest.  RR(a + b) is at most RR(a) (x) RR(b):
what two independent bits reveal is less than what one bit of their summed parameters does, so that charging e to the
reserve and e1 - e by the residue would exceed the promise; under (1, 1e-6)-DP with E = 0.15, a mechanism with e1 = 0.2
would give delta(1) = 1.68e-6.  Nor can what is left of the reserve be used for Gaussian releases: a frontier of pairs
(E, R) from which the answers choose is not a promise that was fixed beforehand.

A mechanism that is both, such as a sub-session with a reserve of its own, is taken as its pure part and its Gaussian
part in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from dpnb.accounting.conversions import epsilon_of_pure_gdp, residue_charge
from dpnb.accounting.convert import convert
from dpnb.accounting.exact import Number, decimal_down, decimal_sqrt_down, non_negative
from dpnb.accounting.filters.gdp import GDPFilter
from dpnb.accounting.filters.gdp_residue import GDPResidueFilter
from dpnb.accounting.filters.protocol import refusal
from dpnb.accounting.filters.sum_filter import SumFilter
from dpnb.accounting.losses import GDP, EpsilonLoss, Loss, PureGDP

__all__ = ["GDPReserveFilter"]

_STEPS = 16
"""How many repetitions beyond the reserve are counted one by one."""


@dataclass(frozen=True, init=False, repr=False)
class GDPReserveFilter(SumFilter[PureGDP]):
    """The `GDPResidueFilter` with a part of the budget set aside for pure-DP losses.

    The module has a proof.  `headroom` and `budget_fraction` are about the Gaussian part of the budget, unless that is
    0; `reserve_headroom` is about the reserve.

    Parameters
    ----------
    mu : Number
        The Gaussian part of the budget, at least 0; a float means its shortest decimal.
    pure_epsilon : Number
        The reserve, at least 0, in nats.
    delta : Number, default 0
        Budget for the losses' deltas, in [0, 1].

    Raises
    ------
    InvalidValueError
        A number is negative, or delta is above 1.

    Examples
    --------
    >>> from dpnb.accounting import GDP, GDPReserveFilter, PureDP
    >>> filter_ = GDPReserveFilter(mu=0.5, pure_epsilon=0.3).step(PureDP(0.2)).step(GDP(0.3))
    >>> filter_.affordable()
    PureGDP(mu=0.4, epsilon=0.1)
    >>> filter_.step(PureDP(0.2)).spent.epsilon  # it takes what is left of the reserve, and the rest jointly
    Fraction(3, 10)
    """

    def __init__(self, mu: Number, pure_epsilon: Number, delta: Number = 0.0) -> None:
        self._start(PureGDP(pure_epsilon, non_negative(mu, name="mu"), delta))

    @classmethod
    def from_loss(cls, budget: PureGDP) -> Self:
        """The filter whose budget is a loss, exact in mu squared.

        Parameters
        ----------
        budget : PureGDP
            The budget.

        Raises
        ------
        InvalidValueError
            As for the constructor.

        Examples
        --------
        >>> from dpnb.accounting import GDPReserveFilter, PureGDP
        >>> GDPReserveFilter.from_loss(PureGDP(0.1, mu=1)).reserve_headroom
        1.0
        """
        new = object.__new__(cls)
        new._start(budget)
        return new

    def to_filter_loss(self, loss: Loss) -> PureGDP:
        """The loss as this filter counts it in its current state; a `PureGDP` is counted as it is.

        Parameters
        ----------
        loss : Loss
            The loss of one release, or of a mechanism.

        Raises
        ------
        ConversionError
            The loss is neither GDP nor has an epsilon.

        Examples
        --------
        >>> from dpnb.accounting import GDPReserveFilter, PureDP
        >>> GDPReserveFilter(mu=1, pure_epsilon=0.1).to_filter_loss(PureDP(0.1))
        PureGDP(mu=0.0, epsilon=0.1)
        """
        return loss if isinstance(loss, PureGDP) else self.launch_charge(loss)

    def launch_charge(self, loss: Loss) -> PureGDP:
        """What a mechanism is charged at launch in the current state.

        Unlike `to_filter_loss`, also for a mechanism with both a pure and a Gaussian part, whose pure part may exceed
        what is left of the reserve.

        Parameters
        ----------
        loss : Loss
            The loss of the mechanism.

        Raises
        ------
        ConversionError
            The loss is neither GDP nor has an epsilon.

        Examples
        --------
        >>> from dpnb.accounting import GDPReserveFilter, PureGDP
        >>> GDPReserveFilter(mu=1, pure_epsilon=0.1).launch_charge(PureGDP(0.2, mu=0.5)).epsilon
        Fraction(1, 10)
        """
        if not isinstance(loss, EpsilonLoss | PureGDP):
            gaussian = convert(loss, GDP)
            return PureGDP.of(gaussian.mu_squared, gaussian.delta, Fraction(0))
        rest = loss.mu_squared if isinstance(loss, PureGDP) else Fraction(0)
        left = self.budget - self.spent
        if loss.epsilon <= left.epsilon:
            return PureGDP.of(rest, loss.delta, loss.epsilon)
        charge = residue_charge(loss.epsilon, mu_squared=left.mu_squared, pure_epsilon=left.epsilon)
        if charge is None:  # it does not fit
            alone = convert(loss, GDP).mu_squared if self.budget.mu_squared else rest
            return PureGDP.of(alone, loss.delta, loss.epsilon)
        return PureGDP.of(charge + rest, loss.delta, left.epsilon)

    @property
    def rule(self) -> str:
        """The rule that the filter enforces, in words."""
        if not self.budget.mu_squared:
            return f"the sum of the epsilons must stay within {decimal_down(self.budget.epsilon)!r}"
        return (
            f"the sum of mu^2 must stay within {decimal_sqrt_down(self.budget.mu_squared)!r}^2{self._delta_rule}, and "
            f"the sum of the epsilons in pure DP within the reserve {decimal_down(self.budget.epsilon)!r}"
        )

    def guaranteed_epsilon(self, delta: Number) -> float:
        """The epsilon for which all releases together are (epsilon, `delta`)-DP; see :class:`SumFilter`.

        :func:`~dpnb.accounting.conversions.epsilon_of_pure_gdp` at the part of `delta` that the filter's own leaves.

        Parameters
        ----------
        delta : Number
            In [0, 1).

        Examples
        --------
        >>> from dpnb.accounting import GDPReserveFilter
        >>> round(GDPReserveFilter(mu=0.21, pure_epsilon=0.15).guaranteed_epsilon(delta=1e-6), 3)
        1.0
        """
        return self._guarantee(
            delta, lambda good: epsilon_of_pure_gdp(self.budget.epsilon, self.budget.mu_squared, good)
        )

    @property
    def headroom(self) -> float:
        """The share of the Gaussian part that remains, 0 to 1, rounded down; without one, of the reserve."""
        return self._gaussian.headroom if self.budget.mu_squared else self.reserve_headroom

    @property
    def reserve_headroom(self) -> float:
        """The share of the reserve that remains, 0 to 1, rounded down; 0 if there is none."""
        whole = self.budget.epsilon
        return decimal_down(1 - self.spent.epsilon / whole) if whole else 0.0

    def budget_fraction(self, loss: Loss) -> float:
        """The share of the Gaussian part that `loss` takes, rounded up; without one, of the reserve.

        Parameters
        ----------
        loss : Loss
            The loss of one release, or of a mechanism.

        Raises
        ------
        ConversionError
            The loss is neither GDP nor has an epsilon.

        Examples
        --------
        >>> from dpnb.accounting import GDP, GDPReserveFilter, PureDP
        >>> filter_ = GDPReserveFilter(mu=1, pure_epsilon=0.1)
        >>> filter_.budget_fraction(GDP("0.5")), filter_.budget_fraction(PureDP(0.1))
        (0.25, 0.0)
        """
        counted = self.to_filter_loss(loss)
        if self.budget.mu_squared:
            return self._gaussian.budget_fraction(_gaussian_part(counted))
        return super().budget_fraction(counted)

    def max_repetitions(self, loss: Loss) -> int | None:
        """How many more losses like `loss` are admitted, rounded down; None if its cost is 0.

        Parameters
        ----------
        loss : Loss
            The loss of one release, or of a mechanism.

        Examples
        --------
        >>> from dpnb.accounting import GDPReserveFilter, PureDP
        >>> GDPReserveFilter(mu=0.3, pure_epsilon=1).max_repetitions(PureDP(0.2))
        6
        """
        if not isinstance(loss, EpsilonLoss | PureGDP):
            return super().max_repetitions(loss)
        if not loss:
            return None
        once = (loss.mu_squared if isinstance(loss, PureGDP) else Fraction(0), loss.delta, loss.epsilon)
        left = (self.budget - self.spent).parts
        inside = min(int(rest // part) for rest, part in zip(left, once, strict=True) if part)
        state = self._changed(spent=self.spent + PureGDP.of(*(inside * part for part in once)))
        for count in range(_STEPS):  # each of these takes what is left of the reserve, and more of the rest
            if not state.admits(loss):
                return inside + count
            state = state.step(loss)
        rest = GDPFilter.from_loss(_gaussian_part(state.budget - state.spent))
        return inside + _STEPS + (rest.max_repetitions(loss) or 0)

    @property
    def _gaussian(self) -> GDPResidueFilter:
        """The Gaussian part as a filter of its own."""
        return GDPResidueFilter.from_loss(_gaussian_part(self.budget)).step(_gaussian_part(self.spent))

    def _refusal(self, loss: Loss) -> str:
        left = self.budget - self.spent
        return refusal(
            rule=self.rule,
            loss=loss.format(up=True),
            left=left.format(up=False, with_delta=bool(self.budget.delta or loss.delta)),
            headroom=self.headroom,
            anything=bool(left.mu_squared or left.epsilon),
        )


def _gaussian_part(loss: PureGDP) -> GDP:
    return GDP.of(loss.mu_squared, loss.delta)
