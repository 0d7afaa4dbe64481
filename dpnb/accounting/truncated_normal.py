"""The mean of a normal observation that is seen only if it reaches a threshold.

Y is normal with mean m and standard deviation 1, and is seen only where Y >= 0 (everything in standard deviations, from
the threshold).  Given that it is seen::

    P(Y > y) = Phi(m - y) / Phi(m)    for y >= 0,

which rises strictly from 0 to 1 with m: its logarithm has the derivative h(m - y) - h(m) with h = phi/Phi, and h falls.
So the m at which it is alpha/2, 1/2 and 1 - alpha/2 are the lower end of an interval that covers with probability
1 - alpha *given that Y was seen*, an estimate that is too high as often as too low, and the upper end.  The interval
that Phi gives without the condition, y -+ z, covers less the further m lies below the threshold, with limit 0.

If several independent observations are each seen or not by the same rule, then given which are seen they are still
independent, so intervals at 1 - (1 - alpha)^(1/s) of the s seen ones hold simultaneously with probability 1 - alpha.

The law is the pivot of Lee, Sun, Sun and Taylor 2016, *Exact post-selection inference, with application to the lasso*
(arXiv:1311.6238, Section 5), for one observation and one threshold.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS = 60
"""Each step at least halves the bracket, which is at most about 80 standard deviations wide; usually 8 suffice."""

_CLOSE = 1e-9
"""In standard deviations: once Newton's step is this small, the remaining error is about its square."""

_ROOM = 1e-8
"""In standard deviations, added outward: far above `_CLOSE` and the rounding error of an end.

`_log_ratio` is off by a few units of 2^-52 times 1 + its own size, and below the threshold it rises with the mean at a
rate of at least excess/2, at least 2^-22 on the output grid: 1e-9.
"""


def alpha_of_each(alpha: float, seen: int) -> float:
    """The alpha of each of several intervals for which all hold at once with 1 - alpha, given which are seen.

    Rounded down; `seen` is the number of the intervals.
    """
    return -math.expm1(math.log1p(-alpha) / max(seen, 1)) * (1 - 2.0**-48)


def truncated_mean(excess: Floats, log_tail: float, *, least: float) -> tuple[Floats, Floats]:
    """Enclose the mean at which a value above the observation has a given probability, given that one is seen.

    `excess` is how far the observations are above the threshold, >= 0, in standard deviations; `log_tail` the logarithm
    of the probability P(Y > excess | Y >= 0), < 0.  The search ends at `least`, at least -50, which is returned for a
    mean below it.  Returns bounds below and above the mean, `_ROOM` included, from the threshold, in standard
    deviations.  Never raises, whatever the observations are.
    """
    from scipy.special import ndtri  # imported when first used

    tail, rest = math.exp(log_tail), -math.expm1(log_tail)
    with np.errstate(all="ignore"):
        # Phi(m - y) = tail Phi(m) is at most tail, and at least tail/2 where m is above the threshold.
        quantile = float(ndtri(tail)) if tail < 0.5 else -float(ndtri(rest))
        start = excess + float(ndtri(tail / 2))
        mean = np.where(start > 0, start, least)
        high = np.maximum(excess + quantile, mean)
        open_ = np.flatnonzero(_log_ratio(np.full_like(mean, least), excess) < log_tail)
        ended = np.setdiff1d(np.arange(len(mean)), open_)
        for _ in range(_STEPS):
            if not len(open_):
                break
            # The logarithm is concave in the mean, so Newton's method from below stays below.
            low, end, y = mean[open_], high[open_], excess[open_]
            step = (log_tail - _log_ratio(low, y)) / (_hazard(low - y) - _hazard(low))
            known = np.isfinite(step)
            low = np.where(known, np.clip(low + step, low, end), low)
            middle = (low + end) / 2
            below = _log_ratio(middle, y) < log_tail
            go_on = ~(known & (step <= _CLOSE)) & (end - low > _CLOSE)
            mean[open_] = np.where(go_on & below, middle, low)
            high[open_] = np.where(below, end, middle)
            open_ = open_[go_on]
        above = mean + _ROOM
        above[ended] = least
        mean[ended] = least
        return np.maximum(mean - _ROOM, least), above


def _hazard(x: Floats) -> Floats:
    """phi(x)/Phi(x), the derivative of log Phi."""
    from scipy.special import erfcx  # imported when first used

    return np.asarray(math.sqrt(2 / math.pi) / erfcx(-x / math.sqrt(2)))


def _log_ratio(mean: Floats, excess: Floats) -> Floats:
    """log(Phi(mean - excess)/Phi(mean)), without taking a difference of large logarithms."""
    from scipy.special import erfcx, log_ndtr  # imported when first used

    log_ratio = np.empty_like(mean)
    tail = mean < 0
    # Phi(x) = exp(-x^2/2) erfcx(-x/sqrt(2))/2, and the difference of the squares is y (m - y/2) exactly.
    m, y = mean[tail], excess[tail]
    log_ratio[tail] = y * (m - y / 2) + np.log(erfcx((y - m) / math.sqrt(2)) / erfcx(-m / math.sqrt(2)))
    m, y = mean[~tail], excess[~tail]
    log_ratio[~tail] = log_ndtr(m - y) - log_ndtr(m)
    return log_ratio
