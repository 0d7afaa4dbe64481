"""What every filter must do; a filter's tests inherit this."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpnb.accounting.exact import exact
from dpnb.accounting.filters import Filter
from dpnb.accounting.losses import Loss
from dpnb.errors import BudgetExceeded, ConversionError

#: Shares of a budget; in a list they may exceed it together.
shares = st.fractions(min_value=0, max_value=1, max_denominator=10**6)
histories = st.lists(shares, max_size=12)
# One inherited test runs in several classes, on purpose.
inherited = settings(suppress_health_check=[HealthCheck.differing_executors])


class OtherKindOfLoss:
    """A loss that no filter knows."""

    kind = "other"

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind}


class FilterContract:
    """Subclass it, and say what a fresh filter is and which loss takes a share of its budget."""

    #: Whether any order of the same losses ends in the same state.
    order_free = True

    def fresh(self) -> Filter:
        raise NotImplementedError

    def costing(self, share: Fraction) -> Loss:
        """The loss that takes exactly this share of a fresh filter's budget, in the scale in which it is spent."""
        raise NotImplementedError

    def admitted(self, history: list[Fraction]) -> tuple[Any, Fraction]:
        """The filter after offering each loss, and the share of what it admitted."""
        state: Any = self.fresh()
        total = Fraction(0)
        for share in history:
            if state.admits(self.costing(share)):
                state, total = state.step(self.costing(share)), total + share
        return state, total

    def test_fresh_filter_has_everything_left(self) -> None:
        assert self.fresh().headroom == 1.0
        assert self.fresh().spent == self.costing(Fraction(0))
        assert self.fresh().affordable() == self.fresh().budget

    @inherited
    @given(history=histories, share=shares)
    def test_step_admits_exactly_what_exact_arithmetic_admits(self, history: list[Fraction], share: Fraction) -> None:
        state, total = self.admitted(history)
        loss = self.costing(share)
        assert total <= 1
        assert state.admits(loss) == (total + share <= 1)
        if total + share <= 1:
            state.step(loss)
        else:
            with pytest.raises(BudgetExceeded):
                state.step(loss)

    @inherited
    @given(history=histories)
    def test_affordable_is_admitted_and_leaves_nothing(self, history: list[Fraction]) -> None:
        state, _ = self.admitted(history)
        full = state.step(state.affordable())
        assert full.headroom == 0.0
        assert full.spent == full.budget
        assert not full.admits(self.costing(Fraction(1, 10**50)))
        assert full.admits(self.costing(Fraction(0)))

    @inherited
    @given(history=histories)
    def test_headroom_is_never_overstated_and_never_grows(self, history: list[Fraction]) -> None:
        state: Any = self.fresh()
        total, before = Fraction(0), 1.0
        for share in history:
            if state.admits(self.costing(share)):
                state, total = state.step(self.costing(share)), total + share
            assert 0 <= state.headroom <= before
            assert exact(state.headroom) <= 1 - total
            assert abs(exact(state.headroom) - (1 - total)) <= Fraction(1, 2**52)
            before = state.headroom

    @inherited
    @given(data=st.data())
    def test_order_of_losses_does_not_matter(self, data: st.DataObject) -> None:
        if not self.order_free:
            pytest.skip("the theorem depends on the order")
        history = [share / 12 for share in data.draw(histories)]
        again = data.draw(st.permutations(history))
        assert self.admitted(history)[0] == self.admitted(again)[0]

    @inherited
    @given(history=histories)
    def test_replaying_the_admitted_losses_gives_the_same_state(self, history: list[Fraction]) -> None:
        state: Any = self.fresh()
        taken = []
        for share in history:
            if state.admits(self.costing(share)):
                state = state.step(self.costing(share))
                taken.append(share)
        assert self.admitted(taken)[0] == state
        assert hash(self.admitted(taken)[0]) == hash(state)

    def test_refusal_leaves_the_filter_as_it_was(self) -> None:
        state = self.fresh().step(self.costing(Fraction(3, 4)))
        copy = self.fresh().step(self.costing(Fraction(3, 4)))
        with pytest.raises(BudgetExceeded):
            state.step(self.costing(Fraction(1, 2)))
        assert state == copy
        assert state.admits(self.costing(Fraction(1, 4)))

    def test_refusal_says_what_was_asked_and_what_would_fit(self) -> None:
        state = self.fresh().step(self.costing(Fraction(3, 4)))
        with pytest.raises(
            BudgetExceeded, match=r"asked for .* remaining is .* ask for at most .* nothing was charged"
        ):
            state.step(self.costing(Fraction(1, 2)))

    def test_step_leaves_the_old_filter_as_it_was(self) -> None:
        state = self.fresh()
        state.step(self.costing(Fraction(1, 2)))
        assert state == self.fresh()

    def test_filter_cannot_be_changed_in_place(self) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            self.fresh().spent = self.fresh().budget  # type: ignore[misc]

    def test_filter_refuses_to_count_an_unknown_kind_of_loss(self) -> None:
        with pytest.raises(ConversionError, match="OtherKindOfLoss"):
            self.fresh().admits(OtherKindOfLoss())
        with pytest.raises(ConversionError, match="OtherKindOfLoss"):
            self.fresh().step(OtherKindOfLoss())

    def test_guarantee_is_about_the_whole_budget_and_falls_as_delta_grows(self) -> None:
        fresh = self.fresh()
        at = [fresh.guarantee(delta) for delta in ("1e-12", "1e-6", "1e-3")]
        assert at == sorted(at, reverse=True)
        assert at == [fresh.step(fresh.affordable()).guarantee(delta) for delta in ("1e-12", "1e-6", "1e-3")]
