"""How above-threshold divides its epsilon: see :mod:`dpnb.interactive.threshold.above_threshold`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpnb.accounting.exact import Number, positive, shown
from dpnb.errors import InvalidValueError

MAX_COUNT = 10**9
"""Maximum number of positive answers and of queries."""


@dataclass(frozen=True, slots=True)
class EpsilonSplit:
    """The parts of epsilon: of the threshold, of all positive answers together, and of all their values together."""

    threshold: Fraction  # e1 in `above_threshold`
    positives: Fraction  # e2
    values: Fraction  # e3; 0 without values

    @property
    def epsilon(self) -> Fraction:
        """The total."""
        return self.threshold + self.positives + self.values

    @classmethod
    def divide(
        cls, epsilon: Number, max_positives: int, *, monotonic: bool = False, return_values: bool = False
    ) -> EpsilonSplit:
        """Divide epsilon so that the comparisons are as accurate as possible; the parts sum to epsilon exactly.

        Between threshold and positives the ratio is 1 : (2c)^(2/3), or 1 : c^(2/3) if monotonic, which minimises the
        variance of nu - rho (Lyu, Su and Li on the allocation), the power rounded to tenths.  Values get half of
        epsilon: the noise of the comparisons and of the values is then at most twice what it would be with all of
        epsilon.

        c is `max_positives`, 1 to 10^9.  A float epsilon means its shortest decimal.  `monotonic` means that adding a
        unit changes all queries in the same direction, `return_values` that positive answers include values.
        """
        total, count = positive(epsilon, name="epsilon"), whole_count(max_positives, "max_positives")
        decisions = total / 2 if return_values else total
        tenths = _cube_root(1000 * (count if monotonic else 2 * count) ** 2)
        threshold = decisions * Fraction(10, 10 + tenths)
        return cls(threshold, decisions - threshold, total - decisions)


def whole_count(value: object, name: str) -> int:
    """A declared number of positive answers or queries, an integer from 1 to 10^9."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_COUNT:
        raise InvalidValueError(f"{name}: must be an integer from 1 to {MAX_COUNT:,}; got {shown(value)}")
    return value


def _cube_root(number: int) -> int:
    """The integer nearest to the cube root of an even number, the same on every machine; ties cannot occur."""
    root = round(math.cbrt(number))
    while (2 * root - 1) ** 3 > 8 * number:
        root -= 1
    while (2 * root + 1) ** 3 < 8 * number:
        root += 1
    return root
