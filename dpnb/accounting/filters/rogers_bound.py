"""The bound of Rogers et al. 2016, Theorem 5.1, in doubles and in exact sums."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction

from dpnb.accounting.conversions.directed import checked_delta
from dpnb.accounting.doubles import LEAST_FAILURE, MARGIN, log_inverse
from dpnb.accounting.exact import Number, binary_down, positive, shown
from dpnb.errors import InvalidValueError

_ZERO = Fraction(0)
# Every double is a whole multiple of the smallest one, so doubles add up exactly as integers.
_SMALLEST_BITS = 1074
_ONE = 1 << _SMALLEST_BITS
MAX_DELTA = Fraction(36787944, 10**8)
"""A little below 1/e, where the theorem's range of delta ends."""


@dataclass(frozen=True, slots=True)
class RogersConstants:
    """The bound that was fixed beforehand, with its constants."""

    epsilon: Fraction
    delta: Fraction
    deltas: Fraction  # bound on the sum of the losses' deltas
    k_limit: float  # the double below epsilon: the bound on K
    constant: float  # C; any positive one that is fixed beforehand is valid
    log: float  # log(2/delta), or log(1/delta) for losses without deltas

    def k(self, squares: Fraction, means: int) -> float:
        """K, rounded up; `means` in units of the smallest double."""
        s = _float(squares)
        deviation = math.sqrt(2 * (s + self.constant) * (1 + math.log1p(s / self.constant) / 2) * self.log)
        return (_ratio(means, _ONE) + deviation) * MARGIN

    def fits(self, squares: Fraction, means: int, deltas: Fraction) -> bool:
        """Whether these sums are within the bound."""
        return (not deltas or deltas <= self.deltas) and self.k(squares, means) <= self.k_limit


def terms_of(epsilon: Number, delta: Number, *, pure: bool) -> RogersConstants:
    """The constants of a bound that is fixed beforehand."""
    e, d = positive(epsilon, name="epsilon"), checked_delta(delta)
    if not LEAST_FAILURE <= d <= MAX_DELTA:
        raise InvalidValueError(f"delta must be between 1e-300 and 1/e, got {shown(delta)}; give for example 1e-6")
    if not Fraction(1, 10**150) <= e <= 10**150:
        raise InvalidValueError(f"epsilon must be between 1e-150 and 1e150, got {shown(epsilon)}; rescale it")
    log = log_inverse(d)
    return RogersConstants(
        e,
        d,
        _ZERO if pure else d / 2,
        binary_down(e),
        float(e) ** 2 / (28.04 * log),
        log if pure else log + math.log(2),
    )


def mean_loss(epsilon: Fraction) -> float:
    """The mean of an epsilon-DP loss is at most epsilon (e^epsilon - 1)/2; a double not below that.

    Infinite means, at an epsilon of several hundred, are the largest double, which no filter admits.
    """
    e = _float(epsilon)
    try:
        # The margin covers the rounding of normal doubles, the next double that of the smallest ones.
        mean = math.nextafter(e * math.expm1(e) / 2 * MARGIN, math.inf)
    except OverflowError:
        mean = math.inf
    return min(mean, sys.float_info.max)


def in_smallest(x: float) -> int:
    """A double as a multiple of the smallest one."""
    numerator, denominator = x.as_integer_ratio()
    return numerator << (_SMALLEST_BITS + 1 - denominator.bit_length())


def _float(number: Fraction) -> float:
    return _ratio(number.numerator, number.denominator)


def _ratio(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf
