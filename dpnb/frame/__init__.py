"""pandas-like verbs that build plans: lazy, and without access to any row.

``view``             the rows and columns that are selected; shared by the next three
``frame``            a view of a private table
``series``           one column of a view, also of a grouped one
``aggregations``     its aggregations that are one number, and its description
``grouping``         methods of frames that split them into groups
``groupby``          a view split into groups
``columnwise``       aggregations of all numeric columns of a frame or its groups
``layout``           methods of frames that choose, rename and convert columns
``selection``        ``df.loc``
``query_text``       ``df.query`` and ``df.eval``: conditions as text, parsed and never evaluated
``reshape``          two-way tables and indicators
``periods``          groups by calendar periods
``column_expr``      expressions of columns: operators and functions
``column_methods``   methods of columns that are neither row-wise functions nor aggregations
``named_operators``  operators by their names in pandas
``numpy_functions``  numpy's functions of columns
``date_parts``       parts of a date
``formula``          regressions; ``formula_text`` parses ``"y ~ x1 + C(x2)"``
``lookup``           joins with another table of the session, or with a public one
``public_keys``      keys of groups as an analyst gives them
``shares``           shares within groups
``unit_column``      the column that identifies the privacy unit
``date_bins``        ``dpnb.cut``: bins of numbers and dates
``plot``             histograms of a column, and ``column.plot``
``pipe``             ``df.pipe(function)``
``coerce``           validation of the analyst's arguments: bins, quantile levels, the columns of ``agg``
``options``          keyword arguments of pandas that have no effect here
``verbs``            names of aggregations
``declared_types``   declared types in words
``names``            the names of columns
``no_operators``     refuses operators of whole tables
``unsupported``      pandas operations that a private table does not offer; ``remedies`` says what to write instead,
                     ``examples`` with which columns, ``callers`` for which function of another library
"""

from dpnb.frame.date_bins import cut
from dpnb.frame.frame import Frame
from dpnb.frame.groupby import GroupBy
from dpnb.frame.reshape import crosstab, get_dummies
from dpnb.frame.series import Series

__all__ = ["Frame", "GroupBy", "Series", "crosstab", "cut", "get_dummies"]
