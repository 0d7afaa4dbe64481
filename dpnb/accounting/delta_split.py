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

from dpnb.accounting.conversions import delta_from_mu, epsilon_of_gdp
from dpnb.accounting.exact import decimal_sqrt_up, exact
from dpnb.accounting.filters import BasicFilter, RogersFilter
from dpnb.accounting.filters.rogers import mean_loss
from dpnb.accounting.losses import ApproxDP

__all__ = ["equivalent_epsilon_delta", "proportional_loss"]

STEPS = 2**24
"""Numbers of releases are multiples of 1/STEPS."""

MAX_STEPS = STEPS * 10**9
"""Largest number of steps considered: a smaller release is charged a billionth of the budget, more than it needs."""


@lru_cache(maxsize=4096)
def equivalent_epsilon_delta(mu_squared: Fraction, start: BasicFilter | RogersFilter, slack: Fraction) -> ApproxDP:
    """The loss of a Gaussian release as epsilon and delta.

    Parameters
    ----------
    mu_squared : Fraction
        mu squared of the release, greater than 0.
    start : BasicFilter or RogersFilter
        The filter before the first release.
    slack : Fraction
        The sum of the deltas that the filter may spend on all releases.

    Returns
    -------
    ApproxDP
        A point of the release's curve; or, if not even a tiny part of such a release fits, a loss that is refused.
    """

    def loss(steps: int) -> ApproxDP:
        n = Fraction(steps, STEPS)
        if isinstance(start, RogersFilter):
            return ApproxDP(epsilon_of_gdp(mu_squared, slack / n), slack / n)
        return ApproxDP(start.budget.epsilon / n, slack / n)

    def fits(steps: int) -> bool:
        """Whether `steps` steps of a release are within the bounds; false beyond the largest number that fits."""
        n = Fraction(steps, STEPS)
        if slack / n >= 1:
            return True
        if isinstance(start, RogersFilter):
            return start._holds(exact(epsilon_of_gdp(mu_squared, slack / n)), n)
        return exact(delta_from_mu(decimal_sqrt_up(mu_squared), epsilon=start.budget.epsilon / n)) <= slack / n

    steps = _largest(fits, _guess(math.sqrt(mu_squared), float(start.budget.epsilon), float(slack), start))
    return loss(steps) if steps and slack * STEPS < steps else ApproxDP(0, 2 * slack * STEPS)


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


def _guess(mu: float, epsilon: float, slack: float, start: BasicFilter | RogersFilter) -> int:
    """A guess in doubles, by bisection over the epsilon of one release: the larger it is, the fewer releases fit."""
    from scipy.special import log_ndtr  # imported when first used

    def log_number(e: float) -> float:
        """The logarithm of the number of releases for which the deltas suffice."""
        a, b = log_ndtr(mu / 2 - e / mu), log_ndtr(-mu / 2 - e / mu)
        return math.log(slack) - float(a + math.log1p(-math.exp(min(e + b - a, -1e-300))))

    def within(e: float) -> bool:
        n = math.exp(min(log_number(e), 600.0))
        if isinstance(start, RogersFilter):
            return (
                start.terms.k(Fraction(n) * Fraction(e) ** 2, int(n * mean_loss(Fraction(e)) * 2.0**52) << 1022)
                <= epsilon
            )
        return n * e <= epsilon

    low, high = mu * 1e-6, mu * (40 + mu)
    try:
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if within(middle) else (low, middle)
        return int(math.exp(min(log_number(low), 600.0)) * STEPS)
    except (ValueError, OverflowError):
        return STEPS
