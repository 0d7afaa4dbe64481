"""Counting without a budget: the filter that refuses nothing, and what takes a budget's place."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpnb
from contracts.filters import CountingContract, histories
from dpnb.accounting import GDP, RDP, ZCDP, Filter, GDPFilter, NoBudget, PureDP, UnboundedFilter
from dpnb.accounting.budget import budget_from_json
from dpnb.accounting.guarantee import FILTERS, NO_FILTER, make_guarantee
from dpnb.errors import ConversionError, InvalidValueError, RequestError


class TestUnboundedFilter(CountingContract):
    def fresh(self) -> Any:
        return UnboundedFilter()

    def costing(self, share: Fraction) -> GDP:
        return GDP.from_mu_squared(10**6 * share)

    @given(history=histories)
    def test_spends_what_every_sufficient_budget_admits(self, history: list[Fraction]) -> None:
        """The accumulator's statement: a budget of at least `spent` would have admitted the same losses."""
        losses = [self.costing(share) for share in history]
        state = UnboundedFilter()
        for loss in losses:
            state = state.step(loss)
        exact, enough = GDPFilter.from_loss(state.spent), GDPFilter.from_loss(state.spent + GDP(1))
        for loss in losses:
            exact, enough = exact.step(loss), enough.step(loss)
        assert exact.spent == enough.spent == state.spent
        if state.spent:
            less = GDPFilter.from_loss(GDP.from_mu_squared(state.spent.mu_squared * Fraction(999, 1000)))
            assert not less.admits(state.spent)

    @given(st.sampled_from([GDP(5), PureDP(3), GDP(mu=1, delta="1e-7")]))
    def test_shares_of_nothing_are_not_a_number(self, loss: Any) -> None:
        state = UnboundedFilter().step(loss)
        assert math.isnan(state.headroom)
        assert math.isnan(state.budget_fraction(loss))
        assert (state.budget, state.affordable(), state.max_repetitions(loss)) == (None, None, None)
        assert state.guaranteed_epsilon(1e-6) == math.inf

    def test_has_the_interface_of_a_filter(self) -> None:
        assert isinstance(UnboundedFilter(), Filter)

    @pytest.mark.parametrize("loss", [ZCDP(1), RDP({2: 1})])
    def test_cannot_count_what_implies_no_gdp(self, loss: Any) -> None:
        for ask in (UnboundedFilter().admits, UnboundedFilter().step):
            with pytest.raises(ConversionError):
                ask(loss)

    def test_deltas_add(self) -> None:
        state = UnboundedFilter().step(GDP(1, "1e-7")).step(GDP(1, "1e-7"))
        assert state.spent.delta == Fraction(2, 10**7)


@pytest.mark.parametrize("delta", ["1e-6", 0.01, "1e-300"])
def test_declaration_is_read_as_it_was_written(delta: Any) -> None:
    declared = NoBudget(delta)
    stored = json.loads(json.dumps(declared.to_json()))
    assert budget_from_json(stored) == declared
    assert declared.reference.epsilon == 1
    assert declared.discovery_delta * 10 == declared.delta


def test_a_budget_and_its_absence_are_never_written_alike() -> None:
    for budget in (dpnb.Budget(1, 1e-6), dpnb.Budget.gdp(1), NoBudget().reference):
        assert budget.to_json() != NoBudget().to_json()
        assert budget_from_json(budget.to_json()) == budget
    with pytest.raises(ValueError, match="some"):
        budget_from_json({"limit": "some", "odometer_delta": "1/10"})


@pytest.mark.parametrize("delta", [0, 1, -1, math.nan, "1e-301"])
def test_odometer_delta_is_a_probability(delta: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"^odometer_delta"):
        NoBudget(delta)


@pytest.mark.parametrize("name", FILTERS)
def test_no_filter_of_a_budget_enforces_nothing(name: str) -> None:
    with pytest.raises(InvalidValueError, match=r"^filter: must be 'none' without a budget"):
        make_guarantee(name, NoBudget())
    with pytest.raises(InvalidValueError, match=r"^filter: must be one of"):
        make_guarantee(NO_FILTER, dpnb.Budget(1, 1e-6))


def test_there_is_no_budget_for_each_unit_either() -> None:
    with pytest.raises(InvalidValueError, match=r"^accounting"):
        make_guarantee(NO_FILTER, NoBudget(), individual=True)


def test_guarantee_says_that_there_is_none_and_has_no_share() -> None:
    guarantee = make_guarantee(NO_FILTER, NoBudget())
    assert guarantee.words == "no guarantee (no budget limits the privacy loss)"
    assert not guarantee.has_budget
    with pytest.raises(RequestError, match=r"^share: this session has no budget"):
        guarantee.remaining(guarantee.initial_filter, Fraction(1, 2))
    assert guarantee.with_parameters(guarantee.to_json()) == guarantee
