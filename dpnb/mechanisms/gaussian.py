"""The exactly rounded Gaussian mechanism, and the noise scale for a declared loss.

For integer sums S and a noise scale sigma it releases, for each cell::

    h * round((S + sigma Z) / h),    h = 2**exponent,    exponent = floor(log2(sigma)) - 20,

where Z is a *real* standard normal number, never a double: the rounding is that of the real number, as one operation.

Why this is private
-------------------
S + sigma Z is the ideal Gaussian mechanism, which for sums of L2 sensitivity C is (C/sigma)-GDP (Dong, Roth, Su,
arXiv:1905.02383v3, Theorem 2.7), and everything after it is a function of its output: h depends on sigma alone.
Post-processing cannot raise the loss, so GDP, zCDP with C^2/(2 sigma^2) and every Renyi order hold unchanged, for
sums of any size.  The attacks on the low bits of doubles in textbook samplers do not apply: the released value is an
integer.

Why it is exact
---------------
1. S/h splits by shifts into an integer N and a dyadic fraction f in [0, 1), so round((S + sigma Z)/h) is
   N + round(f + s Z) with s = sigma/h, a double in [2^20, 2^21) (scaling by a power of two is exact).
2. Z = +-Y, Y = Phi^-1(U), U uniform on (0, 1/2).  Of 64 random bits one is the sign and 63 are U's first digits k:
   U is somewhere in [k, k + 1] * 2^-64, and its later digits are independent of everything.
3. Let z = ndtri((k + 1/2) * 2^-64).  With I(u) = phi(Phi^-1(u)) we have dY/dU = 1/I(U).  I is concave with
   I(0) = 0 and I(1/2) = 1/sqrt(2 pi), so I(u) >= 2u/sqrt(2 pi) on [0, 1/2]; every Y that is still possible lies within
   2^-65 / I(k 2^-64) <= sqrt(2 pi) / (4 k) < 0.63 / k of Phi^-1 at the interval's centre.
4. ndtri's error is assumed to be below ``1e-14 (1 + |z|)``; see below.  Rounding its argument moves Y by at most
   2^-52 sqrt(pi/2) (Mills' ratio); rounding f, s z and their sum moves the result by at most ``2^-51 (1 + s |z|)``.
   All of it together is far below ``s * 1e-11 * (1 + |z|)``, the margin used, since s >= 2^20.
5. If f + s z is further than these margins from every half-integer, all possible Z round to the same integer: the
   answer is known.  That holds for all but about one draw in 10^4 (never for k < 10^6, hence not for k = 0).
6. Otherwise `round_lower_normal` draws more digits of the same U and decides exactly.  No inverse decides there:
   ``shift + scale * Y`` rounds to at most m exactly when ``U < Phi((m + 1/2 - shift) / scale)``, so U's binary digits
   are compared with an enclosure of that one number; while the digits drawn so far do not decide the comparison, more
   are drawn and the enclosure is narrowed.  Each further digit halves the probability of no decision.  The value does
   not show whether this was necessary.

The running time does depend on the values; timing is outside the guarantee.

Assumptions
-----------
The exactness assumes two properties of other libraries' arithmetic, which are measured and not proved.

- The error of scipy's `ndtri` is at most ``1e-14 (1 + |z|)`` at every argument of step 3.  The margin in use is
  a thousand times that, so a draw could be rounded wrongly only with an error of `ndtri` above 1e-11.
  tests/test_assumptions.py compares the installed version with mpmath over all binades and both seams of its
  approximations, before all other tests; the largest error seen is near 1e-15.
- The error of mpmath's `erfc` is below some 2^60 units in its last place (`_cdf_units`).

Doubles are those of IEEE 754, rounded to nearest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb.accounting.exact import shown, sqrt_up
from dpnb.accounting.losses import GaussianLoss
from dpnb.errors import ConversionError, InvalidValueError
from dpnb.mechanisms.measurement import Measurement
from dpnb.mechanisms.randomness import WORD_BITS, NoiseSource, checked_words


def sigma_for(l2_sensitivity_squared: Fraction | int, loss: GaussianLoss) -> float:
    """The smallest double sigma for which the loss of the Gaussian mechanism is at most the declared loss.

    `l2_sensitivity_squared` is C^2, the square of the largest L2 change that one privacy unit can make to the sums, and
    sigma is in their units; its literal binary value is used.  By Dong, Roth, Su 2022 (arXiv:1905.02383v3), Theorem
    2.7, C^2/sigma^2 <= mu^2 suffices; that holds exactly when sigma >= sqrt(C^2/mu^2), and the root is rounded up by
    exact rational comparison, so that the true loss is never above the declared one.

    >>> from dpnb.accounting import GDP
    >>> sigma_for(4, GDP(0.5))
    4.0
    """
    if isinstance(l2_sensitivity_squared, bool) or not isinstance(l2_sensitivity_squared, int | Fraction):
        raise InvalidValueError(
            f"l2_sensitivity_squared: must be an exact number (int or Fraction), "
            f"got {l2_sensitivity_squared!r}; compute it in integers on the plan's grid"
        )
    if l2_sensitivity_squared <= 0:
        raise InvalidValueError(
            f"l2_sensitivity_squared: must be > 0; got {l2_sensitivity_squared}; "
            f"a query that no privacy unit can change needs no noise: answer it from the schema"
        )
    mu_squared = getattr(loss, "mu_squared", None)
    if not isinstance(mu_squared, int | Fraction):
        raise ConversionError(
            f"loss: Gaussian noise is calibrated to a loss in mu; got {type(loss).__name__}; "
            f"convert it to accounting.losses.GDP first"
        )
    if mu_squared <= 0:
        raise InvalidValueError(
            f"loss: mu must be > 0; got mu^2 = {shown(mu_squared)}: a loss of 0 needs infinite noise; "
            "request a larger mu"
        )
    sigma = sqrt_up(Fraction(l2_sensitivity_squared) / mu_squared)
    if not math.isfinite(sigma):
        raise InvalidValueError(
            f"loss: the noise scale C/mu must stay below the largest double; got C^2 = {l2_sensitivity_squared} "
            f"and mu^2 = {shown(mu_squared)}; request a larger mu or a coarser grid"
        )
    return sigma


# --- exact rounding of a normal draw ----------------------------------------------------------------------------------


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


# --- the exactly rounded Gaussian mechanism ---------------------------------------------------------------------------


INVERSE_ERROR = 1e-14
"""Assumed bound on the error of scipy's `ndtri`, times 1 + |z|; a test measures the installed version."""

