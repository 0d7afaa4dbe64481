"""The sizes of discovered groups, conditional on their discovery.

A group is discovered because its noisy number of units reached a threshold, so the noise of discovered groups is not
normal: it is truncated at the threshold (`dpnb.accounting.truncated_normal`).  Intervals cover conditional on the
discovery of the group, however far below the threshold its true number is, and so on average over the discovered groups
too; estimates are as often too high as too low.

A noisy number is rounded to a multiple j of the output grid h, and the group is discovered if j is at least k.  So the
number of units plus real noise was at least (k - 1/2) h, which is the threshold here, and lay between (j - 1/2) h and
(j + 1/2) h, each of which gives one end of the interval.

A discovered group has at least one unit: noise is added only to groups with a unit.  The ends are whole numbers,
rounded outward.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpnb.accounting.truncated_normal import truncated_mean
from dpnb.mechanisms.measurement import Measurement
from dpnb.results.estimates.noisy import IntervalArrays

GIVEN = "conditional on the discovery of the groups"
"""The condition of the intervals of discovered groups, and of estimates computed from them."""

REACH = 8.0
"""How far below one unit the lower limits that arithmetic uses may lie, in standard deviations.

A limit that is clipped at one unit does not show the noise, and an unclipped limit is unbounded if a noisy number has
only just reached the threshold.
"""


def named_groups(measurement: Measurement, least: int, alpha: float) -> IntervalArrays:
    """The numbers of units of discovered groups with their intervals, each of which may miss with `alpha`.

    `least` is the smallest multiple of the output grid at which a group is discovered; see
    `dpnb.mechanisms.partition_selection.least_named`.
    """
    sigma = measurement.sigma
    threshold = float(Fraction(2 * least - 1, 2) * Fraction(2) ** measurement.exponent)
    above = np.array([value - least for value in measurement.values], np.float64)
    # The grid in standard deviations, through the mantissa: neither needs to be in the range of normal doubles.
    mantissa, power = math.frexp(sigma)
    step = math.ldexp(1.0, measurement.exponent - power) / mantissa
    one = (1 - threshold) / sigma

    def units(grid_steps: float, log_tail: float, end: int, *, reach: float = 0.0) -> np.ndarray:
        excess = np.maximum(above + grid_steps, 0.0) * step
        return threshold + sigma * truncated_mean(excess, log_tail, least=one - reach)[end]

    with np.errstate(all="ignore"):
        low = np.floor(units(0.0, math.log(alpha / 2), 0, reach=REACH))
        high = np.maximum(np.ceil(units(1.0, math.log1p(-alpha / 2), 1)), 1.0)
        value = np.clip(units(0.5, -math.log(2), 0), 1.0, high)
        unclipped = IntervalArrays.of(value, low, high, np.full(len(value), sigma))
        return unclipped.clipped(1.0, math.inf)


def widest(sigma: float, threshold: float, alpha: float) -> float:
    """The largest half-width, in units, that the interval of a discovered group can have, for previews."""
    excess = np.linspace(0.0, 6.0, 301)
    one = (1 - threshold) / sigma
    low = truncated_mean(excess, math.log(alpha / 2), least=one)[0]
    high = truncated_mean(excess, math.log1p(-alpha / 2), least=one)[1]
    # Both ends rise with the excess, so between two points the width is at most the later high minus the earlier low.
    return sigma * float((high[1:] - low[:-1]).max()) / 2 + 1
