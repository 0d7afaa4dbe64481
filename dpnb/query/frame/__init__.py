"""pandas verbs that build plans: lazy, immutable, and without a single row.

``frame``      a view of a private table
``expressed``  one column of it, or something computed from its columns: operators and functions
``series``     the same, with the questions that it can be asked
``groupby``    a view split into groups
``lookup``     a join with a public table
``spelling``   what an analyst writes, checked: constants, keys, bins, the columns of ``agg``
``refusal``    what pandas has and a private table has not
"""

from dpnb.query.frame.frame import Frame
from dpnb.query.frame.series import Series, cut

__all__ = ["Frame", "Series", "cut"]
