"""The GDP filter: the contract, and what is its own."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.filters import FilterContract, OtherKindOfLoss
from dpnb.accounting.conversions import epsilon_from_mu
from dpnb.accounting.exact import Number
from dpnb.accounting.filters import GDPFilter
from dpnb.accounting.losses import GDP
from dpnb.errors import BudgetExceeded, ConversionError, InvalidValueError


class TestGDPFilter(FilterContract):
    def fresh(self) -> GDPFilter:
        return GDPFilter("3/7")

    def costing(self, share: Fraction) -> GDP:
        return GDP.from_squared(share * Fraction(9, 49))


class TestGDPFilterOfAnIrrationalBudget(FilterContract):
    def fresh(self) -> GDPFilter:
        return GDPFilter.from_loss(GDP.from_squared(2))

    def costing(self, share: Fraction) -> GDP:
        return GDP.from_squared(2 * share)


class TestGDPFilterWithDelta(FilterContract):
    def fresh(self) -> GDPFilter:
        return GDPFilter(1, delta="1e-7")

    def costing(self, share: Fraction) -> GDP:
        return GDP.from_squared(share, delta=share / 10**7)


def test_ten_losses_of_a_tenth_fill_a_budget_of_one_and_the_eleventh_is_refused() -> None:
    state = GDPFilter(1)
    for _ in range(10):
        state = state.step(GDP.from_squared(0.1))
    assert state.headroom == 0.0
    with pytest.raises(BudgetExceeded):
        state.step(GDP.from_squared(0.1))


def test_hundred_written_tenths_fill_a_budget_of_one() -> None:
    state = GDPFilter(1.0)
    for _ in range(100):
        state = state.step(GDP(0.1))
    assert state.headroom == 0.0
    assert not state.admits(GDP(1e-300))


def test_ten_literal_doubles_of_a_tenth_are_one_too_many() -> None:
    state = GDPFilter(1)
    for _ in range(9):
        state = state.step(GDP.from_squared(Fraction(0.1)))
    assert not state.admits(GDP.from_squared(Fraction(0.1)))


def test_losses_too_small_for_a_double_are_not_lost() -> None:
    state = GDPFilter(1).step(GDP(1 - 1e-16))
    tiny = GDP.from_squared(Fraction(1, 10**18))
    before = state.affordable().mu_squared
    for _ in range(20):
        state = state.step(tiny)
    assert state.affordable().mu_squared == before - 20 * Fraction(1, 10**18)


@given(st.lists(st.floats(1e-9, 0.5), max_size=8))
def test_mu_named_in_a_refusal_is_admitted(mus: list[float]) -> None:
    state = GDPFilter(1)
    for mu in mus:
        if state.admits(GDP(mu)):
            state = state.step(GDP(mu))
    with pytest.raises(BudgetExceeded) as refusal:
        state.step(GDP(1.5))
    named = re.search(r"ask for at most mu=([-+.e0-9]+)", str(refusal.value))
    if named is None:
        assert not state.affordable().mu_squared
    else:
        mu = float(named[1])
        assert state.admits(GDP(mu))
        assert not state.admits(GDP(math.nextafter(mu, 2)))


def test_refusal_of_a_delta_names_the_delta_that_is_left() -> None:
    state = GDPFilter(1, delta="1e-7").step(GDP(0.6, delta="4e-8"))
    with pytest.raises(
        BudgetExceeded, match=r"asked for mu=0\.1 and delta=1e-07, remaining is mu=0\.8 and delta=6e-08"
    ):
        state.step(GDP(0.1, delta="1e-7"))
    with pytest.raises(BudgetExceeded, match=r"delta=0\.0"):
        GDPFilter(1).step(GDP(0.1, delta="1e-7"))


def test_exhausted_filter_says_so() -> None:
    with pytest.raises(BudgetExceeded, match=r"0% of the budget\); every question that costs is now refused"):
        GDPFilter(1).step(GDP(1)).step(GDP(0.1))


def test_headroom_is_the_smaller_of_the_two_shares() -> None:
    state = GDPFilter(1, delta="1e-6").step(GDP("0.5", delta="9e-7"))
    assert state.headroom == 0.1
    assert GDPFilter(1, delta="1e-6").step(GDP("0.5")).headroom == 0.75


def test_guarantee_without_delta_is_the_conversion_of_the_budget() -> None:
    state = GDPFilter(0.5)
    assert state.guarantee(1e-6) == epsilon_from_mu(0.5, delta=1e-6)
    assert state.step(GDP(0.3)).guarantee(1e-6) == state.guarantee(1e-6)


def test_guarantee_takes_the_filters_own_delta_off_first() -> None:
    state = GDPFilter(0.5, delta="4e-7")
    assert state.guarantee("1e-6") == epsilon_from_mu(0.5, delta="6e-7")
    assert state.guarantee("4e-7") == math.inf
    assert state.guarantee("1e-9") == math.inf


@pytest.mark.parametrize("delta", [0, 1, -1e-6, math.nan, 2])
def test_guarantee_needs_a_delta_between_zero_and_one(delta: Number) -> None:
    with pytest.raises(InvalidValueError, match=r"^delta must"):
        GDPFilter(1).guarantee(delta)


@pytest.mark.parametrize(
    ("mu", "delta"), [(0, 0), (-1, 0), (math.nan, 0), (math.inf, 0), ("much", 0), (1, 1), (1, -0.1), (1, math.nan)]
)
def test_budget_that_is_none_is_refused(mu: Number, delta: Number) -> None:
    with pytest.raises(InvalidValueError, match=r"^(mu|delta) must"):
        GDPFilter(mu, delta)


def test_budget_given_as_another_kind_of_loss_is_refused() -> None:
    with pytest.raises(ConversionError):
        GDPFilter.from_loss(OtherKindOfLoss())  # type: ignore[arg-type]


def test_bare_number_is_not_a_loss() -> None:
    with pytest.raises(ConversionError, match=r"got float; give GDP\(mu\)"):
        GDPFilter(1).step(0.1)  # type: ignore[arg-type]
