"""Exact rounding of a normal draw, for draws too close to a rounding boundary for doubles to decide.

Let Y = Phi^-1(U) with U uniform on (0, 1/2): the lower half of a standard normal.  No inverse is ever computed
here.  ``shift + scale * Y`` rounds to at most m exactly when ``U < Phi((m + 1/2 - shift) / scale)``, so U's binary
digits are compared with an enclosure of that one number; while the digits drawn so far do not decide the comparison,
more are drawn and the enclosure is narrowed.  Each further digit halves the probability of no decision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpnb.errors import InvalidValueError

# Phi is enclosed between multiples of 2**-_UNIT_BITS times the last digit drawn: fine enough to decide nearly always.
_UNIT_BITS = 16
# Phi is computed with this many bits beyond its permitted error, so mpmath, which is accurate to a few units in the
# last place, would have to be wrong by about 2**60 of them to change an answer.
_GUARD_BITS = 64
_DIGITS_FOR_A_GUESS = 32
# A draw that is undecided after this many digits means a broken source, not bad luck.
_MAX_BITS = 1024


class LazyUniform:
    """A real number uniform on (0, 1/2), whose binary digits are drawn on demand.

    `leading` is the integer of its first `bits` digits, below ``2**(bits - 1)`` since the number is below 1/2.  `more`
    returns the next `step` random digits as an integer.
    """

    def __init__(self, leading: int, bits: int, more: Callable[[], int], step: int = 64) -> None:
        self.leading = leading
        self.bits = bits
        self._more = more
        self._step = step

    def extend(self) -> None:
        """Draw the next digits.

        Raises `InvalidValueError` if a thousand digits did not decide the draw, as happens with a source that repeats
        itself.
        """
        if self.bits > _MAX_BITS:
            raise InvalidValueError(
                f"source: the bits must be random, but {self.bits} of them did not decide one draw, which has "
                f"probability below 2**-{_MAX_BITS - 64 - _UNIT_BITS}; use SystemNoiseSource()"
            )
        self.leading = (self.leading << self._step) | self._more()
        self.bits += self._step

    def quantile_guess(self) -> float:
        """An approximation of Y = Phi^-1(U); only the speed depends on its accuracy."""
        from scipy.special import ndtri_exp  # imported when first used

        log_u = math.log(2 * self.leading + 1) - (self.bits + 1) * math.log(2)
        return float(ndtri_exp(log_u))


def round_lower_normal(shift: Fraction, scale: Fraction, uniform: LazyUniform) -> int:
    """Round ``shift + scale * Phi^-1(U)`` to the nearest integer, correctly.

    `scale` is a standard deviation, > 0.  More digits of U are drawn as needed; ties have probability 0 and need no
    rule.
    """

    def at_most(m: int) -> bool:
        return lies_below(uniform, (m + Fraction(1, 2) - shift) / scale)

    # With this many significant digits the guess is correct, or off by one, for every scale in use.
    while uniform.leading.bit_length() < _DIGITS_FOR_A_GUESS:
        uniform.extend()
    # Bracket the answer between `low` (not reached) and `high` (reached), widening from a guess, then bisect.
    guess = round(shift + scale * Fraction(uniform.quantile_guess()))
    stride = 1
    if at_most(guess):
        low, high = guess - 1, guess
        while at_most(low):
            low, high, stride = low - 2 * stride, low, 2 * stride
    else:
        low, high = guess, guess + 1
        while not at_most(high):
            low, high, stride = high, high + 2 * stride, 2 * stride
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if at_most(middle) else (middle, high)
    return high


def lies_below(uniform: LazyUniform, threshold: Fraction) -> bool:
    """Decide whether Phi^-1(U) is below a threshold, in standard deviations; more digits of U are drawn as needed."""
    if threshold >= 0:
        return True
    while True:
        low, high = _cdf_units(threshold, uniform.bits + _UNIT_BITS)
        # U lies in [leading, leading + 1] * 2**-bits, Phi(threshold) in [low, high] * 2**-(bits + _UNIT_BITS).
        if (uniform.leading + 1) << _UNIT_BITS <= low:
            return True
        if uniform.leading << _UNIT_BITS >= high:
            return False
        uniform.extend()


def _cdf_units(threshold: Fraction, bits: int) -> tuple[int, int]:
    """Enclose the normal distribution function at a negative threshold between two multiples of ``2**-bits``.

    Phi(t) = erfc(x)/2 with x = sqrt(t^2/2).  An error of relative size e in x changes erfc by a relative size of at
    most (2 x^2 + 2) e = (t^2 + 2) e, for which the working precision compensates.  As Phi <= 1/2, a relative error
    below ``2**-bits`` is an absolute one below half a unit; a whole unit either way is allowed, and one more above
    for truncating the remaining digits.
    """
    from mpmath import libmp  # imported when first used

    half_square = threshold * threshold / 2
    precision = bits + _GUARD_BITS + int(half_square).bit_length()
    x = libmp.mpf_sqrt(libmp.from_rational(half_square.numerator, half_square.denominator, precision, "n"), precision)
    twice = libmp.mpf_erfc(x, precision, "n")
    units = int(libmp.to_int(libmp.mpf_shift(twice, bits - 1)))
    return units - 1, units + 2
