"""Noisy sums become estimates and intervals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP
from dpnb.answer.estimate import Estimate, error_factor, estimate
from dpnb.interactive.refinement import Look, Refinement, first_tau
from dpnb.mechanisms.measurement import Measurement
from dpnb.query.linear import LinearQuery, linear_query
from dpnb.query.plan import Count, Mean, Plan, Sum
from dpnb.query.schema import Bounded, Categories, PrivacyUnit

SCHEMA = {"x": Bounded(-2, 6), "g": Categories(["a", "b", "c"])}
ALPHA = Fraction(1, 20)


def compiled(plan: Plan) -> LinearQuery:
    return linear_query(plan, SCHEMA, PrivacyUnit())


def exact_sums(query: LinearQuery, rows: float, total: float) -> list[float]:
    """Sums in grid units of `rows` rows whose column adds up to `total`."""
    feature = query.features[-1]
    if isinstance(query.plan.aggregation, Mean):
        return [rows * feature.limit, total / float(feature.unit) - rows * feature.centre]
    return [total / float(feature.unit)]


def shaped(query: LinearQuery, sums: list[float], sigma: float, alpha: Fraction = ALPHA) -> Estimate:
    return estimate(query, np.array(sums), sigma, fixed_radius([sigma], alpha=alpha), SCHEMA)


def test_without_noise_estimates_are_exact() -> None:
    for plan, truth in [(Plan(Sum("x")), 130.0), (Plan(Mean("x")), 1.3), (Plan(Count()), 130.0)]:
        query = compiled(plan)
        result = shaped(query, exact_sums(query, 100, 130.0), 1e-6)
        assert result.value[0] == pytest.approx(truth, rel=1e-9)
        assert result.low[0] <= result.value[0] <= result.high[0]


def test_the_interval_of_a_mean_is_fiellers() -> None:
    """Every place whose deviation is within the radius is in the interval, and no other: scanned."""
    query = compiled(Plan(Mean("x")))
    reach = query.features[1].limit
    count, total, radius = 40.0 * reach, 11.0 * reach, 9.0 * reach
    result = estimate(query, np.array([count, total]), reach, radius, SCHEMA)
    places = np.linspace(-1, 1, 400_001)
    inside = places[np.abs(total - places * count) <= radius * np.sqrt(1 + places**2)]
    assert result.low[0] == pytest.approx(2 + 4 * inside.min(), abs=1e-4)
    assert result.high[0] == pytest.approx(2 + 4 * inside.max(), abs=1e-4)


def test_a_group_that_may_be_empty_says_nothing() -> None:
    query = compiled(Plan(Mean("x"), None, ("g",)))
    reach = query.features[1].limit
    result = estimate(query, np.array([0.5, 0.1, -3.0, 1.0, 900.0, 90.0]) * reach, reach, 2.0 * reach, SCHEMA)
    assert (result.low[:2].tolist(), result.high[:2].tolist()) == ([-2, -2], [6, 6])
    assert np.isnan(result.value[1])
    assert np.isnan(result.noise_scale[:2]).all()
    assert result.value[2] == pytest.approx(2.4)


def test_a_count_is_never_below_zero_in_its_interval() -> None:
    result = shaped(compiled(Plan(Count())), [-50.0], 10.0)
    assert (result.value[0], result.low[0], result.high[0]) == (-50, 0, 0)


@pytest.mark.parametrize("plan", [Plan(Count()), Plan(Sum("x"))], ids=["count", "sum"])
def test_the_error_that_was_foretold_is_the_error_that_comes(plan: Plan) -> None:
    query = compiled(plan)
    result = shaped(query, [1e6], 3.0)
    half = fixed_radius([3.0], alpha=ALPHA) * error_factor(query, None)
    assert (result.high[0] - result.low[0]) / 2 == pytest.approx(half)


def test_the_error_foretold_of_a_mean_is_not_too_small() -> None:
    query = compiled(Plan(Mean("x")))
    sigma = query.features[1].limit / 0.5
    for mean in (-2.0, 0.0, 2.0, 6.0):
        result = shaped(query, exact_sums(query, 5000, 5000 * mean), sigma)
        foretold = fixed_radius([sigma], alpha=ALPHA) * error_factor(query, 5000)
        assert (result.high[0] - result.low[0]) / 2 <= foretold * 1.001


def look(sums: list[float], sigma: float, mu_squared: object = 1) -> Look:
    values = tuple(round(value * 2**10) for value in sums)
    return Look(GDP.from_squared(mu_squared), Measurement(values, -10, sigma))  # type: ignore[arg-type]


def test_a_refinement_pays_exactly_the_difference() -> None:
    known = Refinement((look([0.0], 2.0, "0.09"),), 1.0)
    assert known.missing(GDP("0.5")) == GDP("0.4")
    assert known.missing(GDP("0.2")) == GDP(0)
    assert Refinement().missing(GDP(1)) == GDP(1)


def test_looks_are_combined_by_their_information() -> None:
    values, sigma = Refinement((look([10.0], 2.0), look([12.0], 1.0)), 1.0).combined()
    assert values.tolist() == pytest.approx([11.6])
    assert sigma == pytest.approx(0.8**0.5)


@pytest.mark.parametrize("shrink", [0.9, 0.5, 0.01])
def test_the_scale_for_an_error_gives_that_error(shrink: float) -> None:
    first = Refinement().sigma_within(10 * shrink, ALPHA)
    assert Refinement((look([0.0], first),), None).radius(ALPHA) == pytest.approx(10 * shrink)
    known = Refinement((look([0.0], 3.0),), first_tau(3.0, ALPHA))
    wanted = known.radius(ALPHA, 3.0) * shrink
    combined = known.sigma_within(wanted, ALPHA)
    further = (combined**-2 - 3.0**-2) ** -0.5
    assert wanted * 0.999 <= known.radius(ALPHA, further) <= wanted * (1 + 1e-9)
