"""The Gaussian filter against adversaries who choose each mu from the realised loss.

With L the loss at the moment the adversary stops, the mean of (1 - e^(epsilon - L)) above 0 is the smallest delta for
which what was released is (epsilon, delta)-DP for these neighbours.  Smith and Thakurta 2022, Theorem 1: it is at most
that of one answer at the whole budget, and, if everything is spent, no less.

Seeds are fixed, so a test passes always or never.  At a fresh seed each of some 30 checks would raise a false alarm
with probability below 1e-8: six standard errors of a mean of 300,000 numbers between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from dpnb.accounting.conversions import delta_from_mu
from dpnb.accounting.filters import GDPFilter
from dpnb.accounting.losses import GDP
from statistical.adversaries import gaussian

pytestmark = pytest.mark.statistical

PATHS, WATCHED = 300_000, 40
EPSILONS = (0.25, 0.5, 1.0, 2.0)
# What is left of a budget of 1 is spent but for this, so that the rounding of a square root cannot exceed it.
DUST = 1e-12

Array = NDArray[np.float64]
Adversary = Callable[[Array, Array], Array]
Rule = Callable[[Array, Array], NDArray[np.bool_]]


# --- adversaries: from the realised loss and what is left of the sum of mu^2 to the mu wished for; 0 stops ------------


def _spend_all(loss: Array, left: Array) -> Array:
    """Small steps while the loss is high, large ones while it is low; nothing is left over."""
    return np.minimum(np.where(loss > 0.3, 0.15, 0.4), np.sqrt(left))


def _gamble_when_low(loss: Array, left: Array) -> Array:
    """Creep, and stake everything once the loss has fallen behind."""
    return np.where((loss < -0.2) | (left < 0.04), np.sqrt(left), 0.15)


def _stop_when_high(loss: Array, left: Array) -> Array:
    return np.where(loss > 1.5, 0.0, np.minimum(0.2, np.sqrt(left)))


def _one_great_leap(loss: Array, left: Array) -> Array:
    """Steps of 0.3, and a leap of 0.8 once that no longer fits: what a lagging filter lets through."""
    return np.where(left > 0.09, 0.3, np.where(left > DUST, 0.8, 0.0))


ADVERSARIES: dict[str, Adversary] = {
    "spends all in adaptive steps": _spend_all,
    "gambles when low": _gamble_when_low,
    "stops when the loss is above 1.5": _stop_when_high,
    "leaps at the end": _one_great_leap,
}


def _rule(spent: Array, mu: Array) -> NDArray[np.bool_]:
    """The filter: with it, the sum stays within 1."""
    return spent + mu**2 <= 1


def _rule_that_ignores_the_last_loss(spent: Array, mu: Array) -> NDArray[np.bool_]:
    """The sum before the loss is within 1; right only for the loss after."""
    return spent <= 1 - DUST


class Played(NamedTuple):
    """What became of all paths: losses and counts of answers, shape (PATHS,); the mus of the first few, by answer."""

    loss: Array
    answers: Array
    mus: Array


def _play(adversary: Adversary, rule: Rule = _rule, *, budget: float = 1.0) -> Played:
    """Play until nobody goes on; a mu that is refused ends its path."""
    rng = np.random.default_rng(20_220_601)
    loss, spent, answers = np.zeros(PATHS), np.zeros(PATHS), np.zeros(PATHS)
    goes_on = np.ones(PATHS, dtype=bool)
    mus = []
    while goes_on.any():
        mu = adversary(loss, np.maximum(budget - DUST - spent, 0))
        goes_on &= (mu > 1e-5) & rule(spent / budget, mu / np.sqrt(budget))
        mu = np.where(goes_on, mu, 0)
        drawn, cost = gaussian(rng, mu)
        loss, spent, answers = loss + drawn, spent + cost, answers + goes_on
        mus.append(mu[:WATCHED])
    return Played(loss, answers, np.array(mus))


def _excess(loss: Array, epsilon: float) -> tuple[float, float]:
    """How far the measured delta is above that of one answer at mu = 1, and the standard error."""
    bad = np.maximum(-np.expm1(epsilon - loss), 0)
    return float(bad.mean() - delta_from_mu(1, epsilon=epsilon)), float(bad.std() / np.sqrt(len(bad)))


@pytest.mark.parametrize("name", ADVERSARIES)
def test_no_adversary_gets_more_than_one_answer_at_the_whole_budget(name: str) -> None:
    loss = _play(ADVERSARIES[name]).loss
    for epsilon in EPSILONS:
        excess, error = _excess(loss, epsilon)
        assert excess <= 6 * error


@pytest.mark.parametrize("name", ["spends all in adaptive steps", "gambles when low"])
def test_who_spends_everything_gets_exactly_that(name: str) -> None:
    """So the bound above is not only safe: nothing is lost by being adaptive."""
    played = _play(ADVERSARIES[name])
    assert np.ptp(played.answers) > 3  # paths differ in earnest
    for epsilon in EPSILONS:
        excess, error = _excess(played.loss, epsilon)
        assert abs(excess) <= 6 * error


@pytest.mark.parametrize("name", ADVERSARIES)
def test_rule_of_this_simulation_is_the_filters(name: str) -> None:
    """The filter admits every step that the simulation took, and refuses the one that the simulation refused."""
    for path in _play(ADVERSARIES[name]).mus.T:
        state = GDPFilter(1)
        for mu in path[path > 0]:
            state = state.step(GDP(float(mu)))
        spent = float(np.sum(path**2))
        assert state.headroom == pytest.approx(1 - spent, abs=1e-9)
        assert not state.admits(GDP(float(np.sqrt(max(1 - spent, 0)) + 1e-5)))


# --- what must fail ---------------------------------------------------------------------------------------------------


def test_control_a_filter_that_ignores_the_last_loss_is_caught() -> None:
    loss = _play(_one_great_leap, _rule_that_ignores_the_last_loss).loss
    for epsilon in EPSILONS:
        excess, error = _excess(loss, epsilon)
        assert excess > 20 * error


def test_control_a_twentieth_too_much_is_caught() -> None:
    loss = _play(_spend_all, budget=1.05).loss
    assert any(excess > 6 * error for excess, error in (_excess(loss, epsilon) for epsilon in EPSILONS))
