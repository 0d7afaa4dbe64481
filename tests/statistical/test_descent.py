"""Intervals of a fit cover what the noise did to it, against the same descent without noise.

Nominal level 95%; asked is 92% of 1,800 fits for each coefficient.  For an interval that covers exactly 95%, less has
probability 2.5e-8, and there are 24 such checks: 6e-7.  Shrinking the intervals by a fifth brings Student's t with 7
degrees of freedom to 90%, with which 92% are reached with probability 0.2% each: caught.  Only clip, n * mu and the
chains count for the noise; every chain of one long run is a chain of some fit.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from dpnb._backends.memory.execute import execute
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._compile import linear_query
from dpnb._compile.features import CLIP_STEPS
from dpnb._plan.expressions.nodes import Column
from dpnb._plan.measurements import Family, Gradient, RegressionModel
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb._plan.regression import LARGEST, design
from dpnb._plan.schema import Bounded, Categories, Schema
from dpnb.accounting.losses import GDP
from dpnb.interactive.descent.steps import stepped, tail_means
from dpnb.mechanisms.calibration import sigma_for
from dpnb.mechanisms.gaussian import measure
from dpnb.mechanisms.randomness import NotPrivateSeededSource
from dpnb.results.fit import NONLINEARITY_LIMIT, is_noisy, over_chains, to_original_units

pytestmark = pytest.mark.statistical

ROWS, STEPS, FITS, CHAINS, LEAST = 100, 30, 1800, 8, 0.92
SCHEMA: Schema = {
    "x": Bounded(-2, 6),
    "w": Bounded(0, 1),
    "g": Categories(["a", "b"]),
    "linear": Bounded(-3, 8),
    "logistic": Categories([False, True]),
    "poisson": Bounded(0, 20),
}
RATES: dict[Family, float] = {"linear": 0.9, "logistic": 2.0, "poisson": 0.2}


def table() -> pd.DataFrame:
    chance = np.random.default_rng(0)
    x, w, g = chance.uniform(-2, 6, ROWS), chance.uniform(0, 1, ROWS), chance.choice(["a", "b"], ROWS)
    b = g == "b"
    return pd.DataFrame(
        {
            "x": x,
            "w": w,
            "g": g,
            "linear": 2 + 0.5 * x - w + b + chance.normal(0, 0.7, ROWS),
            "logistic": chance.random(ROWS) < 1 / (1 + np.exp(1 - 0.5 * x - b)),
            "poisson": chance.poisson(np.exp(0.3 + 0.2 * x - 0.5 * w)).clip(0, 20).astype(float),
        }
    )


TABLE = prepare(table(), SCHEMA, PrivacyUnit())


def descended(family: Family, chains: int, clip: float, mu: float | None) -> NDArray[np.float64]:
    """Where chains end that each have the noise of a fit of `CHAINS` at mu a step; None is no noise."""
    model = RegressionModel(family, Column(family), (Column("x"), Column("w")), (Column("g"),))
    made, source = design(model, SCHEMA), NotPrivateSeededSource(7)
    iterates = [np.zeros((chains, made.width))]
    for _ in range(STEPS):
        plan = Plan(Gradient(model, tuple(map(tuple, iterates[-1].tolist())), clip))
        query = linear_query(plan, SCHEMA, PrivacyUnit())
        sums = execute(query, TABLE, SCHEMA)
        assert query.l2_sensitivity_squared == chains * CLIP_STEPS**2
        if mu is not None:
            sigma = sigma_for(CHAINS * CLIP_STEPS**2, GDP(mu))
            sums = measure(sums, sigma=sigma, source=source).to_floats()
        released = (sums * float(query.features[0].unit)).reshape(chains, -1)
        iterates.append(stepped(iterates[-1], released, rate=RATES[family], size=ROWS, limit=LARGEST))
    return tail_means(iterates)


def warned(family: Family, ends: NDArray[np.float64]) -> bool:
    model = RegressionModel(family, Column(family), (Column("x"), Column("w")), (Column("g"),))
    return is_noisy(family, design(model, SCHEMA), ends, 0.95)


def in_units(family: Family, ends: NDArray[np.float64]) -> NDArray[np.float64]:
    model = RegressionModel(family, Column(family), (Column("x"), Column("w")), (Column("g"),))
    return to_original_units(family, design(model, SCHEMA), ends)


@pytest.mark.parametrize(("clip", "mu"), [(1.0, 0.5), (3.0, 2.0)], ids=["clipped", "hardly clipped"])
@pytest.mark.parametrize("family", ["linear", "logistic", "poisson"])
def test_intervals_cover_the_noise(family: Family, clip: float, mu: float) -> None:
    (truth,) = in_units(family, descended(family, 1, clip, None))
    ends = descended(family, FITS * CHAINS, clip, mu).reshape(FITS, CHAINS, -1)
    held = np.zeros_like(truth)
    for one in ends:
        found = over_chains(in_units(family, one), 0.95)
        held += (found.low <= truth) & (truth <= found.high)
        assert np.isfinite(found.half_width).all()
    assert (held / FITS >= LEAST).all(), held / FITS
    assert np.mean([warned(family, one) for one in ends]) < 0.2


def test_where_the_noise_bends_the_descent_the_fit_says_so() -> None:
    """Intervals of so noisy a logistic regression cover 6 to 9 of 10: nearly every such fit warns."""
    ends = descended("logistic", 100 * CHAINS, 3.0, 0.2).reshape(100, CHAINS, -1)
    assert np.mean([warned("logistic", one) for one in ends]) > 0.99
    assert NONLINEARITY_LIMIT < 1


def test_chains_share_a_step_and_their_mean_has_the_noise_of_one() -> None:
    """The spread of the mean over chains is that of one chain with all of mu; four spreads of 1,000 fits each."""
    many = descended("linear", FITS * CHAINS, 1e3, 50.0).reshape(FITS, CHAINS, -1).mean(axis=1).std(axis=0)
    model = RegressionModel("linear", Column("linear"), (Column("x"), Column("w")), (Column("g"),))
    one = linear_query(Plan(Gradient(model, ((0.0,) * 4,), 1e3)), SCHEMA, PrivacyUnit())
    eight = linear_query(Plan(Gradient(model, ((0.0,) * 4,) * 8, 1e3)), SCHEMA, PrivacyUnit())
    assert sigma_for(eight.l2_sensitivity_squared, GDP(1)) == pytest.approx(
        8**0.5 * sigma_for(one.l2_sensitivity_squared, GDP(1))
    )
    alone = descended("linear", FITS, 1e3 / 8**0.5, 50.0)  # a chain with the noise of a fit of one
    assert many / alone.std(axis=0) == pytest.approx(np.ones(4), abs=0.15)
