"""Noisy sums -> estimates and intervals.  Post-processing: no code here reads a row, so it is free.

Intervals cover the noise.  They do not cover sampling, clamping to the declared bounds, or rows beyond the
contribution bounds; each of these changes the estimated quantity, not the noise.
"""

from dpnb.results.estimates.estimate import estimate
from dpnb.results.estimates.noisy import IntervalArrays

__all__ = ["IntervalArrays", "estimate"]
