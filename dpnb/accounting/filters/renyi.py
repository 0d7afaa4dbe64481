"""The filters of (approximate) zCDP, which is zero-concentrated differential privacy, and of Renyi privacy.

Claim.  Let release m, given the past, be delta_m-approximate Renyi DP with losses rho_m(a) at the orders a, all of them
chosen from the past, and let the sum of the deltas never exceed delta and, at each order, the sum of the losses never
exceed budget(a).  Then all releases together are delta-approximate Renyi DP with the losses budget(a), at all orders.

Without deltas this is Feldman and Zrnic 2021, Theorem 4.3, at each order.  For zCDP with deltas it is Whitehouse et
al. 2023, Theorem 1, whose argument needs no more of the good parts than that their divergences are bounded at fixed
orders.  The proof that follows covers both.

Proof.  Fix two neighbours, and the analyst's coins.  Given a past y, release m has the distributions
(1 - delta_m) P'_m + delta_m P"_m and (1 - delta_m) Q'_m + delta_m Q"_m, where delta_m is a function of y, so it is the
same for both neighbours.  Let P* and Q* be the distributions of all answers if every release were drawn from its good
part, P'_m or Q'_m.  Under P* and Q* the sums of the losses stay within the budgets for every course of the answers, so
P* and Q* have Renyi divergences of at most budget(a), in both directions (Feldman and Zrnic 2021, Theorem 4.3).  At
every course of the answers the density of P is at least that of P* times the product of all 1 - delta_m, and that
product is at least 1 - (delta_1 + delta_2 + ...), which is at least 1 - delta.  So P >= (1 - delta) P* as measures,
and what is missing, divided by delta, is a distribution: P is (1 - delta) P* plus delta times it.  The same holds for
Q with Q*.  ∎

The decomposition does not depend on the order, so the claim holds for all orders at once, and the conversion to
(epsilon, delta) may use the best order: for P >= (1 - d) P* and a total delta, Whitehouse et al. 2023, Lemma 1, leaves
(delta - d)/(1 - d) for the good part.  The same delta cannot serve both the losses' deltas and the conversion, as
Theorem 2 of that paper is printed.

Interactive mechanisms.  Without a delta and for one order, arbitrary ones may be interleaved (Haney et al. 2023,
Theorem 4.6).  With a delta their concurrent composition is open (Section 4), but the mechanisms of dpnb are not
arbitrary.

Claim.  What a session admits under this filter, or under one of approximate zCDP, is private as above although
scans, sub-sessions, parts, noise reductions and gradient descents are interleaved with each other and with queries.

Proof.  Fix two neighbours.  Call a *step* the draw of one noisy answer, which is not interactive: given everything
drawn before it, it is delta_m-approximate Renyi DP with losses rho_m(a), all of them known before it.  Every history is
a randomised function of steps.

* A query, an observation of a noise reduction, a gradient of a descent, a query in a part or in a sub-session, and a
  comparison with Gaussian noise are steps themselves.
* A scan with Laplace noise is epsilon-DP for every sequence of queries chosen from its answers.  For these two
  neighbours it is therefore a randomised function of one bit of randomised response with that epsilon, which can be
  drawn at the launch (Vadhan and Wang 2021): one step.

The analyst, together with these functions, is one adversary, who chooses each step after all earlier ones.  So the
claim above applies, if the losses of all steps stay within the budgets.  They do, since the filter has admitted at
least as much, at each order and for the deltas, however far each mechanism has come:

* A query, an observation or a gradient is charged with its own step.  In a partition the two neighbours differ in at
  most p parts, and what is charged is at least the sum of the p parts that were charged most
  (:mod:`dpnb.accounting.partition_cost`).
* A scan is charged its epsilon at launch: a Renyi loss of randomised response, or with Gaussian noise that of all its
  comparisons.
* A sub-session is charged at launch the budget of its filter, converted.  Its own steps stay within that budget in the
  filter's own kind of loss, and a conversion to rho(a) grows at least as fast as its argument: a/2 mu^2 for GDP, a rho
  for zCDP, a line or the least of several lines in the losses of other orders for RDP, and epsilon tanh(epsilon/2), or
  the loss of randomised response, for pure DP, of which a sum of parts costs no more than the whole, since the
  composition of e1-DP and e2-DP is (e1 + e2)-DP, and Renyi divergences of non-interactive steps add.  Under the GDP
  filter a pure loss e takes r to r' such that randomised response with e beside G_r' is at least G_r
  (:mod:`dpnb.accounting.conversions.residue`, and likewise with a reserve); the Renyi divergences of the first are then
  at most those of the second, so e costs at most a/2 (r^2 - r'^2).
* A mechanism launched inside a sub-session: the same, by induction.

A mechanism of somebody else's, which consists of no such steps, has no place in a session. ∎

The number of orders does not matter here: non-interactive steps satisfy the claim above at all orders at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from dpnb.accounting.budget import Budget
from dpnb.accounting.conversions import (
    epsilon_from_curve,
    epsilon_from_rho,
    optimal_order,
    rdp_from_epsilon,
    rho_from_epsilon,
)
from dpnb.accounting.convert import convert
from dpnb.accounting.exact import Number, decimal_down, decimal_up, display_down, display_up, exact, non_negative
from dpnb.accounting.filters.sum_filter import SumFilter
from dpnb.accounting.losses import RDP, ZCDP, Loss


@dataclass(frozen=True, init=False, repr=False)
class ZCDPFilter(SumFilter[ZCDP]):
    """Admits losses while the sum of rho stays within the budget; then all releases together are rho-zCDP.

    Whitehouse et al. 2023, Theorem 1; without a delta also Feldman and Zrnic 2021, Remark 4.4, and, for interactive
    mechanisms in any interleaving, Haney et al. 2023, Theorem 4.10.  With a delta, concurrent composition of arbitrary
    mechanisms is open; those of a session may be interleaved (:ref:`proof-renyi-differential-privacy`).  RDP of
    finitely many orders does not imply zCDP.  The `guaranteed_epsilon` is that of Canonne, Kamath and Steinke 2020, at
    the part of delta that the filter's own delta leaves.

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
        epsilon, delta = cls._epsilon_delta(budget, discovery=True)
        return cls(rho_from_epsilon(epsilon, delta=delta), budget.discovery_delta)

    def to_filter_loss(self, loss: Loss) -> ZCDP:
        return loss if type(loss) is ZCDP else convert(loss, ZCDP)

    @property
    def rule(self) -> str:
        return f"the sum of rho must stay within {display_down(decimal_down(self.budget.rho))}{self._delta_rule}"

    @property
    def guarantee(self) -> str:
        """What is guaranteed, for example ``0.5-zCDP``."""
        return f"{display_up(decimal_up(self.budget.rho))}-zCDP"

    def guaranteed_epsilon(self, delta: Number) -> float:
        return self._guarantee(delta, lambda good: epsilon_from_rho(self.budget.rho, delta=good))


