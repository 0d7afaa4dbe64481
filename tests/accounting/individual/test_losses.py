"""What a unit loses is never under-counted, and what it has left never over-counted."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.individual import IndividualFilter, losses_of_linear_query, remaining_of
from dpnb.errors import InvalidValueError


@given(st.lists(st.floats(0, 1.7e308), max_size=6), st.floats(1e-300, 1e300), st.integers(1, 100))
def test_loss_of_a_linear_query_is_never_below_the_exact_one(norms: list[float], sigma: float, order: int) -> None:
    # An array: in a list, a float beyond 2^53 may be a whole number that numpy rounded, and is raised.
    losses = losses_of_linear_query(np.array(norms, dtype=np.float64), sigma=sigma, order=order)
    largest = np.finfo(np.float64).max
    exact_losses = [order * Fraction(v) ** 2 / (2 * Fraction(sigma) ** 2) for v in norms]
    for loss, truth in zip(losses.tolist(), exact_losses, strict=True):
        assert Fraction(loss) >= min(truth, Fraction(largest))
        assert Fraction(loss) <= truth * (1 + Fraction(1, 2**50)) + Fraction(math.ulp(0.0))


def test_loss_of_a_norm_of_one_at_sigma_one_is_exactly_a_half_times_the_order() -> None:
    assert losses_of_linear_query([1.0, 0.0, 2.0], sigma=1).tolist() == [0.5, 0.0, 2.0]
    assert losses_of_linear_query([1.0], sigma=0.5, order=3).tolist() == [6.0]


def test_a_capped_loss_is_never_affordable() -> None:
    losses = losses_of_linear_query([1e300], sigma=1e-300)
    assert np.isfinite(losses).all()
    _, active = IndividualFilter(Fraction(2) ** 999, units=1).step(losses)
    assert not active[0]
    with pytest.raises(InvalidValueError, match="below"):
        IndividualFilter(Fraction(2) ** 1000, units=1)


def test_a_noise_scale_is_the_double_it_is_also_when_it_is_a_long_one() -> None:
    above = np.longdouble(1) + np.finfo(np.longdouble).eps
    below = np.longdouble(1) - np.finfo(np.longdouble).epsneg
    assert losses_of_linear_query([1.0], sigma=above)[0] >= Fraction(1) / (2 * Fraction(*above.as_integer_ratio()) ** 2)
    assert losses_of_linear_query([1.0], sigma=below)[0] > 0.5


def test_remaining_is_never_negative() -> None:
    assert remaining_of([0.25, 0.5, 0.75], budget=0.5).tolist() == [0.25, 0, 0]


@pytest.mark.parametrize("settings", [{"sigma": 0}, {"sigma": 1, "order": 0.5}])
def test_bad_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InvalidValueError):
        losses_of_linear_query([1.0], **settings)  # type: ignore[arg-type]
