"""pandas verbs that build plans: lazy, immutable, and without a single row.

``view``         which rows and columns are meant: what the next three share
``frame``        a view of a private table
``series``       one column of it, with the questions that it can be asked
``groupby``      a view split into groups
``column_expr``  what is computed from columns: operators and functions
``date_parts``   parts of a date
``formula``      regressions
``lookup``       a join with a public table
``coerce``       what an analyst writes, checked: constants, keys, bins, the columns of ``agg``
``unsupported``  what pandas has and a private table has not
"""

from dpnb.frame.frame import Frame
from dpnb.frame.groupby import GroupBy
from dpnb.frame.series import Series, cut

__all__ = ["Frame", "GroupBy", "Series", "cut"]
