"""What every filter must do; a filter's tests inherit this."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpnb.accounting.exact import exact
from dpnb.accounting.filters import Filter
from dpnb.accounting.losses import Loss, loss_from_json
from dpnb.errors import BudgetExceeded, ConversionError, InvalidValueError
from rationals import listed

#: Shares of a budget; in a list they may exceed it together.
shares = listed(1, bits=20)
histories = st.lists(shares, max_size=12)
# One inherited test runs in several classes, on purpose.
inherited = settings(suppress_health_check=[HealthCheck.differing_executors])


class OtherKindOfLoss:
    """A loss that no filter knows."""

    kind = "other"

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind}


class CountingContract:
    """What holds with and without a budget; say what a fresh filter is and what a loss of a given size is."""

    def fresh(self) -> Filter:
        raise NotImplementedError

    def costing(self, share: Fraction) -> Loss:
        """A loss that grows with `share`: 0 costs nothing, 1 is not admitted twice."""
        raise NotImplementedError

    def admitted(self, history: list[Fraction]) -> tuple[Any, list[Fraction]]:
        """The filter after offering each loss, and what of it was admitted."""
        state: Any = self.fresh()
        taken = []
        for share in history:
            if state.admits(self.costing(share)):
                state = state.step(self.costing(share))
                taken.append(share)
        return state, taken

    @inherited
    @given(history=histories, share=shares)
    def test_step_does_what_admits_says(self, history: list[Fraction], share: Fraction) -> None:
        state, _ = self.admitted(history)
        loss = self.costing(share)
        if state.admits(loss):
            state.step(loss)
        else:
            with pytest.raises(BudgetExceeded):
                state.step(loss)

    @inherited
    @given(history=histories, share=shares, factor=shares)
    def test_what_is_smaller_than_an_admitted_loss_is_admitted(
        self, history: list[Fraction], share: Fraction, factor: Fraction
    ) -> None:
        state, _ = self.admitted(history)
        if state.admits(self.costing(share)):
            assert state.admits(self.costing(share * factor))

    @inherited
    @given(data=st.data())
    def test_order_of_losses_does_not_matter(self, data: st.DataObject) -> None:
        history = [share / 60 for share in data.draw(histories)]
        again = data.draw(st.permutations(history))
        assert self.admitted(history)[0] == self.admitted(again)[0]

    @inherited
    @given(history=histories)
    def test_replaying_stored_losses_gives_the_same_state(self, history: list[Fraction]) -> None:
        state, taken = self.admitted(history)
        stored = json.dumps([self.costing(share).to_json() for share in taken])
        again: Any = self.fresh()
        for loss in json.loads(stored):
            again = again.step(loss_from_json(loss))
        assert again == state
        assert hash(again) == hash(state)
        assert repr(again) == repr(state)

    def test_step_leaves_the_old_filter_as_it_was(self) -> None:
        state = self.fresh()
        state.step(self.costing(Fraction(1, 2)))
        assert state == self.fresh()

    def test_filter_cannot_be_changed_in_place(self) -> None:
        name = dataclasses.fields(self.fresh())[-1].name  # type: ignore[arg-type]
        for changed in (name, "anything"):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(self.fresh(), changed, None)

    def test_filter_refuses_to_count_an_unknown_kind_of_loss(self) -> None:
        for ask in (self.fresh().admits, self.fresh().step, self.fresh().max_repetitions):
            with pytest.raises(ConversionError, match="OtherKindOfLoss"):
                ask(OtherKindOfLoss())  # type: ignore[arg-type]

    def test_guarantee_is_about_the_whole_budget_and_falls_as_delta_grows(self) -> None:
        fresh = self.fresh()
        deltas = ("0", "1e-300", "1e-12", "1e-6", "1e-3", "0.9")
        at = [fresh.guaranteed_epsilon(delta) for delta in deltas]
        assert at == sorted(at, reverse=True)
        assert at == [fresh.step(self.costing(Fraction(1, 3))).guaranteed_epsilon(delta) for delta in deltas]

    @pytest.mark.parametrize("delta", ["-1e-6", 1, 2, float("nan")])
    def test_guarantee_needs_a_delta_below_one(self, delta: float) -> None:
        with pytest.raises(InvalidValueError, match=r"^delta must"):
            self.fresh().guaranteed_epsilon(delta)


class FilterContract(CountingContract):
    """Every filter with a budget."""

    def larger(self, loss: Any) -> list[Loss]:
        """Losses just above what `affordable` returned, one for each part that can grow."""
        raise NotImplementedError

    @inherited
    @given(history=histories)
    def test_affordable_is_admitted_and_nothing_larger_is(self, history: list[Fraction]) -> None:
        state, _ = self.admitted(history)
        largest = state.affordable()
        state.step(largest)
        for loss in self.larger(largest):
            assert not state.admits(loss)

    @inherited
    @given(history=histories, share=shares)
    def test_times_is_how_often_step_admits(self, history: list[Fraction], share: Fraction) -> None:
        state, _ = self.admitted(history)
        loss = self.costing(max(share, Fraction(1, 40)))
        times = state.max_repetitions(loss)
        for _ in range(times):
            state = state.step(loss)
        assert not state.admits(loss)
        assert self.fresh().max_repetitions(self.costing(Fraction(0))) is None

    @inherited
    @given(history=histories)
    def test_headroom_is_a_share_that_never_grows(self, history: list[Fraction]) -> None:
        state: Any = self.fresh()
        before = state.headroom
        assert 0 < before <= 1
        for share in history:
            if state.admits(self.costing(share)):
                state = state.step(self.costing(share))
            assert 0 <= state.headroom <= before
            before = state.headroom

    def test_refusal_leaves_the_filter_as_it_was(self) -> None:
        state = self.fresh().step(self.costing(Fraction(1, 3)))
        copy = self.fresh().step(self.costing(Fraction(1, 3)))
        with pytest.raises(BudgetExceeded):
            state.step(self.costing(Fraction(1)))
        assert state == copy
        assert state.admits(self.costing(Fraction(1, 10)))

    def test_refusal_says_what_was_asked_and_what_would_fit(self) -> None:
        state = self.fresh().step(self.costing(Fraction(1, 3)))
        with pytest.raises(
            BudgetExceeded,
            match=r"must stay within .* requested .* remaining is .* request at most .* nothing was charged",
        ):
            state.step(self.costing(Fraction(1)))


class SumFilterContract(FilterContract):
    """A filter that holds exact sums to a bound; `costing` must take exactly its share of a fresh filter's budget."""

    def fresh(self) -> Any:
        raise NotImplementedError

    def test_fresh_filter_has_everything_left(self) -> None:
        assert self.fresh().headroom == 1.0
        assert not self.fresh().spent

    @inherited
    @given(history=histories, share=shares)
    def test_step_admits_exactly_what_exact_arithmetic_admits(self, history: list[Fraction], share: Fraction) -> None:
        state, taken = self.admitted(history)
        assert sum(taken) <= 1
        assert state.admits(self.costing(share)) == (sum(taken) + share <= 1)

    @inherited
    @given(history=histories)
    def test_headroom_is_the_exact_share_rounded_down(self, history: list[Fraction]) -> None:
        state, taken = self.admitted(history)
        left = 1 - sum(taken)
        assert exact(state.headroom) <= left
        assert left - exact(state.headroom) <= Fraction(1, 2**52)

    @inherited
    @given(history=histories)
    def test_all_that_is_left_can_be_spent_and_then_nothing(self, history: list[Fraction]) -> None:
        state, taken = self.admitted(history)
        full = state.step(self.costing(1 - sum(taken, Fraction(0))))
        assert full.headroom == 0.0
        assert full.spent == full.budget
        assert not full.admits(self.costing(Fraction(1, 10**50)))
        assert full.admits(self.costing(Fraction(0)))
        assert full.max_repetitions(self.costing(Fraction(1, 10**50))) == 0
