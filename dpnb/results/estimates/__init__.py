"""Noisy sums -> estimates and intervals.  Post-processing: no code here reads a row, so it is free.

``noisy``              the sums of one part of a query in natural units, with their noise; quotients of two of them, by
                       Fieller's theorem
``moments``            variances, correlations and regressions of noisy second moments
``regression``         the released numbers of a regression: terms, coefficients and their covariances
``quantiles``          quantiles of a noisy tree, made consistent
``discovered_groups``  the sizes of discovered groups, conditional on their discovery
``estimate``           the view of a query: which of these, for which part
``expected``           the expected errors of a release before it is made
``outputs``            the names of the numbers of an answer

Intervals cover the noise.  They do not cover sampling, clamping to the declared bounds, or rows beyond the
contribution bounds; each of these changes the estimated quantity, not the noise.
"""

from dpnb.results.estimates.estimate import estimate
from dpnb.results.estimates.noisy import IntervalArrays

__all__ = ["IntervalArrays", "estimate"]
