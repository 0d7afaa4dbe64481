"""The filter of (approximate) zero-concentrated differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from dpnb.accounting.budget import Budget
from dpnb.accounting.conversions import epsilon_from_rho, rho_from_epsilon
from dpnb.accounting.convert import convert
from dpnb.accounting.exact import Number, decimal_down, decimal_up, display_down, display_up, non_negative
from dpnb.accounting.filters.sum_filter import SumFilter
from dpnb.accounting.losses import ZCDP, Loss


@dataclass(frozen=True, init=False, repr=False)
class ZCDPFilter(SumFilter[ZCDP]):
    """Admits losses while the sum of rho stays within the budget; then all releases together are rho-zCDP.

    Whitehouse et al. 2023, Theorem 1; without a delta also Feldman and Zrnic 2021, Remark 4.4, and, for interactive
    mechanisms in any interleaving, Haney et al. 2023, Theorem 4.10.  With a delta, concurrent composition of arbitrary
    mechanisms is open; those of a session may be interleaved (:ref:`proof-renyi-differential-privacy`).

    Parameters
    ----------
    rho : Number
        At least 0; a float means its shortest decimal.
    delta : Number, default 0
        Budget for the losses' deltas, in [0, 1]; with 1 the `guaranteed_epsilon` is infinite.

    Raises
    ------
    InvalidValueError
        rho is negative or delta is outside [0, 1].

    Examples
    --------
    >>> from dpnb.accounting import GDP, ZCDPFilter
    >>> filter_ = ZCDPFilter(rho=0.5).step(GDP(0.6))
    >>> filter_.affordable(), round(filter_.guaranteed_epsilon(delta=1e-6), 3)
    (ZCDP(rho=0.32), 5.222)
    """

    name = "zcdp"
    is_served = True
    label = "zCDP"
    theorem = "Feldman and Zrnic 2021, Remark 4.4, and Whitehouse et al. 2023, Theorem 1: the sum of rho"
    measure = "rho"
    counts_range = True
    interleaving_obstacle = None  # Haney et al. 2023, Theorem 4.10; with a delta see `renyi`
    counted_filters = ("zcdp", "gdp", "approx-dp")

    def __init__(self, rho: Number, delta: Number = 0.0) -> None:
        self._start(ZCDP(non_negative(rho, name="rho"), delta))

    @classmethod
    def from_budget(cls, budget: Budget) -> Self:
        """The filter that enforces a declared budget."""
        epsilon, delta = cls._epsilon_delta(budget, discovery=True)
        return cls(rho_from_epsilon(epsilon, delta=delta), budget.discovery_delta)

    def to_filter_loss(self, loss: Loss) -> ZCDP:
        """The loss as zCDP; RDP of finitely many orders does not imply it.

        Parameters
        ----------
        loss : Loss
            The loss of one release.

        Examples
        --------
        >>> from dpnb.accounting import GDP, ZCDPFilter
        >>> ZCDPFilter(rho=1).to_filter_loss(GDP(mu=1))
        ZCDP(rho=0.5)
        """
        return loss if type(loss) is ZCDP else convert(loss, ZCDP)

    @property
    def rule(self) -> str:
        return f"the sum of rho must stay within {display_down(decimal_down(self.budget.rho))}{self._delta_rule}"

    @property
    def guarantee(self) -> str:
        """What is guaranteed, for example ``0.5-zCDP``."""
        return f"{display_up(decimal_up(self.budget.rho))}-zCDP"

    def guaranteed_epsilon(self, delta: Number) -> float:
        """The epsilon for which all releases together are (epsilon, `delta`)-DP; see `Filter.guaranteed_epsilon`.

        Canonne, Kamath and Steinke 2020, at the part of `delta` that the filter's own delta leaves.

        Parameters
        ----------
        delta : Number
            In [0, 1).

        Examples
        --------
        >>> from dpnb.accounting import ZCDPFilter
        >>> round(ZCDPFilter(rho="0.5").guaranteed_epsilon(delta=1e-6), 3)
        5.222
        """
        return self._guarantee(delta, lambda good: epsilon_from_rho(self.budget.rho, delta=good))
