"""The filter of Gaussian differential privacy.

Claim (Smith and Thakurta 2022, Theorem 1).  If each release is mu_i-GDP given the past, with mu_i chosen from the
past, and the sum of mu_i^2 never exceeds mu0^2, then all releases together are mu0-GDP.

Proof, by a Brownian motion.  Fix two neighbours, with b = 0 for one and b = 1 for the other.  Given the past, release
i is a randomised function of a draw from N(b mu_i, 1) that does not otherwise depend on b (Blackwell's theorem; Dong,
Roth and Su 2022).  So it suffices to make all these draws from one draw from N(b mu0, 1).

Let X_t = b t + B_t for t from 0 to mu0^2, B a Brownian motion.  Its end is N(b mu0^2, mu0^2), hence, divided by mu0, a
draw from N(b mu0, 1).  Given its end, X is a Brownian bridge, whose distribution does not depend on b; so the whole
path is a randomised function of that draw.  Let T_i = mu_1^2 + ... + mu_i^2 and use the draws::

    (X at T_i - X at T_(i-1)) / mu_i    (or a fresh N(0, 1), if mu_i = 0)

Since mu_i is known at the time T_(i-1), and what X does after that time is a Brownian motion with the same drift that
is independent of the past, draw i is N(b mu_i, 1) given the past.  All T_i are at most mu0^2, so the path is long
enough.  ∎

The argument does not need a bound on the number of releases.  For releases with a delta see the notes of
:class:`dpnb.Budget`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from dpnb.accounting.conversions import epsilon_of_gdp
from dpnb.accounting.convert import convert
from dpnb.accounting.exact import Number, decimal_sqrt_down, non_negative
from dpnb.accounting.filters.sum_filter import SumFilter
from dpnb.accounting.losses import GDP, Loss

__all__ = ["GDPFilter"]


@dataclass(frozen=True, init=False, repr=False)
class GDPFilter(SumFilter[GDP]):
    """Admits losses while the sum of mu squared stays within mu0 squared; then all releases together are mu0-GDP.

    Smith and Thakurta 2022 (Fully Adaptive Composition for Gaussian Differential Privacy), Theorem 1: the bound is the
    same as for mus fixed in advance.  Losses may have a delta; the sum of the deltas stays within the filter's delta.

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
    >>> half = GDPFilter(1).step(GDP("0.6"))
    >>> half.headroom, half.affordable(), half.admits(GDP(0.8)), half.admits(GDP(0.81))
    (0.64, GDP(mu=0.8), True, False)
    """

    def __init__(self, mu: Number, delta: Number = 0.0) -> None:
        self._start(GDP(non_negative(mu, name="mu"), delta))

    @classmethod
    def from_loss(cls, budget: GDP) -> Self:
        """The filter whose budget is a loss, exact in mu squared.

        Parameters
        ----------
        budget : Loss
            A loss of the same kind.

        Raises
        ------
        ConversionError
            The budget is not GDP.
        InvalidValueError
            As for the constructor.

        Examples
        --------
        >>> from dpnb.accounting import GDP, GDPFilter
        >>> GDPFilter.from_loss(GDP(mu=1))
        GDPFilter(budget=GDP(mu=1.0), spent=GDP(mu=0.0))
        """
        new = object.__new__(cls)
        new._start(convert(budget, GDP))
        return new

    def to_filter_loss(self, loss: Loss) -> GDP:
        """The loss as GDP; ZCDP and RDP do not imply it.

        Parameters
        ----------
        loss : Loss
            The loss of one release.

        Examples
        --------
        >>> from dpnb.accounting import GDPFilter, PureDP
        >>> round(GDPFilter(mu=1).to_filter_loss(PureDP(0.1)).mu, 4)
        0.1253
        """
        return loss if type(loss) is GDP else convert(loss, GDP)

    @property
    def rule(self) -> str:
        """The rule that the filter enforces, in words."""
        return f"the sum of mu^2 must stay within {decimal_sqrt_down(self.budget.mu_squared)!r}^2{self._delta_rule}"

    def guaranteed_epsilon(self, delta: Number) -> float:
        """The epsilon for which all releases together are (epsilon, `delta`)-DP; see :class:`SumFilter`.

        Dong, Roth and Su 2022, Corollary 2.13, at the part of `delta` that the filter's own delta leaves.

        Parameters
        ----------
        delta : Number
            In [0, 1).

        Examples
        --------
        >>> from dpnb.accounting import GDPFilter
        >>> round(GDPFilter(mu=1).guaranteed_epsilon(delta=1e-6), 3)
        4.887
        """
        return self._guarantee(delta, lambda good: epsilon_of_gdp(self.budget.mu_squared, good))