# The output grid is about a millionth of the noise: too fine to matter, coarse enough to round with certainty.
_GRID_BITS = 20
# In standard deviations, times 1 + |z|; step 4 of the module's docstring.  A thousand times INVERSE_ERROR.
_INVERSE_MARGIN = 1e-11
# Step 3 of the module's docstring: sqrt(2 pi)/4 = 0.62666, rounded up.
_UNDRAWN_BITS_MARGIN = 0.63
_SIGN_BIT = 1 << (WORD_BITS - 1)
# Cells processed at a time, so that intermediate arrays stay in the processor's cache.
_CHUNK = 1 << 14


def measure(sums: Sequence[int] | NDArray[Any], *, sigma: float, source: NoiseSource) -> Measurement:
    """Add independent Gaussian noise to integer sums and round correctly to a grid determined by sigma.

    The values are together (C/sigma)-GDP if one privacy unit changes the sums by at most C in L2 norm (Dong, Roth, Su
    2022, arXiv:1905.02383v3, Theorem 2.7; the proof that rounding does not raise the loss is in this module's
    docstring).  `sums` has one dimension and integers of any size; `sigma`, in the same units, is meant literally.

    >>> from dpnb.mechanisms import SystemNoiseSource
    >>> noisy = measure([120, 7], sigma=4.0, source=SystemNoiseSource())
    >>> len(noisy.values), noisy.exponent, noisy.sigma
    (2, -18, 4.0)
    """
    exponent, scale = _output_grid(sigma)
    integers = _as_integers(sums)
    whole, fraction = _split(integers, exponent)
    words = checked_words(source, len(integers))
    steps, decided = _round_in_doubles(fraction, scale, words)
    values = _add(whole, steps)
    for i in np.flatnonzero(~decided).tolist():
        values[i] = int(whole[i]) + _round_exactly(int(integers[i]), exponent, scale, int(words[i]), source)
    return Measurement(tuple(values.tolist()), exponent, float(sigma))


def _output_grid(sigma: object) -> tuple[int, float]:
    """Choose the output grid 2**exponent and express sigma in it: a double in [2^20, 2^21), exactly."""
    if not isinstance(sigma, float) or not math.isfinite(sigma) or sigma <= 0:
        raise InvalidValueError(
            f"sigma: the noise scale must be a positive, finite float; got {sigma!r}; "
            f"take it from dpnb.mechanisms.sigma_for()"
        )
    mantissa, power = math.frexp(sigma)  # sigma = mantissa * 2**power, 1/2 <= mantissa < 1
    return power - 1 - _GRID_BITS, math.ldexp(mantissa, 1 + _GRID_BITS)


