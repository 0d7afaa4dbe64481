"""A descent that only the noise moves is rarely said to move, and one whose steps are longer than the noise always is.

Nominal level 99%: of 600 fits that start at the best fit at most 4% may be said to move; more have probability 2e-8
if 1% are.  The control believes in half of the noise.  Only clip, n * mu and the chains count for the noise.
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
from dpnb.accounting.losses import GDP
from dpnb.interactive.descent import is_moving, stepped, tail_means
from dpnb.mechanisms.gaussian import measure, sigma_for
from dpnb.mechanisms.randomness import NotPrivateSeededSource
from dpnb.schema import Bounded, Categories, Schema

pytestmark = pytest.mark.statistical

Array = NDArray[np.float64]
ROWS, STEPS, FITS, CHAINS = 50, 30, 1200, 8
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


def steps_of(
    family: Family, chains: int, clip: float, mu: float | None, rate: float, start: Array | None = None
) -> tuple[list[Array], float]:
    """The iterates of chains that each have the noise of a fit of `CHAINS` at mu a step; None is no noise.

    With the variance of the noise in each component of a chain's sums.
    """
    model = RegressionModel(family, Column(family), (Column("x"), Column("w")), (Column("g"),))
    made, source = design(model, SCHEMA), NotPrivateSeededSource(7)
    iterates, variance = [np.tile(np.zeros(made.width) if start is None else start, (chains, 1))], 0.0
    for _ in range(STEPS):
        plan = Plan(Gradient(model, tuple(map(tuple, iterates[-1].tolist())), clip))
        query = linear_query(plan, SCHEMA, PrivacyUnit())
        sums = execute(query, TABLE, SCHEMA)
        assert query.l2_sensitivity_squared == chains * CLIP_STEPS**2
        unit = float(query.features[0].unit)
        if mu is not None:
            sigma = sigma_for(CHAINS * CLIP_STEPS**2, GDP(mu))
            sums = measure(sums, sigma=sigma, source=source).to_floats()
            variance = (sigma * unit) ** 2
        released = (sums * unit).reshape(chains, -1)
        iterates.append(stepped(iterates[-1], released, rate=rate, size=ROWS, limit=LARGEST))
    return iterates, variance


def descended(family: Family, chains: int, clip: float, mu: float) -> Array:
    """Where chains end."""
    return tail_means(steps_of(family, chains, clip, mu, RATES[family])[0])


def share_moving(iterates: list[Array], variance: float, rate: float) -> float:
    """How many of some fits, each of `CHAINS` chains, are said to move."""
    fits = [[one[at : at + CHAINS] for one in iterates] for at in range(0, len(iterates[0]), CHAINS)]
    return float(np.mean([is_moving(fit, [variance] * STEPS, rate=rate, size=ROWS) for fit in fits]))


@pytest.mark.parametrize("family", ["linear", "logistic"])
def test_a_descent_that_only_the_noise_moves_is_rarely_said_to_move(family: Family) -> None:
    exact, _ = steps_of(family, 1, 3.0, None, RATES[family])
    for _ in range(20):  # to the best fit
        exact, _ = steps_of(family, 1, 3.0, None, RATES[family], exact[-1][0])
    for slower in (1, 50):  # around an optimum, and adrift
        rate = RATES[family] / slower
        iterates, variance = steps_of(family, FITS // 2 * CHAINS, 3.0, 4.0, rate, exact[-1][0])
        assert share_moving(iterates, variance, rate) < 0.04
    assert share_moving(iterates, variance / 2, rate) > 0.06


@pytest.mark.parametrize("family", ["linear", "logistic"])
def test_a_descent_far_from_its_end_is_said_to_move(family: Family) -> None:
    """Its rate is a fiftieth of what is needed, and the noise of a step is about as long as the step without noise."""
    rate = RATES[family] / 50
    iterates, variance = steps_of(family, 100 * CHAINS, 3.0, 0.6, rate)
    drift = np.linalg.norm((iterates[-1] - iterates[0]).mean(axis=0)) / STEPS
    noise = rate / ROWS * (variance * iterates[0].shape[1] / CHAINS) ** 0.5
    assert 0.5 < drift / noise < 3
    assert share_moving(iterates, variance, rate) > 0.95


def test_chains_share_a_step_and_their_mean_has_the_noise_of_one() -> None:
    """The spread of the mean over chains is that of one chain with all of mu; four spreads of 1,200 fits each."""
    many = descended("linear", FITS * CHAINS, 1e3, 100.0).reshape(FITS, CHAINS, -1).mean(axis=1).std(axis=0)
    model = RegressionModel("linear", Column("linear"), (Column("x"), Column("w")), (Column("g"),))
    one = linear_query(Plan(Gradient(model, ((0.0,) * 4,), 1e3)), SCHEMA, PrivacyUnit())
    eight = linear_query(Plan(Gradient(model, ((0.0,) * 4,) * 8, 1e3)), SCHEMA, PrivacyUnit())
    assert sigma_for(eight.l2_sensitivity_squared, GDP(1)) == pytest.approx(
        8**0.5 * sigma_for(one.l2_sensitivity_squared, GDP(1))
    )
    alone = descended("linear", FITS, 1e3 / 8**0.5, 100.0)  # a chain with the noise of a fit of one
    assert many / alone.std(axis=0) == pytest.approx(np.ones(4), abs=0.15)
