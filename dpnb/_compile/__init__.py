"""Compilation of a plan to a linear query.

Every row has a short integer vector (its *features*), which is added to the cell of its group; a unit's vector is the
sum over the unit's rows; the answer is the sum over all units, plus noise, plus post-processing.  A new aggregation
needs new features and a post-processing step.
"""

from dpnb._compile.sensitivity import LinearQuery, linear_query

__all__ = ["LinearQuery", "linear_query"]
