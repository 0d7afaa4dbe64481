"""Conversions between mu and (epsilon, delta): exact curves, rounded in the safe direction.

mu-GDP is (epsilon, delta)-DP for precisely the pairs with (Dong, Roth and Su 2022, *Gaussian differential privacy*,
Corollary 2.13)::

    delta = Q(a) - exp(epsilon) Q(b),    a = epsilon/mu - mu/2,    b = epsilon/mu + mu/2,    Q(x) = P(N(0, 1) > x).

With phi the normal density and R = Q/phi, exp(epsilon) phi(b) = phi(a), so delta = Q(a) - phi(a) R(b).

Sufficient precision.  The two terms nearly cancel when mu is small.  Since R' = xR - 1 and 1 - xR(x) is at least
1/(x^2 + 3) (third convergent of R's continued fraction), R(a) - R(b) >= mu/(b^2 + 3); with R(0) < 1.26 the terms are at
most 24 (b^2 + 3)/mu times delta (the 24 covers -2 < a < 0; below that nothing cancels).  An error of one unit in the
last of p bits in epsilon/mu moves each term, relatively, by at most 16 (b + 2)^2 units.  So p = 192 + 4 log2(b + 2) +
log2(1/mu) bits leave a relative error below 2^-180; the margin `SLACK`, 2^-160, is above it.

Root finders only provide guesses.  Every returned double has been checked against the curve, in its decimal meaning and
with the margin `SLACK` in the safe direction; the next tighter double was tried too.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpnb.accounting.conversions.directed import MIN_DELTA, checked_delta, context, fraction, real, settle
from dpnb.accounting.exact import Number, decimal_down, decimal_up, exact, non_negative

SLACK = 1 + Fraction(1, 2**160)
# Q(400) < 2^-115000, and 1 - Q(-400) is as small.
_FAR = 400
_BEYOND = Fraction(1, 2**115_000)
# No double is above its root, and none except 0 is below the inverse of its root.
_MAX_MU_SQUARED = Fraction(10**650)


def delta_from_mu(mu: Number, *, epsilon: Number) -> float:
    """The smallest delta such that mu-GDP implies (epsilon, delta)-DP.

    Parameters
    ----------
    mu, epsilon : Number
        At least 0; a float means its shortest decimal.

    Returns
    -------
    float
        In [0, 1], rounded up in its decimal meaning; 0 only for mu = 0.

    Raises
    ------
    InvalidValueError
        A number is negative, not finite or not a number.

    References
    ----------
    .. [1] Dong, Roth and Su 2022, Corollary 2.13.

    Examples
    --------
    >>> from dpnb.accounting.conversions import delta_from_mu
    >>> round(delta_from_mu(0.5, epsilon=1), 6)
    0.00683
    """
    mu_squared = non_negative(mu, name="mu") ** 2
    delta = delta_of_gdp(mu_squared, non_negative(epsilon, name="epsilon"))
    return decimal_up(min(delta, Fraction(1)))


def delta_of_gdp(mu_squared: Fraction, epsilon: Fraction) -> Fraction:
    """The delta of mu-GDP at epsilon as an upper bound, above it by at most two `SLACK`."""
    if not mu_squared:
        return Fraction(0)
    ctx = context()
    e, mu = _set_precision(ctx, epsilon, mu_squared)
    a = e / mu - mu / 2
    if abs(a) > _FAR:
        return _BEYOND if a > 0 else Fraction(1)
    return fraction(_terms(ctx, e, mu)[0]) * SLACK


def epsilon_from_mu(mu: Number, *, delta: Number) -> float:
    """The smallest epsilon such that mu-GDP implies (epsilon, delta)-DP.

    Parameters
    ----------
    mu : Number
        At least 0; a float means its shortest decimal.
    delta : Number
        In [0, 1).

    Returns
    -------
    float
        At least 0, rounded up in its decimal meaning.  0 if delta is at least the total variation 2 Phi(mu/2) - 1;
        inf if delta is 0 and mu is not.

    Raises
    ------
    InvalidValueError
        A number is out of range, not finite or not a number.

    References
    ----------
    .. [1] Dong, Roth and Su 2022, Corollary 2.13, solved for epsilon.

    Examples
    --------
    >>> from dpnb.accounting.conversions import epsilon_from_mu
    >>> round(epsilon_from_mu(0.5, delta=1e-6), 4)
    2.2541
    """
    return epsilon_of_gdp(non_negative(mu, name="mu") ** 2, checked_delta(delta))


@lru_cache(maxsize=4096)
def epsilon_of_gdp(mu_squared: Fraction, delta: Fraction) -> float:
    """:func:`epsilon_from_mu` for exact arguments, with mu squared in place of mu.

    >>> round(epsilon_of_gdp(Fraction(1, 4), Fraction(1, 10**6)), 4)
    2.2541
    """
    if not mu_squared:
        return 0.0
    if delta < MIN_DELTA or mu_squared > _MAX_MU_SQUARED:
        return math.inf
    mu_squared = max(mu_squared, 1 / _MAX_MU_SQUARED)  # the safe direction, and smaller than any mu in use
    ctx = context()

    def holds(epsilon: float) -> bool:
        return epsilon == math.inf or delta_of_gdp(mu_squared, exact(epsilon)) <= delta

    # The total variation, or less beyond mu = 1; where doubles are so far above delta, the exact one is above it too.
    if math.erf(math.sqrt(min(mu_squared, Fraction(1)) / 8)) <= 2 * delta and holds(0.0):
        return 0.0
    return settle(decimal_up(_solve_epsilon(ctx, mu_squared, delta)), holds, math.inf)


def mu_from_epsilon(epsilon: Number, *, delta: Number) -> float:
    """The largest mu such that mu-GDP implies (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : Number
        At least 0; a float means its shortest decimal.
    delta : Number
        In [0, 1).

    Returns
    -------
    float
        At least 0, rounded down in its decimal meaning; 0 for delta = 0.

    Raises
    ------
    InvalidValueError
        A number is out of range, not finite or not a number.

    References
    ----------
    .. [1] Dong, Roth and Su 2022, Corollary 2.13, solved for mu.

    Examples
    --------
    >>> from dpnb.accounting.conversions import mu_from_epsilon
    >>> round(mu_from_epsilon(1, delta=1e-6), 4)
    0.2367
    """
    return _mu_of(non_negative(epsilon, name="epsilon"), checked_delta(delta))


def rho_from_mu(mu: Number) -> float:
    """The smallest rho such that mu-GDP implies rho-zCDP: mu squared over two.

    Data processing applied to N(0, 1) and N(mu, 1).  There is no way back: no zCDP parameter implies GDP.

    Parameters
    ----------
    mu : Number
        At least 0; a float means its shortest decimal.

    Returns
    -------
    float
        Rounded up in its decimal meaning.

    Raises
    ------
    InvalidValueError
        mu is negative, not finite or not a number.

    References
    ----------
    .. [1] Bun and Steinke 2016, Proposition 1.6.

    Examples
    --------
    >>> from dpnb.accounting.conversions import rho_from_mu
    >>> rho_from_mu(0.5)
    0.125
    """
    return decimal_up(non_negative(mu, name="mu") ** 2 / 2)


@lru_cache(maxsize=4096)
def _mu_of(epsilon: Fraction, delta: Fraction) -> float:
    if delta < MIN_DELTA:
        return 0.0
    epsilon = min(epsilon, Fraction(10**615))  # the safe direction: mu, about the root of 2 epsilon, stays a double
    ctx = context()

    def holds(mu: float) -> bool:
        return mu <= 0 or delta_of_gdp(exact(mu) ** 2, epsilon) <= delta

    return settle(decimal_down(_solve_mu(ctx, epsilon, delta)), holds, 0.0)


def _terms(ctx: Any, epsilon: Any, mu: Any) -> tuple[Any, Any, Any]:
    """delta, phi(a) and phi(a) R(b) at the context's precision."""
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    root2 = ctx.sqrt(2)
    density = ctx.exp(-a * a / 2) / ctx.sqrt(2 * ctx.pi)
    if b > 2**60:
        # b/(b^2+1) <= R(b) <= 1/b differ by less than 2^-120 of themselves; erfc would need an enormous exponent.
        second = density * b / (b * b + 1)
    else:
        second = density * ctx.sqrt(ctx.pi / 2) * ctx.exp(b * b / 2) * ctx.erfc(b / root2)
    return ctx.erfc(a / root2) / 2 - second, density, second


def _set_precision(ctx: Any, epsilon: Fraction, mu_squared: Fraction, spare: int = 0) -> tuple[Any, Any]:
    """Set the context's precision to the bits derived in the module's docstring; epsilon and mu at that precision."""
    ctx.prec = 64
    mu = ctx.sqrt(real(ctx, mu_squared))
    b = real(ctx, epsilon) / mu + mu / 2
    ctx.prec = 192 + spare + 4 * ctx.mag(b + 2) + max(0, 1 - ctx.mag(mu))
    return real(ctx, epsilon), ctx.sqrt(real(ctx, mu_squared))


def _solve_epsilon(ctx: Any, mu_squared: Fraction, delta: Fraction) -> Fraction:
    """Newton's method for log delta(epsilon), which is concave: from the right it cannot overshoot, from the left once.

    From the right: delta <= Q(a) <= exp(-a^2/2)/2, so the root is at most where that last figure is delta.  Doubles
    take most of the way, where they can.
    """
    ctx.prec = 128
    start = ctx.sqrt(max(-2 * ctx.log(2 * real(ctx, delta)), 0))
    root = ctx.sqrt(real(ctx, mu_squared))
    _, mu = _set_precision(ctx, fraction(root * start) + mu_squared, mu_squared, spare=64)
    target, e = ctx.log(real(ctx, delta)), mu * (start + mu / 2)
    if 1e-6 < mu < 1e3:
        e = ctx.mpf(_near_epsilon(float(mu), float(target), float(e)))
    for _ in range(400):
        here, _, second = _terms(ctx, e, mu)
        step = (ctx.log(here) - target) * here / second  # d delta / d epsilon = -exp(epsilon) Q(b)
        e = max(e + step, ctx.zero)
        if abs(step) <= ctx.ldexp(e, -40):  # what is left is about its square, far below the last digit of a double
            break
    return fraction(e)


def _near_epsilon(mu: float, target: float, start: float) -> float:
    """The same steps in doubles, until they no longer improve; `start` where doubles over- or underflow."""
    from scipy.special import log_ndtr  # imported when first used

    e = start
    for _ in range(50):
        first, second = float(log_ndtr(mu / 2 - e / mu)), e + float(log_ndtr(-mu / 2 - e / mu))
        if not 1e-12 < first - second < 700:
            return start
        here = first + math.log1p(-math.exp(second - first))
        step = (here - target) * math.exp(here - second)
        if abs(step) <= 1e-9 * e:
            break
        e = max(e + step, e / 2)
    return e


def _solve_mu(ctx: Any, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Newton's method for log delta as a function of log mu, concave, from the left, where it cannot overshoot.

    From the left: delta(mu) <= Q(a) is at most the target where a^2 = 2 log(1/(2 delta)), and delta(mu) is at most
    mu phi(0), which is the target at mu = delta sqrt(2 pi).
    """
    ctx.prec = 128
    ctx.prec += 2 * max(0, ctx.mag(real(ctx, epsilon)))  # a is a small difference of large numbers
    tail = ctx.sqrt(max(-2 * ctx.log(2 * real(ctx, delta)), 0))
    e, least = real(ctx, epsilon), real(ctx, delta) * ctx.sqrt(2 * ctx.pi)
    mu = max(2 * e / (tail + ctx.sqrt(tail * tail + 2 * e)), least) if epsilon else least
    e, _ = _set_precision(ctx, epsilon, fraction(mu) ** 2, spare=64)
    target = ctx.log(real(ctx, delta))
    for _ in range(400):
        here, density, _ = _terms(ctx, e, mu)
        step = (target - ctx.log(here)) * here / (density * mu)  # d delta / d mu = phi(a)
        mu *= ctx.exp(step)
        if abs(step) <= ctx.ldexp(1, -40):  # as above
            break
    return fraction(mu)
