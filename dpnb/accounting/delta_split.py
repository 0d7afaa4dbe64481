"""The (epsilon, delta) with which a filter that counts epsilons counts a Gaussian release.

mu-GDP is (epsilon, delta(epsilon))-DP for every epsilon (Dong, Roth and Su 2022, Corollary 2.13), so a point of that
curve has to be chosen, by mu alone, before the release.  The chosen point admits the largest number of equal releases:
with n the largest number, not necessarily whole, such that n losses at delta = slack/n are within the filter's
bounds, the loss has that delta, and takes an n-th of what the filter may spend on deltas.  A delta that is
proportional to mu^2, for example, leaves most of the deltas unused when only about ten releases fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from dpnb.accounting.conversions import epsilon_of_gdp
from dpnb.accounting.losses import ApproxDP, Loss
from dpnb.accounting.losses.gaussian import is_gaussian

STEPS = 2**24
"""Numbers of releases are multiples of 1/STEPS."""

MAX_STEPS = STEPS * 10**9
"""Largest number of steps considered: a smaller release is charged a billionth of the budget, more than it needs."""


class CountsEpsilons(Protocol):
    """A filter that counts the epsilon and delta of each release."""

    def __hash__(self) -> int: ...

    def _split(self, mu_squared: Fraction, n: Fraction, slack: Fraction) -> ApproxDP:
        """The loss of one of `n` equal releases, not necessarily a whole number, whose deltas add up to `slack`."""

    def _admits_split(self, mu_squared: Fraction, n: Fraction, slack: Fraction) -> bool:
        """Whether the release has that loss and `n` of them are within the bound; the deltas are below 1."""

    def _roughly_admits(self, n: float, epsilon: float) -> bool:
        """Whether `n` losses with this epsilon are within the bound, in doubles."""


def split_loss(loss: Loss, start: CountsEpsilons, slack: Fraction) -> Loss:
    """The loss of a Gaussian release as epsilon and delta; another one as it is."""
    if not is_gaussian(loss):
        return loss
    return equivalent_epsilon_delta(loss.mu_squared, start, slack) if loss.mu_squared else ApproxDP(0)


@lru_cache(maxsize=4096)
def equivalent_epsilon_delta(mu_squared: Fraction, start: CountsEpsilons, slack: Fraction) -> ApproxDP:
    """The loss of a Gaussian release as epsilon and delta, under a filter that is `start` before the first release.

    A point of the release's curve; or, if not even a tiny part of such a release fits, a loss that is refused.
    `mu_squared` is above 0, and `slack` is the sum of the deltas that the filter may spend on all releases.
    """

    def fits(steps: int) -> bool:
        """Whether `steps` steps of a release are within the bounds; false beyond the largest number that fits."""
        n = Fraction(steps, STEPS)
        return slack / n >= 1 or start._admits_split(mu_squared, n, slack)

    steps = _largest(fits, _guess(math.sqrt(mu_squared), float(slack), start))
    if not steps or slack * STEPS >= steps:
        return ApproxDP(0, 2 * slack * STEPS)
    return start._split(mu_squared, Fraction(steps, STEPS), slack)


def proportional_loss(mu_squared: Fraction, slack: Fraction, mu0_squared: Fraction) -> ApproxDP:
    """The loss of a Gaussian release whose share of `slack` equals the share of its mu squared in `mu0_squared`.

    For odometers, which never refuse: the deltas are within the slack as long as the sum of mu squared is within its
    budget.  Beyond that, the deltas exceed the slack, whatever the epsilon.
    """
    delta = slack * mu_squared / mu0_squared
    return ApproxDP(epsilon_of_gdp(mu_squared, delta) if delta <= slack else 0, delta)


def _largest(fits: Callable[[int], bool], guess: int) -> int:
    """The largest whole number up to `MAX_STEPS` that fits, or 0; the guess only affects the time to find it."""
    if guess >= MAX_STEPS and fits(MAX_STEPS):
        return MAX_STEPS
    low = high = min(max(guess, 1), MAX_STEPS)
    step = 1
    while low and not fits(low):
        low, high, step = max(low - step, 0), low, 2 * step
    if low == high:
        while low < MAX_STEPS and fits(high := min(low + step, MAX_STEPS)):
            low, step = high, 2 * step
        high = max(low, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _guess(mu: float, slack: float, start: CountsEpsilons) -> int:
    """A guess in doubles, by bisection over the epsilon of one release: the larger it is, the fewer releases fit."""
    from scipy.special import log_ndtr  # imported when first used

    def log_number(e: float) -> float:
        """The logarithm of the number of releases for which the deltas suffice."""
        a, b = log_ndtr(mu / 2 - e / mu), log_ndtr(-mu / 2 - e / mu)
        return math.log(slack) - float(a + math.log1p(-math.exp(min(e + b - a, -1e-300))))

    def within(e: float) -> bool:
        return start._roughly_admits(math.exp(min(log_number(e), 600.0)), e)

    low, high = mu * 1e-6, mu * (40 + mu)
    try:
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if within(middle) else (low, middle)
        return int(math.exp(min(log_number(low), 600.0)) * STEPS)
    except (ValueError, OverflowError):
        return STEPS
