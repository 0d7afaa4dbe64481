"""A question that is looked at again and again pays only for what each look adds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpnb.accounting.intervals import confidence_sequence_radius, fixed_radius
from dpnb.accounting.losses import GDP
from dpnb.mechanisms.measurement import Measurement
from dpnb.results.observations import FIRST_OBSERVATION_ALPHA, CombinedObservations, Observation, first_tau

ALPHA = Fraction(1, 20)
LATER = (1 - FIRST_OBSERVATION_ALPHA) * ALPHA


def look(
    sums: list[float],
    sigma: float,
    mu_squared: str | int = 1,
    cells: tuple[int, ...] | None = None,
    sensitivity_squared: int = 1,
) -> Observation:
    values = tuple(round(value * 2**10) for value in sums)
    loss = GDP.from_mu_squared(Fraction(mu_squared))
    return Observation(loss, Measurement(values, -10, sigma), sensitivity_squared, cells)


@pytest.mark.parametrize("sensitivity_squared", [1, 49])
def test_one_observation_is_known_at_its_loss(sensitivity_squared: int) -> None:
    first = look([0.0], 2.0, "9/100", sensitivity_squared=sensitivity_squared)
    known = CombinedObservations((first,), 1.0)
    assert known.known_loss(sensitivity_squared) == GDP("0.3")


def test_looks_are_combined_by_their_information() -> None:
    values, sigma = CombinedObservations((look([10.0], 2.0), look([12.0], 1.0)), 1.0).combined
    assert values.ravel().tolist() == pytest.approx([11.6])
    assert sigma.tolist() == pytest.approx([0.8**0.5])


def test_looks_at_some_groups_are_combined_there_alone() -> None:
    """Three groups of two sums each; the second look is at the last two groups, the third at the last one."""
    first = look([1, 2, 3, 4, 5, 6], 2.0)
    second = look([13, 14, 15, 16], 2.0, cells=(1, 2))
    third = look([30, 30], 2.0**0.5, cells=(2,))
    known = CombinedObservations((first, second, third), first_tau(2.0, ALPHA), 3)
    values, sigma = known.combined
    assert values.tolist() == [[1, 2], [8, 9], pytest.approx([20, 20.5])]
    assert sigma.tolist() == pytest.approx([2, 2**0.5, 1])


def test_what_is_known_of_groups_is_what_is_known_of_the_worst_of_them() -> None:
    first, second = look([0.0, 0.0], 2.0, "1/4"), look([0.0], 1.0, 1, (1,))
    known = CombinedObservations((first, second), first_tau(2.0, ALPHA), 2)
    assert known.known_loss(1) == known.known_loss(1, (0,)) == GDP("0.5")
    assert known.known_loss(1, (1,)).mu_squared == Fraction(5, 4)
    assert known.known_loss(1, (0, 1)) == GDP("0.5")


def test_a_look_at_groups_that_one_unit_changes_less_is_worth_more() -> None:
    """A unit is in two of the groups at most, and in one of those that are looked at."""
    first = look([0.0, 0.0], 2.0, "1/4", sensitivity_squared=2)
    second = look([0.0], 1.0, "1/4", (1,), sensitivity_squared=1)
    known = CombinedObservations((first, second), first_tau(2.0, ALPHA), 2)
    assert known.known_loss(1, (1,)).mu_squared == Fraction(1, 8) + Fraction(1, 4)
    assert known.known_loss(2).mu_squared == Fraction(1, 4)


def test_groups_have_the_interval_of_their_own_looks() -> None:
    tau = first_tau(2.0, ALPHA)
    known = CombinedObservations((look([0.0, 0.0], 2.0), look([0.0], 1.0, 1, (1,))), tau, 2)
    untouched, refined = known.radius(ALPHA)
    assert untouched == fixed_radius([2.0], alpha=FIRST_OBSERVATION_ALPHA * ALPHA)
    assert refined == confidence_sequence_radius([2.0, 1.0], tau=tau, alpha=LATER)
    both = CombinedObservations((*known.observations, look([0.0], 0.5, 1, (0,))), tau, 2)
    assert both.radius(ALPHA).tolist() == [confidence_sequence_radius([2.0, 0.5], tau=tau, alpha=LATER), refined]


def test_the_error_is_split_between_the_first_look_and_all_others() -> None:
    first = CombinedObservations((look([0.0], 2.0),), first_tau(2.0, ALPHA))
    final = CombinedObservations((look([0.0], 2.0),), None)
    assert final.is_final
    assert not first.is_final
    assert not CombinedObservations().is_final
    assert first.radius(ALPHA)[0] == fixed_radius([2.0], alpha=Fraction(4, 100))
    assert (
        final.radius(ALPHA)[0]
        == fixed_radius([2.0], alpha=ALPHA)
        == CombinedObservations().radius_at(2.0, ALPHA, final=True)
    )


@pytest.mark.parametrize("further", [0.3, 1.0, 3.0])
def test_the_half_width_at_a_scale_is_the_one_that_comes(further: float) -> None:
    assert (
        CombinedObservations().radius_at(3.0, ALPHA)
        == CombinedObservations((look([0.0], 3.0),), first_tau(3.0, ALPHA)).radius(ALPHA)[0]
    )
    known = CombinedObservations((look([0.0], 3.0),), first_tau(3.0, ALPHA))
    scale = (3.0**-2 + further**-2) ** -0.5
    then = CombinedObservations((*known.observations, look([0.0], further)), known.tau)
    assert known.radius_at(scale, ALPHA) == pytest.approx(then.radius(ALPHA)[0], rel=1e-12)


def test_a_half_width_grows_with_the_scale() -> None:
    """So that the scale for an error can be found by bisection."""
    for known in (CombinedObservations(), CombinedObservations((look([0.0], 3.0),), first_tau(3.0, ALPHA))):
        radii = [known.radius_at(float(scale), ALPHA) for scale in np.geomspace(1e-6, 3.0, 200)]
        assert (np.diff(radii) > 0).all()
