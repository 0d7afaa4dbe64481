"""The time-uniform odometers against adversaries who see every loss.

The strongest one hugs the boundary: at every step it asks for a Gaussian answer whose standard deviation is a sixth of
the distance to the boundary, and at least a hundredth of the loss's own so far, until V has grown by many orders of
magnitude.  It uses up nearly all of delta against the line and the one-sided mixture.  The pointwise curve
sqrt(2 V log(1/delta)) + V/2, which is right at any one moment that was fixed beforehand, is the control: it must fail.

Seeds are fixed, so a test passes always or never.  A fresh seed would raise a false alarm with probability below 1e-7
in each of some 40 checks, the lower bounds on what the adversaries use up and the controls included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from dpnb.accounting.convert import convert
from dpnb.accounting.losses import GDP, ZCDP, PureDP
from dpnb.accounting.odometers import (
    ApproxDPAccumulator,
    FilterOdometer,
    MixtureOdometer,
    ReflectionOdometer,
    RenyiOdometer,
    Sided,
    StitchedOdometer,
)
from statistical.adversaries import (
    ADVERSARIES,
    BLIND,
    Array,
    Boundary,
    most,
    response_v,
    share_of_crossings,
    shares_of_crossings,
)

pytestmark = pytest.mark.statistical

PATHS = 100_000
DELTAS = (0.05, 0.01)
V0 = 0.1
Class = FilterOdometer | MixtureOdometer | StitchedOdometer


# --- the boundaries for many V at once, written independently of the classes ------------------------------------------


def _line(delta: float) -> Boundary:
    """Touches the pointwise curve at V = 1."""
    log = math.log(1 / delta)
    return lambda v: math.sqrt(2 * log) / 2 + math.sqrt(2 * log) * v / 2 + v / 2


def _mixture(gamma: float, delta: float, sided: Sided) -> Boundary:
    def bound(v: Array) -> Array:
        q = np.sqrt((v + gamma) / gamma) / delta
        inside = (1 + q) / 2 if sided == "one" else q
        return np.sqrt(2 * (v + gamma) * np.log(inside)) + v / 2

    return bound


def _tuned(delta: float, sided: Sided) -> Boundary:
    return _mixture(float(MixtureOdometer.tuned(1, delta, sided).gamma), delta, sided)


def _stitched(delta: float) -> Boundary:
    """Below V0 the value at V0, where the paper says nothing."""

    def bound(v: Array) -> Array:
        w = np.maximum(v, V0)
        return 1.7 * np.sqrt(w * (np.log(np.log(2 * w / V0)) + 0.72 * math.log(5.2 / delta))) + v / 2

    return bound


def _pointwise(delta: float) -> Boundary:
    return lambda v: np.sqrt(2 * v * math.log(1 / delta)) + v / 2


BOUNDARIES: dict[str, Callable[[float], Boundary]] = {
    "line": _line,
    "mixture, one-sided": lambda delta: _tuned(delta, "one"),
    "mixture, two-sided": lambda delta: _tuned(delta, "two"),
    "stitched": _stitched,
}
CLASSES: dict[str, Callable[[float], Class]] = {
    "line": lambda delta: FilterOdometer.tuned(1, delta),
    "mixture, one-sided": lambda delta: MixtureOdometer.tuned(1, delta, "one"),
    "mixture, two-sided": lambda delta: MixtureOdometer.tuned(1, delta, "two"),
    "stitched": lambda delta: StitchedOdometer(V0, delta),
}
# How much of delta the hugging adversary is known to use up: what is valid but wasteful leaves the rest.
USED = {"line": 0.75, "mixture, one-sided": 0.75, "mixture, two-sided": 0.35, "stitched": 0.15}


# --- the simulations speak of the classes -----------------------------------------------------------------------------


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("name", BOUNDARIES)
def test_formula_of_this_simulation_is_the_odometers(name: str, delta: float) -> None:
    odometer = CLASSES[name](delta)
    v = np.concatenate([np.geomspace(1e-6, 1e12, 200), [V0, 1.0]])
    np.testing.assert_allclose(BOUNDARIES[name](delta)(v), [odometer.bound_at(x) for x in v], rtol=1e-12)


@pytest.mark.parametrize("name", BOUNDARIES)
def test_clock_of_this_simulation_is_the_odometers(name: str) -> None:
    """A Gaussian answer costs mu^2; an epsilon-DP one 2 epsilon tanh(epsilon/2), or epsilon^2 as the paper has it."""
    start = CLASSES[name](DELTAS[0])
    assert start.step(GDP("0.3")).bound == start.bound_at("0.09")
    for epsilon in (0.01, 0.7, 3.0):
        exact = float(response_v(np.array(epsilon)))
        tight, printed = convert(PureDP(epsilon), ZCDP), PureDP(epsilon)
        assert start.step(tight).bound == pytest.approx(start.bound_at(exact), rel=1e-12)
        assert start.step(printed).bound >= start.step(tight).bound


def test_one_renyi_order_is_the_same_line() -> None:
    """For Gaussian losses a single order draws the line that is simulated here; it needs no simulation of its own."""
    delta, v = 0.05, Fraction(7, 3)
    order = 1 + math.sqrt(2 * math.log(1 / delta))
    bound = RenyiOdometer(order, delta).step(GDP.from_mu_squared(v)).bound
    assert bound == pytest.approx(float(_line(delta)(np.array(float(v)))), rel=1e-12)


# --- never above, and nearly delta ------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("name", BOUNDARIES)
def test_hugging_adversary_never_crosses_more_often_than_delta(name: str, delta: float) -> None:
    share = share_of_crossings(BOUNDARIES[name](delta), ADVERSARIES["hug"], paths=PATHS, seed=20_230_601)
    assert share <= most(delta, PATHS)
    # The adversary is worth its name: a boundary a little lower would be caught.
    assert share > USED[name] * delta


@pytest.mark.parametrize("name", BOUNDARIES)
def test_hugging_by_randomised_response_never_crosses_more_often_than_delta(name: str) -> None:
    paths, delta = PATHS // 2, DELTAS[0]
    adversary = ADVERSARIES["hug by randomised response"]
    assert share_of_crossings(BOUNDARIES[name](delta), adversary, paths=paths, seed=20_230_604) <= most(delta, paths)


@pytest.mark.parametrize("adversary", BLIND)
def test_no_adversary_who_does_not_look_at_the_boundary_crosses_more_often_than_delta(adversary: str) -> None:
    """The control, the pointwise curve, is crossed by the same paths."""
    paths, delta = PATHS // 2, DELTAS[0]
    bounds = [*(bound(delta) for bound in BOUNDARIES.values()), _pointwise(delta)]
    *shares, control = shares_of_crossings(bounds, ADVERSARIES[adversary], paths=paths, seed=20_230_604)
    assert max(shares) <= most(delta, paths)
    assert control > 1.4 * delta > most(delta, paths)


# --- what must fail ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adversary", sorted(set(ADVERSARIES) - {*BLIND}))
def test_pointwise_curve_read_at_any_moment_fails(adversary: str) -> None:
    bound = _pointwise(DELTAS[0])
    share = share_of_crossings(bound, ADVERSARIES[adversary], paths=20_000, seed=20_230_602)
    assert share > 1.4 * DELTAS[0] > most(DELTAS[0], 20_000)


def test_accumulator_is_no_time_uniform_odometer() -> None:
    """Its reading is the pointwise curve: right for every budget fixed beforehand, crossed here nearly always."""
    delta = DELTAS[0]
    for v in (1e-4, 1.0, 300.0):
        reading = ApproxDPAccumulator(delta, delta).step(GDP.from_mu_squared(v)).bound
        assert reading == pytest.approx(float(_pointwise(delta)(np.array(v))), rel=1e-12)
    assert share_of_crossings(_pointwise(delta), ADVERSARIES["hug"], paths=20_000, seed=20_230_605) > 10 * delta


@pytest.mark.parametrize("name", ["line", "mixture, one-sided"])
def test_boundary_a_tenth_too_low_is_caught(name: str) -> None:
    bound = BOUNDARIES[name](DELTAS[0])

    def lower(v: Array) -> Array:
        return v / 2 + 0.9 * (bound(v) - v / 2)

    assert share_of_crossings(lower, ADVERSARIES["hug"], paths=PATHS, seed=20_230_603) > most(DELTAS[0], PATHS)


# --- the reflection odometer ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("closer", [False, True])
def test_reflection_holds_for_the_noisy_values_up_to_the_horizon(closer: bool) -> None:
    """Against an analyst who takes larger steps the farther the bound is, and neighbours that may be closer."""
    delta, horizon, rng = DELTAS[1], 1.0, np.random.default_rng(20_261_128)
    level = ReflectionOdometer(1, delta).bound_at(0.25) - 0.125
    loss, v, crossed = np.zeros(PATHS), np.zeros(PATHS), 0
    while len(v):
        distance = level + v / 2 - loss
        mu = np.minimum(np.clip(distance / 6, 0.02, None), np.sqrt(horizon - v))
        d = mu * (rng.random(len(v)) < 0.5) if closer else mu
        loss += d**2 / 2 + d * rng.standard_normal(len(v))
        v = np.where(horizon - v - mu**2 < 1e-12, horizon, v + mu**2)
        is_above = loss > level + v / 2
        crossed += int(np.count_nonzero(is_above))
        goes_on = ~is_above & (v < horizon)
        loss, v = loss[goes_on], v[goes_on]
    assert crossed / PATHS <= most(delta, PATHS)
    assert closer or crossed / PATHS > 0.75 * delta
