"""Conversions between Renyi divergence of one order a > 1 and (epsilon, delta), rounded in the safe direction.

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
from dpnb.accounting.exact import Number, decimal_down, decimal_up, non_negative


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
