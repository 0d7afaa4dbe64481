"""The GDP filter with pure-DP mechanisms against an adversary who chooses each mechanism from the realised loss.

Budget (1, 0.01)-DP.  The first release is Gaussian, at a third of the budget; then, for each outcome, the adversary
takes whatever of what is admitted raises delta(1) most: a Gaussian release of all that is left, or randomised response
with some epsilon and a Gaussian release of the rest.  The control admits by the *natural filter*, which composes the
trade-off functions of what was requested and stops when the promise would be broken; it is not valid for mixed families
of mechanisms (arXiv:2602.06756, arXiv:2602.15815).

delta(1) is computed by quadrature, and estimated from 1,000,000 runs with a fixed seed.  At a fresh seed each estimate
would raise a false alarm with probability below 1e-8: six standard errors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, ndtr
from scipy.stats import norm

from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import exact
from dpnb.accounting.filters import GDPFilter
from dpnb.accounting.losses import GDP, BoundedRange, PureDP, PureGDP, Repeated
from dpnb.errors import BudgetExceeded

pytestmark = pytest.mark.statistical

EPSILON, DELTA, RUNS = 1.0, 0.01, 1_000_000
BUDGET = Budget(EPSILON, DELTA)
FIRST = 0.3

Array = NDArray[np.float64]
Option = tuple[float, float]
"""Randomised response with an epsilon, and a Gaussian release at a mu."""


def profile(option: Option, x: Array) -> Array:
    """The hockey-stick divergence at e^x of the two mechanisms together."""
    epsilon, mu = option
    truth = expit(epsilon)
    return truth * gaussian_profile(mu, x - epsilon) + (1 - truth) * gaussian_profile(mu, x + epsilon)


def gaussian_profile(mu: float, x: Array) -> Array:
    if mu < 1e-9:
        return np.maximum(1 - np.exp(x), 0.0)
    return np.asarray(ndtr(mu / 2 - x / mu) - np.exp(x) * ndtr(-mu / 2 - x / mu))


def delta_by_quadrature(first: float, options: Sequence[Option]) -> float:
    """delta(1) if the best option is taken for each outcome of the first release."""
    y = np.linspace(first - 10, first + 10, 20_001)
    best = np.max([profile(option, EPSILON - loss_of_gaussian(y, first)) for option in options], axis=0)
    return float(np.trapezoid(norm.pdf(y - first) * best, y))


def loss_of_gaussian(y: Array, mu: float) -> Array:
    return mu * y - mu * mu / 2


def delta_by_simulation(first: float, options: Sequence[Option]) -> tuple[float, float]:
    """The same estimated from `RUNS` runs, with its standard error."""
    rng = np.random.default_rng(20_261_123)
    loss = loss_of_gaussian(rng.normal(first, 1, RUNS), first)
    # The best option at the nearest of many losses: at none of these runs is another better by 1e-12.
    losses, step = np.linspace(loss.min(), loss.max(), 20_001, retstep=True)
    best = np.argmax([profile(option, EPSILON - losses) for option in options], axis=0)
    epsilon, mu = np.array(options)[best[np.rint((loss - losses[0]) / step).astype(int)]].T
    is_true = rng.random(RUNS) < expit(epsilon)
    loss = loss + np.where(is_true, epsilon, -epsilon) + mu * rng.normal(mu, 1) - mu * mu / 2
    gains = np.maximum(1 - np.exp(EPSILON - loss), 0)
    return float(gains.mean()), float(gains.std() / np.sqrt(RUNS))


def admitted_by(filter_: GDPFilter) -> list[Option]:
    """What the filter admits next: randomised response at some epsilon, with all the Gaussian budget that it leaves."""
    options = []
    for epsilon in np.linspace(0, EPSILON, 41).round(4):
        try:
            after = filter_.step(PureDP(float(epsilon)))
        except BudgetExceeded:
            break
        options.append((float(epsilon), float(after.budget.mu_squared - after.spent.mu_squared) ** 0.5))
    return options


def admitted_by_the_natural_filter(first: float) -> list[Option]:
    """A Gaussian release, or randomised response, that composes with the first release to (1, 0.01)-DP."""
    mu = float(BUDGET.loss.mu_squared - exact(first) ** 2) ** 0.5
    one = np.array(EPSILON)
    largest = brentq(lambda epsilon: profile((epsilon, first), one) - DELTA, 0.01, 1)
    return [(0.0, mu), (largest, 0.0)]


def spent(filter_: GDPFilter) -> tuple[GDPFilter, float]:
    """The filter after a Gaussian release at `FIRST` of the budget, and the mu of that release."""
    mu = round(FIRST * BUDGET.loss.mu, 6)
    return filter_.step(GDP(mu)), mu


def test_the_residue_filter_keeps_its_promise() -> None:
    filter_, first = spent(GDPFilter.from_loss(BUDGET.loss))
    options = admitted_by(filter_)
    assert len(options) > 10
    delta = delta_by_quadrature(first, options)
    assert 0.8 * DELTA < delta <= DELTA
    estimate, error = delta_by_simulation(first, options)
    assert abs(estimate - delta) < 6 * error


def test_control_the_natural_filter_breaks_it() -> None:
    first = round(FIRST * BUDGET.loss.mu, 6)
    options = admitted_by_the_natural_filter(first)
    delta = delta_by_quadrature(first, options)
    assert delta == pytest.approx(1.62 * DELTA, rel=0.01)
    estimate, error = delta_by_simulation(first, options)
    assert abs(estimate - delta) < 6 * error
    assert estimate - 6 * error > DELTA


@pytest.mark.parametrize("reserve", [0.1, 0.3])
def test_the_reserve_filter_keeps_its_promise(reserve: float) -> None:
    budget = Budget(EPSILON, DELTA, pure_epsilon=reserve)
    whole = GDPFilter.from_loss(PureGDP(reserve, mu=budget.loss.mu))
    first = round(FIRST * budget.loss.mu, 6)
    after = whole.step(GDP(first))
    # The rest of the reserve may be used in addition to whatever is admitted next.
    options = [(epsilon + float(left_of_reserve(after, epsilon)), mu) for epsilon, mu in admitted_by(after)]
    delta = delta_by_quadrature(first, options)
    assert 0.9 * DELTA < delta <= DELTA * (1 + 1e-9)
    estimate, error = delta_by_simulation(first, options)
    assert abs(estimate - delta) < 6 * error


def left_of_reserve(filter_: GDPFilter, epsilon: float) -> Fraction:
    after = filter_.step(PureDP(epsilon))
    return after.budget.epsilon - after.spent.epsilon


def test_control_a_launch_that_is_split_breaks_the_promise() -> None:
    """0.15 of a launch of 0.2 from the reserve, and 0.05 by its residue: RR(a + b) is below RR(a) (x) RR(b)."""
    budget = Budget(1, 1e-6, pure_epsilon="0.15")
    assert GDPFilter.from_loss(PureGDP("0.15", mu=budget.loss.mu)).admits(PureDP("0.2"))
    one = np.array(EPSILON)
    split = GDPFilter.from_loss(budget.loss).step(PureDP("0.05"))
    left = float(split.budget.mu_squared - split.spent.mu_squared) ** 0.5
    assert float(profile((0.2, left), one)) == pytest.approx(1.68e-6, rel=0.01)
    whole = GDPFilter.from_loss(PureGDP("0.15", mu=budget.loss.mu)).step(PureDP("0.2"))
    left = float(whole.budget.mu_squared - whole.spent.mu_squared) ** 0.5
    assert float(profile((0.2, left), one)) <= 1e-6


def test_a_long_game_of_launches_and_releases_keeps_the_promise() -> None:
    """Five rounds at random shares of what is left, larger ones while the loss is high."""
    rng = np.random.default_rng(5)
    shares = [(0.0, 0.25), (0.3, 0.0), (0.15, 0.5), (0.45, 0.2)]
    states = {GDPFilter.from_loss(BUDGET.loss): np.arange(RUNS)}
    loss = np.zeros(RUNS)
    for turn in range(5):
        following: dict[GDPFilter, list[NDArray[np.intp]]] = {}
        for state, runs in states.items():
            left = float(state.budget.mu_squared - state.spent.mu_squared) ** 0.5
            high = loss[runs] > 0.2
            for is_high, chosen in ((True, runs[high]), (False, runs[~high])):
                pure, gaussian = shares[(turn + 2 * is_high) % len(shares)]
                epsilon, after = round(pure * left, 3), state
                if after.admits(PureDP(epsilon)):
                    after = after.step(PureDP(epsilon))
                else:
                    epsilon = 0.0
                rest = float(after.budget.mu_squared - after.spent.mu_squared)
                mu = round((rest if turn == 4 else gaussian * rest) ** 0.5 * (1 - 1e-6), 7)
                after = after.step(GDP(mu))
                signs = np.where(rng.random(len(chosen)) < expit(epsilon), epsilon, -epsilon)
                loss[chosen] += signs + mu * rng.normal(mu, 1, len(chosen)) - mu * mu / 2
                following.setdefault(after, []).append(chosen)
        states = {state: np.concatenate(runs) for state, runs in following.items()}
    gains = np.maximum(1 - np.exp(EPSILON - loss), 0)
    assert DELTA / 2 < gains.mean() < DELTA + 6 * gains.std() / np.sqrt(len(gains))


# --- several mechanisms that are charged together ---------------------------------------------------------------------


def after_steps(pairs: Sequence[tuple[float, float]], mu: float) -> float:
    """delta(1) of two-outcome mechanisms, given by the logarithms of their ratios, and a Gaussian release."""
    laws = {0.0: 1.0}
    for top, bottom in pairs:
        p = (1 - np.exp(bottom)) / (1 - np.exp(bottom - top))
        steps = ((top, p), (bottom, 1 - p))
        following: dict[float, float] = {}
        for (loss, chance), (step, share) in itertools.product(laws.items(), steps):
            key = round(loss + step, 12)
            following[key] = following.get(key, 0.0) + chance * share
        laws = following
    losses, chances = np.array(list(laws)), np.array(list(laws.values()))
    return float((chances * gaussian_profile(mu, EPSILON - losses)).sum())


def mu_left(filter_: GDPFilter) -> float:
    return float(filter_.budget.mu_squared - filter_.spent.mu_squared) ** 0.5


@pytest.mark.parametrize("count", [2, 5, 10])
def test_equal_mechanisms_that_are_charged_together_keep_the_promise(count: int) -> None:
    """Against randomised response in each step, which attains what pure DP allows, and all that is left after it."""
    epsilon = 0.15
    after = GDPFilter.from_loss(BUDGET.loss).step(Repeated(PureDP(epsilon), count))
    delta = after_steps([(epsilon, -epsilon)] * count, mu_left(after))
    assert 0.8 * DELTA < delta <= DELTA


def test_control_steps_that_are_charged_as_the_range_of_randomised_response_break_it() -> None:
    """Randomised response with epsilon has the range 2 epsilon: at a range of epsilon it pays a quarter."""
    after = GDPFilter.from_loss(BUDGET.loss).step(Repeated(BoundedRange(0.15), 12))
    assert after_steps([(0.15, -0.15)] * 12, mu_left(after)) > 1.3 * DELTA


@pytest.mark.parametrize("share", [0.02, 0.25, 0.5, 0.75, 0.98])
def test_steps_of_a_bounded_range_keep_the_promise_wherever_the_interval_lies(share: float) -> None:
    length, count = 0.2, 12
    after = GDPFilter.from_loss(BUDGET.loss).step(Repeated(BoundedRange(length), count))
    delta = after_steps([(share * length, (share - 1) * length)] * count, mu_left(after))
    assert (0.3 if share == 0.5 else 0) * DELTA < delta <= DELTA


def game(charge: Callable[[GDPFilter], GDPFilter], seed: int) -> tuple[float, float]:
    """delta(1) of ten steps in a range, each with an interval that depends on the loss so far, and what is left."""
    length, rng = 0.2, np.random.default_rng(seed)
    mu = mu_left(charge(GDPFilter.from_loss(BUDGET.loss)))
    loss = np.zeros(RUNS)
    for _ in range(10):
        top = length * np.where(loss > 0.2, 0.3, 0.6)
        p = (1 - np.exp(top - length)) / (1 - np.exp(-length))
        loss += np.where(rng.random(RUNS) < p, top, top - length)
    loss += mu * rng.normal(mu, 1, RUNS) - mu * mu / 2
    gains = np.maximum(1 - np.exp(EPSILON - loss), 0)
    return float(gains.mean()), float(gains.std() / np.sqrt(RUNS))


def test_a_game_of_ranges_that_follow_the_loss_keeps_the_promise() -> None:
    estimate, error = game(lambda filter_: filter_.step(Repeated(BoundedRange(0.2), 10)), 20_261_128)
    assert 0.3 * DELTA < estimate < DELTA - 6 * error


def test_control_ranges_of_which_only_one_is_charged_break_it() -> None:
    estimate, error = game(lambda filter_: filter_.step(BoundedRange(0.2)), 20_261_128)
    assert estimate - 6 * error > DELTA
