"""What several sessions about one privacy unit guarantee together, whose answers anybody may have seen in any order.

Claim.  Let sessions 1 to n be about the same unit, and let their guarantees be fixed before the first answer of any of
them.  Requests to each of them may be chosen from the answers of all.  Then all their answers together have the
guarantee of one filter, whose budget is:

1. in Gaussian differential privacy, if all guarantees are: the sum of mu^2, of the deltas and of the reserves in pure
   DP;
2. in zCDP, if each is in GDP, zCDP or enforced by ``approx-dp``: the sum of rho, a GDP converted, and of the deltas;
3. in Renyi DP of one order, if each is of this order or can be converted to it: the sum of rho, and of the deltas;
4. always: (the sum of epsilon_i, the sum of delta_i)-DP, where session i is (epsilon_i, delta_i)-DP.

Proof.  Towards an analyst who uses the other sessions too, a session is an interactive mechanism with its guarantee:
that of a filter holds whatever its requests are chosen by.  The answers of all are then the concurrent composition of n
interactive mechanisms.

For 1 and 4, the concurrent composition of mechanisms with the trade-off functions f_i has the trade-off function
f_1 (x) ... (x) f_n, as if they ran one after another (Vadhan and Zhang 2023, arXiv:2207.08335; for losses that are
chosen on the way Haney et al. 2023, Section 3).  4 is basic composition.  For 1, a guarantee with the parts mu, d and E
has at least G_mu (x) f_(0, d) (x) f_(E, 0); the product of the first parts is G with the root of the sum of mu^2 (Dong,
Roth and Su 2022, Corollary 3.3), of the second at least f_(0, d_1 + ... + d_n), of the third at least f with the sum of
E.

For 2 and 3, all sessions together are one adversary's adaptive sequence of the steps of
:mod:`dpnb.accounting.filters.renyi`, also under individual accounting, where the losses of a step are those for the
unit in which the two tables differ.  The steps of each session stay within its budget, hence all of them within the
sum, as the losses of a sub-session do there; the claim of that module is then about all of them.  ∎

All four hold at the same time, so the one with the smallest epsilon at the sum of the deltas is stated.  Renyi
guarantees of different orders are not added, but converted for 4.

A guarantee that was chosen after answers of another session had been seen is not fixed beforehand, and the sum depends
on answers.  Then every filter whose budget was fixed beforehand and is at least the sum would have refused nothing of
all this, so that everything is within its guarantee: the reading of an accumulator (Haney et al. 2023).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpnb.accounting.convert import convert
from dpnb.accounting.filters.approx_dp import BasicFilter
from dpnb.accounting.filters.base import Filter
from dpnb.accounting.filters.gdp import GDPFilter
from dpnb.accounting.filters.renyi import RDPFilter, ZCDPFilter
from dpnb.accounting.losses import RDP, ZCDP, PureGDP
from dpnb.accounting.losses.gaussian import as_amount


@dataclass(frozen=True)
class Guaranteed:
    """What one session guarantees: the name of its filter, which is new, and the (epsilon, delta) that this implies."""

    name: str
    filter: Filter
    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True)
class Together:
    """What all of them guarantee: a filter with the sum as its budget, and the (epsilon, delta) that this implies."""

    filter: Filter
    epsilon: float  # rounded up
    delta: Fraction


def guaranteed_together(sessions: Sequence[Guaranteed]) -> Together:
    """The guarantee of several sessions whose budgets were fixed before the first answer of any; see the module."""
    delta = sum((one.delta for one in sessions), Fraction(0))
    basic = BasicFilter(sum((one.epsilon for one in sessions), Fraction(0)), delta)
    own = _own_sum(sessions)
    found = [basic] if own is None else [own, basic]
    best = min(found, key=lambda one: one.guaranteed_epsilon(delta))
    return Together(best, best.guaranteed_epsilon(delta), delta)


def _own_sum(sessions: Sequence[Guaranteed]) -> Filter | None:
    """The sum in the sessions' own kind of loss; None if they have none in common."""
    names = {one.name for one in sessions}
    budgets = [one.filter.budget for one in sessions]
    if names == {GDPFilter.name}:
        return GDPFilter.from_loss(PureGDP.of(*_summed(as_amount(budget).parts for budget in budgets)))
    if names <= {*ZCDPFilter.counted_filters}:
        return ZCDPFilter(0).with_budget(ZCDP.of(*_summed(convert(budget, ZCDP).parts for budget in budgets)))
    orders = {budget.orders for budget in budgets if isinstance(budget, RDP)}
    if len(orders) == 1 and names <= {*RDPFilter.counted_filters}:
        (curve,) = orders
        losses = [convert(budget, RDP, orders=curve) for budget in budgets]
        first = RDPFilter(dict(losses[0].curve), losses[0].delta)
        return first.with_budget(losses[0].with_parts(_summed(one.parts for one in losses)))
    return None


def _summed(parts: Iterable[tuple[Fraction, ...]]) -> tuple[Fraction, ...]:
    return tuple(sum(column, Fraction(0)) for column in zip(*parts, strict=True))
