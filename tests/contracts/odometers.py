"""What every odometer must do; an odometer's tests inherit this."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.filters import OtherKindOfLoss
from dpnb.accounting.losses import Loss
from dpnb.accounting.odometers import Odometer
from dpnb.errors import ConversionError

sizes = st.fractions(min_value=0, max_value=10**6, max_denominator=10**9)
histories = st.lists(sizes, max_size=12)
# One inherited test runs in several classes, on purpose.
inherited = settings(suppress_health_check=[HealthCheck.differing_executors])


class OdometerContract:
    """Subclass it, and say what a fresh odometer is and which loss has a given size."""

    reading = "time-uniform"

    def fresh(self) -> Odometer:
        raise NotImplementedError

    def loss(self, size: Fraction) -> Loss:
        """A loss of this size in the scale in which losses add; size 0 costs nothing."""
        raise NotImplementedError

    def after(self, history: list[Fraction]) -> Any:
        state: Any = self.fresh()
        for size in history:
            state = state.step(self.loss(size))
        return state

    def test_nothing_released_reads_zero(self) -> None:
        assert self.fresh().bound == 0
        assert self.fresh().step(self.loss(Fraction(0))).bound == 0
        assert "Nothing has been released" in self.fresh().statement()

    def test_reading_says_what_the_bound_means(self) -> None:
        assert self.fresh().reading == self.reading

    @inherited
    @given(history=histories)
    def test_bound_never_falls(self, history: list[Fraction]) -> None:
        bounds = [self.after(history[:n]).bound for n in range(len(history) + 1)]
        assert bounds == sorted(bounds)

    @inherited
    @given(data=st.data())
    def test_order_of_losses_does_not_matter(self, data: st.DataObject) -> None:
        history = data.draw(histories)
        assert self.after(history) == self.after(data.draw(st.permutations(history)))

    def test_loss_counts_from_the_step_that_launches_it(self) -> None:
        assert self.fresh().step(self.loss(Fraction(1))).bound > 0

    def test_step_leaves_the_old_odometer_as_it_was(self) -> None:
        state = self.fresh()
        state.step(self.loss(Fraction(1)))
        assert state == self.fresh()

    def test_odometer_cannot_be_changed_in_place(self) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            self.fresh().v = Fraction(0)  # type: ignore[attr-defined]

    def test_odometer_refuses_to_count_an_unknown_kind_of_loss(self) -> None:
        with pytest.raises(ConversionError, match="OtherKindOfLoss"):
            self.fresh().step(OtherKindOfLoss())
