"""Discrete Laplace noise on the integers, sampled exactly.

``discrete_laplace(t)`` gives X with ``P(X = x) = (1 - q)/(1 + q) q^|x|``, q = exp(-1/t), for a rational scale t.

Why adding it is private without further assumptions
----------------------------------------------------
For integers x and d, ``|x - d| >= |x| - |d|``, so ``P(X = x - d) <= exp(|d|/t) P(X = x)``: moving the centre by d
changes no probability by more than the factor ``exp(|d|/t)``, and summing over an event preserves that.  So for an
integer S that one privacy unit changes by at most D, S + X is (D/t)-DP.  No real numbers are involved: the draws are
integers with exactly these probabilities, and the released value is an integer.  No doubles are involved either, so
there are no low bits that distinguish neighbours (Mironov 2012), and the loss is exactly D/t, not a bound on it.

Why the sampling is exact
-------------------------
The method is that of Canonne, Kamath and Steinke, with the two rational building blocks of
:mod:`dpnb.mechanisms.randomness`.  With t = n/m in lowest terms (their Algorithm 2): U uniform below n, accepted with
probability exp(-U/n), and V the number of successes of exp(-1) before its first failure, give P(U + n V = x)
proportional to exp(-x/n).  Its m-th part, rounded down, is y with probability proportional to exp(-y m/n) = exp(-y/t).
A random sign, where "minus zero" is rejected so that zero does not count twice, gives X.

A draw takes some ten words at any scale.  Its running time depends on the value; timing is outside the guarantee.

References
----------
- Canonne, Kamath, Steinke 2020, *The Discrete Gaussian for Differential Privacy*, arXiv:2004.00010v4,
  Algorithm 2.
- Mironov 2012, *On Significance of the Least Significant Bits for Differential Privacy*.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpnb.accounting.conversions.directed import directed, log, real
from dpnb.accounting.exact import Number, binary_up, exact, shown
from dpnb.errors import InvalidValueError
from dpnb.mechanisms.randomness import ExactBernoulli, NoiseSource

# exp(-800) is below every double.
_DEEP = 800


def discrete_laplace(scale: Fraction, source: NoiseSource) -> int:
    """Draw an integer x with probability proportional to exp(-abs(x)/scale), exactly.

    Added to an integer of sensitivity D, it is (D/scale)-DP: see this module's docstring.
    """
    top, bottom = _checked(scale)
    chance = ExactBernoulli(source, top.bit_length())
    while True:
        rest = chance.below(top)
        if not chance.happens(rest, top):
            continue
        whole = 0
        while chance.happens(1, 1):
            whole += 1
        size = (rest + top * whole) // bottom
        negative = chance.below(2)
        if size or not negative:
            return -size if negative else size


def laplace_tail(scale: Fraction, width: int) -> float:
    """Upper bound on the probability that a draw is further from zero than `width`.

    It is 2 q^(width + 1)/(1 + q) with q = exp(-1/scale), rounded up; never 0.

    >>> round(float(laplace_tail(Fraction(5, 2), 10)), 4)
    0.0147
    """
    top, bottom = _checked(scale)
    step = Fraction(bottom, top)
    depth = (_checked_width(width) + 1) * step
    if depth > _DEEP:
        return math.ulp(0.0)
    return binary_up(directed(lambda ctx: (2 * ctx.exp(-real(ctx, depth)) / (1 + ctx.exp(-real(ctx, step))),), up=True))


def laplace_half_width(scale: Fraction, alpha: Number) -> int:
    """The smallest width that the absolute value of a draw exceeds with probability at most `alpha`.

    By the formula of `laplace_tail`: the smallest w >= 0 with w + 1 >= scale log(2/(alpha (1 + q))).  Never too small;
    too large, by one, only where the formula is within a relative 2^-100 of an integer.

    >>> laplace_half_width(Fraction(5, 2), Fraction(1, 20))
    7
    """
    exact_scale, miss = Fraction(*_checked(scale)), exact(alpha, name="alpha")
    if not 0 < miss < 1:
        raise InvalidValueError(f"alpha: must lie between 0 and 1; got {shown(alpha)}; give for example 0.05")
    # The bit length exceeds log(2/alpha), so w = 0 suffices, and q, which has as many digits as 1/scale, is not needed.
    if exact_scale * math.ceil(2 / miss).bit_length() < 1:
        return 0
    bound = directed(
        lambda ctx: (log(ctx, 2 / miss), -ctx.log1p(ctx.exp(-real(ctx, 1 / exact_scale)))),
        up=True,
    )
    return max(math.ceil(exact_scale * bound) - 1, 0)


def _checked(scale: object) -> tuple[int, int]:
    """The scale as a ratio in lowest terms."""
    if isinstance(scale, int | Fraction) and not isinstance(scale, bool):
        top, bottom = scale.as_integer_ratio()
        if top > 0:
            return top, bottom
    raise InvalidValueError(
        f"scale: must be an exact number (Fraction or int) greater than 0; got {shown(scale)}; "
        f"compute it as sensitivity / epsilon in Fractions"
    )


def _checked_width(width: object) -> int:
    if isinstance(width, bool) or not isinstance(width, int) or width < 0:
        raise InvalidValueError(f"width: must be an integer of at least 0; got {shown(width)}; round it down")
    return width
