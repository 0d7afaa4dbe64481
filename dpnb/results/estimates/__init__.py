"""Noisy sums -> estimates and intervals.  Post-processing: nothing here sees a row, so nothing here costs.

``noisy``     the sums of one part in natural units, with their noise
``ratios``    quotients of two sums, by Fieller's theorem
``moments``   variances, correlations and regressions of noisy second moments
``quantiles`` quantiles of a noisy tree, made consistent
``discovered`` the sizes of discovered groups, given that they were named
``estimate``  the view of a question: which of these, for which part
``expected``  the errors to expect of a release that is not made yet
``outputs``   what the numbers of an answer are called

Intervals cover the noise.  They do not cover sampling, clamping to the declared bounds, or rows beyond what counts of
one unit; each moves the quantity that is estimated, not the noise.
"""

from dpnb.results.estimates.estimate import estimate
from dpnb.results.estimates.noisy import IntervalArrays

__all__ = ["IntervalArrays", "estimate"]
