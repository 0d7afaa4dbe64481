"""The exactly rounded Gaussian mechanism.

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
4. ndtri's error is assumed to be below ``1e-14 (1 + |z|)``; see below.  Rounding its
   argument moves Y by at most 2^-52 sqrt(pi/2) (Mills' ratio); rounding f, s z and their sum moves the result by at
   most ``2^-51 (1 + s |z|)``.  All of it together is far below ``s * 1e-11 * (1 + |z|)``, the margin used, since
   s >= 2^20.
5. If f + s z is further than these margins from every half-integer, all possible Z round to the same integer: the
   answer is known.  That holds for all but about one draw in 10^4 (never for k < 10^6, hence not for k = 0).
6. Otherwise `exact_rounding` draws more digits of the same U and decides exactly.  The value does not show whether this
   was necessary.

The running time does depend on the values; timing is outside the guarantee.

Assumptions
-----------
The exactness assumes two properties of other libraries' arithmetic, which are measured and not proved.

- The error of scipy's `ndtri` is at most ``1e-14 (1 + |z|)`` at every argument of step 3.  The margin in use is
  a thousand times that, so a draw could be rounded wrongly only with an error of `ndtri` above 1e-11.
  tests/test_assumptions.py compares the installed version with mpmath over all binades and both seams of its
  approximations, before all other tests; the largest error seen is near 1e-15.
- The error of mpmath's `erfc` is below some 2^60 units in its last place (`exact_rounding`).

Doubles are those of IEEE 754, rounded to nearest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb.errors import InvalidValueError
from dpnb.mechanisms.exact_rounding import LazyUniform, round_lower_normal
from dpnb.mechanisms.measurement import Measurement
from dpnb.mechanisms.randomness import WORD_BITS, NoiseSource, checked_words

__all__ = ["INVERSE_ERROR", "Measurement", "measure"]

INVERSE_ERROR = 1e-14
"""Assumed bound on the error of scipy's `ndtri`, times 1 + |z|; a test measures the installed version."""

# The output grid is about a millionth of the noise: too fine to matter, coarse enough to round with certainty.
_GRID_BITS = 20
# In standard deviations, times 1 + |z|; step 4 above.  A thousand times INVERSE_ERROR.
_INVERSE_MARGIN = 1e-11
# Step 3 above: sqrt(2 pi)/4 = 0.62666, rounded up.
_UNDRAWN_BITS_MARGIN = 0.63
_SIGN_BIT = 1 << (WORD_BITS - 1)
# Cells processed at a time, so that intermediate arrays stay in the processor's cache.
_CHUNK = 1 << 14


def measure(sums: Sequence[int] | NDArray[Any], *, sigma: float, source: NoiseSource) -> Measurement:
    """Add independent Gaussian noise to integer sums and round correctly to a grid determined by sigma.

    Parameters
    ----------
    sums : sequence or array of int, shape (cells,)
        Exact sums, in grid units; integers of any size.
    sigma : float
        Standard deviation in the same units, > 0; the literal binary value is used.
    source : NoiseSource
        Source of the random bits.

    Returns
    -------
    Measurement
        One noisy value for each cell; together they are (C/sigma)-GDP if one privacy unit changes the sums by at most
        C in L2 norm.

    Raises
    ------
    InvalidValueError
        sigma is not positive and finite, sums are not integers in one dimension, or the source is invalid.

    References
    ----------
    .. [1] Dong, Roth, Su 2022, Gaussian Differential Privacy, arXiv:1905.02383v3, Theorem 2.7.
       The proof that rounding does not raise the loss is in this module's docstring.

    Examples
    --------
    >>> from dpnb.mechanisms import SystemNoiseSource, measure
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
            f"take it from calibration.sigma_for()"
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