@dataclass(frozen=True, init=False, repr=False)
class RDPFilter(SumFilter[RDP]):
    """Admits losses while, at every order, the sum of Renyi losses stays within that order's budget.

    Feldman and Zrnic 2021, Theorem 4.3, for one order.  Losses may have a delta, as approximate Renyi DP (the argument
    of Whitehouse et al. 2023, Theorem 1): the sum of the deltas stays within the filter's delta, and all releases
    together are approximate Renyi DP with that delta and these budgets.  With several orders, all of them must admit
    the loss.  To continue while *some* order has budget left is not private: a first answer could choose which order
    to exhaust.  The `guaranteed_epsilon` is the smallest over the orders, whose budgets were fixed beforehand (Canonne,
    Kamath and Steinke 2020, Prop. 12), at the part of delta that the filter's own delta leaves.

    Parameters
    ----------
    budget : mapping of Number to Number
        The budget of each order; orders above 1, budgets at least 0.
    delta : Number, default 0
        Budget for the losses' deltas, in [0, 1]; with 1 the `guaranteed_epsilon` is infinite.

    Raises
    ------
    InvalidValueError
        No order, one that is not above 1, a negative budget, or a delta outside [0, 1].

    Notes
    -----
    The proof is in :ref:`proof-renyi-differential-privacy`.  Interactive mechanisms may run concurrently under one
    order without a delta (Haney et al. 2023, Theorem 4.6); otherwise this is open for arbitrary mechanisms, and proved
    for those of a session.

    Examples
    --------
    >>> from dpnb.accounting import GDP, RDPFilter
    >>> filter_ = RDPFilter({10: 5, 20: 8}).step(GDP(0.5))
    >>> filter_.spent, filter_.admits(GDP(0.8)), round(filter_.guaranteed_epsilon(delta=1e-6), 3)
    (RDP({10.0: 1.25, 20.0: 2.5}), False, 6.174)

    Losses with a delta:

    >>> filter_ = RDPFilter({10: 5}, delta=1e-6).step(GDP(0.5, delta=4e-7))
    >>> filter_.affordable(), filter_.admits(GDP(0.5, delta=7e-7))
    (RDP({10.0: 3.75}, delta=6e-07), False)
    """

    name = "rdp"
    is_served = True
    label = "RDP"
    theorem = "Feldman and Zrnic 2021, Theorem 4.3: the Renyi loss of one order chosen beforehand"
    measure = "rho"
    counts_range = True
    interleaving_obstacle = None  # Haney et al. 2023, Theorem 4.6; with a delta or several orders see this module
    counted_filters = ("rdp", "zcdp", "gdp", "approx-dp")

    def __init__(self, budget: Mapping[Any, Number], delta: Number = 0.0) -> None:
        self._start(RDP(budget, delta))

    @classmethod
    def from_budget(cls, budget: Budget) -> Self:
        """The filter that enforces a declared budget.

        It has the order that admits the most Gaussian releases.  Several orders must all admit, and for Gaussian
        releases the best one alone admits as much as zCDP's whole curve.
        """
        epsilon, delta = cls._epsilon_delta(budget, discovery=True)
        order = exact(optimal_order(epsilon, delta=delta))
        return cls({order: rdp_from_epsilon(epsilon, order=order, delta=delta)}, budget.discovery_delta)

    def to_filter_loss(self, loss: Loss) -> RDP:
        if isinstance(loss, RDP) and loss.orders == self.budget.orders:
            return loss
        return convert(loss, RDP, orders=self.budget.orders)

    @property
    def rule(self) -> str:
        curve = RDP(dict(self.budget.curve)).format(up=False, digits=4)
        return f"at each order the sum of Renyi losses must stay within {curve}{self._delta_rule}"

    @property
    def guarantee(self) -> str:
        """What is guaranteed; the loss grows with the order, so it holds at every lower one and is rounded down."""
        order, rho = self.budget.curve[0]
        return f"{display_up(decimal_up(rho))}-RDP of order {display_down(decimal_down(order), 6)}"

    @property
    def spent_words(self) -> str:
        """The loss at the first order."""
        return f"{super().spent_words} at order {decimal_up(self.budget.orders[0]):g}"

    def guaranteed_epsilon(self, delta: Number) -> float:
        return self._guarantee(delta, lambda good: epsilon_from_curve(self.budget.curve, good))
