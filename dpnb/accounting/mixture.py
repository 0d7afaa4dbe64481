"""The best parameter of a normal mixture, for both the odometer and the confidence sequence.

Both boundaries are sqrt(V + g) sqrt(2 log(r^(1/2)/delta)) with r = (V + g)/g.  Setting the derivative in g to zero at a
given V leaves r - 1 - log r = 2 log(1/delta), that is r = -W(-delta^2/e) on the lower branch of Lambert's W, and
g = V/(r - 1).  Solved here for s = r - 1 from log(1/delta), so that delta^2 cannot underflow.

Any positive parameter gives a valid boundary, so nothing in this file needs directed rounding.
"""

from __future__ import annotations

import math
from functools import lru_cache


@lru_cache(maxsize=256)
def optimal_ratio(log_inverse_delta: float) -> float:
    """The s = V/g that is best for the two-sided boundary: s - log(1 + s) = 2 log(1/delta), with log(1/delta) > 0.

    The left side is convex and at least s^2/(2 + 2s), so the positive root of that bound lies to the right, and
    Newton's method descends from it without overshooting.
    """
    target = log_inverse_delta
    s = 2 * (target + math.sqrt(target) * math.sqrt(target + 1))
    while True:
        lower = s - (s - math.log1p(s) - 2 * target) * (1 + s) / s
        if not 0 < lower < s:
            return s
        s = lower


def optimal_ratio_onesided(log_inverse_delta: float) -> float:
    """The s = V/g that is best for the one-sided boundary sqrt(V + g) sqrt(2 log((1 + q)/2)), q = (1 + s)^(1/2)/delta.

    The derivative vanishes where s q/(2 (1 + q)) = log((1 + q)/2); found by bisection, for log(1/delta) > 0.
    """

    def falls(s: float) -> bool:
        log_q = log_inverse_delta + math.log1p(s) / 2
        return s / (1 + math.exp(-log_q)) / 2 < log_half_of_one_plus_exp(log_q)

    low, high = 0.0, 1.0
    while falls(high):
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if falls(middle) else (low, middle)
    return high


def log_half_of_one_plus_exp(x: float) -> float:
    """log((1 + e^x)/2) for x >= 0, without overflow and without cancellation near 0."""
    if x > 30:
        return x - math.log(2) + math.log1p(math.exp(-x))
    return math.log1p(math.expm1(x) / 2)
