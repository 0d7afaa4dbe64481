"""What every odometer must do; an odometer's tests inherit this."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.filters import OtherKindOfLoss
from dpnb.accounting.losses import Loss, loss_from_json
from dpnb.accounting.odometers import Odometer
from dpnb.errors import ConversionError
from rationals import listed

sizes = listed(10**6, bits=30)
histories = st.lists(sizes, max_size=12)
# One inherited test runs in several classes, on purpose.
inherited = settings(suppress_health_check=[HealthCheck.differing_executors])


class OdometerContract:
    """Subclass it, and say what a fresh odometer is and which loss has a given size."""

    kind = "time-uniform"
    measure = "epsilon"

    def fresh(self) -> Odometer:
        raise NotImplementedError

    def loss(self, size: Fraction) -> Loss:
        """A loss that grows with `size`; size 0 costs nothing."""
        raise NotImplementedError

    def after(self, history: list[Fraction]) -> Any:
        state: Any = self.fresh()
        for size in history:
            state = state.step(self.loss(size))
        return state

    def test_reading_and_measure_say_what_the_bound_means(self) -> None:
        assert (self.fresh().kind, self.fresh().measure) == (self.kind, self.measure)

    @inherited
    @given(history=histories)
    def test_bound_is_a_number_or_infinite_and_never_falls(self, history: list[Fraction]) -> None:
        bounds = [self.after(history[:n]).bound for n in range(len(history) + 1)]
        assert not any(math.isnan(bound) for bound in bounds)
        assert bounds == sorted(bounds)
        assert bounds[0] >= 0

    @inherited
    @given(history=histories)
    def test_replaying_stored_losses_gives_the_same_state(self, history: list[Fraction]) -> None:
        state = self.after(history)
        stored = json.dumps([self.loss(size).to_json() for size in history])
        again: Any = self.fresh()
        for loss in json.loads(stored):
            again = again.step(loss_from_json(loss))
        assert again == state
        assert hash(again) == hash(state)
        assert repr(again) == repr(state)
        assert (again.bound, again.statement()) == (state.bound, state.statement())

    @inherited
    @given(history=histories)
    def test_statement_gives_the_bound_rounded_against_us(self, history: list[Fraction]) -> None:
        state = self.after(history)
        numbers = re.findall(r"at (?:most|least) ([0-9.e+-]*[0-9])", state.statement())
        if math.isinf(state.bound) or not state.bound:
            assert not numbers
        else:
            assert len(numbers) == 1
            assert state.bound <= float(numbers[0]) <= state.bound * 1.01

    def test_statement_never_mixes_the_two_readings(self) -> None:
        said = self.after([Fraction(1, 10)]).statement()
        assert ("confidence" in said) == ("whatever moment" in said) == (self.kind == "time-uniform")
        assert ("budget" in said) == ("fixed beforehand" in said) == (self.kind == "accumulator")

    def test_loss_counts_from_the_step_that_launches_it(self) -> None:
        # The bound right after the step is known before the answer is, and depends on that very loss.
        small, large = (self.fresh().step(self.loss(Fraction(size))).bound for size in ("0.1", "0.2"))
        assert 0 < small <= large
        assert self.fresh().step(self.loss(Fraction("0.1"))) != self.fresh().step(self.loss(Fraction("0.2")))

    def test_step_leaves_the_old_odometer_as_it_was(self) -> None:
        state = self.fresh()
        state.step(self.loss(Fraction(1)))
        assert state == self.fresh()

    def test_pickled_copy_is_the_same_state(self) -> None:
        state = self.after([Fraction(1, 3), Fraction(1, 7)])
        assert pickle.loads(pickle.dumps(state)) == state

    def test_odometer_cannot_be_changed_in_place(self) -> None:
        name = dataclasses.fields(self.fresh())[-1].name  # type: ignore[arg-type]
        for changed in (name, "anything"):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(self.fresh(), changed, Fraction(0))

    def test_odometer_refuses_to_count_an_unknown_kind_of_loss(self) -> None:
        with pytest.raises(ConversionError, match="OtherKindOfLoss"):
            self.fresh().step(OtherKindOfLoss())  # type: ignore[arg-type]


class SumOdometerContract(OdometerContract):
    """An odometer that reads sums: it starts at 0, and the order of losses does not matter."""

    def test_nothing_released_reads_zero(self) -> None:
        assert self.fresh().bound == 0
        assert self.fresh().step(self.loss(Fraction(0))).bound == 0
        assert "Nothing has been released" in self.fresh().statement()

    @inherited
    @given(data=st.data())
    def test_order_of_losses_does_not_matter(self, data: st.DataObject) -> None:
        history = data.draw(histories)
        assert self.after(history) == self.after(data.draw(st.permutations(history)))