def _as_integers(sums: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
    """The sums as int64, or as Python integers if one of them needs more bits.

    Error messages name only types: the sums are private.
    """
    array = sums if isinstance(sums, np.ndarray) else None
    if array is not None and array.dtype.kind in "iu" and array.ndim == 1:
        narrow = array.dtype.kind == "i" or array.dtype.itemsize < 8
        return array.astype(np.int64, copy=False) if narrow else _as_integers(array.tolist())
    if array is not None and (array.ndim != 1 or array.dtype.kind != "O"):
        raise InvalidValueError(
            f"sums: a one-dimensional array of integers is needed; got {array.ndim} dimension(s) of {array.dtype}; "
            f"put the values on an integer grid first"
        )
    cells = list(sums)
    for kind in set(map(type, cells)):
        if kind is bool or not issubclass(kind, int | np.integer):
            raise InvalidValueError(
                f"sums: every sum must be an integer; got {kind.__name__}; put the values on an integer grid first"
            )
    try:
        return np.array(cells, dtype=np.int64)
    except OverflowError:
        return np.array([int(cell) for cell in cells], dtype=object)


def _split(integers: NDArray[Any], exponent: int) -> tuple[NDArray[Any], NDArray[np.float64] | float]:
    """Split S * 2**-exponent into its floor, exactly, and a double within 2^-53 of the fraction."""
    if exponent <= 0:
        return _shift_left(integers, -exponent), 0.0
    if integers.dtype == object:
        whole = integers >> exponent
        return whole, ((integers - (whole << exponent)) / (1 << exponent)).astype(np.float64)
    whole = integers >> min(exponent, 63)  # beyond 63 only the sign is left
    if exponent <= 62:
        return whole, np.ldexp((integers & ((1 << exponent) - 1)).astype(np.float64), -exponent)
    with np.errstate(under="ignore"):
        return whole, np.ldexp(integers.astype(np.float64), -exponent) - whole


def _shift_left(integers: NDArray[Any], bits: int) -> NDArray[Any]:
    """Multiply by 2**bits, in Python integers where 63 bits do not suffice."""
    if bits == 0 or integers.dtype == object:
        return integers << bits
    largest = max(abs(int(integers.min(initial=0))), abs(int(integers.max(initial=0))))
    if largest.bit_length() + bits < 63:
        return integers << bits
    return integers.astype(object) << bits


def _add(whole: NDArray[Any], steps: NDArray[np.int64]) -> NDArray[Any]:
    """Add the steps of the noise to the whole parts without integer overflow."""
    if whole.dtype != object:
        # |steps| < 2^26 (a 64-bit draw ends at 9.3 standard deviations of less than 2^21 steps).
        room = 2**62
        if -room <= whole.min(initial=0) and whole.max(initial=0) <= room:
            return np.asarray(whole + steps)
        whole = whole.astype(object)
    return np.asarray(whole + steps.astype(object))


def _round_in_doubles(
    fraction: NDArray[np.float64] | float, scale: float, words: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Round f + s Z for every word, and report which results are certain (steps 2 to 5 of the module's docstring)."""
    steps = np.empty(len(words), dtype=np.int64)
    decided = np.empty(len(words), dtype=np.bool_)
    for start in range(0, len(words), _CHUNK):
        part = slice(start, start + _CHUNK)
        f = fraction[part] if isinstance(fraction, np.ndarray) else fraction
        steps[part], decided[part] = _round_chunk(f, scale, words[part])
    return steps, decided


def _round_chunk(
    fraction: NDArray[np.float64] | float, scale: float, words: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """One chunk of `_round_in_doubles`."""
    from scipy.special import ndtri  # imported when first used

    digits = (words & np.uint64(_SIGN_BIT - 1)).view(np.int64).astype(np.float64)
    z = ndtri((digits + 0.5) * 2.0**-WORD_BITS)  # <= 0
    with np.errstate(divide="ignore"):
        margin = scale * (_INVERSE_MARGIN * (1.0 - z) + _UNDRAWN_BITS_MARGIN / digits)
    np.negative(z, out=z, where=words < _SIGN_BIT)
    x = fraction + scale * z
    nearest = np.rint(x)
    return nearest.astype(np.int64), np.abs(x - nearest) + margin < 0.5


def _round_exactly(total: int, exponent: int, scale: float, word: int, source: NoiseSource) -> int:
    """Round f + s Z exactly, starting from the digits in the word."""
    fraction = Fraction(total & ((1 << exponent) - 1), 1 << exponent) if exponent > 0 else Fraction(0)
    uniform = LazyUniform(word & (_SIGN_BIT - 1), WORD_BITS, lambda: int(checked_words(source, 1)[0]), WORD_BITS)
    if word & _SIGN_BIT:
        return round_lower_normal(fraction, Fraction(scale), uniform)
    return -round_lower_normal(-fraction, Fraction(scale), uniform)  # round(f - s Y) = -round(-f + s Y)
