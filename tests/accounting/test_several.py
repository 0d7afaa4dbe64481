"""What several sessions guarantee together, against sums and conversions that are computed here."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import dpnb
from dpnb.accounting import GDPFilter, PureDP
from dpnb.accounting.exact import exact
from dpnb.accounting.filters.several import Guaranteed, guaranteed_together
from dpnb.accounting.guarantee import make_guarantee

Budget = dpnb.Budget
ONE = Budget(epsilon=1, delta=1e-6)
MILLIONTH = Fraction(1, 10**6)


def session(name: str, budget: dpnb.Budget = ONE, *, individual: bool = False) -> Guaranteed:
    filter_ = make_guarantee(name, budget, individual=individual).initial_filter
    delta = Fraction(0) if budget.is_pure else budget.delta or MILLIONTH
    return Guaranteed(name, filter_, budget.epsilon or exact(filter_.guaranteed_epsilon(delta)), delta)


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Dong, Roth and Su 2022, Corollary 2.13, in doubles."""

    def excess(epsilon: float) -> float:
        tail = norm.cdf(-epsilon / mu - mu / 2)
        return float(norm.cdf(-epsilon / mu + mu / 2) - exp(epsilon) * tail - delta)

    return float(brentq(excess, 0, 50))


def test_squares_of_mu_add_and_are_converted_at_the_sum_of_the_deltas() -> None:
    total = guaranteed_together(
        [session("gdp"), session("gdp", Budget(0.5, 2e-6, 1e-7)), session("gdp", Budget.gdp(0.3))]
    )
    budgets = [ONE.loss, Budget(0.5, 2e-6, 1e-7).loss, Budget.gdp(0.3).loss]
    assert total.filter.budget is not None
    assert total.filter.budget.parts[:2] == (sum(one.mu_squared for one in budgets), Fraction(1, 10**7))
    assert total.delta == Fraction(4, 10**6)
    good = (4e-6 - 1e-7) / (1 - 1e-7)  # what the discoveries leave
    expected = epsilon_of_mu(float(sum(one.mu_squared for one in budgets)) ** 0.5, good)
    assert total.epsilon == pytest.approx(expected, rel=1e-9)  # of `brentq`
    # The control: mu does not add, and neither do epsilons, which would state more than is needed.
    assert epsilon_of_mu(sum(one.mu for one in budgets), good) > 1.5 * expected


@pytest.mark.parametrize(
    ("sessions", "kind", "guarantee"),
    [
        ([session("gdp", Budget.pure(0.3)), session("gdp", Budget.pure(0.4))], "pure DP", "0.7-DP"),
        ([session("zcdp"), session("zcdp")], "zCDP", "0.04872-zCDP"),
        ([session("zcdp", individual=True), session("gdp", individual=True)], "zCDP", "0.05238-zCDP"),
        ([session("approx-dp"), session("zcdp")], "zCDP", "0.04183-zCDP"),
        ([session("rdp"), session("rdp")], "RDP", "1.071-RDP of order 21.98"),
        ([session("rdp"), session("gdp")], "RDP", "1.152-RDP of order 21.98"),
        ([session("rdp"), session("rdp", Budget(2, 1e-6))], "basic", "sums of epsilon and delta"),  # other orders
        ([session("basic"), session("gdp")], "basic", "sums of epsilon and delta"),
        ([session("rogers"), session("rogers")], "basic", "sums of epsilon and delta"),
        ([session("gdp", Budget(6, 1e-6)), session("zcdp", Budget(0.01, 1e-6))], "basic", "sums of epsilon and delta"),
    ],
)
def test_each_kind_of_sum(sessions: list[Guaranteed], kind: str, guarantee: str) -> None:
    total = guaranteed_together(sessions)
    assert (total.filter.label, total.filter.guarantee) == (kind, guarantee)
    assert total.epsilon <= float(sum(one.epsilon for one in sessions)) * (1 + 1e-12)
    assert total.epsilon >= max(float(one.epsilon) for one in sessions) * 0.999
    assert total == guaranteed_together(sessions[::-1])


def test_one_filter_with_the_sum_admits_what_both_sessions_admit_in_any_order() -> None:
    """Of mechanisms in pure DP each session charges what they take from its own remainder: the sum is at least that."""
    filters = [GDPFilter(0.4, pure_epsilon=0.1), GDPFilter(0.3)]
    sessions = [Guaranteed("gdp", one, Fraction(1), MILLIONTH) for one in filters]
    both = guaranteed_together(sessions).filter
    for turn in range(12):
        loss, which = PureDP(("0.15", "0.07", "0.02")[turn % 3]), turn % 2
        if filters[which].admits(loss):
            filters[which], both = filters[which].step(loss), both.step(loss)
    assert both.headroom >= min(one.headroom for one in filters)
    assert min(one.headroom for one in filters) < 0.5
