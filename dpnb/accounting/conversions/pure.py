"""Conversions from epsilon-DP and from bounded range, rounded in the safe direction.

Every pair of output distributions of an epsilon-DP mechanism is a post-processing of randomised response, which answers
the truth with probability e^epsilon/(1 + e^epsilon) (Kairouz, Oh and Viswanath 2015, *The composition theorem for
differential privacy*, Theorem 3.1 and its proof).  So a bound for randomised response holds for all of them, and each
bound here except the "simple" one is the best possible.

Bounded range, as of the exponential mechanism
----------------------------------------------
A mechanism has bounded range e if, for every pair of neighbours, the logarithms of all ratios of probabilities lie in
an interval [t - e, t] (Durfee and Rogers 2019, Definition 3.1), with 0 <= t <= e, since both distributions have mass 1.
t may depend on the pair.

1. Among all pairs with ratios in that interval, the one with two outcomes, whose logarithms are t and t - e, is the
   easiest to tell apart: a ratio with mean 1 under Q has the largest expected value of every convex function where it
   has only the values at the ends, and a privacy profile is such an expected value.
2. *zCDP and RDP*: :mod:`dpnb.accounting.conversions.renyi`.
3. *GDP*: the smallest mu is that of e/2 in pure DP, Phi(mu/2) = exp(e/2)/(1 + exp(e/2)).

   Proof.  Let p and q be the probabilities of the first outcome under P and Q.  The trade-off function of two outcomes
   consists of two straight pieces that meet at (q, 1 - p), and that of mu-GDP is convex; so it lies below, if it does
   so at that vertex, that is, for mu >= a - b with p = Phi(a) and q = Phi(b).  The logit of p exceeds that of q by
   t - (t - e) = e.  With u(z) the logit of Phi(z), e is the integral of u' from b to a.  u' = phi/(Phi (1 - Phi)) is
   even, and rises with abs(z), as is shown next; so an interval over which the integral is e is longest if its middle
   is 0, where p = 1 - q = exp(e/2)/(1 + exp(e/2)), and a - b = 2 a is the mu of the claim.

   Let M = 1/u', and N = M' = 1 - 2 Phi + z M.  N(0) = 0, and N' = -2 phi + M + z N is negative at 0, since 1/4 is less
   than 2 phi(0)^2 = 1/pi.  N'' = 2 z phi + 2 N + z N'.  Suppose N reached 0 at some z > 0, at the first one from below.
   There N' >= 0 and N'' > 0, so from there on N and N' would be positive, N'' with them, and N would grow without end.
   But M falls to 0, as 1 - Phi does beside phi.  So N < 0 for all z > 0, and u' rises.  ∎

What a bounded range leaves of a GDP budget, if it is not converted first, is what randomised response with e/2 leaves:
:mod:`dpnb.accounting.conversions.residue`.

References
----------
- Durfee, Rogers 2019, *Practical differentially private top-k selection with pay-what-you-get composition*.
- Dong, Durfee, Rogers 2020, *Optimal differential privacy composition for exponential mechanisms*.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from dpnb.accounting.conversions.directed import (
    checked_delta,
    checked_order,
    context,
    directed,
    fraction,
    is_tight,
    real,
    settle,
)
from dpnb.accounting.exact import Number, decimal_sqrt_up, decimal_up, exact, non_negative

# exp(-epsilon) beyond this is smaller than every margin.
_LARGE = 100_000
_BITS, _TINY = 256, Fraction(1, 2**200)


def rho_from_pure(epsilon: Number, method: str = "tight") -> float:
    """The smallest rho such that epsilon-DP implies rho-zCDP: epsilon tanh(epsilon/2).

    For randomised response (a - 1) D_a = log cosh((a - 1/2) epsilon) - log cosh(epsilon/2), and w -> log cosh(epsilon
    sqrt(w)) is concave; its tangent at w = 1/4 gives D_a <= a epsilon tanh(epsilon/2), with equality as a -> 1.

    Parameters
    ----------
    epsilon : Number
        At least 0; a float means its shortest decimal.
    method : {"tight", "simple"}, default "tight"
        ``"tight"``, or ``"simple"`` for the papers' epsilon^2/2.

    Returns
    -------
    float
        Rounded up in its decimal meaning.

    Raises
    ------
    InvalidValueError
        epsilon is negative, not finite or not a number; another method.

    References
    ----------
    .. [1] Kairouz, Oh and Viswanath 2015, Theorem 3.1, as above; simple: Bun and Steinke 2016, Proposition 1.4.

    Examples
    --------
    >>> from dpnb.accounting.conversions import rho_from_pure
    >>> round(rho_from_pure(1), 4), rho_from_pure(1, method="simple")
    (0.4621, 0.5)
    """
    e, tight = non_negative(epsilon, name="epsilon"), is_tight(method)
    if not e or not tight:
        return decimal_up(e * e / 2)
    if e > _LARGE:
        return decimal_up(e)
    bound = directed(lambda ctx: (real(ctx, e) * ctx.tanh(real(ctx, e / 2)),), up=True)
    return decimal_up(min(bound, e, e * e / 2))


def mu_from_pure(epsilon: Number) -> float:
    """The smallest mu such that epsilon-DP implies mu-GDP: Phi(mu/2) = e^epsilon/(1 + e^epsilon).

    The trade-off curve of mu-GDP is convex and passes through the kink of randomised response's, so it lies below it.

    Parameters
    ----------
    epsilon : Number
        At least 0; a float means its shortest decimal.

    Returns
    -------
    float
        Rounded up in its decimal meaning.

    Raises
    ------
    InvalidValueError
        epsilon is negative, not finite or not a number.

    References
    ----------
    .. [1] Dong, Roth and Su 2022, Proposition 2.5 (epsilon-DP as a trade-off curve) and Definition 2.6.

    Examples
    --------
    >>> from dpnb.accounting.conversions import mu_from_pure
    >>> round(mu_from_pure(1), 4)
    1.232
    """
    from scipy.special import erfinv, ndtri_exp  # imported when first used

    number = non_negative(epsilon, name="epsilon")
    if not number:
        return 0.0
    if number > _LARGE:
        # P(N > x) <= exp(-x^2/2)/2 <= 1/(1 + e^epsilon) at x = sqrt(2 epsilon).
        return decimal_sqrt_up(8 * number)
    ctx = context()
    ctx.prec = _BITS
    root8, e = ctx.sqrt(8), real(ctx, number)
    tail, middle = 2 / (1 + ctx.exp(e)), ctx.tanh(e / 2)

    def holds(mu: float) -> bool:
        ctx.prec = _BITS
        x = real(ctx, exact(mu)) / root8
        # Near 0 the two tails cancel and the middle does not; the error of each side is far below this margin.
        if number < 1:
            return bool(ctx.erf(x) >= middle * (1 + real(ctx, _TINY)))
        return bool(ctx.erfc(x) <= tail * (1 - real(ctx, _TINY)))

    if number < 1:  # Phi(mu/2) = 1/2 + tanh(epsilon/2)/2
        x = ctx.mpf(float(erfinv(float(middle)))) or middle  # Newton's method, from the digits of a double
        x -= (ctx.erf(x) - middle) * ctx.exp(x * x) * ctx.sqrt(ctx.pi) / 2
    else:
        x = ctx.mpf(-float(ndtri_exp(-float(ctx.log1p(ctx.exp(e)))))) / ctx.sqrt(2)
        for _ in range(2):  # Newton's method for log erfc, which is concave
            here = ctx.erfc(x)
            x += (ctx.log(here) - ctx.log(tail)) * here * ctx.exp(x * x) * ctx.sqrt(ctx.pi) / 2
    return settle(decimal_up(fraction(root8 * x)), holds, math.inf)


def rdp_from_pure(epsilon: Number, *, order: Number) -> float:
    """The smallest rdp such that epsilon-DP implies (order, rdp)-RDP: the curve of randomised response.

    With m = order - 1, the sum of two cosh that the theorem prints is 1 + 2 sinh(m epsilon/2)^2 + tanh(epsilon/2)
    sinh(m epsilon), in which nothing cancels; rdp is its logarithm over m.

    Parameters
    ----------
    epsilon : Number
        At least 0; a float means its shortest decimal.
    order : Number
        Above 1.

    Returns
    -------
    float
        At most epsilon, rounded up in its decimal meaning.

    Raises
    ------
    InvalidValueError
        A number is out of range, not finite or not a number.

    References
    ----------
    .. [1] Mironov 2017, Proposition 5, for randomised response; Kairouz, Oh and Viswanath 2015, Theorem 3.1, for all.

    Examples
    --------
    >>> from dpnb.accounting.conversions import rdp_from_pure
    >>> round(rdp_from_pure(1, order=10), 4)
    0.9652
    """
    e, m = non_negative(epsilon, name="epsilon"), checked_order(order) - 1
    if not e or e > _LARGE:
        return decimal_up(e)

    def terms(ctx: Any) -> tuple[Any, ...]:
        if m * e > _LARGE:  # (log(1 + exp(-(2m + 1) epsilon)) would come in here, below the margin
            return real(ctx, e), -ctx.log1p(ctx.exp(-real(ctx, e))) / real(ctx, m)
        half, rise = ctx.sinh(real(ctx, m * e / 2)), ctx.sinh(real(ctx, m * e))
        return (ctx.log1p(2 * half * half + ctx.tanh(real(ctx, e / 2)) * rise) / real(ctx, m),)

    return decimal_up(min(directed(terms, up=True), e))


def epsilon_from_pure(epsilon: Number, *, delta: Number) -> float:
    """The smallest epsilon' such that epsilon-DP implies (epsilon', delta)-DP: log(e^epsilon - delta (1 + e^epsilon)).

    Parameters
    ----------
    epsilon : Number
        At least 0; a float means its shortest decimal.
    delta : Number
        In [0, 1).

    Returns
    -------
    float
        At least 0, rounded up in its decimal meaning; 0 if delta is at least the total variation tanh(epsilon/2).

    Raises
    ------
    InvalidValueError
        A number is out of range, not finite or not a number.

    References
    ----------
    .. [1] Kairouz, Oh and Viswanath 2015, Theorem 3.1: delta of randomised response at epsilon'.

    Examples
    --------
    >>> from dpnb.accounting.conversions import epsilon_from_pure
    >>> round(epsilon_from_pure(1, delta=0.1), 4)
    0.8529
    """
    e, d = non_negative(epsilon, name="epsilon"), checked_delta(delta)
    if not e or not d:
        return decimal_up(e)

    def terms(ctx: Any) -> tuple[Any, ...]:
        # Where the result is at least 0, delta e^-epsilon is at most half of 1 - delta: nothing cancels.
        small = ctx.exp(-real(ctx, e)) if e < _LARGE else ctx.zero
        lost = real(ctx, d) * (1 + small)
        if lost < 0.5:
            return real(ctx, e), ctx.log1p(-lost)
        kept = real(ctx, 1 - d) - real(ctx, d) * small
        return (real(ctx, e), ctx.log(kept)) if kept > small / 2 else (ctx.zero,)  # there it is below 0

    return decimal_up(min(max(directed(terms, up=True), Fraction(0)), e))


def pointwise_delta(epsilon: Number, *, delta: Number) -> float:
    """The smallest delta' such that (epsilon, delta)-DP implies (2 epsilon, delta')-pointwise DP.

    It is delta (1 + e^(-2 epsilon))/(1 - e^-epsilon).  Let S be where the loss is beyond 2 epsilon: P(S) is at most
    e^epsilon Q(S) + delta <= e^-epsilon P(S) + delta; where it is below -2 epsilon, the same bounds Q, and P there is
    at most e^(-2 epsilon) Q.  Three atoms attain both.  The 2 delta/(epsilon e^epsilon) in print is too small for every
    epsilon.

    Parameters
    ----------
    epsilon : Number
        At least 0; a float means its shortest decimal.
    delta : Number
        In [0, 1).

    Returns
    -------
    float
        In [0, 1], rounded up in its decimal meaning.

    Raises
    ------
    InvalidValueError
        A number is out of range, not finite or not a number.

    References
    ----------
    .. [1] Whitehouse et al. 2023, Lemma 2, and Rogers et al. 2016, Lemma 2.3, both corrected as above.

    Examples
    --------
    >>> from dpnb.accounting.conversions import pointwise_delta
    >>> round(pointwise_delta(0.5, delta=1e-6), 9)
    3.476e-06
    """
    e, d = non_negative(epsilon, name="epsilon"), checked_delta(delta)
    if not e or not d:
        return 1.0 if d else 0.0
    capped = min(e, Fraction(_LARGE))  # more epsilon needs less delta

    def terms(ctx: Any) -> tuple[Any, ...]:
        x = real(ctx, capped)
        return (real(ctx, d) * (1 + ctx.exp(-2 * x)) / -ctx.expm1(-x),)

    return decimal_up(min(directed(terms, up=True), Fraction(1)))
