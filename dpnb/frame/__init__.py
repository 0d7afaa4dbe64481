"""pandas-like verbs that build plans: lazy, immutable, and without access to any row.

``view``         the rows and columns that are selected; shared by the next three
``frame``        a view of a private table
``series``       one column of a view, with its aggregations
``groupby``      a view split into groups
``column_expr``  expressions of columns: operators and functions
``date_parts``   parts of a date
``formula``      regressions
``lookup``       join with a public table
``coerce``       validation of the analyst's arguments: bins, quantile levels, the columns of ``agg``
``unsupported``  pandas operations that a private table does not offer
"""

from dpnb.frame.frame import Frame
from dpnb.frame.groupby import GroupBy
from dpnb.frame.series import Series, cut

__all__ = ["Frame", "GroupBy", "Series", "cut"]
