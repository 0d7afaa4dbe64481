"""The GDP filter that keeps the residue of a pure-DP mechanism, instead of converting the mechanism to GDP first.

The state is the GDP budget r that is left, at the start mu0.  A mechanism whose trade-off function is at least f, for
every pair of neighbours and given any past, is admitted if some s >= 0 has f (x) G_s >= G_r; the new state is the
largest such s, the *residue* (Regehr et al. 2026, arXiv:2602.15815, call this the GDP residue filter).  For a Gaussian
release, s^2 = r^2 - mu^2, as in :mod:`dpnb.accounting.filters.gdp`; for an e-DP mechanism,
:mod:`dpnb.accounting.conversions.residue` computes it.

Claim.  However the mechanisms are chosen, all of them together are mu0-GDP.

Proof.  By induction over the number k of remaining rounds: from the state r, and given any past, the view of the
remaining rounds has a trade-off function of at least G_r.  For k = 0 the view is constant, and G_0 is the largest
trade-off function.  For k > 0 the choice of the next mechanism is a function of the past (condition on its coins, if it
is random), so its f, and with it s, are fixed before its outcome is seen.  Whatever the outcome, the view of the other
k - 1 rounds has at least G_s.  So the view is the composition of a mechanism with at least f and a family of mechanisms
with at least G_s each, hence has at least f (x) G_s (Dong, Roth and Su 2022, Theorem 3.2), which is at least G_r.  The
number of rounds need not be bounded: a violation would show after finitely many.  ∎

An interactive e-DP mechanism, such as a scan for values above a threshold, is for each pair of neighbours an
interactive post-processing of one bit of randomised response, drawn at its launch (Vadhan and Wang 2021).  Requests to
several of them in any order are choices of one adversary who sees the bits' post-processings, so the launch is one step
with f = RR(e), and later requests to it are free; see :mod:`dpnb.accounting.interleaving` for what this needs.

The charge r^2 - s^2 depends on r, unlike that of a Gaussian release.  A charge that was computed at r is valid, and
larger than necessary, at every larger state (:func:`~dpnb.accounting.conversions.residue_charge`), but not at a smaller
one: so it is computed once, when the mechanism is admitted, and added as it is.

Losses with a delta.  An (epsilon, delta)-DP mechanism is for each pair a post-processing of one that reveals the table
with probability delta and otherwise is RR(epsilon) (Kairouz, Oh and Viswanath 2015, Theorem 3.1); the notes of
:class:`dpnb.Budget` apply to its good part.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpnb.accounting.conversions import residue_charge
from dpnb.accounting.filters.gdp import GDPFilter
from dpnb.accounting.losses import GDP, EpsilonLoss, Loss, PureGDP

__all__ = ["GDPResidueFilter"]

_STEPS = 16
"""How many repetitions are counted one by one; the others have at most the charge of the conversion to GDP."""


@dataclass(frozen=True, init=False, repr=False)
class GDPResidueFilter(GDPFilter):
    """The `GDPFilter` with the smallest charge for pure-DP losses that its remaining budget allows.

    Regehr et al. 2026 (arXiv:2602.15815); the module has a proof.  For GDP losses nothing differs from `GDPFilter`.

    Parameters
    ----------
    mu : Number
        The budget mu0, at least 0; a float means its shortest decimal.
    delta : Number, default 0
        Budget for the losses' deltas, in [0, 1]; with 1 the `guaranteed_epsilon` is infinite.

    Raises
    ------
    InvalidValueError
        mu is negative or delta is outside [0, 1].

    Examples
    --------
    >>> from dpnb.accounting import GDPFilter, GDPResidueFilter, PureDP
    >>> [round(each(mu=0.2367).step(PureDP(0.15)).headroom, 2) for each in (GDPFilter, GDPResidueFilter)]
    [0.37, 0.56]
    """

    def to_filter_loss(self, loss: Loss) -> GDP:
        """The loss as GDP: for one with an epsilon, its charge at the remaining budget.

        Parameters
        ----------
        loss : Loss
            The loss of one release, or of a mechanism.

        Examples
        --------
        >>> from dpnb.accounting import GDPResidueFilter, PureDP
        >>> round(GDPResidueFilter(mu=1).to_filter_loss(PureDP(0.1)).mu, 4)
        0.1001
        """
        alone = super().to_filter_loss(loss)
        if not isinstance(loss, EpsilonLoss | PureGDP):
            return alone
        charge = residue_charge(loss.epsilon, mu_squared=self.budget.mu_squared - self.spent.mu_squared)
        if charge is None:
            return alone
        gaussian = loss.mu_squared if isinstance(loss, PureGDP) else Fraction(0)
        return GDP.of(min(charge + gaussian, alone.mu_squared), alone.delta)

    def launch_charge(self, loss: Loss) -> GDP:
        """What a mechanism is charged at launch in the current state: `to_filter_loss`.

        Parameters
        ----------
        loss : Loss
            The loss of the mechanism.
        """
        return self.to_filter_loss(loss)

    def max_repetitions(self, loss: Loss) -> int | None:
        """How many more losses like `loss` are admitted, rounded down; None if its cost is 0.

        A loss with an epsilon is charged more, the less is left.

        Parameters
        ----------
        loss : Loss
            The loss of one release, or of a mechanism.

        Examples
        --------
        >>> from dpnb.accounting import GDPFilter, GDPResidueFilter, PureDP
        >>> GDPResidueFilter(mu=1).max_repetitions(PureDP(0.3)), GDPFilter(mu=1).max_repetitions(PureDP(0.3))
        (10, 7)
        """
        if not isinstance(loss, EpsilonLoss | PureGDP):
            return super().max_repetitions(loss)
        if not loss:
            return None
        state = self
        for count in range(_STEPS):
            if not state.admits(loss):
                return count
            state = state.step(loss)
        return _STEPS + (GDPFilter.from_loss(state.budget - state.spent).max_repetitions(loss) or 0)
