"""What the mechanisms' tests share: sources whose words are planned, and slow ways to the right answer."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpnb.mechanisms.randomness import NotPrivateSeededSource

SIGN = 1 << 63
DIGITS = SIGN - 1


class Prefetched:
    """Seeded words, drawn many at a time: asking for sixteen takes longer than using them."""

    private = False

    def __init__(self, seed: int) -> None:
        self._inner = NotPrivateSeededSource(seed)
        self._block = self._inner.words(0)
        self._used = 0

    def words(self, n: int) -> NDArray[np.uint64]:
        if self._used + n > len(self._block):
            self._block, self._used = self._inner.words(max(n, 1 << 16)), 0
        self._used += n
        return self._block[self._used - n : self._used]


class PlannedWords:
    """Gives the planned words in order, and fails the test when more are asked for than were planned."""

    private = False

    def __init__(self, words: Sequence[int]) -> None:
        self.left = [int(word) for word in words]

    def words(self, n: int) -> NDArray[np.uint64]:
        if n > len(self.left):
            raise AssertionError(f"{n} words asked for, {len(self.left)} left")
        given, self.left = self.left[:n], self.left[n:]
        return np.array(given, dtype=np.uint64)


def rounded_by_inversion(total: int, sigma: float, words: Sequence[int]) -> int:
    """Round (S + sigma Z)/h by inverting the normal distribution function in arbitrary precision.

    The first word's top bit is the sign; the other bits and the further words are the digits of U in (0, 1/2).
    Both ends of what the words leave open must round alike.
    """
    digits, bits = words[0] & DIGITS, 64
    for word in words[1:]:
        digits, bits = digits << 64 | int(word), bits + 64
    exponent = floor_log2(sigma) - 20
    ends = set()
    with mpmath.workprec(4 * bits + 200 + total.bit_length() + abs(exponent)):
        for numerator in (4 * digits + 1, 4 * digits + 3):
            z = normal_quantile(mpmath.ldexp(mpmath.mpf(numerator), -bits - 2), bits)
            z = z if words[0] & SIGN else -z
            ends.add(int(mpmath.nint((total + mpmath.mpf(sigma) * z) / mpmath.mpf(2) ** exponent)))
    if len(ends) != 1:
        raise AssertionError("the planned words leave the rounding open")
    return ends.pop()


def normal_quantile(u: mpmath.mpf, bits: int) -> mpmath.mpf:
    """Invert the normal distribution function by Newton's method, to twice as many bits as asked for."""
    z = mpmath.mpf(float(ndtri(float(u))))
    for _ in range(50):
        step = (mpmath.erfc(-z / mpmath.sqrt(2)) / 2 - u) / mpmath.npdf(z)
        z -= step
        if abs(step) < mpmath.ldexp(1, -bits):
            return z
    raise AssertionError("Newton's method did not settle")


def floor_log2(sigma: float) -> int:
    """Find the exponent of the power of two at or below sigma, by rational comparison."""
    exponent = 0
    while Fraction(2) ** exponent > Fraction(sigma):
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= Fraction(sigma):
        exponent += 1
    return exponent


def words_at_boundary(threshold: Fraction, count: int) -> list[int]:
    """Give the first `count` words of the digits of Phi(threshold), threshold < 0: Z sits beside the boundary."""
    bits = 64 * count
    with mpmath.workprec(2 * bits + 200):
        t = mpmath.mpf(threshold.numerator) / threshold.denominator
        digits = int(mpmath.floor(mpmath.ldexp(mpmath.erfc(-t / mpmath.sqrt(2)) / 2, bits)))
    return [digits >> (bits - 64 * (i + 1)) & (2**64 - 1) for i in range(count)]
