"""The one idea: a question is a linear query.

Every row gives a short integer vector (its *features*), put into the cell of its group; a unit's vector is the sum
over the unit's rows; the answer is the sum over all units, plus noise, plus post-processing.  A new aggregation is a
new set of features (`compile`) and a post-processing (`dpnb.results`).

``features``     what a row can give
``sensitivity``  how much one unit's rows can add up to, under the curator's limits
``query``        a plan compiled: features with their weights, groups, sensitivity
``sound``        the last check: every range, width, grid, scale and sensitivity is finite, normal and positive
``explain``      the same in words
"""

from dpnb._compile.linear import LinearQuery, linear_query

__all__ = ["LinearQuery", "linear_query"]
