"""Each filter: the contract, and what is its own."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.filters import FilterContract, OtherKindOfLoss, SumFilterContract
from dpnb.accounting.conversions import epsilon_from_mu, epsilon_from_rho, mu_from_pure, residue_charge, rho_from_pure
from dpnb.accounting.convert import convert
from dpnb.accounting.exact import Number, exact
from dpnb.accounting.filters import (
    ApproxDPFilter,
    BasicFilter,
    Filter,
    GDPFilter,
    RDPFilter,
    RogersFilter,
    ZCDPFilter,
)
from dpnb.accounting.filters.rogers import mean_loss
from dpnb.accounting.losses import GDP, RDP, ZCDP, ApproxDP, Loss, PointwiseDP, PureDP
from dpnb.accounting.odometers import (
    ApproxDPAccumulator,
    BasicOdometer,
    GDPAccumulator,
    MixtureOdometer,
    RDPAccumulator,
    RenyiOdometer,
    RenyiTracker,
    RogersOdometer,
    ZCDPAccumulator,
)
from dpnb.errors import BudgetExceeded, ConversionError, InvalidValueError

HAIR = Fraction(1, 10**60)


class GrowsInEveryPart(SumFilterContract):
    def larger(self, loss: Any) -> list[Loss]:
        parts = loss.parts
        return [loss.with_parts((*parts[:i], part + HAIR, *parts[i + 1 :])) for i, part in enumerate(parts)]


class TestGDPFilter(GrowsInEveryPart):
    def fresh(self) -> GDPFilter:
        return GDPFilter("3/7")

    def costing(self, share: Fraction) -> GDP:
        return GDP.from_mu_squared(share * Fraction(9, 49))


class TestGDPFilterOfAnIrrationalBudget(GrowsInEveryPart):
    def fresh(self) -> GDPFilter:
        return GDPFilter.from_loss(GDP.from_mu_squared(2))

    def costing(self, share: Fraction) -> GDP:
        return GDP.from_mu_squared(2 * share)


class TestGDPFilterWithDelta(GrowsInEveryPart):
    def fresh(self) -> GDPFilter:
        return GDPFilter(1, delta="1e-7")

    def costing(self, share: Fraction) -> GDP:
        return GDP.from_mu_squared(share, delta=share / 10**7)


class TestZCDPFilter(GrowsInEveryPart):
    def fresh(self) -> ZCDPFilter:
        return ZCDPFilter(0.3)

    def costing(self, share: Fraction) -> ZCDP:
        return ZCDP(share * Fraction(3, 10))


class TestZCDPFilterWithDelta(GrowsInEveryPart):
    def fresh(self) -> ZCDPFilter:
        return ZCDPFilter("1/3", 1e-6)

    def costing(self, share: Fraction) -> ZCDP:
        return ZCDP(share / 3, share / 10**6)


class TestZCDPFilterOfGaussianLosses(TestZCDPFilter):
    def costing(self, share: Fraction) -> GDP:  # type: ignore[override]
        return GDP.from_mu_squared(share * Fraction(6, 10))


class TestRDPFilterOfOneOrder(GrowsInEveryPart):
    def fresh(self) -> RDPFilter:
        return RDPFilter({8: 0.5})

    def costing(self, share: Fraction) -> RDP:
        return RDP({8: share / 2})


class TestRDPFilterOfThreeOrders(GrowsInEveryPart):
    def fresh(self) -> RDPFilter:
        return RDPFilter({2: 1, "2.5": 0.1, 64: 7})

    def costing(self, share: Fraction) -> RDP:
        return RDP({2: share, "5/2": share / 10, 64: 7 * share})


class TestBasicFilter(GrowsInEveryPart):
    def fresh(self) -> BasicFilter:
        return BasicFilter(1, 1e-6)

    def costing(self, share: Fraction) -> ApproxDP:
        return ApproxDP(share, share / 10**6)


class TestBasicFilterOfPureLosses(GrowsInEveryPart):
    def fresh(self) -> BasicFilter:
        return BasicFilter(2)

    def costing(self, share: Fraction) -> PureDP:
        return PureDP(2 * share)


class TestApproxDPFilter(SumFilterContract):
    def fresh(self) -> ApproxDPFilter:
        return ApproxDPFilter(1, conversion_delta=1e-6)

    def costing(self, share: Fraction) -> ZCDP:
        return ZCDP(share * self.fresh().budget.rho)

    def larger(self, loss: ApproxDP) -> list[Loss]:
        following = math.nextafter(float(loss.epsilon), 2)
        following = following if exact(following) > loss.epsilon else math.nextafter(following, 2)
        return [ApproxDP(following, 0), ApproxDP(loss.epsilon, loss.delta + HAIR)]


class TestApproxDPFilterWithSlack(TestApproxDPFilter):
    def fresh(self) -> ApproxDPFilter:
        return ApproxDPFilter(2, conversion_delta=1e-6, slack_delta=1e-8)

    def costing(self, share: Fraction) -> ZCDP:
        return ZCDP(share * self.fresh().budget.rho, share / 10**8)


class OfItsOwnLosses(FilterContract):
    """The epsilons that the theorem speaks of; their squares are no rational share of the budget."""

    def larger(self, loss: ApproxDP) -> list[Loss]:
        return TestApproxDPFilter().larger(loss)


class TestApproxDPFilterOfPureLosses(OfItsOwnLosses):
    def fresh(self) -> ApproxDPFilter:
        return ApproxDPFilter(2, conversion_delta=1e-6)

    def costing(self, share: Fraction) -> PureDP:
        return PureDP(share * 36 / 100)


class TestApproxDPFilterOfApproxLosses(OfItsOwnLosses):
    def fresh(self) -> ApproxDPFilter:
        return ApproxDPFilter(2, conversion_delta=1e-6, slack_delta=1e-8)

    def costing(self, share: Fraction) -> ApproxDP:
        return ApproxDP(share * 36 / 100, share * 8 / 10**9)


class TestRogersFilter(FilterContract):
    def fresh(self) -> RogersFilter:
        return RogersFilter(1, 1e-6)

    def costing(self, share: Fraction) -> ApproxDP:
        return ApproxDP(share / 8, share / 10**7)

    def larger(self, loss: ApproxDP) -> list[Loss]:
        return [
            ApproxDP(math.nextafter(math.nextafter(float(loss.epsilon), 2), 2), loss.delta),
            ApproxDP(loss.epsilon, loss.delta + HAIR),
        ]


class TestRogersFilterOfPureLosses(TestRogersFilter):
    def fresh(self) -> RogersFilter:
        return RogersFilter(4, 1e-3, pure=True)

    def costing(self, share: Fraction) -> PureDP:  # type: ignore[override]
        return PureDP(share)


# --- sums are exact ----------

TENTHS: list[tuple[Any, Any]] = [
    (GDPFilter(1), lambda x: GDP.from_mu_squared(x)),
    (ZCDPFilter(1), lambda x: ZCDP(x)),
    (RDPFilter({2: 1}), lambda x: RDP({2: x})),
    (BasicFilter(1), lambda x: PureDP(x)),
    (BasicFilter(5, "1e-6"), lambda x: ApproxDP(0, exact(x) / 10**6)),
]


@pytest.mark.parametrize(("fresh", "loss"), TENTHS)
def test_ten_losses_of_a_tenth_fill_a_budget_of_one_and_the_eleventh_is_refused(fresh: Any, loss: Any) -> None:
    state = fresh
    for _ in range(10):
        state = state.step(loss(0.1))
    assert state.headroom == 0.0
    with pytest.raises(BudgetExceeded):
        state.step(loss(0.1))


@pytest.mark.parametrize(("fresh", "loss"), TENTHS)
def test_ten_literal_doubles_of_a_tenth_are_one_too_many(fresh: Any, loss: Any) -> None:
    state = fresh
    for _ in range(9):
        state = state.step(loss(Fraction(0.1)))
    assert not state.admits(loss(Fraction(0.1)))


@pytest.mark.parametrize(("fresh", "loss"), TENTHS)
def test_losses_too_small_for_a_double_are_not_lost(fresh: Any, loss: Any) -> None:
    state = fresh.step(loss(1 - 1e-16))
    for _ in range(100):
        state = state.step(loss("1e-18"))
    assert state.headroom == 0.0


def test_hundred_written_tenths_fill_a_budget_of_one() -> None:
    state = GDPFilter(1.0)
    for _ in range(100):
        state = state.step(GDP(0.1))
    assert state.headroom == 0.0
    assert not state.admits(GDP(1e-300))


@given(st.lists(st.floats(1e-9, 0.5), max_size=8))
def test_mu_named_in_a_refusal_is_admitted(mus: list[float]) -> None:
    state = GDPFilter(1)
    for mu in mus:
        if state.admits(GDP(mu)):
            state = state.step(GDP(mu))
    with pytest.raises(BudgetExceeded) as refusal:
        state.step(GDP(1.5))
    named = re.search(r"request at most mu=([-+.e0-9]+)", str(refusal.value))
    if named is None:
        assert not state.affordable().parts[0]
    else:
        mu = float(named[1])
        assert state.admits(GDP(mu))
        assert not state.admits(GDP(mu * 1.001 + 1e-300))


def test_refusal_of_a_delta_names_the_delta_that_is_left() -> None:
    state = GDPFilter(1, delta="1e-7").step(GDP(0.6, delta="4e-8"))
    with pytest.raises(
        BudgetExceeded, match=r"requested mu=0\.1 and delta=1e-7, remaining is .*\(mu=0\.8 and delta=6e-8\)"
    ):
        state.step(GDP(0.1, delta="1e-7"))
    with pytest.raises(BudgetExceeded, match=r"delta=0\)"):
        GDPFilter(1).step(GDP(0.1, delta="1e-7"))


def test_exhausted_filter_says_so() -> None:
    with pytest.raises(BudgetExceeded, match=r"0% of the budget \(mu=0\); queries with a non-zero cost are refused"):
        GDPFilter(1).step(GDP(1)).step(GDP(0.1))


def test_headroom_is_the_smallest_of_the_shares() -> None:
    state = GDPFilter(1, delta="1e-6").step(GDP("0.5", delta="9e-7"))
    assert state.headroom == 0.1
    assert GDPFilter(1, delta="1e-6").step(GDP("0.5")).headroom == 0.75
    assert RDPFilter({2: 1, 8: 1}).step(RDP({2: 0.25, 8: 0.5})).headroom == 0.5


# --- what each filter counts ----------


def test_zcdp_is_not_gdp() -> None:
    with pytest.raises(ConversionError, match=r"no theorem converts ZCDP.* to GDP"):
        GDPFilter(1).admits(ZCDP(1e-9))
    with pytest.raises(ConversionError, match=r"no theorem converts RDP.* to GDP"):
        GDPFilter(1).admits(RDP({2: 1e-9}))


def test_losses_of_another_kind_enter_by_their_tightest_theorem() -> None:
    charge = residue_charge("0.5", mu_squared=4)
    assert charge is not None
    assert GDPFilter(2).step(PureDP(0.5)).spent == GDP.from_mu_squared(charge)
    assert charge < exact(mu_from_pure(0.5)) ** 2
    assert ZCDPFilter(2).step(PureDP(0.5)).spent == ZCDP(rho_from_pure(0.5))
    assert ZCDPFilter(2, 1e-6).step(ApproxDP(0.5, 1e-8)).spent == ZCDP(rho_from_pure(0.5), 1e-8)
    assert ZCDPFilter(2).step(GDP(0.5)).spent == ZCDP("0.125")
    assert RDPFilter({2: 1, 8: 1}).step(GDP("0.1")).spent == RDP({2: "0.01", 8: "0.04"})
    assert RDPFilter({2: 1, 8: 1}).step(ZCDP("0.1")).spent == RDP({2: "0.2", 8: "0.8"})


def test_loss_with_a_delta_has_no_renyi_divergence_and_needs_a_filter_with_a_delta() -> None:
    for loss in (GDP(0.1, 1e-9), ZCDP(0.1, 1e-9), ApproxDP(0.1, 1e-9), PointwiseDP(0.1, 1e-9)):
        assert not RDPFilter({2: 1}).admits(loss)
        assert RDPFilter({2: 1}, 1e-9).admits(loss)


def test_filters_of_epsilons_want_a_delta_chosen_beforehand() -> None:
    for fresh in (BasicFilter(1, 1e-6), RogersFilter(1, 1e-6)):
        for loss in (GDP(0.1), ZCDP(0.1), RDP({2: 0.1})):
            with pytest.raises(ConversionError, match="with a delta chosen beforehand"):
                fresh.admits(loss)


def test_approx_dp_filter_counts_epsilon_squared_and_gaussian_losses_at_mu_squared() -> None:
    fresh = ApproxDPFilter(1, conversion_delta=1e-6, slack_delta=1e-6)
    assert fresh.step(ApproxDP("0.1", 1e-7)).spent == ZCDP("0.005", 1e-7)
    assert fresh.step(GDP("0.1")).spent == fresh.step(PureDP("0.1")).spent == ZCDP("0.005")


def test_all_orders_must_admit() -> None:
    # To go on while some order has budget left would let a first answer choose which order to exhaust.
    state = RDPFilter({2: 1, 8: 1})
    assert not state.admits(RDP({2: 0.1, 8: 1.1}))
    assert not state.admits(RDP({2: 1.1, 8: 0.1}))


def test_order_that_a_loss_does_not_speak_of_is_bounded_by_the_ones_around_it() -> None:
    assert RDPFilter({4: 1}).step(RDP({2: "0.1", 8: "0.8"})).spent.parts == (
        (Fraction(1, 10) + (Fraction(56, 10) - Fraction(1, 10)) / 3) / 3,
        0,
    )
    with pytest.raises(ConversionError, match="largest order of the loss"):
        RDPFilter({16: 1}).admits(RDP({2: 0.1, 8: 0.8}))


# --- what each filter promises ----------


def test_guarantee_without_delta_is_the_conversion_of_the_budget() -> None:
    assert GDPFilter(0.5).guaranteed_epsilon(1e-6) == epsilon_from_mu(0.5, delta=1e-6)
    assert ZCDPFilter(0.5).guaranteed_epsilon(1e-6) == epsilon_from_rho(0.5, delta=1e-6)


def test_guarantee_takes_the_filters_own_delta_off_first() -> None:
    own, total = Fraction(4, 10**7), Fraction(1, 10**6)
    good = (total - own) / (1 - own)
    assert GDPFilter(0.5, delta=own).guaranteed_epsilon(total) == epsilon_from_mu(0.5, delta=good)
    assert ZCDPFilter(0.5, delta=own).guaranteed_epsilon(total) == epsilon_from_rho(0.5, delta=good)
    assert GDPFilter(0.5, delta=own).guaranteed_epsilon(own) == math.inf
    assert ZCDPFilter(0.5, delta=own).guaranteed_epsilon("1e-9") == math.inf


def test_delta_is_not_spent_twice() -> None:
    # With one delta for both purposes, as the paper's Theorem 2 is printed, this history has a true delta of 0.0102.
    state = ApproxDPFilter("3.5349", conversion_delta=0.01, slack_delta=0.01).step(ApproxDP(0.1, 0.01))
    for _ in range(99):
        state = state.step(PureDP(0.1)) if state.admits(PureDP(0.1)) else state
    assert state.guaranteed_epsilon(0.01) == math.inf
    assert state.guaranteed_epsilon(Fraction(1, 100) + Fraction(99, 100) * Fraction(1, 100)) <= 3.5349


def test_theorem_8_promises_its_epsilon_at_both_deltas_together() -> None:
    state = ApproxDPFilter(1, conversion_delta=1e-6, slack_delta=1e-7)
    assert state.guaranteed_epsilon(exact(1e-7) + (1 - exact(1e-7)) * exact(1e-6)) <= 1
    assert state.guaranteed_epsilon(1e-7) == math.inf


def test_filters_of_epsilons_promise_their_budget_from_its_delta_on() -> None:
    for fresh in (BasicFilter(1, 1e-6), RogersFilter(1, 1e-6)):
        assert fresh.guaranteed_epsilon(1e-6) == fresh.guaranteed_epsilon(0.1) == 1.0
        assert fresh.guaranteed_epsilon(1e-7) == math.inf
    assert BasicFilter(1).guaranteed_epsilon(0) == 1.0


def test_best_order_speaks_for_all() -> None:
    both, one, other = RDPFilter({2: 0.1, 32: 0.5}), RDPFilter({2: 0.1}), RDPFilter({32: 0.5})
    assert both.guaranteed_epsilon(1e-6) == min(one.guaranteed_epsilon(1e-6), other.guaranteed_epsilon(1e-6))


def test_same_promise_admits_most_under_gdp() -> None:
    # What one Gaussian release may cost under each, for (1, 1e-6)-DP; the order that the papers' improvements promise.
    from dpnb.accounting.budget import Budget
    from dpnb.accounting.guarantee import FILTERS, make_guarantee

    budget = Budget(epsilon=1, delta=1e-6)
    left = {
        name: make_guarantee(name, budget).remaining(make_guarantee(name, budget).initial_filter).mu for name in FILTERS
    }
    assert left["gdp"] > left["zcdp"] > left["approx-dp"] > left["rogers"]
    assert left["rdp"] == pytest.approx(left["zcdp"], rel=1e-3)
    assert left["basic"] == pytest.approx(left["gdp"], rel=1e-6)  # one question alone needs no composition


# --- Rogers' filter ----------


def test_half_of_rogers_delta_is_for_the_losses() -> None:
    state = RogersFilter(1, 1e-6).step(ApproxDP(0.001, 5e-7))
    assert state.affordable().delta == 0
    assert not state.admits(ApproxDP(0.001, 1e-12))
    assert not RogersFilter(1, 1e-6, pure=True).admits(ApproxDP(0.001, 1e-12))


def test_rogers_constant_is_paid_from_the_start() -> None:
    fresh = RogersFilter(1, 1e-6)
    assert 0.27 < fresh.k < 0.28
    assert fresh.headroom == pytest.approx(1 - fresh.k)


@given(st.lists(st.floats(0, 0.5), max_size=10), st.floats(0.01, 20), st.floats(1e-15, 0.36))
def test_k_is_never_below_the_exact_figure(epsilons: list[float], epsilon: float, delta: float) -> None:
    import mpmath

    state = RogersFilter(epsilon, delta)
    taken = [loss for loss in map(PureDP, epsilons) if state.admits(loss) and (state := state.step(loss))]
    with mpmath.workdps(50):
        sizes = [mpmath.mpf(loss.epsilon.numerator) / loss.epsilon.denominator for loss in taken]
        e, d = mpmath.mpf(repr(epsilon)), mpmath.mpf(repr(delta))
        c = e**2 / (mpmath.mpf("28.04") * mpmath.log(1 / d))
        s = sum((x**2 for x in sizes), mpmath.mpf(0))
        mean = sum((x * mpmath.expm1(x) / 2 for x in sizes), mpmath.mpf(0))
        k = mean + mpmath.sqrt(2 * (s + c) * (1 + mpmath.log1p(s / c) / 2) * mpmath.log(2 / d))
        assert k <= state.k <= k * (1 + mpmath.mpf("1e-12"))
        assert not taken or k <= e


# --- arguments ----------


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, "much"])
def test_budget_that_is_none_is_refused(bad: Number) -> None:
    makers: list[Any] = [
        GDPFilter,
        ZCDPFilter,
        BasicFilter,
        lambda x: RDPFilter({2: x}),
        lambda x: RogersFilter(x, 1e-6),
        lambda x: ApproxDPFilter(x, conversion_delta=1e-6),
    ]
    for make in makers:
        with pytest.raises(InvalidValueError, match=r"^(mu|rho|epsilon|budget) must"):
            make(bad)


def test_advanced_filter_has_no_constant_for_a_budget_of_nothing() -> None:
    with pytest.raises(InvalidValueError, match="epsilon must be greater than 0"):
        RogersFilter(0, 1e-6)


@pytest.mark.parametrize("bad", [1.5, -0.1, math.nan])
def test_delta_that_is_none_is_refused(bad: Number) -> None:
    makers: list[Any] = [
        lambda x: GDPFilter(1, x),
        lambda x: ZCDPFilter(1, x),
        lambda x: BasicFilter(1, x),
        lambda x: RogersFilter(1, x),
        lambda x: ApproxDPFilter(1, conversion_delta=x),
        lambda x: ApproxDPFilter(1, conversion_delta=1e-6, slack_delta=x),
    ]
    for make in makers:
        with pytest.raises(InvalidValueError, match=r"^(delta|conversion_delta|slack_delta) must"):
            make(bad)


@pytest.mark.parametrize("budget", [{}, {1: 0.5}, {2: -1}, {2: 1, "2": 1}, 3])
def test_renyi_budget_that_is_none_is_refused(budget: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"must"):
        RDPFilter(budget)


@pytest.mark.parametrize(
    "empty",
    [GDPFilter(0), ZCDPFilter(0), RDPFilter({2: 0}), BasicFilter(0), ApproxDPFilter(0, conversion_delta=1e-6)],
    ids=lambda empty: type(empty).__name__,
)
def test_budget_of_nothing_admits_what_costs_nothing(empty: Any) -> None:
    assert empty.headroom == 0.0
    assert not empty.affordable()
    free, costing = (RDP({2: x}) if isinstance(empty, RDPFilter) else PureDP(x) for x in (0, "1e-300"))
    assert empty.step(free).admits(free)
    with pytest.raises(BudgetExceeded, match="queries with a non-zero cost are refused"):
        empty.step(costing)


def test_order_with_no_budget_leaves_no_headroom() -> None:
    assert RDPFilter({2: 0, 8: 1}).headroom == 0.0
    assert ZCDPFilter(0, 0.5).headroom == 0.0
    assert ZCDPFilter(1, 0).headroom == 1.0  # a delta that was never given is not missed


@pytest.mark.parametrize(
    "state",
    [
        GDPFilter(0, 0.5),
        GDPFilter(0, 1),
        ZCDPFilter(0, 0.5),
        ApproxDPFilter("1e-200", conversion_delta=1e-6, slack_delta=0.5),
        BasicFilter(0, 0.5),
    ],
    ids=lambda state: type(state).__name__,
)
def test_nothing_is_guaranteed_below_the_filters_own_delta(state: Any) -> None:
    assert state.guaranteed_epsilon(1e-6) == math.inf
    assert state.guaranteed_epsilon("0.4999") == math.inf


@given(st.integers(-200, -150), st.floats(1, 9.99))
def test_mean_of_a_loss_is_never_rounded_down_not_even_below_the_normal_doubles(power: int, size: float) -> None:
    epsilon = exact(f"{size!r}e{power}")
    exact_mean = epsilon * epsilon / 2  # e^epsilon - 1 is above epsilon by far less than the margin
    assert Fraction(mean_loss(epsilon)) >= exact_mean


@pytest.mark.parametrize(
    "fresh",
    [GDPFilter(1), ZCDPFilter(1), RDPFilter({2: 1}), BasicFilter(1, 1e-6), ApproxDPFilter(1, conversion_delta=1e-6)],
    ids=lambda fresh: type(fresh).__name__,
)
def test_share_is_what_headroom_loses_and_above_one_for_what_never_fits(fresh: Any) -> None:
    loss = convert(PureDP("0.001"), RDP, orders=[2]) if isinstance(fresh, RDPFilter) else PureDP("0.001")
    assert fresh.budget_fraction(loss) == pytest.approx(1 - fresh.step(loss).headroom, abs=1e-15)
    huge = convert(PureDP(100), RDP, orders=[2]) if isinstance(fresh, RDPFilter) else PureDP(100)
    assert fresh.budget_fraction(huge) > 1
    if not isinstance(fresh, RDPFilter | BasicFilter):
        assert fresh.budget_fraction(ApproxDP("0.001", 1e-9)) == math.inf  # no delta was set aside


@pytest.mark.parametrize(
    "fresh",
    [
        GDPFilter(1),
        ZCDPFilter(1),
        RDPFilter({3: 1}),
        BasicFilter(1),
        RogersFilter(1, 1e-6),
        ApproxDPFilter(1, conversion_delta=1e-6),
        MixtureOdometer(1, 1e-6),
        RenyiOdometer(3, 1e-6),
        RogersOdometer(1000, 1e-6),
        BasicOdometer(1e-6),
        ApproxDPAccumulator(1e-6, 1e-6),
        GDPAccumulator(),
        ZCDPAccumulator(),
        RDPAccumulator(3),
        RenyiTracker(3, 1),
    ],
    ids=lambda fresh: type(fresh).__name__,
)
def test_release_that_costs_nothing_is_free_everywhere(fresh: Any) -> None:
    for free in (GDP(0), ZCDP(0), RDP({2: 0}), PureDP(0), ApproxDP(0, 0), PointwiseDP(0, 0)):
        assert fresh.step(free) == fresh


def test_every_filter_is_a_filter() -> None:
    for fresh in (GDPFilter(1), RogersFilter(1, 1e-6), RDPFilter({2: 1})):
        assert isinstance(fresh, Filter)


def test_budget_given_as_another_kind_of_loss_is_refused() -> None:
    with pytest.raises(ConversionError):
        GDPFilter.from_loss(OtherKindOfLoss())  # type: ignore[arg-type]
    with pytest.raises(ConversionError, match=r"must be ZCDP, got GDP"):
        ZCDPFilter(1).with_budget(GDP(1))


def test_bare_number_is_not_a_loss() -> None:
    with pytest.raises(ConversionError, match="float, which is not a loss"):
        GDPFilter(1).step(0.1)  # type: ignore[arg-type]
