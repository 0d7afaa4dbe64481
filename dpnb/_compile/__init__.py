"""Compilation of a plan to a linear query.

Every row has a short integer vector (its *features*), which is added to the cell of its group; a unit's vector is the
sum over the unit's rows; the answer is the sum over all units, plus noise, plus post-processing.  A new aggregation
needs new features and a post-processing step.
"""

# The modules:
#
# grid         real numbers as integers
# features     the kinds of features of a row
# lowering     the features that measure an aggregation; products, scores and within, what it is computed from
# linear       the compiled plan: features with their weights, groups, the largest contribution of one unit
# work         the work of a query, before it is compiled
# soundness    the last check: every range, width, grid, scale and sensitivity is finite, normal and positive
# workload     several queries as tables over the same groups; marginals, their mathematics
# explanation  the contribution and the noise in words; missing, the rows that are left out

from dpnb._compile.linear import LinearQuery, linear_query

__all__ = ["LinearQuery", "linear_query"]
