"""Intervals cover as often as they say, also when the analyst decides from the answers when to stop.

Seeds are fixed; each test states its false-alarm rate and holds a control that must fail.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP
from dpnb.answer.estimate import Estimate, estimate
from dpnb.interactive.refinement import Look, Refinement, first_tau
from dpnb.mechanisms.measurement import Measurement
from dpnb.query.linear import LinearQuery, linear_query
from dpnb.query.plan import Count, Mean, Plan, Sum
from dpnb.query.schema import Bounded, Categories, PrivacyUnit

pytestmark = pytest.mark.statistical

SCHEMA: dict[str, Bounded | Categories] = {"x": Bounded(-2, 6)}
ALPHA = Fraction(1, 20)


def exact_sums(query: LinearQuery, rows: float, total: float) -> list[float]:
    """Sums in grid units of `rows` rows whose column adds up to `total`."""
    feature = query.features[-1]
    if isinstance(query.plan.aggregation, Mean):
        return [rows * feature.limit, total / float(feature.unit) - rows * feature.centre]
    return [total / float(feature.unit)]


def shaped(query: LinearQuery, sums: list[float], sigma: float, alpha: Fraction) -> Estimate:
    return estimate(query, np.array(sums), sigma, fixed_radius([sigma], alpha=alpha), SCHEMA)


def look(value: float) -> Look:
    """A first or further answer of a count, with noise of standard deviation 1."""
    return Look(GDP(1), Measurement((round(value * 2**10),), -10, 1.0))


@pytest.mark.parametrize("aggregation", [Count(), Sum("x"), Mean("x")], ids=["count", "sum", "mean"])
def test_intervals_cover_as_often_as_they_say(aggregation: Count | Sum | Mean) -> None:
    """20,000 draws at 95%; fewer than 94.2% covered has probability below 1e-6.  A 90% interval is caught."""
    query = linear_query(Plan(aggregation), SCHEMA, PrivacyUnit())
    rows, mean = 300, 4.5
    total = rows * (1.0 if isinstance(aggregation, Count) else mean)
    truth = mean if isinstance(aggregation, Mean) else total
    sigma = query.l2_sensitivity_squared**0.5 / 0.5
    sums = np.array(exact_sums(query, rows, total))
    noise = np.random.default_rng(11).normal(0, sigma, (20_000, len(sums)))

    def covered(alpha: Fraction) -> float:
        results = [shaped(query, (sums + row).tolist(), sigma, alpha) for row in noise]
        return float(np.mean([(result.low <= truth <= result.high).item() for result in results]))

    assert covered(ALPHA) > 0.942
    assert covered(2 * ALPHA) < 0.942


def test_refining_until_the_truth_is_missed_does_not_break_the_interval() -> None:
    """2,000 analysts refine up to 20 times and stop as soon as the interval misses the truth.

    At level 95% at most 5% may succeed; more than 8% has probability below 1e-8 for a correct program.  The control,
    a fixed-design interval at every look, is missed by far more of them.
    """
    chance = np.random.default_rng(5)
    tau = first_tau(1.0, ALPHA)
    # Radii depend on the scales alone, so the ones of the first analyst are everybody's.
    same = [Refinement((look(0.0),) * n, tau) for n in range(1, 21)]
    radii = [(known.radius(ALPHA), fixed_radius(known.sigmas, alpha=ALPHA)) for known in same]
    ours = control = 0
    for _ in range(2000):
        looks = [look(value) for value in chance.normal(0, 1, 20)]
        errors = [abs(Refinement(tuple(looks[:n]), tau).combined()[0][0]) for n in range(1, 21)]
        ours += any(error > radius for error, (radius, _) in zip(errors, radii, strict=True))
        control += any(error > radius for error, (_, radius) in zip(errors, radii, strict=True))
    assert ours <= 160
    assert control > 400
