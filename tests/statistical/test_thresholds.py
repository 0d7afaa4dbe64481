"""Scans with a new threshold for each positive answer, against the charge of as many mechanisms in pure DP.

Budget (1, 0.01)-DP in GDP, all of which one launch takes.  In each scan the analyst asks queries that a unit raises,
which tell how high the hidden threshold is, and then one that it lowers; the law of its answers is exact
(`interactive.test_above_threshold`).  The worst that any scan could be is randomised response with its epsilon.  The
adversary leaves what remains unused once enough was lost.  Estimated is delta at epsilon 1, the mean of 1 - exp(1 - L)
over losses L above 1.  The controls go on after the positive answers that were charged, and count one mechanism with
the sum of the epsilons, which one threshold for all answers would have to be, as several.

The seed is fixed; a fresh one would raise a false alarm with probability below 1e-7 in each test.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

import dpnb
from dpnb.accounting.filters import GDPFilter
from dpnb.accounting.losses import PureDP, Repeated
from dpnb.interactive.above_threshold import STEPS, AboveThresholdParameters
from interactive.test_above_threshold import probability

pytestmark = pytest.mark.statistical

EPSILON, DELTA, RUNS = 1.0, 0.01, 200_000
SPREAD = 5.3
"""Standard errors, for a false alarm of 1e-7."""
BUDGET = dpnb.Budget(1, 0.01).loss
Law = tuple[NDArray[np.float64], NDArray[np.float64]]


@cache
def largest(scans: int) -> float:
    """The largest epsilon of each scan, of which the budget covers this number."""
    filter_, low, high = GDPFilter.from_loss(BUDGET), 0.0, 4.0
    for _ in range(22):
        middle = (low + high) / 2
        low, high = (middle, high) if filter_.admits(Repeated(PureDP(middle), scans)) else (low, middle)
    return low


@cache
def scan(each: float, raised: int = 3) -> Law:
    """The probabilities of one scan's answers for two neighbours: where it first is above, or nowhere."""
    terms, steps = AboveThresholdParameters(Fraction(each).limit_denominator(10**6), 1), 8
    rho, nu = (scale / STEPS * steps for scale in (terms.threshold_scale, terms.query_scale))
    low = -round(nu)
    here, there = [low] * raised + [0], [low + steps] * raised + [-steps]
    answers = [(False,) * first + (True,) for first in range(raised + 1)] + [(False,) * (raised + 1)]
    one, other = (np.array([probability(places, said, rho, nu) for said in answers]) for places in (here, there))
    assert one.sum() == pytest.approx(1)
    assert np.abs(np.log(one / other)).max() <= each
    return one, other


def response(each: float) -> Law:
    """The probabilities of randomised response."""
    true = 1 / (1 + math.exp(-each))
    return np.array([true, 1 - true]), np.array([1 - true, true])


def reached(law: Law, scans: int, enough: float) -> tuple[float, float]:
    """Delta at epsilon 1, in the worse direction, and its standard error."""
    rng, found = np.random.default_rng(20_261_128), []
    for p, q in (law, law[::-1]):
        ratios, loss = np.log(p / q), np.zeros(RUNS)
        if enough == math.inf:  # only how often each answer is given matters
            loss += rng.multinomial(scans, p, RUNS) @ ratios
        else:
            for _ in range(scans):
                loss += np.where(loss > enough, 0, ratios[rng.choice(len(p), size=RUNS, p=p)])
        excess = np.maximum(0, 1 - np.exp(EPSILON - loss))
        found.append((float(excess.mean()), float(excess.std()) / math.sqrt(RUNS)))
    return max(found)


@pytest.mark.parametrize("enough", [math.inf, 1.4], ids=["all", "until enough"])
@pytest.mark.parametrize("scans", [2, 20])
def test_several_scans_stay_within_the_budget(scans: int, enough: float) -> None:
    each = largest(scans)
    for law in (scan(each), response(each)):
        delta, error = reached(law, scans, enough)
        assert delta <= DELTA + SPREAD * error
    assert scans < 20 or enough < math.inf or delta > 0.6 * DELTA  # randomised response nearly uses it up


def test_control_scans_beyond_those_that_were_charged_exceed_it() -> None:
    delta, error = reached(scan(largest(5)), 150, math.inf)
    assert delta - SPREAD * error > DELTA


def test_control_one_mechanism_is_not_several_of_its_parts() -> None:
    delta, error = reached(response(20 * largest(20)), 1, math.inf)
    assert delta - SPREAD * error > 10 * DELTA
