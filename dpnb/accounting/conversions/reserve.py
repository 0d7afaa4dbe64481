"""A guarantee in epsilon and delta, divided into a reserve for pure-DP losses and a GDP budget.

An E-DP and an R-GDP mechanism together have at least the trade-off function RR(E) (x) G_R, in the notation of
:mod:`dpnb.accounting.conversions.residue`.  Randomised response answers the truth with probability p = e^E/(1 + e^E),
so the privacy profile of the product at epsilon is::

    p delta_R(epsilon - E) + (1 - p) delta_R(epsilon + E),

with that of R-GDP, :func:`~dpnb.accounting.conversions.delta_from_mu`.  It is attained, and rises with R and with E.

The rule of :class:`~dpnb.accounting.GDPFilter` with a reserve. The promise is RR(E) (x) G_R: no more than one bit of
randomised response with parameter E and one draw from N(0, 1) or N(R, 1) reveal. E and R are fixed before the first
answer. The state (e, r) is what is left of both, at the start (E, R). An e1-DP mechanism with e1 <= e leads to (e - e1,
r); a mu-GDP one with mu <= r leads to (e, sqrt(r^2 - mu^2)). An e1-DP mechanism with e1 > e is admitted if some s >= 0
has RR(e1) (x) G_s >= RR(e) (x) G_r, and leads to (0, s) with the largest such s
(:mod:`dpnb.accounting.conversions.residue`).

Claim.  However the mechanisms are chosen, all of them together have at least the trade-off function RR(E) (x) G_R.

Proof.  As in :mod:`dpnb.accounting.conversions.residue`, by induction over the number of remaining rounds: from the
state (e, r), and given any past, the view of the remaining rounds has at least RR(e) (x) G_r.  A constant view has, and
for the step it remains to compare three compositions with that function.  For e1 <= e: an e1-DP and an (e - e1)-DP
mechanism together are e-DP, so RR(e1) (x) RR(e - e1) >= RR(e), and composing with G_r keeps the order.  For a mu-GDP
mechanism G_mu (x) G_sqrt(r^2 - mu^2) = G_r.  For e1 > e the inequality is the rule of admission.  ∎

A mechanism is never split into a part for the reserve and a part for the rest.  RR(a + b) is at most RR(a) (x) RR(b):
what two independent bits reveal is less than what one bit of their summed parameters does, so that charging e to the
reserve and e1 - e by the residue would exceed the promise; under (1, 1e-6)-DP with E = 0.15, a mechanism with e1 = 0.2
would give delta(1) = 1.68e-6.  Nor can what is left of the reserve be used for Gaussian releases: a frontier of pairs
(E, R) from which the answers choose is not a promise that was fixed beforehand.

A mechanism that is both, such as a sub-session with a reserve of its own, is taken as its pure part and its Gaussian
part in turn.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpnb.accounting.conversions.directed import checked_delta, directed, exp_up, real, settle
from dpnb.accounting.conversions.gaussian import delta_of_gdp, epsilon_of_gdp, mu_from_epsilon
from dpnb.accounting.conversions.pure import epsilon_from_pure
from dpnb.accounting.exact import Number, exact, non_negative, positive, shown
from dpnb.errors import InvalidValueError

_HALVINGS = 48
"""Steps of a bisection that only provides a guess."""

_LARGE = 1000


def mu_beside_reserve(epsilon: Number, *, delta: Number, pure_epsilon: Number) -> float:
    """The largest mu such that a `pure_epsilon`-DP and a mu-GDP mechanism together are (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : Number
        Above 0; a float means its shortest decimal.
    delta : Number
        In [0, 1).
    pure_epsilon : Number
        At least 0 and below epsilon.

    Returns
    -------
    float
        Rounded down in its decimal meaning; 0 if no mu is small enough.

    Raises
    ------
    InvalidValueError
        A number is out of range, not finite or not a number.

    References
    ----------
    .. [1] Dong, Roth and Su 2022, Corollary 2.13, averaged over the outcomes of randomised response.

    Examples
    --------
    >>> from dpnb.accounting.conversions import mu_beside_reserve, mu_from_epsilon
    >>> round(mu_beside_reserve(1, delta=1e-6, pure_epsilon=0.15), 4)
    0.2101
    >>> round(mu_from_epsilon(1, delta=1e-6), 4)
    0.2367
    """
    whole, reserve = positive(epsilon, name="epsilon"), non_negative(pure_epsilon, name="pure_epsilon")
    if reserve >= whole:
        raise InvalidValueError(
            f"pure_epsilon must be at least 0 and below epsilon, got {shown(pure_epsilon)} of {shown(epsilon)}; "
            "give for example a tenth of epsilon"
        )
    return _mu_of(whole, checked_delta(delta), reserve)


@lru_cache(maxsize=4096)
def _mu_of(epsilon: Fraction, delta: Fraction, reserve: Fraction) -> float:
    largest = mu_from_epsilon(epsilon, delta=delta)
    if not reserve or not largest:
        return largest

    def holds(mu: float) -> bool:
        return mu <= 0 or _profile_up(epsilon, reserve, exact(mu) ** 2) <= delta

    near = _near_mu(float(epsilon), float(reserve), float(delta), largest)
    return settle(largest if holds(near) else near, holds, 0.0)  # from above: it goes down in growing steps


def _near_mu(epsilon: float, reserve: float, delta: float, largest: float) -> float:
    """The same in doubles and slightly larger, as a guess; `largest` where they underflow."""
    from scipy.optimize import brentq  # imported when first used
    from scipy.special import log_ndtr  # imported when first used

    rest = math.log1p(math.exp(-reserve))
    logs = -rest, -reserve - rest

    def excess(mu: float) -> float:
        """The logarithm of the profile over delta."""
        terms = []
        for weight, x in zip(logs, (epsilon - reserve, epsilon + reserve), strict=True):
            first, second = float(log_ndtr(mu / 2 - x / mu)), x + float(log_ndtr(-mu / 2 - x / mu))
            terms.append(weight + first + math.log(max(-math.expm1(min(second - first, 0.0)), 1e-300)))
        return float(np.logaddexp(terms[0], terms[1])) - math.log(delta)

    if epsilon > _LARGE or delta < 1e-300:
        return largest
    low = largest
    while low > largest * 1e-6 and excess(low) > 0:
        low /= 2
    if not excess(low) < 0 < excess(largest):
        return largest
    return min(float(brentq(excess, low, largest, xtol=1e-300, rtol=1e-15)) * (1 + 1e-9), largest)


@lru_cache(maxsize=4096)
def epsilon_of_pure_gdp(pure_epsilon: Fraction, mu_squared: Fraction, delta: Fraction) -> float:
    """The smallest epsilon such that a `pure_epsilon`-DP and a mu-GDP mechanism together are (epsilon, delta)-DP.

    In nats, rounded up in its decimal meaning; infinite if delta is 0 and mu is not.

    >>> round(epsilon_of_pure_gdp(Fraction("0.15"), Fraction("0.0441"), Fraction(1, 10**6)), 3)
    1.0
    """
    if not mu_squared:
        return epsilon_from_pure(pure_epsilon, delta=delta)
    alone = epsilon_of_gdp(mu_squared, delta)
    if not pure_epsilon or alone == math.inf:
        return alone

    def holds(epsilon: float) -> bool:
        return epsilon == math.inf or _profile_up(exact(epsilon), pure_epsilon, mu_squared) <= delta

    if holds(alone):
        return alone
    low, high = alone, alone + float(pure_epsilon)  # both losses together have at most the sum
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return settle(low, holds, math.inf)


def _profile_up(epsilon: Fraction, reserve: Fraction, mu_squared: Fraction) -> Fraction:
    """An upper bound on the profile of the product, above it by less than a double can show."""
    truth, lie = _outcomes_up(reserve)
    return truth * _delta_up(epsilon - reserve, mu_squared) + lie * _delta_up(epsilon + reserve, mu_squared)


@lru_cache(maxsize=1024)
def _outcomes_up(reserve: Fraction) -> tuple[Fraction, Fraction]:
    """The probabilities that randomised response tells the truth, and that it does not, rounded up."""
    truth = directed(lambda ctx: (1 / (1 + ctx.exp(-real(ctx, reserve))),), up=True)
    if reserve >= _LARGE:
        return truth, exp_up(-reserve)  # it is less by an invisible amount, and e^E need not be computed
    return truth, directed(lambda ctx: (1 / (1 + ctx.exp(real(ctx, reserve))),), up=True)


def _delta_up(epsilon: Fraction, mu_squared: Fraction) -> Fraction:
    """The profile of mu-GDP at any epsilon: a symmetric trade-off function has delta(-x) = 1 - e^-x + e^-x delta(x)."""
    if epsilon >= 0:
        return delta_of_gdp(mu_squared, epsilon)
    opposite = delta_of_gdp(mu_squared, -epsilon)
    # It rises with delta(x), and 1 - e^-x (1 - delta(x)) with a lower bound on e^-x is an upper bound.
    return 1 - (1 - opposite) * directed(lambda ctx: (ctx.exp(real(ctx, epsilon)),), up=False)
