"""Conversions between rho-zCDP and (epsilon, delta), rounded in the safe direction.

rho-zCDP is a Renyi divergence of at most a rho at every order a > 1 (Bun and Steinke 2016, Definition 1.1), so at each
order, with x = a - 1 and L = log(1/delta),

``"tight"``
    epsilon = a rho - log(1 + 1/x) + (L - log a)/x
    (Canonne, Kamath and Steinke 2020, *The discrete Gaussian for differential privacy*, Corollary 13)
``"simple"``
    epsilon = rho + 2 sqrt(rho L), its minimum without the two terms in a alone
    (Bun and Steinke 2016, Proposition 1.3)

Every order gives a valid bound, so a search over orders cannot be wrong, only loose: an order is guessed in double
precision, refined, and then the bound of that one order is evaluated with a margin.  The best order satisfies::

    x^2 rho + log(1 + x) = L                  for epsilon, and for rho,
    (2 x + 1) rho - log(1 + 1/x) = epsilon    for delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpnb.accounting.conversions.directed import (
    MIN_DELTA,
    checked_delta,
    context,
    directed,
    exp_up,
    fraction,
    is_tight,
    log,
    real,
)
from dpnb.accounting.exact import Number, decimal_down, decimal_up, non_negative

# Bits of an order that is only proposed; being off by 2^-100 moves the figure by 2^-200 of its terms.
_PROPOSAL_BITS = 256
# The range in which log x is searched, where neither x nor 1/x is too large for a double.
_REACH = 700.0


def epsilon_from_rho(rho: Number, *, delta: Number, method: str = "tight") -> float:
    """The smallest epsilon such that rho-zCDP is shown to imply (epsilon, delta)-DP.

    Parameters
    ----------
    rho : Number
        At least 0; a float means its shortest decimal.
    delta : Number
        In [0, 1).
    method : {"tight", "simple"}, default "tight"
        ``"tight"`` or ``"simple"``.

    Returns
    -------
    float
        At least 0, rounded up in its decimal meaning; inf if delta is 0 and rho is not.

    Raises
    ------
    InvalidValueError
        A number is out of range, not finite or not a number; another method.

    References
    ----------
    .. [1] Canonne, Kamath and Steinke 2020, Corollary 13; simple: Bun and Steinke 2016, Proposition 1.3.

    Examples
    --------
    >>> from dpnb.accounting.conversions import epsilon_from_rho
    >>> round(epsilon_from_rho(0.1, delta=1e-6), 4)
    2.1419
    >>> round(epsilon_from_rho(0.1, delta=1e-6, method="simple"), 4)
    2.4508
    """
    return _epsilon(non_negative(rho, name="rho"), checked_delta(delta), is_tight(method))


def delta_from_rho(rho: Number, *, epsilon: Number, method: str = "tight") -> float:
    """The smallest delta such that rho-zCDP is shown to imply (epsilon, delta)-DP.

    Parameters
    ----------
    rho, epsilon : Number
        At least 0; a float means its shortest decimal.
    method : {"tight", "simple"}, default "tight"
        ``"tight"``, or ``"simple"`` for exp(-(epsilon - rho)^2/(4 rho)).

    Returns
    -------
    float
        In [0, 1], rounded up in its decimal meaning; 0 only for rho = 0.

    Raises
    ------
    InvalidValueError
        A number is out of range, not finite or not a number; another method.

    References
    ----------
    .. [1] Canonne, Kamath and Steinke 2020, Corollary 13; simple: Bun and Steinke 2016, Proposition 1.3, for delta.

    Examples
    --------
    >>> from dpnb.accounting.conversions import delta_from_rho
    >>> 0 < delta_from_rho(0.1, epsilon=3) < 1e-6
    True
    """
    r, e, tight = non_negative(rho, name="rho"), non_negative(epsilon, name="epsilon"), is_tight(method)
    if not r:
        return 0.0
    if not tight:
        return decimal_up(exp_up(-((e - r) ** 2) / (4 * r))) if e > r else 1.0
    x = _order_for_delta(r, e)

    def terms(ctx: Any) -> tuple[Any, ...]:
        return real(ctx, x * ((x + 1) * r - e)), -real(ctx, x + 1) * log(ctx, 1 + 1 / x), -log(ctx, x)

    return decimal_up(exp_up(directed(terms, up=True)))


def rho_from_epsilon(epsilon: Number, *, delta: Number, method: str = "tight") -> float:
    """The largest rho such that rho-zCDP is shown to imply (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : Number
        At least 0; a float means its shortest decimal.
    delta : Number
        In [0, 1).
    method : {"tight", "simple"}, default "tight"
        ``"tight"``, or ``"simple"`` for (sqrt(L + epsilon) - sqrt(L))^2.

    Returns
    -------
    float
        At least 0, rounded down in its decimal meaning; 0 for delta = 0.

    Raises
    ------
    InvalidValueError
        A number is out of range, not finite or not a number; another method.

    References
    ----------
    .. [1] Canonne, Kamath and Steinke 2020, Corollary 13, solved for rho; simple: Feldman and Zrnic 2021, Theorem 4.9.

    Examples
    --------
    >>> from dpnb.accounting.conversions import rho_from_epsilon
    >>> round(rho_from_epsilon(1, delta=1e-6), 5)
    0.02436
    """
    return _rho(non_negative(epsilon, name="epsilon"), checked_delta(delta), is_tight(method))


def optimal_order(epsilon: Number, *, delta: Number) -> float:
    """The Renyi order at which (epsilon, delta) admits the most zCDP losses, to four digits.

    Any order is valid, as long as it is chosen beforehand; this one is best when every loss is Gaussian or zCDP.

    Parameters
    ----------
    epsilon : Number
        At least 0; a float means its shortest decimal.
    delta : Number
        In (0, 1).

    Returns
    -------
    float
        Above 1.

    Raises
    ------
    InvalidValueError
        A number is out of range, not finite or not a number.

    Examples
    --------
    >>> from dpnb.accounting.conversions import optimal_order
    >>> round(optimal_order(1, delta=1e-6), 2)
    21.98
    """
    e, d = non_negative(epsilon, name="epsilon"), max(checked_delta(delta), MIN_DELTA)
    return max(float(f"{1 + math.exp(_log_order_for_rho(e, d)):.4g}"), 1.0001)


@lru_cache(maxsize=4096)
def _epsilon(rho: Fraction, delta: Fraction, tight: bool) -> float:
    if not rho:
        return 0.0
    if delta < MIN_DELTA:
        return math.inf
    if not tight:
        return decimal_up(
            directed(lambda ctx: (real(ctx, rho), 2 * ctx.sqrt(real(ctx, rho) * -log(ctx, delta))), up=True)
        )
    x = _order_for_epsilon(rho, delta)

    def terms(ctx: Any) -> tuple[Any, ...]:
        over = real(ctx, x)
        return (
            real(ctx, (x + 1) * rho),
            -log(ctx, 1 + 1 / x),
            -log(ctx, delta) / over,
            -log(ctx, 1 + x) / over,
        )

    return decimal_up(max(directed(terms, up=True), Fraction(0)))


@lru_cache(maxsize=4096)
def _rho(epsilon: Fraction, delta: Fraction, tight: bool) -> float:
    if delta < MIN_DELTA:
        return 0.0
    if not tight:

        def root(ctx: Any) -> tuple[Any, ...]:
            own = -log(ctx, delta)
            return ((real(ctx, epsilon) / (ctx.sqrt(own + real(ctx, epsilon)) + ctx.sqrt(own))) ** 2,)

        return decimal_down(max(directed(root, up=False), Fraction(0)))
    x = _order_for_rho(epsilon, delta)
    return decimal_down(max(directed(lambda ctx: _rho_terms(ctx, epsilon, delta, x), up=False), Fraction(0)))


def _rho_terms(ctx: Any, epsilon: Fraction, delta: Fraction, x: Fraction) -> tuple[Any, ...]:
    """The rho that order 1 + x allows, as terms of full relative precision."""
    a, over = real(ctx, x + 1), real(ctx, x)
    return (
        real(ctx, epsilon) / a,
        log(ctx, 1 + 1 / x) / a,
        log(ctx, delta) / (over * a),
        log(ctx, 1 + x) / (over * a),
    )


def _order_for_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """Solve x^2 rho + log(1 + x) = L for x; the left side increases."""
    ctx, budget = _proposing(), _log_of(delta)
    r = _double(rho)
    # There the left side is at least L, and here each of its two terms is at most half of it.
    high = math.log(budget / r) / 2
    low = min(math.log(budget / (2 * r)) / 2, _log_expm1(budget / 2))
    t = _root(lambda t: r * math.exp(2 * t) + math.log1p(math.exp(t)) - budget, low, high)
    return fraction(_polished(ctx, ctx.exp(t), real(ctx, rho), -log(ctx, delta)))


def _order_for_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    ctx = _proposing()
    x = ctx.exp(_log_order_for_rho(epsilon, delta))
    for _ in range(3):  # the rho of an order next to the best is off by the square of the distance
        rho = sum(_rho_terms(ctx, epsilon, delta, fraction(x)))
        if rho <= 0:
            break
        x = _polished(ctx, x, rho, -log(ctx, delta), rounds=1)
    return fraction(x)


def _log_order_for_rho(epsilon: Fraction, delta: Fraction) -> float:
    """Solve (L - log(1 + x)) (2 x + 1)/x^2 - log(1 + 1/x) = epsilon, the two conditions without rho, for log x."""
    budget, e = _log_of(delta), _double(epsilon)

    def excess(t: float) -> float:
        x = math.exp(t)
        return (budget - math.log1p(x)) * (2 + 1 / x) / x - math.log1p(1 / x) - e

    high = min(_log_expm1(budget), _REACH)
    low = high
    while low > -_REACH / 2 and excess(low) <= 0:
        low -= 2
    return _root(excess, low, high)


def _order_for_delta(rho: Fraction, epsilon: Fraction) -> Fraction:
    """Solve (2 x + 1) rho - log(1 + 1/x) = epsilon for x; the left side increases and is concave."""
    ctx = _proposing()
    r, e = _double(rho), _double(epsilon)

    def excess(t: float) -> float:
        return (2 * math.exp(t) + 1) * r - math.log1p(math.exp(-t)) - e

    x = ctx.exp(_root(excess, -(3 * r + 1), max(0.0, math.log((e + 1) / r))))
    for _ in range(3):
        gap = (2 * x + 1) * real(ctx, rho) - ctx.log1p(1 / x) - real(ctx, epsilon)
        x = max(x - gap / (2 * real(ctx, rho) + 1 / (x * (x + 1))), x / 2)
    return fraction(x)


def _polished(ctx: Any, x: Any, rho: Any, budget: Any, rounds: int = 3) -> Any:
    """Newton's method on x^2 rho + log(1 + x) = L."""
    for _ in range(rounds):
        gap = x * x * rho + ctx.log1p(x) - budget
        x = max(x - gap / (2 * x * rho + 1 / (1 + x)), x / 2)
    return x


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
    """The root of a monotone function by bisection, or the nearer end if there is none in the range."""
    low, high = max(min(low, _REACH), -_REACH), max(min(high, _REACH), -_REACH)
    rises = excess(high) > 0
    while high - low > 1e-9 * max(1.0, abs(low)):
        middle = (low + high) / 2
        low, high = (low, middle) if (excess(middle) > 0) == rises else (middle, high)
    return (low + high) / 2


def _proposing() -> Any:
    ctx = context()
    ctx.prec = _PROPOSAL_BITS
    return ctx


def _log_of(delta: Fraction) -> float:
    """log(1/delta) as a double above 0."""
    return max(float(-log(_proposing(), delta)), 1e-300)


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x)) if x > 1e-300 else math.log(1e-300)


def _double(number: Fraction) -> float:
    """A positive double next to a number, for guesses only."""
    return float(min(max(number, Fraction(1, 10**290)), Fraction(10**290)))
