"""The mixture odometer against an adversary who hugs the boundary.

At every step the adversary looks at the realised loss and asks for a Gaussian answer whose standard deviation is a
sixth of the distance to the boundary, and at least a hundredth of the loss's own so far: small steps when near, bold
ones when far, until V has grown by many orders of magnitude.  Hardly anything uses up more of delta.  The pointwise
curve sqrt(2 V log(1/delta)) + V/2, which is right at any one moment that was fixed beforehand, is the control: it must
fail.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from dpnb.accounting.odometers import MixtureOdometer, Sided

pytestmark = pytest.mark.statistical

Array = NDArray[np.float64]
PATHS, STEPS, DELTA, END = 200_000, 1_200, 0.05, 1e12
# A valid boundary is crossed with probability at most delta; six standard deviations more than that happen by chance
# with probability below 1e-7 (Chernoff bound for this binomial).
MOST = DELTA + 6 * np.sqrt(DELTA * (1 - DELTA) / PATHS)


def _mixture(gamma: float, sided: Sided) -> Callable[[Array], Array]:
    """The boundary for many V at once, written independently of the class."""

    def bound(v: Array) -> Array:
        q = np.sqrt((v + gamma) / gamma) / DELTA
        inside = (1 + q) / 2 if sided == "one" else q
        return np.sqrt(2 * (v + gamma) * np.log(inside)) + v / 2

    return bound


def _pointwise(v: Array) -> Array:
    return np.sqrt(2 * v * np.log(1 / DELTA)) + v / 2


def _step(distance: Array, v: Array) -> Array:
    # Without a floor the steps would shrink with the distance and hardly a path would ever arrive.
    return np.maximum(distance / 6, np.sqrt(v) / 100)


def _share_of_crossings(bound: Callable[[Array], Array], first_mu: float, seed: int) -> float:
    """How often the realised loss is ever above the boundary."""
    rng = np.random.default_rng(seed)
    loss, v = np.zeros(PATHS), np.zeros(PATHS)
    mu = np.full(PATHS, first_mu)
    crossed = 0
    for _ in range(STEPS):
        # A Gaussian answer of this mu, neighbours at the full distance: the loss is normal, mean mu^2/2, variance mu^2.
        loss += mu**2 / 2 + mu * rng.standard_normal(len(mu))
        v += mu**2
        distance = bound(v) - loss
        crossed += int(np.count_nonzero(distance < 0))
        goes_on = (distance >= 0) & (v < END)
        loss, v, mu = loss[goes_on], v[goes_on], _step(distance[goes_on], v[goes_on])
    return crossed / PATHS


@pytest.mark.parametrize("sided", ["one", "two"])
def test_formula_of_this_simulation_is_the_odometers(sided: Sided) -> None:
    odometer = MixtureOdometer.tuned(1, DELTA, sided)
    v = np.geomspace(1e-6, END, 200)
    np.testing.assert_allclose(_mixture(odometer.gamma, sided)(v), [odometer.bound_at(x) for x in v], rtol=1e-12)


@pytest.mark.parametrize("sided", ["one", "two"])
def test_hugging_adversary_never_crosses_more_often_than_delta(sided: Sided) -> None:
    gamma = MixtureOdometer.tuned(1, DELTA, sided).gamma
    share = _share_of_crossings(_mixture(gamma, sided), first_mu=1e-3, seed=20_230_601)
    assert share <= MOST
    # The adversary is worth its name: a boundary a little lower would be caught.
    assert share > (0.8 if sided == "one" else 0.4) * DELTA


def test_pointwise_curve_read_at_any_moment_fails() -> None:
    assert _share_of_crossings(_pointwise, first_mu=1e-3, seed=20_230_602) > 10 * DELTA


def test_boundary_a_tenth_too_low_is_caught() -> None:
    gamma = MixtureOdometer.tuned(1, DELTA, "one").gamma

    def lower(v: Array) -> Array:
        return v / 2 + 0.9 * (_mixture(gamma, "one")(v) - v / 2)

    assert _share_of_crossings(lower, first_mu=1e-3, seed=20_230_603) > MOST
