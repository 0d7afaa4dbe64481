"""Conversions to and from Renyi differential privacy, rounded in the safe direction.

If D_a(P, Q) <= r for all neighbours, then (epsilon, delta)-DP holds with

``"tight"``
    log delta = (a - 1)(r - epsilon) + a log(1 - 1/a) - log(a - 1)
    (Canonne, Kamath and Steinke 2020, *The discrete Gaussian for differential privacy*, Proposition 12)
``"simple"``
    log delta = (a - 1)(r - epsilon)
    (Mironov 2017, *Renyi differential privacy*, Proposition 3)

for every epsilon >= 0.  Each is linear in r and epsilon, so it is solved for either in closed form.  Where r is tiny
compared to delta neither gives epsilon = 0; `epsilon_from_curve` does: the divergence of order 1 is at most r, so the
total variation is at most sqrt(1 - e^-r) (Bretagnolle and Huber 1979).

Bounded range
-------------
The conversions from bounded range to Renyi differential privacy and to zCDP are the best possible.

A mechanism has bounded range e if, for every pair of neighbours P and Q, the logarithms of all ratios of probabilities
lie in an interval [t - e, t] (Durfee and Rogers 2019, Definition 3.1), with 0 <= t <= e.  t may depend on the pair.
The largest divergence is that of two outcomes whose logarithms are t and t - e (step 1 of
:mod:`dpnb.accounting.conversions.pure`, for the convex function x^a); exchanging P and Q is another t.

*RDP.*  Under Q the first outcome has the probability (exp(-t) - exp(-e))/(1 - exp(-e)).  With y = exp(t),
A = 1 - exp(-a e) and B = exp(-e) - exp(-a e), the exponential of (a - 1) D_a is (A y^(a-1) - B y^a)/(1 - exp(-e)).  It
is 1 at both ends, y = 1 and y = exp(e), and has one maximum, at y = (a - 1) A/(a B).  Its logarithm there is

    g(a) = h(a) - h(a - 1) - h(1),    h(x) = x L(x e/2),    L(z) = log(sinh(z)/z),

and the largest D_a is g(a)/(a - 1), attained.

*zCDP.*  rho = h'(1), which is u - 1 - log(u) with u = e/(1 - exp(-e)).  As a -> 1 the largest D_a tends to it: it is
the largest Kullback-Leibler divergence of a bounded range (Dong, Durfee and Rogers 2020), so no smaller rho holds.

Proof that it holds at all orders: g(a) <= a (a - 1) rho.  Let r(x) = h''(x)/x = c^2 (2 L'(z)/z + L''(z)) with c = e/2
and z = c x.  L' = coth(z) - 1/z is 0 at 0 and concave for z > 0, since L''' = 2 (cosh(z)/sinh(z)^3 - 1/z^3) < 0 by
Lazarevic's inequality (sinh(z)/z)^3 > cosh(z).  So L'(z)/z and L'' fall, and r falls.  As h(0) = 0,

    g(a) = integral of (s + t) r(s + t) over 0 <= s <= 1 and 0 <= t <= a - 1.

The weights s + t add up to a (a - 1)/2, so g(a)/(a (a - 1)/2) is a mean of r(x).  For a fixed t, x = s + t has a
density proportional to x on [t, 1 + t], and lies below any z >= t with the probability (z^2 - t^2)/(1 + 2 t), which is
at most z^2, that of a density proportional to x on [0, 1].  So x tends to be larger than under the latter, and as r
falls, the mean is at most that under the latter, 2 (h'(1) - h'(0)) = 2 rho.  ∎

For small e, rho is e^2/8 (1 - e^2/72 + ...), with e^2/8 an upper bound (Cesar and Rogers 2021); for large e it is about
e - log(e) - 1.

References
----------
- Durfee, Rogers 2019, *Practical differentially private top-k selection with pay-what-you-get composition*.
- Dong, Durfee, Rogers 2020, *Optimal differential privacy composition for exponential mechanisms*.
- Cesar, Rogers 2021, *Bounding, concentrating, and truncating: unifying privacy loss composition for data analytics*.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpnb.accounting.conversions.directed import (
    MIN_DELTA,
    checked_delta,
    checked_order,
    directed,
    exp_up,
    is_tight,
    log,
    real,
)
from dpnb.accounting.exact import Number, decimal_down, decimal_up, exact, non_negative

# exp(-range) beyond this is smaller than every margin.
_LARGE = 10_000


def rho_from_range(range: Number) -> Fraction:
    """The smallest rho such that a bounded range implies rho-zCDP: u - 1 - log(u), u = range/(1 - e^-range).

    Parameters
    ----------
    range : Number
        At least 0; a float means its shortest decimal.

    Returns
    -------
    Fraction
        Rounded up, at most range^2/8.

    Raises
    ------
    InvalidValueError
        The number is negative, not finite or not a number.

    References
    ----------
    .. [1] See :ref:`proof-from-bounded-range`; range^2/8: Cesar and Rogers 2021.

    Examples
    --------
    >>> from dpnb.accounting.conversions import rho_from_range
    >>> round(float(rho_from_range(0.2)), 7), round(float(rho_from_range(8)), 4)
    (0.0049972, 4.9229)
    """
    e = non_negative(range, name="range")
    if not e or e > _LARGE:
        return min(e, e * e / 8)

    def terms(ctx: Any) -> tuple[Any, ...]:
        return real(ctx, e) / -ctx.expm1(-real(ctx, e)), -ctx.one, -log(ctx, e), _log_of_rest(ctx, e)

    return min(exact(decimal_up(directed(terms, up=True))), e * e / 8)


def rdp_from_range(range: Number, *, order: Number) -> Fraction:
    """The smallest rdp such that a bounded range implies (order, rdp)-RDP.

    Parameters
    ----------
    range : Number
        At least 0; a float means its shortest decimal.
    order : Number
        Above 1.

    Returns
    -------
    Fraction
        Rounded up, at most the range, and at most order range^2/8.

    Raises
    ------
    InvalidValueError
        A number is out of range, not finite or not a number.

    References
    ----------
    .. [1] See :ref:`proof-from-bounded-range`.

    Examples
    --------
    >>> from dpnb.accounting.conversions import rdp_from_range
    >>> round(float(rdp_from_range(0.2, order=10)), 4), round(float(rdp_from_range(2, order=10)), 4)
    (0.0477, 1.655)
    """
    e, a = non_negative(range, name="range"), checked_order(order)
    largest = min(e, a * e * e / 8)
    if not e or e > _LARGE:
        return largest

    def terms(ctx: Any) -> tuple[Any, ...]:
        share = real(ctx, a / (a - 1))
        return (
            real(ctx, e),
            share * _log_of_rest(ctx, a * e),
            -share * log(ctx, a),
            -_log_of_rest(ctx, (a - 1) * e),
            log(ctx, a - 1),
            -_log_of_rest(ctx, e) / real(ctx, a - 1),
        )

    # A bound that cancellation made loose may be beyond every double.
    return min(exact(decimal_up(min(directed(terms, up=True), largest))), largest)


def _log_of_rest(ctx: Any, x: Fraction) -> Any:
    """log(1 - exp(-x)) for x > 0, with full relative precision."""
    return ctx.log(-ctx.expm1(-real(ctx, x))) if x < 1 else ctx.log1p(-ctx.exp(-real(ctx, x)))


def epsilon_from_rdp(order: Number, rdp: Number, *, delta: Number, method: str = "tight") -> float:
    """The smallest epsilon such that (order, rdp)-RDP is shown to imply (epsilon, delta)-DP.

    Parameters
    ----------
    order : Number
        Above 1; a float means its shortest decimal.
    rdp : Number
        At least 0, in nats.
    delta : Number
        In [0, 1).
    method : {"tight", "simple"}, default "tight"
        ``"tight"`` or ``"simple"``.

    Returns
    -------
    float
        At least 0, rounded up in its decimal meaning; inf for delta = 0.

    Raises
    ------
    InvalidValueError
        A number is out of range, not finite or not a number; another method.

    References
    ----------
    .. [1] Canonne, Kamath and Steinke 2020, Proposition 12; simple: Mironov 2017, Proposition 3.

    Examples
    --------
    >>> from dpnb.accounting.conversions import epsilon_from_rdp
    >>> round(epsilon_from_rdp(10, 0.5, delta=1e-6), 4)
    1.6739
    """
    a, r, d = checked_order(order), non_negative(rdp, name="rdp"), checked_delta(delta)
    return _epsilon(a, r, d, is_tight(method))


def delta_from_rdp(order: Number, rdp: Number, *, epsilon: Number, method: str = "tight") -> float:
    """The smallest delta such that (order, rdp)-RDP is shown to imply (epsilon, delta)-DP.

    Parameters
    ----------
    order : Number
        Above 1; a float means its shortest decimal.
    rdp, epsilon : Number
        At least 0, in nats.
    method : {"tight", "simple"}, default "tight"
        ``"tight"`` or ``"simple"``.

    Returns
    -------
    float
        In (0, 1], rounded up in its decimal meaning.

    Raises
    ------
    InvalidValueError
        A number is out of range, not finite or not a number; another method.

    References
    ----------
    .. [1] Canonne, Kamath and Steinke 2020, Proposition 12; simple: Mironov 2017, Proposition 3.

    Examples
    --------
    >>> from dpnb.accounting.conversions import delta_from_rdp
    >>> 0 < delta_from_rdp(10, 0.5, epsilon=2) < 1e-6
    True
    """
    a, r, e = checked_order(order), non_negative(rdp, name="rdp"), non_negative(epsilon, name="epsilon")
    if not is_tight(method):
        return decimal_up(exp_up((a - 1) * (r - e)))

    def terms(ctx: Any) -> tuple[Any, ...]:
        return real(ctx, (a - 1) * (r - e)), real(ctx, a) * log(ctx, 1 - 1 / a), -log(ctx, a - 1)

    return decimal_up(exp_up(directed(terms, up=True)))


def rdp_from_epsilon(epsilon: Number, *, order: Number, delta: Number, method: str = "tight") -> float:
    """The largest rdp such that (order, rdp)-RDP is shown to imply (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : Number
        At least 0; a float means its shortest decimal.
    order : Number
        Above 1.
    delta : Number
        In [0, 1).
    method : {"tight", "simple"}, default "tight"
        ``"tight"`` or ``"simple"``.

    Returns
    -------
    float
        Rounded down in its decimal meaning.  Negative (-inf for delta = 0) if this order proves nothing.

    Raises
    ------
    InvalidValueError
        A number is out of range, not finite or not a number; another method.

    References
    ----------
    .. [1] Canonne, Kamath and Steinke 2020, Proposition 12, solved for rdp; simple: Mironov 2017, Proposition 3.

    Examples
    --------
    >>> from dpnb.accounting.conversions import rdp_from_epsilon
    >>> round(rdp_from_epsilon(2, order=20, delta=1e-6), 4)
    1.4818
    """
    e, a, d = non_negative(epsilon, name="epsilon"), checked_order(order), checked_delta(delta)
    tight = is_tight(method)
    if d < MIN_DELTA:
        return -math.inf
    return decimal_down(directed(lambda ctx: (real(ctx, e), *(-x for x in _overhead(ctx, a, d, tight))), up=False))


def rdp_from_mu(mu: Number, *, order: Number) -> float:
    """The smallest rdp such that mu-GDP implies (order, rdp)-RDP: order mu^2/2, as for the Gaussian mechanism.

    Parameters
    ----------
    mu : Number
        At least 0; a float means its shortest decimal.
    order : Number
        Above 1.

    Returns
    -------
    float
        Rounded up in its decimal meaning.

    Raises
    ------
    InvalidValueError
        A number is out of range, not finite or not a number.

    References
    ----------
    .. [1] Mironov 2017, Proposition 7, with data processing (Dong, Roth and Su 2022, Theorem 2.10).

    Examples
    --------
    >>> from dpnb.accounting.conversions import rdp_from_mu
    >>> rdp_from_mu(0.5, order=10)
    1.25
    """
    return decimal_up(checked_order(order) * non_negative(mu, name="mu") ** 2 / 2)


def epsilon_from_curve(curve: Iterable[tuple[Fraction, Fraction]], delta: Fraction) -> float:
    """The smallest epsilon implied by divergences of several orders, all of them fixed beforehand.

    Parameters
    ----------
    curve : iterable of (Fraction, Fraction)
        Pairs of order and rdp.
    delta : Fraction
        In [0, 1).

    Returns
    -------
    float
        Rounded up in its decimal meaning; 0 if delta is at least sqrt(1 - e^-rdp) for the least rdp.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpnb.accounting.conversions import epsilon_from_curve
    >>> curve = [(Fraction(order), Fraction(order, 8)) for order in (2, 4, 8, 16)]
    >>> round(epsilon_from_curve(curve, Fraction(1, 10**6)), 4)
    2.543
    """
    points = list(curve)
    least = min(rdp for _, rdp in points)
    # 1 - e^-r <= r; where the bound itself decides, r and 1 - e^-r differ by less than r^2/2.
    if least <= delta * delta or (least < 1 and least - least * least / 2 + least**3 / 6 <= delta * delta):
        return 0.0
    return min(_epsilon(order, rdp, delta, True) for order, rdp in points)


@lru_cache(maxsize=4096)
def _epsilon(a: Fraction, r: Fraction, delta: Fraction, tight: bool) -> float:
    if delta < MIN_DELTA:
        return math.inf
    bound = directed(lambda ctx: (real(ctx, r), *_overhead(ctx, a, delta, tight)), up=True)
    return decimal_up(max(bound, Fraction(0)))


def _overhead(ctx: Any, a: Fraction, delta: Fraction, tight: bool) -> tuple[Any, ...]:
    """The difference epsilon - r, as terms of full relative precision."""
    m = real(ctx, a - 1)
    tail = -log(ctx, delta) / m
    return (tail, log(ctx, 1 - 1 / a), -log(ctx, a) / m) if tight else (tail,)
