"""Tools of all conversions: an mpmath context for each thread, sums with directed rounding, and guess-and-check.

`directed` adds terms that are each accurate to 2^15 units in the last place, and moves the sum by 2^16 units of the sum
of their sizes towards the safe side.  It increases the precision until the sum has 110 good bits after cancellation, so
that the movement is invisible in a double; if they cancel even then, the result is loose, never wrong.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dpnb.accounting.exact import Number, exact, shown
from dpnb.errors import InvalidValueError

# Smaller deltas count as 0, which is the safe direction.
MIN_DELTA = Fraction(1, 10**5000)
_BITS, _MOST_BITS, _LOST, _GOOD = 192, 1536, 16, 110
# exp(-10000) < 2^-14000, far below every double.
_DEEP, _BELOW = -10_000, Fraction(1, 2**14_000)
_own = threading.local()


def context() -> Any:
    """The mpmath context of this thread: in the shared context another thread could change the precision."""
    import mpmath  # imported when first used

    ctx = getattr(_own, "context", None)
    if ctx is None:
        ctx = _own.context = mpmath.mp.clone()
    return ctx


def real(ctx: Any, number: Fraction) -> Any:
    """`number` at the context's precision, within two units in the last place."""
    return ctx.mpf(number.numerator) / number.denominator


def fraction(number: Any) -> Fraction:
    """The exact value of an mpmath number."""
    from mpmath.libmp import to_rational  # imported when first used

    return Fraction(*to_rational(number._mpf_))


def log(ctx: Any, number: Fraction) -> Any:
    """The logarithm of a positive number with full relative precision, also next to 1."""
    if 2 * number.numerator > number.denominator and number < 2:
        return ctx.log1p(real(ctx, number - 1))
    return ctx.log(real(ctx, number))


def directed(terms: Callable[[Any], tuple[Any, ...]], *, up: bool) -> Fraction:
    """A bound on the sum of `terms(context)` that differs from it by less than a double can show.

    Each term must be accurate to 2^15 units in the last place at the precision of the context.  With `up` the bound is
    an upper bound, otherwise a lower one.
    """
    ctx, bits = context(), _BITS
    while True:
        ctx.prec = bits
        parts = terms(ctx)
        total, size = sum(parts, ctx.zero), sum(map(abs, parts), ctx.zero)
        if bits >= _MOST_BITS or abs(total) >= ctx.ldexp(size, _GOOD - bits):
            margin = fraction(ctx.ldexp(size, _LOST - bits))
            return fraction(total) + (margin if up else -margin)
        bits *= 2


def exp_up(exponent: Fraction) -> Fraction:
    """An upper bound on exp of a number that is not positive; 1 for a positive one (a delta is never more)."""
    if exponent >= 0:
        return Fraction(1)
    if exponent < _DEEP:
        return _BELOW
    return min(directed(lambda ctx: (ctx.exp(real(ctx, exponent)),), up=True), Fraction(1))


def settle(guess: float, holds: Callable[[float], bool], safe: float) -> float:
    """The double near `guess` that is farthest from `safe` and for which `holds` returns True."""
    if not holds(guess):
        # In growing steps towards the safe side, then back by bisection: a poor guess costs time, never soundness.
        broken, stride = guess, math.ulp(guess)
        while not holds(guess := min(guess + stride, math.inf) if safe else max(guess - stride, 0.0)):
            broken, stride = guess, 2 * stride
        while (middle := broken + (guess - broken) / 2) not in (broken, guess):
            broken, guess = (broken, middle) if holds(middle) else (middle, guess)
        return guess
    while guess != safe and holds(tighter := math.nextafter(guess, 0.0 if safe else math.inf)):
        guess = tighter
    return guess


def checked_delta(delta: Number, *, name: str = "delta") -> Fraction:
    """A delta, in [0, 1)."""
    number = exact(delta, name=name)
    if not 0 <= number < 1:
        raise InvalidValueError(f"{name} must be at least 0 and below 1, got {shown(delta)}; give for example 1e-6")
    return number


def checked_order(order: Number) -> Fraction:
    """A Renyi order, above 1."""
    number = exact(order, name="order")
    if number <= 1:
        raise InvalidValueError(f"order must be above 1, got {shown(order)}; give for example 8")
    return number


def is_tight(method: object) -> bool:
    """Whether `method` is ``"tight"`` rather than ``"simple"``."""
    if not isinstance(method, str) or method not in ("tight", "simple"):
        raise InvalidValueError(f"method must be 'tight' or 'simple', got {shown(method)}; leave it out for 'tight'")
    return method == "tight"
