"""The GDP filters that charge a pure-DP mechanism what it takes from the remaining budget, or a reserve."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accounting.test_filters import GrowsInEveryPart
from contracts.filters import FilterContract
from dpnb.accounting import GDPAccumulator, GDPFilter, SpentAccumulator, convert
from dpnb.accounting.budget import Budget
from dpnb.accounting.conversions import delta_from_mu, epsilon_of_pure_gdp, mu_beside_reserve, mu_from_epsilon
from dpnb.accounting.exact import exact
from dpnb.accounting.losses import GDP, RDP, ZCDP, ApproxDP, Loss, PureDP, PureGDP
from dpnb.errors import BudgetExceeded, ConversionError, InvalidValueError
from rationals import fractions

ONE = Budget(epsilon=1, delta=1e-6)
SIGMA_70 = GDP(Fraction(1, 70))

#: The reserve, epsilon, delta, and the mu beside it, computed with 30 digits.
RESERVES = [
    ("0.05", 1, "1e-6", "0.23194971406064849"),
    ("0.15", 1, "1e-6", "0.21007302694593066"),
    ("0.3", 1, "1e-6", "0.17485397745998452"),
    ("0.5", 2, "1e-8", "0.2923209427981774"),
]


class TestOfGaussianLosses(GrowsInEveryPart):
    def fresh(self) -> GDPFilter:
        return GDPFilter("3/7")

    def costing(self, share: Fraction) -> GDP:
        return GDP.from_mu_squared(share * Fraction(9, 49))


class OfPureLosses(FilterContract):
    """Every charge depends on what is left, so the order matters, and only a lower bound of the repetitions is
    known."""

    def larger(self, loss: Any) -> list[Loss]:
        return [loss.with_parts((loss.parts[0] + Fraction(1, 10**60), *loss.parts[1:]))]

    test_order_of_losses_does_not_matter = None  # type: ignore[assignment]
    test_times_is_how_often_step_admits = None  # type: ignore[assignment]

    def test_at_least_the_named_number_of_repetitions_is_admitted(self) -> None:
        state: Any = self.fresh()
        loss = self.costing(Fraction(1, 6))
        times = state.max_repetitions(loss)
        assert times > 3
        for _ in range(times):
            state = state.step(loss)
        assert not state.admits(loss) or times > 16
        assert state.max_repetitions(self.costing(Fraction(0))) is None


class TestOfPureLosses(OfPureLosses):
    def fresh(self) -> GDPFilter:
        return GDPFilter(1)

    def costing(self, share: Fraction) -> PureDP:
        return PureDP(share * Fraction(4, 5))


class TestReserve(GrowsInEveryPart):
    def fresh(self) -> GDPFilter:
        return GDPFilter("3/7", "1e-7", "2/3")

    def costing(self, share: Fraction) -> PureGDP:
        return PureGDP.of(share * Fraction(9, 49), share * Fraction(1, 10**7), share * Fraction(2, 3))


class TestReserveOfPureLosses(OfPureLosses):
    def fresh(self) -> GDPFilter:
        return GDPFilter(1, pure_epsilon="0.1")

    def costing(self, share: Fraction) -> PureDP:
        return PureDP(share * Fraction(4, 5))


@pytest.mark.parametrize(
    ("budget", "epsilon", "left"),
    [
        (ONE, "0.05", 0.955),
        (ONE, "0.1", 0.815),
        (ONE, "0.15", 0.557),
        (Budget(2, 1e-6), "0.15", 0.886),
        (Budget(2, 1e-6), "0.3", 0.498),
    ],
)
def test_what_is_left_of_a_fresh_budget_after_one_launch(budget: Budget, epsilon: str, left: float) -> None:
    after = GDPFilter.from_loss(budget.loss).step(PureDP(epsilon))
    assert after.headroom == pytest.approx(left, abs=6e-4)
    converted = convert(PureDP(epsilon), GDP)
    assert after.headroom > GDPFilter.from_loss(budget.loss).step(converted).headroom + 0.01


def test_gaussian_queries_at_sigma_70_are_as_many_as_under_the_gdp_filter() -> None:
    assert GDPFilter.from_loss(ONE.loss).max_repetitions(SIGMA_70) == 274


@pytest.mark.parametrize(
    ("reserve", "queries"), [("0.05", 263), ("0.1", 240), ("0.15", 216), ("0.2", 192), ("0.3", 149)]
)
def test_a_reserve_leaves_fewer_gaussian_queries(reserve: str, queries: int) -> None:
    budget = Budget(1, 1e-6, pure_epsilon=reserve)
    fresh = GDPFilter.from_loss(PureGDP(reserve, mu=budget.loss.mu))
    assert fresh.max_repetitions(SIGMA_70) == queries
    after = fresh.step(PureDP(reserve))
    assert after.max_repetitions(SIGMA_70) == queries
    assert after.reserve_headroom == 0
    assert after.headroom == 1


@pytest.mark.parametrize(("reserve", "epsilon", "delta", "mu"), RESERVES)
def test_mu_beside_a_reserve_is_the_reference_rounded_down(reserve: str, epsilon: int, delta: str, mu: str) -> None:
    found = exact(mu_beside_reserve(epsilon, delta=delta, pure_epsilon=reserve))
    assert 0 <= exact(mu) - found < Fraction(1, 10**15)
    assert epsilon_of_pure_gdp(exact(reserve), found**2, exact(delta)) <= epsilon


def profile(reserve: Fraction, mu_squared: Fraction, epsilon: float) -> Any:
    with mpmath.workdps(50):
        # A double means its shortest decimal.
        mu, e = mpmath.sqrt(mpmath.mpf(mu_squared.numerator) / mu_squared.denominator), mpmath.mpf(repr(float(reserve)))
        p = 1 / (1 + mpmath.exp(-e))

        def gaussian(x: Any) -> Any:
            return mpmath.ncdf(mu / 2 - x / mu) - mpmath.exp(x) * mpmath.ncdf(-mu / 2 - x / mu)

        x = mpmath.mpf(repr(epsilon))
        return p * gaussian(x - e) + (1 - p) * gaussian(x + e)


@example(Fraction(1, 25), Fraction(1, 20), "1e-9")
@given(
    fractions(0, 2, max_denominator=50),
    fractions(Fraction(1, 20), 4, max_denominator=50),
    st.sampled_from(["1e-9", "1e-3", "0.05", "0.3"]),
)
def test_epsilon_of_both_together_is_where_their_profile_is_delta(
    reserve: Fraction, mu_squared: Fraction, delta: str
) -> None:
    reserve = exact(float(reserve))
    epsilon = epsilon_of_pure_gdp(reserve, mu_squared, exact(delta))
    with mpmath.workdps(50):
        assert profile(reserve, mu_squared, epsilon) <= mpmath.mpf(delta)
        if epsilon > 1e-6:
            assert profile(reserve, mu_squared, epsilon * (1 - 1e-9)) > mpmath.mpf(delta)


@pytest.mark.parametrize("reserve", ["1e4", "1e9", "1e99"])
def test_large_reserve_leaves_what_a_small_epsilon_would(reserve: str) -> None:
    """Where e^E is astronomical, only the difference of both epsilons counts."""
    mu = mu_beside_reserve(Fraction(reserve) + 1, delta="1e-6", pure_epsilon=reserve)
    assert mu == pytest.approx(mu_from_epsilon(1, delta="1e-6"), rel=1e-12)
    assert Budget(Fraction(reserve) * 2, "1e-6", pure_epsilon=reserve).loss.mu > mu


def test_reserve_of_nothing_is_the_plain_conversion() -> None:
    assert mu_beside_reserve(1, delta=1e-6, pure_epsilon=0) == ONE.loss.mu
    mu = mu_beside_reserve(1, delta=1e-6, pure_epsilon="0.999")
    assert 0 < mu < 1e-3
    assert 1e-6 < delta_from_mu(mu, epsilon="0.001") < 2e-6  # and the bit is right with probability below 3/4


@pytest.mark.parametrize("bad", [-0.1, 1, 2, float("nan"), float("inf")])
def test_reserve_is_at_least_0_and_below_epsilon(bad: float) -> None:
    with pytest.raises(InvalidValueError, match=r"^pure_epsilon"):
        Budget(1, 1e-6, pure_epsilon=bad)


def test_budget_with_a_reserve_is_stored_and_read() -> None:
    budget = Budget(1, 1e-6, 1e-8, pure_epsilon="0.15")
    assert Budget.from_json(budget.to_json()) == budget
    assert repr(budget) == "Budget(epsilon=1.0, delta=1e-06, discovery_delta=1e-08, pure_epsilon=0.15)"
    assert "pure_epsilon" not in ONE.to_json()


def test_launch_beyond_the_reserve_takes_what_is_left_of_it_and_one_joint_charge() -> None:
    budget = Budget(1, 1e-6, pure_epsilon="0.15")
    fresh = GDPFilter.from_loss(PureGDP("0.15", mu=budget.loss.mu))
    after = fresh.step(PureDP("0.2"))
    assert after.reserve_headroom == 0
    with pytest.raises(BudgetExceeded):  # whole through the rest of the budget, without the reserve
        GDPFilter.from_loss(budget.loss).step(PureDP("0.2"))
    split = GDPFilter.from_loss(budget.loss).step(PureDP("0.05"))  # what must not be done
    assert after.spent.mu_squared > 5 * split.spent.mu_squared


def test_what_is_left_of_the_reserve_is_not_for_gaussian_releases() -> None:
    spent = GDPFilter(mu=1, pure_epsilon="0.5").step(GDP(1))
    assert spent.headroom == 0
    assert spent.reserve_headroom == 1
    assert not spent.admits(GDP("1e-9"))
    assert spent.admits(PureDP("0.5"))
    assert not spent.admits(PureDP("0.500001"))


def test_reserve_alone_is_a_budget_in_pure_dp() -> None:
    alone = GDPFilter(mu=0, pure_epsilon=1)
    half = alone.step(PureDP("0.5"))
    assert half.headroom == half.reserve_headroom == 0.5
    assert half.guaranteed_epsilon(0) == 1
    assert not half.admits(GDP("0.001"))
    assert half.max_repetitions(PureDP("0.25")) == 2


def test_mechanism_with_a_delta_is_charged_for_both() -> None:
    state = GDPFilter(mu=1, pure_epsilon="0.5", delta="1e-6").step(ApproxDP("0.2", "1e-7"))
    assert (state.spent.epsilon, state.spent.delta) == (Fraction(1, 5), Fraction(1, 10**7))
    assert GDPFilter(1, "1e-6").step(ApproxDP("0.2", "1e-7")).spent.delta == Fraction(1, 10**7)


def test_mechanism_with_a_pure_and_a_gaussian_part_is_charged_for_both() -> None:
    both = PureGDP("0.2", mu="0.5")
    residue = GDPFilter(1)
    assert residue.step(both).spent == residue.step(PureDP("0.2")).step(GDP("0.5")).spent
    reserve = GDPFilter(1, pure_epsilon="0.1")
    charge = reserve.launch_charge(both)
    assert charge.mu_squared == reserve.launch_charge(PureDP("0.2")).mu_squared + Fraction(1, 4)
    assert reserve.to_filter_loss(both) == both  # as it is written in a ledger


def test_conversions_of_both_are_the_sums_of_the_conversions() -> None:
    both, pure, gaussian = PureGDP("0.2", mu="0.5", delta="1e-9"), PureDP("0.2"), GDP("0.5", "1e-9")
    assert convert(both, GDP) == convert(pure, GDP) + gaussian
    assert convert(both, ZCDP) == convert(pure, ZCDP) + convert(gaussian, ZCDP)
    orders = [2, 8]
    without = PureGDP("0.2", mu="0.5")
    for each, part in ((both, gaussian), (without, GDP("0.5"))):
        assert convert(each, RDP, orders=orders) == convert(pure, RDP, orders=orders) + convert(
            part, RDP, orders=orders
        )
    together = convert(without, ApproxDP, delta="1e-6").epsilon
    assert convert(GDP("0.5"), ApproxDP, delta="1e-6").epsilon < together
    assert together < convert(GDP("0.5"), ApproxDP, delta="1e-6").epsilon + exact("0.2")


def test_accumulator_does_not_read_charges_that_hold_for_one_budget_only() -> None:
    """Attack: launch where much is left, then read a bound for every budget from the sum of the charges."""
    state = GDPFilter(2).step(PureDP(1))
    for filter_ in (state, GDPFilter(1, pure_epsilon="0.1"), GDPFilter.from_loss(PureGDP(0, mu=2)).step(PureDP(1))):
        with pytest.raises(ConversionError, match="GDPAccumulator"):
            SpentAccumulator(filter_)
    alone = GDPAccumulator().step(PureDP(1)).mu_squared
    control = SpentAccumulator.from_loss(state.spent)
    assert control.bound**2 < float(alone)
    assert not GDPFilter.from_loss(GDP.from_mu_squared(state.spent.mu_squared)).admits(PureDP(1))
